/* sheaf todo, sheaf plan: what is to be done, and how. */
#include <string.h>

#include "base/str.h"
#include "find.h"
#include "input.h"
#include "opt.h"
#include "print.h"

static void todos_freep(sheaf_todos **todos)
{
	sheaf_todos_free(*todos);
}

static void plans_freep(sheaf_plans **plans)
{
	sheaf_plans_free(*plans);
}

/* ---- What both do -------------------------------------------------------- */

typedef enum verb {
	VERB_LS,
	VERB_ADD,
	VERB_SET
} verb;

/* The text of `add`, and of `set` if there are words: {NULL,0} leaves it as it is. */
static int read_content(cli *c, verb v, buf *text, sheaf_str *out)
{
	if (v == VERB_SET && c->word_count < 4)
		return 0;
	int rc = input_words(c, v == VERB_ADD ? 2 : 3, text);
	*out = buf_view(text);
	return rc;
}

/* `id`: of the item. A new one has the record's. Of one that existed no record was written. */
static int report(cli *c, sheaf_str id, const sheaf_appended *done)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_str item = id.ptr != NULL ? id : sheaf_str_of(done->id);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "item", item);
		if (done->existed) {
			js_u64(&out, "seq", done->seq);
			js_bool(&out, "existed", true);
		} else {
			js_appended(&out, done);
		}
		js_close(&out, '}');
	} else {
		text_safe(&out, item, TEXT_ID);
	}
	buf_char(&out, '\n');
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* The item whose id is `name`, or begins so if no other does. NULL after a report. */
static int pick(cli *c, const char *name, sheaf_str id, size_t at, size_t *found)
{
	size_t len = strlen(name);
	if (str_is(id, name)) {
		*found = at;
		return 1;
	}
	if (len < 4 || id.len < len || memcmp(id.ptr, name, len) != 0)
		return 0;
	if (*found != SIZE_MAX)
		return usage(c, "several items begin like '%.40s'", name);
	*found = at;
	return 0;
}

/* Whether an `add` repeats what is there: what it does not say may have changed since. */
static bool repeats(cli *c, opt_id option, sheaf_str there)
{
	return !given(c, option) || str_eq(opt_str(c, option), there);
}

/* An id that is taken: the item itself, given once more, or another's. */
static int taken(cli *c, sheaf_str id, uint64_t seq, bool same)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (!same)
		return fail_with(c, SHEAF_CONFLICT, "`set` changes one that is there",
		                 "there is another item '%.*s'", (int)id.len, id.ptr);
	done.seq = seq;
	done.existed = 1;
	if (!c->json)
		say(c, "it is there already");
	return report(c, id, &done);
}

static int none_such(cli *c, const char *name)
{
	return fail_with(c, SHEAF_NOT_FOUND, NULL, "there is no item '%.128s'", name);
}

/* One line: status, id, text. */
static void put_line(cli *c, buf *out, sheaf_str status, sheaf_str id, sheaf_str text)
{
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX);
	const char *style = str_is(status, "completed")     ? STYLE_DIM
	                    : str_is(status, "in_progress") ? STYLE_BRANCH
	                    : str_is(status, "executing")   ? STYLE_BRANCH
	                    : str_is(status, "failed")      ? STYLE_BAD
	                                                    : NULL;
	size_t used = 13;
	buf_format(&safe, "%-11.*s", (int)status.len, status.ptr);
	print_styled(&c->screen, out, style, buf_view(&safe));
	buf_lit(out, "  ");
	buf_reset(&safe);
	text_safe(&safe, id, TEXT_ID);
	used += text_width(buf_view(&safe)) + 2;
	buf_str(out, buf_view(&safe));
	buf_lit(out, "  ");
	buf_reset(&safe);
	text_safe(&safe, text, TEXT_LINE);
	text_cut(out, buf_view(&safe), c->screen.width > used + 16 ? c->screen.width - used : 60);
	buf_char(out, '\n');
}

static int verb_of(cli *c, verb *out)
{
	const char *word = c->word_count > 1 ? c->words[1] : "ls";
	if (strcmp(word, "ls") == 0)
		*out = VERB_LS;
	else if (strcmp(word, "add") == 0)
		*out = VERB_ADD;
	else if (strcmp(word, "set") == 0)
		*out = VERB_SET;
	else
		return usage(c, "'%.40s' is none of ls, add, set", word);
	if (*out == VERB_LS && c->word_count > 2)
		return usage(c, "%s ls takes a session", c->command->name);
	if (*out == VERB_SET && c->word_count < 3)
		return usage(c, "which %s?", c->command->name);
	for (size_t i = 0; *out == VERB_LS && c->command->options[i].name != NULL; i++)
		if (given(c, c->command->options[i].id))
			return usage(c, "--%s is for add and set", c->command->options[i].name);
	return 0;
}

static int open_session(cli *c, verb v, sheaf_session **session)
{
	return v == VERB_LS ? open_for_reading(c, c->words[0], session)
	                    : open_for_writing(c, c->words[0], session);
}

/* ---- Todos --------------------------------------------------------------- */

static void js_todo(buf *out, const sheaf_todo *x)
{
	js_open(out, NULL, '{');
	js_str(out, "id", x->id);
	js_str(out, "content", x->content);
	js_str(out, "active_form", x->active_form);
	js_str(out, "status", x->status);
	js_str(out, "plan_id", x->plan_id);
	js_u64(out, "seq", x->seq);
	js_time(out, "created", x->created_us);
	js_time(out, "updated", x->updated_us);
	js_close(out, '}');
	buf_char(out, '\n');
}

static int list_todos(cli *c, const sheaf_todos *todos)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < todos->count; i++) {
		const sheaf_todo *x = todos->items[i];
		if (c->json)
			js_todo(&out, x);
		else
			put_line(c, &out, x->status, x->id, x->content);
	}
	print_out(&out);
	if (todos->count == 0 && !c->json)
		say(c, "nothing is to be done");
	return out.status != 0 ? fail_memory(c) : 0;
}

static int find_todo(cli *c, const sheaf_todos *todos, sheaf_todo *out)
{
	size_t found = SIZE_MAX;
	for (size_t i = 0; i < todos->count; i++) {
		int rc = pick(c, c->words[2], todos->items[i]->id, i, &found);
		if (rc == 1)
			break;
		if (rc != 0)
			return rc;
	}
	if (found == SIZE_MAX)
		return none_such(c, c->words[2]);
	*out = *todos->items[found];
	return 0;
}

/* The todo that has the id of an `add`, or NULL. */
static const sheaf_todo *todo_there(const sheaf_todos *todos, sheaf_str id)
{
	for (size_t i = 0; id.ptr != NULL && i < todos->count; i++) {
		if (str_eq(todos->items[i]->id, id))
			return todos->items[i];
	}
	return NULL;
}

static bool same_todo(cli *c, const sheaf_todo *there, sheaf_str content)
{
	return str_eq(there->content, content) && repeats(c, OPT_STATUS, there->status) &&
	       repeats(c, OPT_ACTIVE, there->active_form) && repeats(c, OPT_PLAN, there->plan_id);
}

int cmd_todo(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(todos_freep) sheaf_todos *todos = NULL;
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_todo todo = SHEAF_TODO_INIT;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	verb v;
	int rc = verb_of(c, &v);
	if (rc == 0)
		rc = open_session(c, v, &session);
	bool look = v != VERB_ADD || given(c, OPT_ID);
	if (rc == 0 && look && sheaf_session_todos(&todos, session, &c->err) != 0)
		rc = fail(c);
	if (rc != 0 || v == VERB_LS)
		return rc != 0 ? rc : list_todos(c, todos);
	if (v == VERB_SET)
		rc = find_todo(c, todos, &todo);
	else
		todo.id = opt_str(c, OPT_ID);
	if (rc == 0)
		rc = read_content(c, v, &text, &todo.content);
	if (rc != 0)
		return rc;
	const sheaf_todo *there = v == VERB_ADD && look ? todo_there(todos, todo.id) : NULL;
	if (there != NULL)
		return taken(c, there->id, there->seq, same_todo(c, there, todo.content));
	if (given(c, OPT_STATUS))
		todo.status = opt_str(c, OPT_STATUS);
	if (given(c, OPT_ACTIVE))
		todo.active_form = opt_str(c, OPT_ACTIVE);
	if (given(c, OPT_PLAN))
		todo.plan_id = opt_str(c, OPT_PLAN);
	if (sheaf_session_set_todo(session, &todo, NULL, NULL, &done, &c->err) != 0)
		return fail(c);
	return report(c, todo.id, &done);
}

/* ---- Plans --------------------------------------------------------------- */

static void js_plan(buf *out, const sheaf_plan *x)
{
	js_open(out, NULL, '{');
	js_str(out, "id", x->id);
	js_str(out, "name", x->name);
	js_str(out, "content", x->content);
	js_str(out, "status", x->status);
	js_str(out, "error", x->error);
	js_u64(out, "seq", x->seq);
	js_time(out, "created", x->created_us);
	js_time(out, "updated", x->updated_us);
	js_close(out, '}');
	buf_char(out, '\n');
}

static int list_plans(cli *c, const sheaf_plans *plans)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < plans->count; i++) {
		const sheaf_plan *x = plans->items[i];
		if (c->json)
			js_plan(&out, x);
		else
			put_line(c, &out, x->status, x->id,
			         x->name.len != 0 ? x->name : x->content);
	}
	print_out(&out);
	if (plans->count == 0 && !c->json)
		say(c, "there is no plan");
	return out.status != 0 ? fail_memory(c) : 0;
}

static int find_plan(cli *c, const sheaf_plans *plans, sheaf_plan *out)
{
	size_t found = SIZE_MAX;
	for (size_t i = 0; i < plans->count; i++) {
		int rc = pick(c, c->words[2], plans->items[i]->id, i, &found);
		if (rc == 1)
			break;
		if (rc != 0)
			return rc;
	}
	if (found == SIZE_MAX)
		return none_such(c, c->words[2]);
	*out = *plans->items[found];
	return 0;
}

/* The plan that has the id of an `add`, or NULL. */
static const sheaf_plan *plan_there(const sheaf_plans *plans, sheaf_str id)
{
	for (size_t i = 0; id.ptr != NULL && i < plans->count; i++) {
		if (str_eq(plans->items[i]->id, id))
			return plans->items[i];
	}
	return NULL;
}

static bool same_plan(cli *c, const sheaf_plan *there, sheaf_str content)
{
	return str_eq(there->content, content) && repeats(c, OPT_STATUS, there->status) &&
	       repeats(c, OPT_NAME, there->name) && repeats(c, OPT_ERROR, there->error);
}

int cmd_plan(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(plans_freep) sheaf_plans *plans = NULL;
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_plan plan = SHEAF_PLAN_INIT;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	verb v;
	int rc = verb_of(c, &v);
	if (rc == 0)
		rc = open_session(c, v, &session);
	bool look = v != VERB_ADD || given(c, OPT_ID);
	if (rc == 0 && look && sheaf_session_plans(&plans, session, &c->err) != 0)
		rc = fail(c);
	if (rc != 0 || v == VERB_LS)
		return rc != 0 ? rc : list_plans(c, plans);
	if (v == VERB_SET)
		rc = find_plan(c, plans, &plan);
	else
		plan.id = opt_str(c, OPT_ID);
	if (rc == 0)
		rc = read_content(c, v, &text, &plan.content);
	if (rc != 0)
		return rc;
	const sheaf_plan *there = v == VERB_ADD && look ? plan_there(plans, plan.id) : NULL;
	if (there != NULL)
		return taken(c, there->id, there->seq, same_plan(c, there, plan.content));
	if (given(c, OPT_STATUS))
		plan.status = opt_str(c, OPT_STATUS);
	if (given(c, OPT_NAME))
		plan.name = opt_str(c, OPT_NAME);
	if (given(c, OPT_ERROR))
		plan.error = opt_str(c, OPT_ERROR);
	if (sheaf_session_set_plan(session, &plan, NULL, NULL, &done, &c->err) != 0)
		return fail(c);
	return report(c, plan.id, &done);
}
