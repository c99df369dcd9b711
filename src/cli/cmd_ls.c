/* sheaf ls: the sessions of a store, newest first. */
#include <limits.h>
#include <stdlib.h>

#include "find.h"
#include "opt.h"
#include "view.h"

#define ID_MIN 8u
#define NAME_MIN 16u
#define GAP 2u

enum {
	COL_OWNER,
	COL_ID,
	COL_NAME,
	COL_MESSAGES,
	COL_MODIFIED,
	COL_CWD,
	COL_COUNT
};

static const char *const headings[COL_COUNT] = {"APP/USER", "ID",       "NAME",
                                                "MSGS",     "MODIFIED", "DIRECTORY"};

typedef struct table {
	cli *c;
	size_t width[COL_COUNT];
	bool owners; /* of more than one owner */
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

static int put_json(cli *c, const sheaf_list *list)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < list->count; i++)
		js_info(&b, list->items[i]);
	if (list->cursor.ptr != NULL) {
		js_open(&b, NULL, '{');
		js_str(&b, "cursor", list->cursor);
		js_close(&b, '}');
		buf_char(&b, '\n');
	}
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* ---- For people -------------------------------------------------------- */

/* On a terminal so much of the id as tells it from the others of the page; whole in a pipe. */
static sheaf_str short_id(const cli *c, const sheaf_list *list, size_t at)
{
	sheaf_str id = list->items[at]->session;
	if (!c->screen.tty)
		return id;
	size_t needed = ID_MIN;
	for (size_t i = 0; i < list->count; i++) {
		size_t n = i != at ? text_shared(id, list->items[i]->session) + 1 : 0;
		needed = n > needed ? n : needed;
	}
	/* What a few more characters make whole is shown whole: people choose such ids. */
	if (id.len > needed + 12)
		id.len = needed;
	return id;
}

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
static void fill(table *t, const sheaf_list *list, size_t row, int column)
{
	const sheaf_session_info *info = list->items[row];
	buf *out = &t->cell;
	buf_reset(out);
	switch (column) {
	case COL_OWNER:
		text_safe(out, info->app, TEXT_LINE);
		buf_char(out, info->app.len + info->user.len != 0 ? '/' : '-');
		text_safe(out, info->user, TEXT_LINE);
		break;
	case COL_ID:
		text_safe(out, short_id(t->c, list, row), TEXT_ID);
		break;
	case COL_NAME:
		view_name(out, info);
		put_expiry(t->c, out, info);
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

static void measure(table *t, const sheaf_list *list)
{
	for (int column = 0; column < COL_COUNT; column++) {
		if (column == COL_OWNER && !t->owners)
			continue;
		t->width[column] = strlen(headings[column]);
		for (size_t row = 0; row < list->count; row++) {
			fill(t, list, row, column);
			size_t width = text_width(buf_view(&t->cell));
			t->width[column] = width > t->width[column] ? width : t->width[column];
		}
	}
}

/* Takes what is too wide from the directory down to a third, then from the name. */
static void squeeze(table *t)
{
	size_t have = t->c->screen.width, need = 0;
	for (int column = 0; column < COL_COUNT; column++)
		need += t->width[column] != 0 ? t->width[column] + GAP : 0;
	need -= GAP;
	if (have == 0 || need <= have)
		return;
	size_t over = need - have;
	size_t least = have / 4;
	if (t->width[COL_CWD] > least) {
		size_t give = t->width[COL_CWD] - least;
		give = give < over ? give : over;
		t->width[COL_CWD] -= give;
		over -= give;
	}
	if (over != 0 && t->width[COL_NAME] > NAME_MIN) {
		size_t give = t->width[COL_NAME] - NAME_MIN;
		t->width[COL_NAME] -= give < over ? give : over;
	}
}

static void put_cell(table *t, int column, const char *style, sheaf_str safe, bool last)
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
	if (column != COL_MESSAGES && !last)
		text_spaces(&t->out, pad);
	if (!last)
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

static void put_row(table *t, const sheaf_list *list, size_t row)
{
	size_t begin = t->out.len;
	for (int column = 0; column < COL_COUNT; column++) {
		if (t->width[column] == 0)
			continue;
		fill(t, list, row, column);
		put_cell(t, column, cell_style(column, list->items[row]), buf_view(&t->cell),
		         column == COL_CWD);
	}
	while (t->out.len > begin && t->out.ptr[t->out.len - 1] == ' ')
		t->out.len--;
	buf_char(&t->out, '\n');
}

static int put_table(cli *c, const sheaf_list *list)
{
	_cleanup_(table_done)
		table t = {.c = c, .cell = BUF_INIT(SIZE_MAX), .out = BUF_INIT(SIZE_MAX)};
	t.owners = given(c, OPT_ALL);
	measure(&t, list);
	squeeze(&t);
	print_page(c);
	for (int column = 0; column < COL_COUNT; column++) {
		if (t.width[column] != 0)
			put_cell(&t, column, STYLE_DIM, sheaf_str_of(headings[column]),
			         column == COL_CWD);
	}
	buf_char(&t.out, '\n');
	for (size_t row = 0; row < list->count; row++)
		put_row(&t, list, row);
	print_out(&t.out);
	return t.out.status != 0 ? fail_memory(c) : 0;
}

static int put_ids(cli *c, const sheaf_list *list)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < list->count; i++) {
		text_safe(&b, list->items[i]->session, TEXT_ID);
		buf_char(&b, '\n');
	}
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

static int put_list(cli *c, const sheaf_list *list)
{
	if (c->json)
		return put_json(c, list);
	if (c->quiet)
		return put_ids(c, list);
	if (list->count == 0) {
		say(c, "no sessions%s", c->values[OPT_CURSOR] != NULL ? " left" : "");
		return 0;
	}
	int rc = put_table(c, list);
	if (list->cursor.ptr != NULL)
		say(c, "more: add --cursor %.*s", (int)list->cursor.len, list->cursor.ptr);
	return rc;
}

int cmd_ls(cli *c)
{
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	uint64_t limit = 0;
	int rc;
	if ((rc = opt_u64(c, OPT_LIMIT, &limit)) != 0 ||
	    (rc = opt_time(c, OPT_SINCE, &options.after_us)) != 0 ||
	    (rc = opt_time(c, OPT_BEFORE, &options.before_us)) != 0 || (rc = open_store(c)) != 0)
		return rc;
	char directory[PATH_MAX];
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
	options.cwd = opt_str(c, OPT_CWD);
	if (given(c, OPT_CWD) && realpath(c->values[OPT_CWD], directory) != NULL)
		options.cwd = sheaf_str_of(directory);
	_cleanup_(list_freep) sheaf_list *list = NULL;
	if (sheaf_store_list(&list, c->store, &options, &c->err) != 0)
		return fail(c);
	return put_list(c, list);
}
