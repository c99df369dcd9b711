/* Searching as one types: hits with their snippets, each of which can be opened. */
#include <stdio.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/str.h"
#include "tui.h"

#define HITS 200u
#define HITS_OF_SESSION 5u
#define ROWS_OF_HIT 3 /* where it is, what was said, a blank one */
#define TEXT_MAX 1000u
#define TELL_EVERY_US 100000

void searching_done(searching *s)
{
	sheaf_hits_free(s->hits);
	sheaf_search_close(s->index);
	buf_free(&s->text);
}

static const sheaf_hit *hit_at(const searching *s, size_t i)
{
	return s->hits != NULL && i < s->hits->count ? s->hits->items[i] : NULL;
}

/* ---- Asking ------------------------------------------------------------ */

typedef struct telling {
	tui *t;
	int64_t told_us;
} telling;

/* The first search reads everything; it can be stopped, and goes on there the next time. */
static int tell(void *ctx, uint64_t done, uint64_t total)
{
	telling *l = ctx;
	int64_t now = clock_monotonic_us();
	if (now - l->told_us < TELL_EVERY_US)
		return 0;
	l->told_us = now;
	char what[80];
	snprintf(what, sizeof(what), "indexing: %llu of %llu sessions", (unsigned long long)done,
	         (unsigned long long)total);
	return tui_wait(l->t, what);
}

static telling progress;

static int open_index(tui *t, sheaf_error *err)
{
	sheaf_search_options options = SHEAF_SEARCH_OPTIONS_INIT;
	progress = (telling){.t = t, .told_us = clock_monotonic_us()};
	options.progress = tell;
	options.ctx = &progress;
	return t->search.index != NULL
	               ? 0
	               : sheaf_search_open(&t->search.index, t->c->store, &options, err);
}

/* The last word is still being typed: what begins so is meant, if that can be asked. */
static void put_query(buf *out, sheaf_str text, bool typing)
{
	size_t quotes = 0;
	buf_str(out, text);
	for (size_t i = 0; i < text.len; i++)
		quotes += text.ptr[i] == '"';
	char last = text.len != 0 ? text.ptr[text.len - 1] : ' ';
	bool letter = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') ||
	              (last >= '0' && last <= '9');
	if (quotes % 2 != 0)
		buf_char(out, '"');
	else if (typing && letter)
		buf_char(out, '*');
}

static int ask(tui *t, sheaf_hits **hits, bool beginning, sheaf_error *err)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	put_query(&text, buf_view(&t->search.text), beginning);
	sheaf_query q = SHEAF_QUERY_INIT;
	q.text = buf_view(&text);
	q.app = t->c->app;
	q.user = t->c->user;
	if (t->sessions.project[0] != '\0')
		q.project = sheaf_str_of(t->sessions.project);
	q.limit = HITS;
	q.per_session = HITS_OF_SESSION;
	return sheaf_search_run(hits, t->search.index, &q, err);
}

void search_run(tui *t)
{
	searching *s = &t->search;
	sheaf_error err = {0};
	sheaf_hits *hits = NULL;
	s->due = false;
	int rc = s->text.len != 0 ? open_index(t, &err) : SHEAF_INVALID;
	if (rc == 0) {
		rc = ask(t, &hits, true, &err);
		/* One letter is no beginning, but may be a word. */
		if (rc == SHEAF_INVALID || (rc == 0 && hits->count == 0)) {
			sheaf_hits_free(hits);
			hits = NULL;
			rc = ask(t, &hits, false, &err);
		}
	}
	sheaf_hits_free(s->hits);
	s->hits = rc == 0 ? hits : NULL;
	s->chosen = (choice){0};
	/* What is no query yet will be one when more is typed. */
	if (rc == SHEAF_CANCELLED)
		tui_say(t, "stopped; the next search goes on from there");
	else if (rc != 0 && rc != SHEAF_INVALID)
		tui_fail(t, &err);
	else if (rc == 0 && hits->rebuilt)
		tui_say(t, "the search index was damaged and has been made anew");
}

/* ---- Typing ------------------------------------------------------------ */

void search_begin(tui *t)
{
	searching *s = &t->search;
	/* On the hits it goes on being typed, else it begins anew. */
	if (tui_shown(t) != SHOW_HITS) {
		s->due = s->text.len != 0;
		s->text.len = 0;
	}
	s->typing = true;
	tui_show(t, SHOW_HITS);
}

static void erase_last(buf *text)
{
	size_t at = 0, last = 0;
	while (at < text->len) {
		last = at;
		at = text_cluster(buf_view(text), at);
	}
	text->len = last;
}

static void erase_word(buf *text)
{
	while (text->len != 0 && text->ptr[text->len - 1] == ' ')
		text->len--;
	while (text->len != 0 && text->ptr[text->len - 1] != ' ')
		text->len--;
}

static void add_character(buf *text, uint32_t c)
{
	char room[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t len = wcrtomb(room, (wchar_t)c, &state);
	if (len != (size_t)-1 && text->len + len <= TEXT_MAX && !text_spelled(c))
		buf_add(text, room, len);
}

void search_key(tui *t, int key)
{
	searching *s = &t->search;
	size_t before = s->text.len;
	switch (key) {
	case KEYS_ENTER:
	case KEYS_TAB:
		s->typing = false;
		if (s->due)
			search_run(t);
		/* The best one, if there is no doubt what is meant. */
		if (key == KEYS_ENTER && hit_at(s, s->chosen.at) != NULL)
			search_open(t, 0);
		return;
	case KEYS_ESCAPE:
	case KEYS_CTRL('c'):
		s->typing = false;
		if (s->hits == NULL || key == KEYS_CTRL('c'))
			t->depth--;
		return;
	case KEYS_UP:
	case KEYS_DOWN:
	case KEYS_PAGE_UP:
	case KEYS_PAGE_DOWN:
		hits_act(t, tui_action(SHOW_HITS, key));
		return;
	case KEYS_BACKSPACE:
		erase_last(&s->text);
		break;
	case KEYS_CTRL('u'):
		s->text.len = 0;
		break;
	case KEYS_CTRL('w'):
		erase_word(&s->text);
		break;
	default:
		if (key >= ' ' && key < KEYS_UP)
			add_character(&s->text, (uint32_t)key);
	}
	s->due = s->due || s->text.len != before;
}

/* ---- Hits -------------------------------------------------------------- */

static void draw_hit(tui *t, area in, int row, size_t i)
{
	const sheaf_hit *hit = hit_at(&t->search, i);
	_cleanup_(buf_free) buf who = BUF_INIT(SIZE_MAX), said = BUF_INIT(SIZE_MAX);
	if (hit == NULL)
		return;
	t->page.screen.width = (size_t)in.columns;
	int how = i == t->search.chosen.at ? DRAW_CHOSEN : 0;
	hit_who(&t->page, &who, hit);
	buf_lit(&who, "  ");
	hit_session(&t->page, &who, hit, false);
	draw_row(in, row, (styled){.text = buf_view(&who)}, how);
	hit_snippet(&t->page, &said, hit, 2, 1);
	draw_row(in, row + 1, (styled){.text = buf_view(&said)}, 0);
}

void hits_draw(tui *t, area in)
{
	searching *s = &t->search;
	size_t count = s->hits != NULL ? s->hits->count : 0;
	s->rows = (in.rows + 1) / ROWS_OF_HIT > 0 ? (in.rows + 1) / ROWS_OF_HIT : 1;
	choice_show(&s->chosen, count, s->rows);
	for (int i = 0; i < s->rows; i++)
		draw_hit(t, in, i * ROWS_OF_HIT, s->chosen.top + (size_t)i);
	if (count == 0 && s->text.len != 0 && !s->due)
		draw_text(in, 0, 0, in.columns, SHEAF_STR("nothing found"), DRAW_DIM);
	if (s->text.len == 0)
		draw_text(in, 0, 0, in.columns,
		          SHEAF_STR("words, \"words side by side\", begin*; Esc goes back"),
		          DRAW_DIM);
}

void hits_where(const tui *t, buf *out)
{
	const searching *s = &t->search;
	if (s->hits == NULL || s->hits->count == 0)
		return;
	text_number(out, s->chosen.at + 1);
	buf_char(out, '/');
	text_number(out, s->hits->count);
	if (s->hits->more)
		buf_char(out, '+');
}

void search_open(tui *t, int step)
{
	searching *s = &t->search;
	size_t count = s->hits != NULL ? s->hits->count : 0;
	if (count == 0) {
		tui_say(t, "nothing was searched for; / does");
		return;
	}
	if ((step < 0 && s->chosen.at == 0) || (step > 0 && s->chosen.at + 1 >= count)) {
		tui_say(t, step < 0 ? "this is the first hit" : "this is the last hit");
		return;
	}
	s->chosen.at = step < 0 ? s->chosen.at - 1 : s->chosen.at + (size_t)step;
	const sheaf_hit *hit = s->hits->items[s->chosen.at];
	sheaf_key key = {hit->app, hit->user, hit->session};
	if (!transcript_open(t, &key, hit->seq))
		return;
	tui_show(t, SHOW_TRANSCRIPT);
	transcript_found(t);
}

/* ---- In the transcript ------------------------------------------------- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool begins_with(sheaf_str s, size_t at, sheaf_str word)
{
	if (s.len - at < word.len)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		if (lower(s.ptr[at + i]) != lower(word.ptr[i]))
			return false;
	}
	return true;
}

/* The length of the longest word of the query that stands at a place. */
static size_t word_at(sheaf_str query, sheaf_str s, size_t at)
{
	size_t longest = 0;
	for (size_t from = 0; from < query.len;) {
		size_t end = from;
		while (end < query.len && strchr(" \"*", query.ptr[end]) == NULL)
			end++;
		sheaf_str word = str_make(query.ptr + from, end - from);
		if (word.len > longest && begins_with(s, at, word))
			longest = word.len;
		from = end + 1;
	}
	return longest;
}

size_t search_mark(const tui *t, sheaf_str styled_text, buf *out)
{
	sheaf_str query = buf_view(&t->search.text);
	size_t found = 0;
	for (size_t at = 0; at < styled_text.len;) {
		size_t len = word_at(query, styled_text, at);
		if (styled_text.ptr[at] == '\033') { /* a style is no text */
			len = 1;
			while (at + len < styled_text.len && styled_text.ptr[at + len - 1] != 'm')
				len++;
			buf_add(out, styled_text.ptr + at, len);
		} else if (len != 0) {
			found += len;
			buf_lit(out, "\033[4;7m");
			buf_add(out, styled_text.ptr + at, len);
			buf_lit(out, "\033[24;27m");
		} else {
			buf_char(out, styled_text.ptr[at]);
			len = 1;
		}
		at += len;
	}
	return found;
}

/* ---- Keys -------------------------------------------------------------- */

void hits_act(tui *t, action what)
{
	searching *s = &t->search;
	const sheaf_hit *hit = hit_at(s, s->chosen.at);
	if (choice_act(&s->chosen, what, s->hits != NULL ? s->hits->count : 0, s->rows))
		return;
	if (what == ACT_OPEN && hit != NULL)
		search_open(t, 0);
	else if (what == ACT_PROJECTS && projects_load(t))
		tui_show(t, SHOW_PROJECTS);
	else if (what == ACT_COPY_SESSION && hit != NULL)
		tui_copy(t, "session", hit->session);
	else if (what == ACT_COPY && hit != NULL)
		tui_copy(t, hit->seq != 0 ? "entry" : "session",
		         hit->seq != 0 ? hit->entry_id : hit->session);
	else if (what == ACT_RELOAD)
		search_run(t);
}
