/*
 * Lists of messages in a provider's form: what all formats do alike.
 *
 * Every element is read into the draft of a message; a message is made of it
 * when the next one begins.
 */
#include "render/ingest.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

typedef struct messages {
	sheaf_messages pub; /* first: the pointer callers have */
	sheaf_message **items;
} messages;

static void items_free(sheaf_message **items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sheaf_message_free(items[i]);
	mem_free(items);
}

void sheaf_messages_free(const sheaf_messages *list)
{
	if (list == NULL)
		return;
	messages *inner = (messages *)(uintptr_t)list;
	items_free(inner->items, list->count);
	mem_free(inner);
}

void take_fail(taking *t, int code)
{
	if (t->status == 0)
		t->status = code;
}

/* Makes a message of what was read. */
static void take_end(taking *t)
{
	made m = {0};
	draft *d = &t->draft;
	if (t->role == NULL)
		return;
	take_fail(t, d->status);
	if (t->status == 0)
		take_fail(t, draft_message(&m, d, t->role));
	if (m.message != NULL && strcmp(t->role, SHEAF_ROLE_ASSISTANT) == 0)
		take_fail(t, sheaf_message_provider(m.message, t->provider));
	t->role = NULL;
	draft_clear(d);
	if (m.message == NULL)
		return;
	void *items = t->items;
	if (mem_grow(&items, &t->room, t->count + 1, sizeof(sheaf_message *)) != 0) {
		sheaf_message_free(m.message);
		take_fail(t, SHEAF_NOMEM);
		return;
	}
	t->items = items;
	t->items[t->count++] = m.message;
	t->opaque += m.opaque;
}

draft *take_message(taking *t, const char *role, bool join)
{
	if (!join || t->role == NULL || strcmp(t->role, role) != 0) {
		take_end(t);
		t->draft.salt = t->element;
		t->role = role;
	}
	return t->status == 0 ? &t->draft : NULL;
}

void take_content(draft *d, size_t result, node content, void (*add)(draft *d, node part))
{
	if (d->status != 0)
		return;
	if (json_type_of(content.v) != JSON_ARRAY) {
		draft_add(d, &d->pieces[result].text, json_string(content.v));
		return;
	}
	d->pieces[result].list = true;
	for (node_iter it = node_each(content); node_next(&it);)
		add(d, it.value);
	for (size_t i = result + 1; i < d->count; i++)
		d->pieces[i].inner = true;
}

static void take_list(taking *t, const ingest_format *how, node root)
{
	/* Where a text can stand for the list it is the user's. */
	if (json_type_of(root.v) == JSON_STRING) {
		draft *d = take_message(t, SHEAF_ROLE_USER, false);
		if (d != NULL)
			(void)draft_text(d, json_string(root.v));
	} else if (json_type_of(root.v) != JSON_ARRAY) {
		take_fail(t, SHEAF_FORMAT);
	}
	for (node_iter it = node_each(root); node_next(&it) && t->status == 0; t->element++) {
		if (json_type_of(it.value.v) == JSON_OBJECT)
			how->message(t, it.value);
		else
			take_fail(t, SHEAF_FORMAT);
		take_fail(t, t->draft.status);
	}
	take_end(t);
}

static void taking_clear(taking *t)
{
	draft_clear(&t->draft);
	for (size_t i = 0; i < t->call_count; i++) {
		buf_free(&t->calls[i].id);
		buf_free(&t->calls[i].name);
	}
	mem_free(t->calls);
	items_free(t->items, t->count);
}

static int hand_over(sheaf_messages **out, taking *t)
{
	messages *list = mem_zalloc(sizeof(*list));
	if (list == NULL)
		return SHEAF_NOMEM;
	list->items = t->items;
	list->pub = (sheaf_messages){t->count, t->items, t->opaque};
	t->items = NULL;
	t->count = 0;
	*out = &list->pub;
	return 0;
}

int sheaf_ingest_messages(sheaf_messages **out, int32_t format, sheaf_str provider, sheaf_str array,
                          sheaf_error *err)
{
	const ingest_format *how = ingest_format_of(format);
	if (out == NULL || how == NULL)
		return err_set(err, SHEAF_INVALID, "%s",
		               out == NULL ? "no place for the messages" : "no such wire format");
	_cleanup_(source_free) source s = {0};
	int rc = source_read(&s, array, err);
	if (rc != 0)
		return rc;
	if (provider.ptr == NULL)
		provider = sheaf_str_of(sheaf_format_provider(format));
	_cleanup_(taking_clear) taking t = {.draft = {.format = how}, .provider = provider};
	take_list(&t, how, s.root);
	if (t.status == 0)
		take_fail(&t, hand_over(out, &t));
	if (t.status == SHEAF_FORMAT)
		return err_set(err, t.status, "element %llu is no message in this wire format",
		               (unsigned long long)t.element);
	return t.status == 0 ? 0 : err_set(err, t.status, "%s", sheaf_code_text(t.status));
}
