/* Compares contexts and requests with earlier ones: how much stayed, and what broke it. */
#include "render/render.h"

#include "base/str.h"
#include "entry/maker.h"

/* ---- Contexts ------------------------------------------------------------ */

/* Equal hashes mean equal items up to there: the last such place is found by halving. */
static size_t items_shared(const sheaf_context *a, const sheaf_context *b)
{
	size_t low = 0, high = a->count < b->count ? a->count : b->count;
	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;
		if (sheaf_context_prefix(a, mid) == sheaf_context_prefix(b, mid))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static size_t part_bytes(const sheaf_part *p)
{
	size_t bytes = p->text.len + p->input.len + p->data.len + p->raw.len;
	for (size_t i = 0; i < p->part_count; i++)
		bytes += p->parts[i]->text.len + p->parts[i]->data.len;
	return bytes;
}

static size_t item_bytes(const sheaf_item *item)
{
	size_t bytes = 0;
	for (size_t i = 0; i < item->message->part_count; i++)
		bytes += part_bytes(item->message->parts[i]);
	return bytes;
}

static bool has_answer(const sheaf_item *item)
{
	for (size_t i = 0; i < item->message->part_count; i++) {
		if (item->message->parts[i]->kind == SHEAF_PART_TOOL_RESULT)
			return true;
	}
	return false;
}

/* One that is not known is no other. */
static bool is_other_model(const sheaf_context *a, const sheaf_context *b)
{
	if (a->provider.len != 0 && b->provider.len != 0 && !str_eq(a->provider, b->provider))
		return true;
	return a->model.len != 0 && b->model.len != 0 && !model_same(a->model, b->model);
}

static bool same_entry(const sheaf_entry *a, const sheaf_entry *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || str_eq(a->id, b->id));
}

static bool has_entry(const sheaf_context *c, uint64_t seq)
{
	for (size_t i = c->count; i-- > 0;) {
		if (c->items[i]->entry != NULL && c->items[i]->entry->seq == seq)
			return true;
	}
	return false;
}

/*
 * Whether the two are of one path: the later one still has the newest that the
 * earlier one had. That need not be its last item, as answers move to their
 * calls.
 */
static bool is_same_path(const sheaf_context *a, const sheaf_context *b)
{
	uint64_t newest = 0;
	if (a->leaf.len != 0 && str_eq(a->leaf, b->leaf))
		return true;
	for (size_t i = 0; i < a->count; i++) {
		const sheaf_entry *entry = a->items[i]->entry;
		if (entry != NULL && entry->seq > newest)
			newest = entry->seq;
	}
	return has_entry(b, newest);
}

static int32_t why_broken(const sheaf_context *a, const sheaf_context *b, size_t at)
{
	bool other_model = is_other_model(a, b);
	if (at == a->count)
		return other_model ? SHEAF_BREAK_MODEL : SHEAF_BREAK_NONE;
	if (a->items[at]->synthetic && at < b->count && !b->items[at]->synthetic &&
	    has_answer(b->items[at]))
		return SHEAF_BREAK_LATE_ANSWER;
	if (!same_entry(a->compaction, b->compaction))
		return SHEAF_BREAK_COMPACTION;
	if (!is_same_path(a, b))
		return SHEAF_BREAK_BRANCH;
	return other_model ? SHEAF_BREAK_MODEL : SHEAF_BREAK_OPTIONS;
}

void sheaf_context_common(sheaf_common *out, const sheaf_context *earlier,
                          const sheaf_context *later)
{
	*out = (sheaf_common){.items = items_shared(earlier, later)};
	for (size_t i = 0; i < out->items; i++)
		out->bytes += item_bytes(later->items[i]);
	out->why = why_broken(earlier, later, out->items);
	if (out->why != SHEAF_BREAK_NONE && out->items < later->count &&
	    later->items[out->items]->entry != NULL)
		out->entry_id = later->items[out->items]->entry->id;
}

/* ---- Requests ------------------------------------------------------------ */

/* How long the cache mark at this place is, 0 if there is none. */
static size_t mark_length(sheaf_str body, size_t at)
{
	static const char opening[] = ",\"cache_control\":{\"type\":\"ephemeral\"";
	const size_t len = sizeof(opening) - 1;
	if (body.len - at <= len || memcmp(body.ptr + at, opening, len) != 0)
		return 0;
	const char *end = memchr(body.ptr + at + len, '}', body.len - at - len);
	return end != NULL ? (size_t)(end + 1 - body.ptr) - at : 0;
}

size_t sheaf_request_common(const sheaf_request *earlier, const sheaf_request *later)
{
	sheaf_str a = earlier->body, b = later->body;
	size_t i = 0, k = 0, shared = 0;
	for (;;) {
		if (i < a.len && a.ptr[i] == ',')
			i += mark_length(a, i);
		if (k < b.len && b.ptr[k] == ',')
			k += mark_length(b, k);
		if (i == a.len || k == b.len || a.ptr[i] != b.ptr[k])
			return shared;
		i++;
		k++;
		shared++;
	}
}
