/* The list of sessions: newest first, read page by page as far as one looks. */
#include "base/mem.h"
#include "base/str.h"
#include "tui.h"

#define PAGE_FIRST 200u /* enough for any screen, and quick */
#define PAGE_MORE 2000u
#define GAP 2
#define AGE_COLUMNS 13
#define AGENT_COLUMNS 11
#define NAME_LEAST 24
#define BESIDE_COLUMNS 140 /* a preview stands beside the list from here on, else below it */
#define BELOW_ROWS 14      /* and below it from here on */

/* ---- Reading ----------------------------------------------------------- */

const sheaf_session_info *sessions_at(const sessions *s, size_t row)
{
	for (size_t i = 0; i < s->page_count; i++) {
		if (row < s->pages[i]->count)
			return s->pages[i]->items[row];
		row -= s->pages[i]->count;
	}
	return NULL;
}

void sessions_done(sessions *s)
{
	for (size_t i = 0; i < s->page_count; i++)
		sheaf_list_free(s->pages[i]);
	mem_free(s->pages);
	s->pages = NULL;
	s->page_count = s->page_room = s->count = 0;
	s->whole = false;
}

/* The next page. False at the end, and with an error on the status line. */
bool list_load(tui *t)
{
	sessions *s = &t->sessions;
	sheaf_error err = {0};
	if (s->whole)
		return false;
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	options.app = t->c->app;
	options.user = t->c->user;
	options.limit = s->page_count == 0 ? PAGE_FIRST : PAGE_MORE;
	if (s->project[0] != '\0')
		options.cwd = sheaf_str_of(s->project);
	if (s->page_count != 0)
		options.cursor = s->pages[s->page_count - 1]->cursor;
	if (mem_grow((void **)&s->pages, &s->page_room, s->page_count + 1, sizeof(*s->pages)) != 0)
		return false;
	sheaf_list *page = NULL;
	if (sheaf_store_list(&page, t->c->store, &options, &err) != 0) {
		s->whole = true; /* R tries again */
		tui_fail(t, &err);
		return false;
	}
	s->pages[s->page_count++] = page;
	s->count += page->count;
	s->whole = page->cursor.ptr == NULL;
	return true;
}

void list_again(tui *t)
{
	sessions *s = &t->sessions;
	choice chosen = s->chosen;
	sessions_done(s);
	while (list_load(t) && s->count <= chosen.at) {
	}
	s->chosen = chosen;
	t->preview.due = true;
}

/* ---- Drawing ----------------------------------------------------------- */

typedef struct columns {
	int name;
	int project;
	int agent;
	int age;
} columns;

/* What there is room for: the name first, then when, where and by whom. */
static columns columns_for(int width)
{
	columns c = {.name = width};
	if (c.name >= NAME_LEAST + AGE_COLUMNS + GAP) {
		c.age = AGE_COLUMNS;
		c.name -= AGE_COLUMNS + GAP;
	}
	if (c.name >= NAME_LEAST + 14 + GAP) {
		c.project = width / 5 > 14 ? width / 5 : 14;
		c.name -= c.project + GAP;
	}
	if (c.name >= NAME_LEAST + AGENT_COLUMNS + GAP) {
		c.agent = AGENT_COLUMNS;
		c.name -= AGENT_COLUMNS + GAP;
	}
	return c;
}

static void put_cells(area in, int row, const columns *c, const sheaf_str text[4], int how)
{
	const int width[] = {c->name, c->project, c->agent, c->age};
	int at = 0;
	/* What is chosen is brought out from one side to the other. */
	draw_text(in, row, 0, in.columns, (sheaf_str){"", 0}, how);
	for (size_t i = 0; i < COUNT_OF(width); i++) {
		if (width[i] == 0)
			continue;
		draw_text(in, row, at, width[i], text[i], how);
		at += width[i] + GAP;
	}
}

static const char *name_style(const sheaf_session_info *info)
{
	if (info->damaged)
		return STYLE_BAD;
	if (info->name.len != 0)
		return STYLE_TITLE;
	return info->preview.len != 0 ? NULL : STYLE_DIM;
}

static void draw_session(tui *t, area in, int row, const columns *c, size_t i)
{
	const sheaf_session_info *info = sessions_at(&t->sessions, i);
	const screen *s = &t->page.screen;
	if (info == NULL)
		return;
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf name = BUF_INIT(SIZE_MAX), where = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf agent = BUF_INIT(SIZE_MAX), age = BUF_INIT(SIZE_MAX);
	view_name(&safe, info);
	text_cut(&cut, buf_view(&safe), (size_t)c->name);
	print_styled(s, &name, name_style(info), buf_view(&cut));
	buf_reset(&safe);
	buf_reset(&cut);
	view_directory(&safe, info->cwd);
	text_cut_front(&cut, buf_view(&safe), (size_t)c->project);
	print_styled(s, &where, STYLE_DIM, buf_view(&cut));
	print_styled(s, &agent, STYLE_LABEL, agent_of(info->session));
	buf_reset(&safe);
	text_ago(&safe, info->modified_us, s->now_us);
	print_styled(s, &age, STYLE_DIM, buf_view(&safe));
	sheaf_str cells[] = {buf_view(&name), buf_view(&where), buf_view(&agent), buf_view(&age)};
	put_cells(in, row, c, cells, i == t->sessions.chosen.at ? DRAW_CHOSEN : 0);
}

static void draw_sessions(tui *t, area in)
{
	static const sheaf_str headings[] = {SHEAF_STR("SESSION"), SHEAF_STR("PROJECT"),
	                                     SHEAF_STR("AGENT"), SHEAF_STR("CHANGED")};
	sessions *s = &t->sessions;
	columns c = columns_for(in.columns);
	put_cells(in, 0, &c, headings, DRAW_DIM);
	in.top++;
	in.rows--;
	s->rows = in.rows;
	choice_show(&s->chosen, s->count, in.rows);
	while (s->chosen.top + (size_t)in.rows + 1 > s->count && list_load(t)) {
	}
	for (int row = 0; row < in.rows; row++)
		draw_session(t, in, row, &c, s->chosen.top + (size_t)row);
	if (s->count == 0)
		draw_text(in, 0, 0, in.columns,
		          s->project[0] != '\0'
		                  ? SHEAF_STR("no sessions of this project; p chooses another")
		                  : SHEAF_STR("no sessions yet; `sheaf import --all` brings them"),
		          0);
}

static void draw_preview(tui *t, area in)
{
	preview *p = &t->preview;
	const sheaf_session_info *info = sessions_at(&t->sessions, t->sessions.chosen.at);
	if (info == NULL)
		return;
	if (!preview_is_of(p, info, (size_t)in.columns)) {
		if (!p->due)
			preview_load(t, (size_t)in.columns);
		else
			return;
	}
	for (int row = 0; row < in.rows && (size_t)row < p->text.count; row++)
		draw_row(in, row, lines_at(&p->text, (size_t)row), 0);
}

void list_draw(tui *t, area in)
{
	area list = in, side = in;
	bool beside = in.columns >= BESIDE_COLUMNS, below = in.rows >= BELOW_ROWS;
	if (t->preview.hidden || (!beside && !below)) {
		draw_sessions(t, in);
		return;
	}
	if (beside) {
		list.columns = in.columns / 2;
		side.left += list.columns + 2;
		side.columns -= list.columns + 2;
		draw_wall(in.top, in.left + list.columns, in.rows);
		list.columns--; /* nothing touches the wall */
	} else {
		list.rows = in.rows / 2;
		side.top += list.rows + 1;
		side.rows -= list.rows + 1;
		draw_rule(in.top + list.rows, in.left, in.columns);
	}
	draw_sessions(t, list);
	draw_preview(t, side);
}

void list_where(const tui *t, buf *out)
{
	const sessions *s = &t->sessions;
	if (s->count == 0)
		return;
	text_number(out, s->chosen.at + 1);
	buf_lit(out, "/");
	text_number(out, s->count);
	if (!s->whole)
		buf_char(out, '+');
}

/* ---- Keys -------------------------------------------------------------- */

static void open_chosen(tui *t, bool tree)
{
	const sheaf_session_info *info = sessions_at(&t->sessions, t->sessions.chosen.at);
	if (info == NULL)
		return;
	sheaf_key key = {info->app, info->user, info->session};
	if (!transcript_open(t, &key, 0))
		return;
	if (!tree || tree_open(t))
		tui_show(t, tree ? SHOW_TREE : SHOW_TRANSCRIPT);
}

void list_act(tui *t, action what)
{
	sessions *s = &t->sessions;
	const sheaf_session_info *info = sessions_at(s, s->chosen.at);
	size_t before = s->chosen.at;
	while (what == ACT_BOTTOM && list_load(t) && !tui_wait(t, "reading the list")) {
	}
	if (choice_act(&s->chosen, what, s->count, s->rows)) {
		t->preview.due = t->preview.due || s->chosen.at != before;
		return;
	}
	switch (what) {
	case ACT_OPEN:
	case ACT_TREE:
		open_chosen(t, what == ACT_TREE);
		break;
	case ACT_PREVIEW:
		t->preview.hidden = !t->preview.hidden;
		break;
	case ACT_PROJECTS:
		if (projects_load(t))
			tui_show(t, SHOW_PROJECTS);
		break;
	case ACT_COPY:
		if (info != NULL)
			tui_copy(t, "session", info->session);
		break;
	case ACT_RELOAD:
		list_again(t);
		break;
	default:
		break;
	}
}
