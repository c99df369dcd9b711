/* sheaf ls: the sessions of a store, newest first, on request by project. */
#include <limits.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"
#include "find.h"
#include "opt.h"
#include "view.h"

#define ID_MIN 8u
#define ID_LEAST 16u /* columns; only ids that people chose, or of parts of a session, have more */
#define NAME_LEAST 8u
#define NAME_MIN 16u
#define NAME_GOOD 24u
#define GAP 2u
#define INDENT 2u /* of rows below the project they belong to */

enum {
	COL_OWNER,
	COL_ID,
	COL_NAME,
	COL_AGENT,
	COL_MESSAGES,
	COL_MODIFIED,
	COL_CWD,
	COL_COUNT
};

static const char *const headings[COL_COUNT] = {"APP/USER", "ID",       "NAME",     "AGENT",
                                                "MSGS",     "MODIFIED", "DIRECTORY"};

/* One session of the page. */
typedef struct row {
	const sheaf_session_info *info;
	sheaf_str id;     /* as it is shown */
	uint64_t project; /* which of those on the page, in the order of their newest session */
	size_t at;        /* in the order of the list */
} row;

typedef struct table {
	cli *c;
	row *rows;
	size_t count;
	size_t width[COL_COUNT];
	bool owners; /* of more than one owner */
	bool agents; /* some were imported */
	bool grouped;
	buf cell;
	buf out;
} table;

static void table_done(table *t)
{
	buf_free(&t->cell);
	buf_free(&t->out);
}

/* ---- For programs ------------------------------------------------------ */

static void js_info(buf *b, const sheaf_session_info *info)
{
	js_open(b, NULL, '{');
	js_str(b, "session", info->session);
	js_str(b, "app", info->app);
	js_str(b, "user", info->user);
	js_str(b, "name", info->name);
	js_str(b, "kind", info->kind);
	js_str(b, "parent_session", info->parent_session);
	js_str(b, "cwd", info->cwd);
	js_str(b, "preview", info->preview);
	js_time(b, "created", info->created_us);
	js_time(b, "modified", info->modified_us);
	js_u64(b, "revision", info->revision);
	js_u64(b, "records", info->records);
	js_u64(b, "messages", info->messages);
	js_u64(b, "turns", info->turns);
	js_usage(b, "usage", &info->usage);
	js_str(b, "fork_of", info->source.len != 0 ? info->source : (sheaf_str){NULL, 0});
	js_u64(b, "base", info->base);
	js_bool(b, "readonly", info->readonly != 0);
	js_bool(b, "damaged", info->damaged != 0);
	js_bool(b, "hidden", info->hidden != 0);
	js_retention(b, info);
	js_close(b, '}');
	buf_char(b, '\n');
}

static int put_json(const table *t, const sheaf_list *list)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < t->count; i++)
		js_info(&b, t->rows[i].info);
	if (list->cursor.ptr != NULL) {
		js_open(&b, NULL, '{');
		js_str(&b, "cursor", list->cursor);
		js_close(&b, '}');
		buf_char(&b, '\n');
	}
	print_out(&b);
	return b.status != 0 ? fail_memory(t->c) : 0;
}

/* ---- The page ---------------------------------------------------------- */

static int by_project(const void *a, const void *b)
{
	const row *x = a, *y = b;
	if (x->project != y->project)
		return x->project < y->project ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* Puts the sessions of a project together, projects and sessions still newest first. */
static int group(table *t)
{
	map projects = MAP_INIT;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < t->count; i++) {
		sheaf_str cwd = t->rows[i].info->cwd;
		t->rows[i].project = projects.count;
		rc = map_get_or_set(&projects, cwd.ptr != NULL ? cwd : SHEAF_STR(""),
		                    &t->rows[i].project);
	}
	map_free(&projects);
	if (rc == 0)
		qsort(t->rows, t->count, sizeof(*t->rows), by_project);
	return rc;
}

/* What a session can be called by: its id, and its id without the agent's name. */
typedef struct handle {
	sheaf_str id;
	row *of;
} handle;

static int by_id(const void *a, const void *b)
{
	return str_cmp(((const handle *)a)->id, ((const handle *)b)->id);
}

/* How much of an id tells it from all others: as much as from its neighbours in order. Parts of a
 * session (ID.agent-…, ID~2) do not stand in its way. */
static size_t needed(const handle *all, size_t count, size_t at)
{
	size_t most = ID_MIN, others = 0;
	sheaf_str id = all[at].id;
	for (size_t i = at; i-- > 0 && others < 2; others++) {
		size_t n = all[i].of != all[at].of ? text_shared(all[i].id, id) + 1 : 0;
		most = n > most ? n : most;
	}
	others = 0;
	for (size_t i = at + 1; i < count && others < 2; i++) {
		size_t n = all[i].of != all[at].of ? text_shared(all[i].id, id) : 0;
		if (n == id.len && all[i].id.len > n &&
		    (all[i].id.ptr[n] == '.' || all[i].id.ptr[n] == '~'))
			continue;
		most = n >= most ? n + 1 : most;
		others++;
	}
	return most;
}

/* On a terminal so much of the ids as people have to type; whole in a pipe. */
static int shorten_ids(table *t)
{
	handle *all = t->c->screen.tty ? arena_alloc(t->c->memory, 2 * t->count * sizeof(*all) + 1)
	                               : NULL;
	size_t count = 0;
	if (!t->c->screen.tty)
		return 0;
	if (all == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < t->count; i++) {
		row *r = &t->rows[i];
		r->id = id_of(r->info->session);
		all[count++] = (handle){r->id, r};
		if (r->id.ptr != r->info->session.ptr)
			all[count++] = (handle){r->info->session, r};
	}
	qsort(all, count, sizeof(*all), by_id);
	for (size_t i = 0; i < count; i++) {
		size_t len = needed(all, count, i);
		/* What a few more characters make whole is shown whole: people choose such ids. */
		if (all[i].id.ptr == all[i].of->id.ptr && all[i].id.len > len + 12)
			all[i].of->id = utf8_cut(all[i].id, len);
	}
	return 0;
}

static int read_page(table *t, const sheaf_list *list)
{
	t->rows = arena_zalloc(t->c->memory, list->count * sizeof(*t->rows) + 1);
	if (t->rows == NULL)
		return SHEAF_NOMEM;
	t->count = list->count;
	t->owners = given(t->c, OPT_ALL);
	t->grouped = given(t->c, OPT_BY);
	for (size_t i = 0; i < list->count; i++) {
		t->rows[i] = (row){.info = list->items[i], .id = list->items[i]->session, .at = i};
		t->agents = t->agents || agent_of(t->rows[i].id).ptr != NULL;
	}
	return t->grouped ? group(t) : 0;
}

/* ---- For people -------------------------------------------------------- */

/* Whether and when it expires, with --expired. */
static void put_expiry(const cli *c, buf *out, const sheaf_session_info *info)
{
	int64_t left_us = info->stored_us + info->ttl_us - c->screen.now_us;
	if (!given(c, OPT_EXPIRED) || (info->ttl_us == 0 && !info->pinned))
		return;
	if (info->pinned) {
		buf_lit(out, " (pinned)");
		return;
	}
	if (info->expired != SHEAF_EXPIRY_NONE) {
		buf_lit(out, " (expired, can be undeleted for ");
		left_us += info->grace_us;
	} else {
		buf_lit(out, " (expires in ");
	}
	text_span(out, left_us);
	buf_char(out, ')');
}

/* The text of one cell, safe, into t->cell. */
static void fill(table *t, const row *r, int column)
{
	const sheaf_session_info *info = r->info;
	buf *out = &t->cell;
	buf_reset(out);
	switch (column) {
	case COL_OWNER:
		text_safe(out, info->app, TEXT_LINE);
		buf_char(out, info->app.len + info->user.len != 0 ? '/' : '-');
		text_safe(out, info->user, TEXT_LINE);
		break;
	case COL_ID:
		text_safe(out, r->id, TEXT_ID);
		break;
	case COL_NAME:
		view_name(out, info);
		put_expiry(t->c, out, info);
		break;
	case COL_AGENT:
		buf_str(out, agent_of(info->session));
		break;
	case COL_MESSAGES:
		buf_u64(out, info->messages);
		break;
	case COL_MODIFIED:
		text_ago(out, info->modified_us, t->c->screen.now_us);
		break;
	default:
		view_directory(out, info->cwd);
	}
}

static bool has_column(const table *t, int column)
{
	return (column != COL_OWNER || t->owners) && (column != COL_AGENT || t->agents) &&
	       (column != COL_CWD || !t->grouped);
}

static void measure(table *t)
{
	for (int column = 0; column < COL_COUNT; column++) {
		if (!has_column(t, column))
			continue;
		t->width[column] = strlen(headings[column]);
		for (size_t i = 0; i < t->count; i++) {
			fill(t, &t->rows[i], column);
			size_t width = text_width(buf_view(&t->cell));
			t->width[column] = width > t->width[column] ? width : t->width[column];
		}
	}
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Makes the table as wide as the terminal: long ids are cut, then the directory
 * gets what the name leaves, a quarter of the line at least. Where that is too
 * little for a name, the directory goes, and then the agent.
 */
static void squeeze(table *t)
{
	size_t have = t->c->screen.width, need = t->grouped ? INDENT : 0;
	size_t *name = &t->width[COL_NAME], *id = &t->width[COL_ID], *cwd = &t->width[COL_CWD];
	for (int column = 0; column < COL_COUNT; column++)
		need += t->width[column] != 0 ? t->width[column] + GAP : 0;
	need -= GAP;
	if (have == 0 || need <= have)
		return;
	if (*id > ID_LEAST) {
		size_t give = least_of(need - have, *id - ID_LEAST);
		*id -= give;
		need -= give;
	}
	size_t both = *name + (*cwd != 0 ? GAP + *cwd : 0); /* and what they may take: */
	size_t room = have + both > need ? have + both - need : 0;
	if (both <= room)
		return;
	size_t least = least_of(*cwd, have / 4), good = least_of(*name, NAME_GOOD);
	if (*cwd != 0 && room >= good + GAP + least) {
		size_t left = room - GAP - least_of(*name, room - GAP - least);
		*cwd = least_of(*cwd, left);
		*name = least_of(*name, room - GAP - *cwd);
		return;
	}
	*cwd = 0;
	if (room < NAME_MIN && t->agents) {
		room += t->width[COL_AGENT] + GAP;
		t->width[COL_AGENT] = 0;
	}
	*name = least_of(*name, room > NAME_LEAST ? room : NAME_LEAST);
}

static void put_cell(table *t, int column, const char *style, sheaf_str safe)
{
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	if (column == COL_CWD)
		text_cut_front(&cut, safe, t->width[column]);
	else
		text_cut(&cut, safe, t->width[column]);
	size_t width = text_width(buf_view(&cut));
	size_t pad = t->width[column] > width ? t->width[column] - width : 0;
	if (column == COL_MESSAGES)
		text_spaces(&t->out, pad);
	print_styled(&t->c->screen, &t->out, style, buf_view(&cut));
	if (column != COL_MESSAGES)
		text_spaces(&t->out, pad);
	text_spaces(&t->out, GAP);
}

static const char *cell_style(int column, const sheaf_session_info *info)
{
	switch (column) {
	case COL_ID:
		return STYLE_LABEL;
	case COL_NAME:
		if (info->damaged)
			return STYLE_BAD;
		if (info->name.len != 0)
			return STYLE_TITLE;
		return info->preview.len != 0 ? NULL : STYLE_DIM;
	case COL_MESSAGES:
		return NULL;
	default:
		return STYLE_DIM;
	}
}

static void end_line(table *t, size_t begin)
{
	while (t->out.len > begin && t->out.ptr[t->out.len - 1] == ' ')
		t->out.len--;
	buf_char(&t->out, '\n');
}

/* A line of the table: a session, or the headings (NULL). */
static void put_row(table *t, const row *r)
{
	size_t begin = t->out.len;
	text_spaces(&t->out, t->grouped ? INDENT : 0);
	for (int column = 0; column < COL_COUNT; column++) {
		if (t->width[column] == 0)
			continue;
		if (r != NULL)
			fill(t, r, column);
		put_cell(t, column, r != NULL ? cell_style(column, r->info) : STYLE_DIM,
		         r != NULL ? buf_view(&t->cell) : sheaf_str_of(headings[column]));
	}
	end_line(t, begin);
}

static void put_project(table *t, const row *r)
{
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	fill(t, r, COL_CWD);
	if (t->cell.len == 0)
		buf_lit(&t->cell, "(no directory)");
	text_cut_front(&cut, buf_view(&t->cell), t->c->screen.width);
	buf_char(&t->out, '\n');
	print_styled(&t->c->screen, &t->out, STYLE_TITLE, buf_view(&cut));
	buf_char(&t->out, '\n');
}

static int put_table(table *t)
{
	if (shorten_ids(t) != 0)
		return fail_memory(t->c);
	measure(t);
	squeeze(t);
	print_page(t->c);
	put_row(t, NULL);
	for (size_t i = 0; i < t->count; i++) {
		if (t->grouped && (i == 0 || t->rows[i].project != t->rows[i - 1].project))
			put_project(t, &t->rows[i]);
		put_row(t, &t->rows[i]);
	}
	print_out(&t->out);
	return t->out.status != 0 ? fail_memory(t->c) : 0;
}

static int put_ids(const table *t)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < t->count; i++) {
		text_safe(&b, t->rows[i].info->session, TEXT_ID);
		buf_char(&b, '\n');
	}
	print_out(&b);
	return b.status != 0 ? fail_memory(t->c) : 0;
}

static int put_list(cli *c, const sheaf_list *list)
{
	_cleanup_(table_done)
		table t = {.c = c, .cell = BUF_INIT(SIZE_MAX), .out = BUF_INIT(SIZE_MAX)};
	if (read_page(&t, list) != 0)
		return fail_memory(c);
	if (c->json)
		return put_json(&t, list);
	if (c->quiet)
		return put_ids(&t);
	if (list->count == 0) {
		say(c, "no sessions%s", c->values[OPT_CURSOR] != NULL ? " left" : "");
		return 0;
	}
	int rc = put_table(&t);
	if (list->cursor.ptr != NULL)
		say(c, "more: add --cursor %.*s", (int)list->cursor.len, list->cursor.ptr);
	return rc;
}

int cmd_ls(cli *c)
{
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	char directory[PATH_MAX];
	uint64_t limit = 0;
	int rc;
	if (given(c, OPT_CWD) && (given(c, OPT_HERE) || given(c, OPT_PROJECT)))
		return usage(c, "--cwd, --project and --here name the same");
	if ((rc = opt_u64(c, OPT_LIMIT, &limit)) != 0 ||
	    (rc = opt_time(c, OPT_SINCE, &options.after_us)) != 0 ||
	    (rc = opt_time(c, OPT_BEFORE, &options.before_us)) != 0 ||
	    (rc = find_project(c, directory, &options.cwd)) != 0 || (rc = open_store(c)) != 0)
		return rc;
	options.cwd_below = 1;
	options.app = c->app;
	options.user = c->user;
	/* All of an app if one is named, else all of the store. */
	options.all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	options.all_users = given(c, OPT_ALL);
	options.name = opt_str(c, OPT_NAME);
	options.kind = opt_str(c, OPT_KIND);
	options.parent_session = opt_str(c, OPT_PARENT);
	options.cursor = opt_str(c, OPT_CURSOR);
	options.limit = limit;
	options.expired = given(c, OPT_EXPIRED);
	options.agent = opt_str(c, OPT_AGENT);
	if (given(c, OPT_CWD)) {
		options.cwd = opt_str(c, OPT_CWD);
		options.cwd_below = 0;
		if (realpath(c->values[OPT_CWD], directory) != NULL)
			options.cwd = sheaf_str_of(directory);
	}
	_cleanup_(list_freep) sheaf_list *list = NULL;
	if (sheaf_store_list(&list, c->store, &options, &c->err) != 0)
		return fail(c);
	return put_list(c, list);
}
