/* Renders the conversation in slices: before a compaction, in its place, after it. */
#include "convert/export_wire.h"

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "sheaf/render.h"

static void contextp_free(sheaf_context **c)
{
	sheaf_context_free(*c);
}

static void requestp_free(sheaf_request **r)
{
	sheaf_request_free(*r);
}

static int64_t time_of(const sheaf_context *c)
{
	for (size_t i = c->count; i-- > 0;) {
		if (c->items[i]->entry != NULL)
			return c->items[i]->entry->time_us;
	}
	return 0;
}

/* What concerns a request that is sent, and nothing that is written down. */
static bool is_of_request(int32_t note)
{
	return note == SHEAF_NOTE_PREFILL || note == SHEAF_NOTE_TOOLS || note == SHEAF_NOTE_MOVED ||
	       note == SHEAF_NOTE_THINKING_OFF;
}

static int losses_count(export *ex, const sheaf_note *const *notes, size_t count)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (is_of_request(notes[i]->what))
			continue;
		rc = export_loss(ex, sheaf_note_name(notes[i]->what));
	}
	return rc;
}

/* The items from one to another as elements. */
static int slice_write(export *ex, const wire_way *way, wire_phase phase, const sheaf_context *c,
                       size_t from, size_t to)
{
	_cleanup_(requestp_free) sheaf_request *request = NULL;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	sheaf_context slice = *c;
	sheaf_str element;
	if (from >= to)
		return 0;
	slice.items += from;
	slice.count = to - from;
	how.format = way->format;
	how.cache = SHEAF_CACHE_OFF;
	bool own = str_is(c->provider, sheaf_format_provider(way->format)) && c->model.len != 0;
	how.model = own ? c->model : sheaf_str_of(way->model);
	int rc = sheaf_render(&request, &slice, &how, ex->err);
	if (rc == SHEAF_CONTEXT)
		return 0;
	if (rc == 0)
		rc = losses_count(ex, request->notes, request->note_count);
	if (rc != 0)
		return rc;
	sheaf_str list = json_member_bytes(request->body, way->list);
	for (size_t at = 0; rc == 0 && list.ptr != NULL && json_element_next(list, &at, &element);)
		rc = way->take(ex, way->ctx, phase, element, time_of(&slice));
	return rc;
}

/* The first item after a record. */
static size_t item_after(const sheaf_context *c, uint64_t seq)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i]->entry != NULL && c->items[i]->entry->seq > seq)
			return i;
	}
	return c->count;
}

static int context_make(export *ex, sheaf_context **out, sheaf_str leaf, bool whole)
{
	sheaf_context_options how = SHEAF_CONTEXT_OPTIONS_INIT;
	how.branch = ex->options.branch;
	how.leaf = leaf;
	how.without_compaction = whole;
	how.allow_damage = 1;
	return sheaf_session_context(out, ex->session, &how, ex->err);
}

/* What a compaction replaced, as far as it is to be written and not too much. */
static int replaced_write(export *ex, const wire_way *way, const sheaf_entry *compaction)
{
	_cleanup_(contextp_free) sheaf_context *c = NULL;
	int rc = context_make(ex, &c, compaction->parent_id, true);
	if (rc == SHEAF_TOO_LARGE)
		return export_loss(ex, "history");
	if (rc != 0)
		return rc;
	return slice_write(ex, way, WIRE_SAID, c, item_after(c, ex->from_seq), c->count);
}

int export_wire(export *ex, const wire_way *way)
{
	_cleanup_(contextp_free) sheaf_context *c = NULL;
	int rc = context_make(ex, &c, ex->options.leaf, false);
	if (rc != 0)
		return rc;
	size_t from = item_after(c, ex->from_seq);
	if (c->compaction != NULL && c->compaction->seq > ex->from_seq) {
		from = item_after(c, c->compaction->seq);
		rc = replaced_write(ex, way, c->compaction);
		if (rc == 0)
			rc = slice_write(ex, way, WIRE_REPLACEMENT, c, 0, from);
		if (rc == 0)
			rc = way->take(ex, way->ctx, WIRE_REPLACED, (sheaf_str){NULL, 0},
			               c->compaction->time_us);
	}
	if (rc == 0)
		rc = slice_write(ex, way, WIRE_SAID, c, from, c->count);
	/* What goes on a file of its own format leaves the branches in it. */
	return rc == 0 && ex->from_seq == 0 ? export_path_losses(ex) : rc;
}

void export_uuid(const export *ex, char out[WIRE_ID_ROOM])
{
	sheaf_str name = ex->head->info->session;
	if (name.len >= UUID_TEXT) {
		sheaf_str tail = str_make(name.ptr + name.len - UUID_TEXT, UUID_TEXT);
		if (uuid7_is(tail)) {
			memcpy(out, tail.ptr, tail.len);
			out[tail.len] = '\0';
			return;
		}
	}
	uint64_t ms = (uint64_t)(ex->head->info->created_us / 1000), h = str_hash(name);
	(void)snprintf(out, WIRE_ID_ROOM, "%08x-%04x-7%03x-%04x-%012llx",
	               (unsigned)(ms >> 16 & 0xffffffff), (unsigned)(ms & 0xffff),
	               (unsigned)(h >> 52), 0x8000U | (unsigned)(h >> 38 & 0x3fff),
	               (unsigned long long)(h * 0x9e3779b97f4a7c15U >> 16));
}
