/* What each kind of entry gives to a context, what a compaction says, what an item hashes to. */
#include "core/context.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "entry/members.h"
#include "entry/message.h"

/* ---- Settings ------------------------------------------------------------ */

static void take(sheaf_str *to, sheaf_str from)
{
	if (to->ptr == NULL && from.len != 0)
		*to = from;
}

void settings_fill(settings *s, const settings *older)
{
	take(&s->provider, older->provider);
	take(&s->model, older->model);
	take(&s->thinking_level, older->thinking_level);
}

void settings_take(settings *s, const sheaf_entry *older)
{
	switch (older->kind) {
	case SHEAF_KIND_MODEL_CHANGE:
		take(&s->provider, older->provider);
		take(&s->model, older->model);
		break;
	case SHEAF_KIND_THINKING_LEVEL:
		take(&s->thinking_level, older->text);
		break;
	case SHEAF_KIND_MESSAGE:
		if (older->message == NULL || !str_is(older->message->role, SHEAF_ROLE_ASSISTANT))
			break;
		take(&s->provider, older->message->provider);
		take(&s->model, older->message->model);
		break;
	default:
		break;
	}
}

/* ---- Compactions --------------------------------------------------------- */

/* A JSON string's bytes, unescaped into the arena; {NULL,0} if it is none. */
static int string_read(sheaf_str *out, sheaf_str bytes, arena *a, json_doc **doc, sheaf_error *err)
{
	*out = (sheaf_str){NULL, 0};
	if (bytes.len < 2 || bytes.ptr[0] != '"')
		return 0;
	int ok = 1;
	if (memchr(bytes.ptr, '\\', bytes.len) == NULL) {
		*out = arena_dup(a, str_make(bytes.ptr + 1, bytes.len - 2), &ok);
	} else {
		int rc = json_parse(doc, bytes, err);
		if (rc != 0)
			return rc;
		*out = arena_dup(a, json_string(json_root(*doc)), &ok);
	}
	return ok ? 0 : err_nomem(err);
}

static bool is_array(sheaf_str value)
{
	return value.len >= 2 && value.ptr[0] == '[';
}

static int kept_ids_read(compaction_info *out, sheaf_str elements, arena *a, json_doc **doc,
                         sheaf_error *err)
{
	sheaf_str value;
	size_t count = 0;
	for (size_t at = 0; elements_next(elements, &at, &value);)
		count++;
	sheaf_str *ids = arena_alloc(a, (count + 1) * sizeof(*ids));
	if (ids == NULL)
		return err_nomem(err);
	for (size_t at = 0; elements_next(elements, &at, &value);) {
		int rc = string_read(&ids[out->kept_count], value, a, doc, err);
		if (rc != 0)
			return rc;
		out->kept_count += ids[out->kept_count].len != 0;
	}
	out->kept_ids = ids;
	return 0;
}

int compaction_read(compaction_info *out, const sheaf_entry *entry, arena *a, json_doc **doc,
                    sheaf_error *err)
{
	*out = (compaction_info){.first_kept = entry->target_id};
	sheaf_str payload = members_inside(members_find(entry->body, "compaction"));
	sheaf_str replacement = members_find(payload, "replacement");
	sheaf_str kept_ids = members_find(payload, "kept_ids");
	sheaf_str model = members_find(payload, "model");
	int rc;

	if (is_array(replacement)) {
		out->replaces = true;
		out->replacement = members_inside(replacement);
	} else if (is_array(kept_ids)) {
		out->chooses = true;
		rc = kept_ids_read(out, members_inside(kept_ids), a, doc, err);
		if (rc != 0)
			return rc;
	}
	rc = string_read(&out->settings.thinking_level, members_find(payload, "thinking_level"), a,
	                 doc, err);
	if (rc != 0)
		return rc;
	if (model.len == 0 || model.ptr[0] != '{')
		return string_read(&out->settings.model, model, a, doc, err);
	model = members_inside(model);
	rc = string_read(&out->settings.provider, members_find(model, "provider"), a, doc, err);
	if (rc != 0)
		return rc;
	return string_read(&out->settings.model, members_find(model, "model_id"), a, doc, err);
}

int replacement_next(const compaction_info *c, size_t *at, const sheaf_message_view **out, arena *a,
                     json_doc **doc, sheaf_error *err)
{
	sheaf_str bytes;
	if (!elements_next(c->replacement, at, &bytes))
		return 0;
	sheaf_message_view *view = NULL;
	int rc = json_parse(doc, bytes, err);
	if (rc == 0)
		rc = message_read(&view, json_root(*doc), bytes, a, err);
	if (rc == SHEAF_NOMEM)
		return rc;
	if (rc != 0)
		return err_set(err, SHEAF_DAMAGED,
		               "a compaction's replacement holds what is no message");
	*out = view;
	return 1;
}

static int kind_of_row(void *ctx, const sheaf_row *row)
{
	*(int32_t *)ctx = row->damaged ? SHEAF_KIND_OTHER_FACT : row->kind;
	return 1;
}

int row_kind(sheaf_session *s, const sheaf_head *head, uint64_t seq, int32_t *kind,
             sheaf_error *err)
{
	*kind = SHEAF_KIND_OTHER_FACT;
	return read_row(s, head, seq, kind_of_row, kind, err);
}

int kept_locate(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t before,
                kept_place *out, sheaf_error *err)
{
	int32_t kind;
	*out = (kept_place){.found = false};
	int rc = read_find(s, head, id, &out->seq, err);
	if (rc == SHEAF_NOT_FOUND || (rc == 0 && out->seq >= before))
		return 0;
	if (rc == 0)
		rc = row_kind(s, head, out->seq, &kind, err);
	if (rc != 0)
		return rc;
	out->found = true;
	out->fact = record_kind_is_fact(kind);
	return 0;
}

/* ---- Items --------------------------------------------------------------- */

bool item_possible(const sheaf_row *row, const record *r)
{
	switch (row->kind) {
	case SHEAF_KIND_MESSAGE:
	case SHEAF_KIND_MODEL_CHANGE:
	case SHEAF_KIND_THINKING_LEVEL:
	case SHEAF_KIND_BRANCH_SUMMARY:
		return true;
	case SHEAF_KIND_CUSTOM: {
		sheaf_str custom = members_inside(members_find(r->body, "custom"));
		return str_is(members_find(custom, "in_context"), "true");
	}
	default:
		return false;
	}
}

const sheaf_item *item_of_message(const sheaf_message_view *message, const sheaf_entry *entry,
                                  arena *a)
{
	sheaf_item *item = arena_zalloc(a, sizeof(*item));
	if (item == NULL)
		return NULL;
	item->kind = SHEAF_ITEM_MESSAGE;
	item->entry = entry;
	item->message = message;
	return item;
}

const sheaf_item *item_of_text(int32_t kind, sheaf_str role, sheaf_str text,
                               const sheaf_entry *entry, arena *a)
{
	sheaf_item *item = arena_zalloc(a, sizeof(*item));
	sheaf_message_view *view = arena_zalloc(a, sizeof(*view));
	sheaf_part *part = arena_zalloc(a, sizeof(*part));
	const sheaf_part **parts = arena_alloc(a, sizeof(*parts));
	if (item == NULL || view == NULL || part == NULL || parts == NULL)
		return NULL;
	part->kind = SHEAF_PART_TEXT;
	part->is_error = -1;
	part->text = text;
	parts[0] = part;
	view->role = role;
	view->parts = parts;
	view->part_count = 1;
	item->kind = kind;
	item->entry = entry;
	item->message = view;
	item->text = text;
	return item;
}

/* Content made of parts: read as the content of a user message would be. */
static int custom_parts(const sheaf_item **out, const sheaf_entry *entry, sheaf_str content,
                        arena *a, json_doc **doc, sheaf_error *err)
{
	_cleanup_(buf_free) buf json = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 64);
	sheaf_message_view *view = NULL;
	buf_lit(&json, "{\"role\":\"user\",\"content\":");
	buf_str(&json, content);
	buf_lit(&json, "}");
	int rc = buf_status(&json, err);
	if (rc == 0)
		rc = json_parse(doc, buf_view(&json), err);
	if (rc == 0)
		rc = message_read(&view, json_root(*doc), buf_view(&json), a, err);
	if (rc == SHEAF_NOMEM)
		return rc;
	if (rc != 0)
		return err_set(err, SHEAF_DAMAGED, "a custom entry's content cannot be read");
	view->json = (sheaf_str){NULL, 0};

	char nothing[1];
	size_t len = sheaf_message_view_text(view, nothing, sizeof(nothing));
	char *text = arena_alloc(a, len + 1);
	sheaf_item *item = arena_zalloc(a, sizeof(*item));
	if (text == NULL || item == NULL)
		return err_nomem(err);
	(void)sheaf_message_view_text(view, text, len + 1);
	item->kind = SHEAF_ITEM_CUSTOM;
	item->entry = entry;
	item->message = view;
	item->text = str_make(text, len);
	*out = item;
	return 0;
}

static int custom_item(const sheaf_item **out, const sheaf_entry *entry, arena *a, json_doc **doc,
                       sheaf_error *err)
{
	sheaf_str payload = members_inside(members_find(entry->body, "custom"));
	sheaf_str content = members_find(payload, "content"), text;
	if (!str_is(members_find(payload, "in_context"), "true"))
		return 0;
	if (is_array(content))
		return custom_parts(out, entry, content, a, doc, err);
	int rc = string_read(&text, content, a, doc, err);
	if (rc != 0 || text.len == 0)
		return rc;
	*out = item_of_text(SHEAF_ITEM_CUSTOM, SHEAF_STR(SHEAF_ROLE_USER), text, entry, a);
	return *out != NULL ? 0 : err_nomem(err);
}

int item_of_entry(const sheaf_item **out, const sheaf_entry *entry, arena *a, json_doc **doc,
                  sheaf_error *err)
{
	*out = NULL;
	switch (entry->kind) {
	case SHEAF_KIND_MESSAGE:
		*out = item_of_message(entry->message, entry, a);
		break;
	case SHEAF_KIND_BRANCH_SUMMARY:
		if (entry->text.len == 0)
			return 0;
		*out = item_of_text(SHEAF_ITEM_BRANCH_SUMMARY, SHEAF_STR(SHEAF_ROLE_BRANCH_SUMMARY),
		                    entry->text, entry, a);
		break;
	case SHEAF_KIND_CUSTOM:
		return custom_item(out, entry, a, doc, err);
	default:
		return 0;
	}
	return *out != NULL ? 0 : err_nomem(err);
}

/* The same as JSON, in the form messages are stored in; {NULL,0} if a part has none. */
static int joined_json(sheaf_message_view *view, arena *a)
{
	_cleanup_(buf_free) buf json = BUF_INIT(SIZE_MAX);
	int ok = 1;
	buf_lit(&json, "{\"role\":\"assistant\",\"content\":[");
	for (size_t i = 0; i < view->part_count; i++) {
		if (view->parts[i]->json.ptr == NULL)
			return 0;
		if (i != 0)
			buf_char(&json, ',');
		buf_str(&json, view->parts[i]->json);
	}
	buf_char(&json, ']');
	if (view->provider.len != 0) {
		buf_lit(&json, ",\"provider\":");
		buf_json(&json, view->provider);
	}
	if (view->model.len != 0) {
		buf_lit(&json, ",\"model\":");
		buf_json(&json, view->model);
	}
	buf_char(&json, '}');
	if (json.status != 0)
		return json.status;
	view->json = arena_dup(a, buf_view(&json), &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

/* A reply that agents wrote down piece by piece, as one message. */
const sheaf_item *item_joined(const sheaf_item *const *items, size_t count, arena *a)
{
	size_t part_count = 0, n = 0;
	for (size_t i = 0; i < count; i++)
		part_count += items[i]->message->part_count;
	sheaf_message_view *view = arena_alloc(a, sizeof(*view));
	const sheaf_part **parts = arena_alloc(a, (part_count + 1) * sizeof(*parts));
	if (view == NULL || parts == NULL)
		return NULL;
	*view = *items[0]->message;
	view->json = (sheaf_str){NULL, 0};
	view->parts = parts;
	view->part_count = part_count;
	for (size_t i = 0; i < count; i++) {
		const sheaf_message_view *m = items[i]->message;
		for (size_t k = 0; k < m->part_count; k++)
			parts[n++] = m->parts[k];
		if (m->usage != NULL)
			view->usage = m->usage;
		if (m->stop_reason.len != 0)
			view->stop_reason = m->stop_reason;
	}
	return joined_json(view, a) == 0 ? item_of_message(view, items[0]->entry, a) : NULL;
}

/* ---- Hashes -------------------------------------------------------------- */

/* Numbers go in as bytes of a fixed order, so that a hash is the same on every machine. */
static uint64_t hash_two(uint64_t a, uint64_t b)
{
	char bytes[16];
	for (unsigned i = 0; i < 8; i++) {
		bytes[i] = (char)(a >> (8 * i));
		bytes[8 + i] = (char)(b >> (8 * i));
	}
	return str_hash(str_make(bytes, sizeof(bytes)));
}

static uint64_t hash_str(uint64_t h, sheaf_str s)
{
	return hash_two(h, str_hash(s.ptr != NULL ? s : str_make("", 0)) ^ (s.ptr != NULL));
}

/* A part by itself, without those inside it. */
static uint64_t hash_part(uint64_t h, const sheaf_part *p)
{
	h = hash_two(h, (uint64_t)(uint32_t)p->kind);
	if (p->json.ptr != NULL)
		return hash_str(h, p->json);
	h = hash_two(h, (uint64_t)(uint32_t)p->is_error << 32 | (uint32_t)p->redacted);
	h = hash_two(h, p->part_count);
	const sheaf_str strings[] = {p->text,       p->signature,   p->id,        p->name,
	                             p->input,      p->tool_use_id, p->tool_name, p->source_type,
	                             p->media_type, p->data,        p->provider,  p->raw,
	                             p->ext};
	for (size_t i = 0; i < COUNT_OF(strings); i++)
		h = hash_str(h, strings[i]);
	return h;
}

uint64_t item_hash(uint64_t before, const sheaf_item *item)
{
	const sheaf_message_view *m = item->message;
	uint64_t h = hash_two(before, (uint64_t)(uint32_t)item->kind);
	h = hash_str(h, m->role);
	if (m->json.ptr != NULL) {
		h = hash_str(h, m->json);
	} else {
		h = hash_two(h, m->part_count);
		for (size_t i = 0; i < m->part_count; i++) {
			const sheaf_part *p = m->parts[i];
			h = hash_part(h, p);
			/* Results hold parts, and those hold none. */
			for (size_t k = 0; p->json.ptr == NULL && k < p->part_count; k++)
				h = hash_part(h, p->parts[k]);
		}
	}
	return h != 0 ? h : 1;
}
