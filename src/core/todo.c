/* Todos and plans: facts that are set whole, of which the latest of each id holds. */
#include "sheaf/todo.h"

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "core/facts.h"
#include "entry/check.h"

static const char *const todo_words[] = {"pending", "in_progress", "completed", NULL};
static const char *const plan_words[] = {"draft",  "approved",  "executing", "completed",
                                         "failed", "cancelled", NULL};

static bool is_word(sheaf_str status, const char *const *words)
{
	for (; *words != NULL; words++)
		if (str_is(status, *words))
			return true;
	return false;
}

/* ---- Setting ------------------------------------------------------------ */

/* A fact on its way: the item's id is the record's unless it was given. */
typedef struct setting {
	buf body;
	sheaf_entry_options entry;
	char fresh[SHEAF_ID_ROOM];
} setting;

static void setting_end(setting *w)
{
	buf_free(&w->body);
}

static int setting_begin(setting *w, const char *type, sheaf_str id,
                         const sheaf_entry_options *entry, sheaf_error *err)
{
	*w = (setting){.body = BUF_INIT(SHEAF_BODY_BYTES_MAX), .entry = SHEAF_ENTRY_OPTIONS_INIT};
	if (entry != NULL)
		memcpy(&w->entry, entry,
		       entry->size < sizeof(w->entry) ? entry->size : sizeof(w->entry));
	w->entry.size = sizeof(w->entry);
	if (id.ptr == NULL && w->entry.id.ptr == NULL) {
		int rc = sheaf_id_new(w->fresh, err);
		if (rc != 0)
			return rc;
		w->entry.id = sheaf_str_of(w->fresh);
	}
	if (id.ptr == NULL)
		id = w->entry.id;
	if (id.len == 0 || id.len > SHEAF_ID_BYTES_MAX || !check_plain(id))
		return err_set(err, id.len > SHEAF_ID_BYTES_MAX ? SHEAF_LIMIT : SHEAF_INVALID,
		               "the id of a %s is 1 to %u bytes of plain text", type,
		               SHEAF_ID_BYTES_MAX);
	buf_format(&w->body, "{\"%s\":{\"id\":", type);
	buf_json(&w->body, id);
	return 0;
}

static int put(setting *w, const char *name, sheaf_str text, sheaf_error *err)
{
	if (text.ptr == NULL)
		return 0;
	int rc = text_check(text, SHEAF_BODY_BYTES_MAX, name, err);
	buf_format(&w->body, ",\"%s\":", name);
	if (rc == 0)
		buf_json(&w->body, text);
	return rc;
}

static int put_status(setting *w, sheaf_str status, const char *const *words, sheaf_error *err)
{
	if (status.ptr == NULL)
		status = sheaf_str_of(words[0]);
	if (!is_word(status, words))
		return err_set(err, SHEAF_INVALID, "'%.*s' is no status",
		               (int)(status.len < 40 ? status.len : 40), status.ptr);
	return put(w, "status", status, err);
}

static int append(setting *w, sheaf_session *session, const char *type,
                  const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	buf_lit(&w->body, "}}");
	int rc = buf_status(&w->body, err);
	return rc != 0 ? rc
	               : sheaf_session_append_json(session, sheaf_str_of(type), buf_view(&w->body),
	                                           &w->entry, how, out, err);
}

int sheaf_session_set_todo(sheaf_session *session, const sheaf_todo *todo,
                           const sheaf_entry_options *entry, const sheaf_append_options *how,
                           sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(setting_end) setting w = {.body = BUF_INIT(0)};
	sheaf_str none = {NULL, 0};
	if (session == NULL || todo == NULL)
		return err_set(err, SHEAF_INVALID, "a todo is set in a session");
	if (OPTION(todo, content, none).len == 0)
		return err_set(err, SHEAF_INVALID, "a todo says what is to be done");
	int rc = setting_begin(&w, "todo", todo->id, entry, err);
	if (rc == 0)
		rc = put(&w, "content", todo->content, err);
	if (rc == 0)
		rc = put(&w, "active_form", OPTION(todo, active_form, none), err);
	if (rc == 0)
		rc = put_status(&w, OPTION(todo, status, none), todo_words, err);
	if (rc == 0)
		rc = put(&w, "plan_id", OPTION(todo, plan_id, none), err);
	return rc != 0 ? rc : append(&w, session, "todo", how, out, err);
}

int sheaf_session_set_plan(sheaf_session *session, const sheaf_plan *plan,
                           const sheaf_entry_options *entry, const sheaf_append_options *how,
                           sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(setting_end) setting w = {.body = BUF_INIT(0)};
	sheaf_str none = {NULL, 0};
	if (session == NULL || plan == NULL)
		return err_set(err, SHEAF_INVALID, "a plan is set in a session");
	if (OPTION(plan, content, none).len == 0)
		return err_set(err, SHEAF_INVALID, "a plan says what is planned");
	int rc = setting_begin(&w, "plan", plan->id, entry, err);
	if (rc == 0)
		rc = put(&w, "name", plan->name, err);
	if (rc == 0)
		rc = put(&w, "content", plan->content, err);
	if (rc == 0)
		rc = put_status(&w, OPTION(plan, status, none), plan_words, err);
	if (rc == 0)
		rc = put(&w, "error", OPTION(plan, error, none), err);
	return rc != 0 ? rc : append(&w, session, "plan", how, out, err);
}

/* ---- Listing ------------------------------------------------------------ */

/* The item of this id, or a new one at the end. */
static void *item_of(facts *f, sheaf_str id, size_t size, bool *fresh)
{
	uint64_t at;
	*fresh = !map_get(&f->ids, id, &at);
	if (!*fresh)
		return f->items[at - 1];
	void *item = arena_zalloc(f->a, size);
	if (item == NULL || facts_add(f, item) != 0 || map_set(&f->ids, id, f->count) != 0)
		return NULL;
	return item;
}

static int take_todo(facts *f, const record *r, const sheaf_row *row, const json_val *payload)
{
	int ok = 1;
	bool fresh;
	sheaf_todo t = {
		.size = sizeof(t),
		.id = facts_str(f, payload, "id", &ok),
		.content = facts_str(f, payload, "content", &ok),
		.active_form = facts_str(f, payload, "active_form", &ok),
		.status = facts_str(f, payload, "status", &ok),
		.plan_id = facts_str(f, payload, "plan_id", &ok),
		.seq = row->seq,
		.created_us = facts_time(r),
		.updated_us = facts_time(r),
	};
	if (ok && (t.id.len == 0 || t.status.ptr == NULL || !is_word(t.status, todo_words)))
		return 0;
	sheaf_todo *item = ok ? item_of(f, t.id, sizeof(*item), &fresh) : NULL;
	if (item == NULL)
		return err_nomem(&f->err);
	if (!fresh) {
		t.id = item->id;
		t.created_us = item->created_us;
	}
	*item = t;
	return 0;
}

static int take_plan(facts *f, const record *r, const sheaf_row *row, const json_val *payload)
{
	int ok = 1;
	bool fresh;
	sheaf_plan p = {
		.size = sizeof(p),
		.id = facts_str(f, payload, "id", &ok),
		.name = facts_str(f, payload, "name", &ok),
		.content = facts_str(f, payload, "content", &ok),
		.status = facts_str(f, payload, "status", &ok),
		.error = facts_str(f, payload, "error", &ok),
		.seq = row->seq,
		.created_us = facts_time(r),
		.updated_us = facts_time(r),
	};
	if (ok && (p.id.len == 0 || p.status.ptr == NULL || !is_word(p.status, plan_words)))
		return 0;
	sheaf_plan *item = ok ? item_of(f, p.id, sizeof(*item), &fresh) : NULL;
	if (item == NULL)
		return err_nomem(&f->err);
	if (!fresh) {
		p.id = item->id;
		p.created_us = item->created_us;
	}
	*item = p;
	return 0;
}

typedef struct todos_box {
	sheaf_todos todos;
	arena *a;
} todos_box;

typedef struct plans_box {
	sheaf_plans plans;
	arena *a;
} plans_box;

/* Reads the facts of a kind; the head's revision comes back. */
static int list(facts *f, sheaf_session *session, const char *name, int32_t kind,
                facts_take_fn take, uint64_t *revision, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	int rc = session_peek(session, &head, NULL, err);
	if (rc == 0)
		rc = facts_begin(f, name, take, err);
	if (rc != 0)
		return rc;
	*revision = sheaf_head_revision(head);
	return facts_scan(f, session, head, kind, err);
}

static int give_todos(sheaf_todos **out, facts *f, uint64_t revision, sheaf_error *err)
{
	void **items;
	todos_box *box = facts_box(f, sizeof(*box), &items, err);
	if (box == NULL)
		return SHEAF_NOMEM;
	box->todos = (sheaf_todos){f->count, (const sheaf_todo *const *)items, revision};
	box->a = f->a;
	f->a = NULL;
	*out = &box->todos;
	return 0;
}

static int give_plans(sheaf_plans **out, facts *f, uint64_t revision, sheaf_error *err)
{
	void **items;
	plans_box *box = facts_box(f, sizeof(*box), &items, err);
	if (box == NULL)
		return SHEAF_NOMEM;
	box->plans = (sheaf_plans){f->count, (const sheaf_plan *const *)items, revision};
	box->a = f->a;
	f->a = NULL;
	*out = &box->plans;
	return 0;
}

int sheaf_session_todos(sheaf_todos **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(facts_end) facts f = {0};
	uint64_t revision;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = list(&f, session, "todo", SHEAF_KIND_TODO, take_todo, &revision, err);
	return rc != 0 ? rc : give_todos(out, &f, revision, err);
}

int sheaf_session_plans(sheaf_plans **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(facts_end) facts f = {0};
	uint64_t revision;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = list(&f, session, "plan", SHEAF_KIND_PLAN, take_plan, &revision, err);
	return rc != 0 ? rc : give_plans(out, &f, revision, err);
}

void sheaf_todos_free(const sheaf_todos *todos)
{
	if (todos != NULL)
		arena_free(((const todos_box *)(const void *)todos)->a);
}

void sheaf_plans_free(const sheaf_plans *plans)
{
	if (plans != NULL)
		arena_free(((const plans_box *)(const void *)plans)->a);
}
