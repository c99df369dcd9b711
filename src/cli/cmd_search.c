/* sheaf search: what was said, in every session, and the command that opens it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "find.h"
#include "hit.h"
#include "opt.h"

#define PER_SESSION 3u
#define LINES_MAX 3u
#define INDENT 4u
#define TELL_EVERY_US 100000

static void search_closep(sheaf_search **s)
{
	sheaf_search_close(*s);
}

static void hits_freep(sheaf_hits **hits)
{
	sheaf_hits_free(*hits);
}

/* ---- While it takes long ---------------------------------------------------------- */

typedef struct telling {
	const cli *c;
	int64_t begun_us;
	int64_t told_us;
	bool told;
} telling;

static int tell(void *ctx, uint64_t done, uint64_t total)
{
	telling *t = ctx;
	int64_t now = clock_monotonic_us();
	if (t->c->quiet || t->c->json || !isatty(STDERR_FILENO) ||
	    now - t->begun_us < 5 * TELL_EVERY_US || now - t->told_us < TELL_EVERY_US)
		return 0;
	t->told_us = now;
	t->told = true;
	fprintf(stderr, "\rindexing: %llu of %llu sessions", (unsigned long long)done,
	        (unsigned long long)total);
	fflush(stderr);
	return 0;
}

static void told(const telling *t)
{
	if (t->told)
		fputs("\r\033[K", stderr);
}

/* ---- The command that opens a hit --------------------------------------------------- */

static bool is_plain(sheaf_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      strchr("._-/:+@%,~", c) != NULL) ||
		    c == '\0')
			return false;
	}
	return s.len != 0 && s.ptr[0] != '-' && s.ptr[0] != '~';
}

/* A word as a shell takes it; what a terminal would obey is spelled out, and is no such word. */
static void put_word(buf *out, sheaf_str word)
{
	if (is_plain(word)) {
		buf_str(out, word);
		return;
	}
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX);
	text_safe(&safe, word, TEXT_ID);
	buf_char(out, '\'');
	for (size_t i = 0; i < safe.len; i++) {
		if (safe.ptr[i] == '\'')
			buf_lit(out, "'\\''");
		else
			buf_char(out, safe.ptr[i]);
	}
	buf_char(out, '\'');
}

static void put_option(buf *out, const char *name, sheaf_str value)
{
	buf_str(out, sheaf_str_of(name));
	put_word(out, value);
}

static void put_command(const cli *c, buf *out, const sheaf_hit *hit)
{
	buf_lit(out, "sheaf show ");
	if (hit->session.len != 0 && hit->session.ptr[0] == '-')
		buf_lit(out, "-- ");
	put_word(out, hit->session);
	if (is_plain(hit->entry_id)) {
		put_option(out, " --leaf ", hit->entry_id);
	} else if (hit->seq != 0) {
		buf_lit(out, " --leaf @");
		buf_u64(out, hit->seq);
	}
	if (hit->seq != 0)
		buf_lit(out, " --last 5");
	if (given(c, OPT_STORE))
		put_option(out, " --store ", sheaf_str_of(c->values[OPT_STORE]));
	if (hit->app.len != 0)
		put_option(out, " --app ", hit->app);
	if (hit->user.len != 0)
		put_option(out, " --user ", hit->user);
}

/* ---- For programs --------------------------------------------------------------------- */

static void js_hit(const cli *c, buf *b, const sheaf_hit *hit)
{
	_cleanup_(buf_free) buf opens = BUF_INIT(SIZE_MAX);
	char score[32];
	put_command(c, &opens, hit);
	int n = snprintf(score, sizeof(score), "%.6g", hit->score);
	js_open(b, NULL, '{');
	js_str(b, "session", hit->session);
	js_str(b, "app", hit->app);
	js_str(b, "user", hit->user);
	js_str(b, "name", hit->name);
	js_str(b, "cwd", hit->cwd);
	js_str(b, "entry", hit->entry_id);
	js_u64(b, "seq", hit->seq);
	js_time(b, "time", hit->time_us);
	js_text(b, "role", sheaf_hit_role(hit->role));
	js_str(b, "tool", hit->tool);
	js_str(b, "agent", hit->agent);
	js_raw(b, "score", str_make(score, (size_t)n));
	js_str(b, "snippet", hit->snippet);
	js_open(b, "marks", '[');
	for (size_t i = 0; i < hit->mark_count; i++) {
		js_open(b, NULL, '[');
		js_u64(b, NULL, hit->marks[i].begin);
		js_u64(b, NULL, hit->marks[i].end);
		js_close(b, ']');
	}
	js_close(b, ']');
	js_str(b, "open", buf_view(&opens));
	js_close(b, '}');
	buf_char(b, '\n');
}

static int put_json(cli *c, const sheaf_hits *hits)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < hits->count; i++)
		js_hit(c, &b, hits->items[i]);
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* ---- For people ---------------------------------------------------------------------------- */

static bool same_session(const sheaf_hit *a, const sheaf_hit *b)
{
	return str_eq(a->session, b->session) && str_eq(a->user, b->user) && str_eq(a->app, b->app);
}

static void put_hit(const cli *c, buf *out, const sheaf_hit *hit)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	buf_lit(out, "  ");
	hit_who(c, out, hit);
	buf_char(out, '\n');
	hit_snippet(c, out, hit, INDENT, LINES_MAX);
	put_command(c, &line, hit);
	text_spaces(out, INDENT);
	print_styled(&c->screen, out, STYLE_LABEL, buf_view(&line));
	buf_char(out, '\n');
}

/* Hits of a session stand together, where its best one stands. */
static int put_hits(cli *c, const sheaf_hits *hits)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	print_page(c);
	for (size_t i = 0; i < hits->count; i++) {
		const sheaf_hit *first = hits->items[i];
		bool shown = false;
		for (size_t k = 0; k < i && !shown; k++)
			shown = same_session(hits->items[k], first);
		if (shown)
			continue;
		if (i != 0)
			buf_char(&out, '\n');
		hit_session(c, &out, first, true);
		buf_char(&out, '\n');
		for (size_t k = i; k < hits->count; k++)
			if (same_session(hits->items[k], first))
				put_hit(c, &out, hits->items[k]);
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int put_ids(cli *c, const sheaf_hits *hits)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < hits->count; i++) {
		bool shown = false;
		for (size_t k = 0; k < i && !shown; k++)
			shown = same_session(hits->items[k], hits->items[i]);
		if (shown)
			continue;
		text_safe(&out, hits->items[i]->session, TEXT_ID);
		buf_char(&out, '\n');
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* ---- Asking ----------------------------------------------------------------------------------- */

static uint32_t role_bit(const char *name)
{
	for (int32_t role = SHEAF_HIT_TITLE; role <= SHEAF_HIT_OTHER; role++)
		if (strcmp(sheaf_hit_role(role), name) == 0)
			return SHEAF_HIT_BIT(role);
	return 0;
}

static int read_query(cli *c, sheaf_query *q, buf *words, char directory[PATH_MAX])
{
	uint64_t limit = 0;
	int rc;
	if ((rc = opt_u64(c, OPT_LIMIT, &limit)) != 0 ||
	    (rc = opt_time(c, OPT_SINCE, &q->after_us)) != 0 ||
	    (rc = opt_time(c, OPT_BEFORE, &q->before_us)) != 0)
		return rc;
	if (c->word_count == 0 && !given(c, OPT_REBUILD))
		return usage(c, "what is to be found?");
	if ((rc = find_project(c, directory, &q->project)) != 0)
		return rc;
	for (int i = 0; i < c->word_count; i++) {
		if (i != 0)
			buf_char(words, ' ');
		buf_str(words, sheaf_str_of(c->words[i]));
	}
	q->text = buf_view(words);
	q->app = c->app;
	q->user = c->user;
	/* All of an app if one is named, else all of the store. */
	q->all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	q->all_users = given(c, OPT_ALL);
	q->limit = limit;
	q->per_session = PER_SESSION;
	q->agent = opt_str(c, OPT_AGENT);
	q->tool = opt_str(c, OPT_TOOL);
	q->roles = given(c, OPT_ROLE) ? role_bit(c->values[OPT_ROLE]) : 0;
	/* What a model called it said. */
	if (q->roles == SHEAF_HIT_BIT(SHEAF_HIT_ASSISTANT))
		q->roles |= SHEAF_HIT_BIT(SHEAF_HIT_CALL);
	return words->status != 0 ? fail_memory(c) : 0;
}

static int report(cli *c, const sheaf_hits *hits)
{
	if (hits->rebuilt)
		say(c, "the search index was damaged and has been made anew");
	if (hits->count == 0) {
		say(c, "nothing found");
		return 1;
	}
	int rc = c->json ? put_json(c, hits) : c->quiet ? put_ids(c, hits) : put_hits(c, hits);
	if (rc == 0 && hits->more && !c->json)
		say(c, "there is more: add --limit N, or say more precisely what");
	return rc;
}

int cmd_search(cli *c)
{
	char directory[PATH_MAX];
	_cleanup_(buf_free) buf words = BUF_INIT(SIZE_MAX);
	sheaf_query q = SHEAF_QUERY_INIT;
	int rc = read_query(c, &q, &words, directory);
	if (rc != 0 || (rc = open_store(c)) != 0)
		return rc;
	telling t = {.c = c, .begun_us = clock_monotonic_us()};
	sheaf_search_options options = SHEAF_SEARCH_OPTIONS_INIT;
	options.progress = tell;
	options.ctx = &t;
	options.rebuild = given(c, OPT_REBUILD);
	_cleanup_(search_closep) sheaf_search *search = NULL;
	_cleanup_(hits_freep) sheaf_hits *hits = NULL;
	uint64_t updated = 0;
	rc = sheaf_search_open(&search, c->store, &options, &c->err);
	if (rc == 0)
		rc = c->word_count != 0 ? sheaf_search_run(&hits, search, &q, &c->err)
		                        : sheaf_search_update(search, &q, &updated, &c->err);
	told(&t);
	if (rc != 0)
		return fail(c);
	if (hits != NULL)
		return report(c, hits);
	say(c, "indexed %llu sessions", (unsigned long long)updated);
	return 0;
}
