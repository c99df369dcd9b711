/* The projects: the directories that sessions are about, to choose one from. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "tui.h"

#define PAGE 5000u
#define COUNT_COLUMNS 14

void projects_done(projects *p)
{
	arena_free(p->memory);
	mem_free(p->items);
	*p = (projects){.rows = p->rows};
}

/* Counts the sessions of a page by their directories. `places`: directory → its place + 1. */
static int count_page(projects *p, map *places, const sheaf_list *page)
{
	for (size_t i = 0; i < page->count; i++) {
		const sheaf_session_info *info = page->items[i];
		uint64_t at = 0;
		int ok = 1;
		if (info->cwd.len == 0)
			continue;
		if (!map_get(places, info->cwd, &at)) {
			if (mem_grow((void **)&p->items, &p->room, p->count + 1,
			             sizeof(*p->items)) != 0)
				return SHEAF_NOMEM;
			/* Lists are newest first: so are the projects. */
			p->items[p->count] = (project){arena_dup(p->memory, info->cwd, &ok), 0,
			                               info->modified_us};
			at = p->count;
			if (!ok || map_set(places, p->items[at].directory, at) != 0)
				return SHEAF_NOMEM;
			p->count++;
		}
		p->items[at].sessions++;
	}
	return 0;
}

/* Goes through all sessions. False with an error on the status line, or if it was stopped. */
bool projects_load(tui *t)
{
	projects *p = &t->projects;
	projects_done(p);
	p->memory = arena_new();
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	options.app = t->c->app;
	options.user = t->c->user;
	options.limit = PAGE;
	map places = MAP_INIT;
	sheaf_error err = {0};
	_cleanup_(list_freep) sheaf_list *page = NULL;
	int rc = p->memory != NULL ? 0 : SHEAF_NOMEM;
	bool stopped = false;
	for (bool more = true; rc == 0 && more && !stopped;) {
		sheaf_list *next = NULL;
		if ((rc = sheaf_store_list(&next, t->c->store, &options, &err)) != 0)
			break;
		sheaf_list_free(page);
		page = next;
		options.cursor = page->cursor;
		more = page->cursor.ptr != NULL;
		rc = count_page(p, &places, page);
		stopped = more && tui_wait(t, "reading the list");
	}
	map_free(&places);
	if (rc != 0)
		tui_fail(t, &err);
	for (size_t i = 0; i < p->count; i++) {
		if (str_is(p->items[i].directory, t->sessions.project))
			p->chosen.at = i + 1;
	}
	return rc == 0 && !stopped;
}

void projects_draw(tui *t, area in)
{
	projects *p = &t->projects;
	p->rows = in.rows;
	choice_show(&p->chosen, p->count + 1, in.rows);
	for (int row = 0; row < in.rows && p->chosen.top + (size_t)row <= p->count; row++) {
		size_t i = p->chosen.top + (size_t)row;
		int how = i == p->chosen.at ? DRAW_CHOSEN : 0;
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
		_cleanup_(buf_free) buf count = BUF_INIT(SIZE_MAX);
		if (i == 0) {
			draw_text(in, row, 0, in.columns, SHEAF_STR("(all projects)"), how);
			continue;
		}
		int room = in.columns > 3 * COUNT_COLUMNS ? in.columns - COUNT_COLUMNS : in.columns;
		view_directory(&text, p->items[i - 1].directory);
		text_cut_front(&cut, buf_view(&text), (size_t)room);
		text_count(&count, p->items[i - 1].sessions, "session", "sessions");
		draw_text(in, row, 0, in.columns, (sheaf_str){"", 0}, how);
		draw_text(in, row, 0, room, buf_view(&cut), how);
		if (room < in.columns)
			draw_text(in, row, room + 1, COUNT_COLUMNS - 1, buf_view(&count), how);
	}
}

void projects_where(const tui *t, buf *out)
{
	text_count(out, t->projects.count, "project", "projects");
}

void projects_act(tui *t, action what)
{
	projects *p = &t->projects;
	if (choice_act(&p->chosen, what, p->count + 1, p->rows))
		return;
	if (what == ACT_RELOAD)
		projects_load(t);
	if (what != ACT_OPEN)
		return;
	t->sessions.project[0] = '\0';
	if (p->chosen.at > 0)
		str_copy_cut(t->sessions.project, sizeof(t->sessions.project),
		             p->items[p->chosen.at - 1].directory);
	t->sessions.chosen = (choice){0};
	list_again(t);
	t->search.due = t->search.text.len != 0;
	t->depth--;
}
