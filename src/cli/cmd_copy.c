/* sheaf copy: sessions from one store into another, with a bar for people who wait. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "find.h"
#include "print.h"

#define BAR_COLUMNS 24u
#define BAR_EVERY_US INT64_C(100000)

typedef struct copying {
	cli *c;
	bool bar; /* there is somebody to watch it */
	bool drawn;
	int64_t began_us;
	int64_t drawn_us;
} copying;

static void bar_clear(copying *k)
{
	if (k->drawn)
		fputs("\r\033[K", stderr);
	k->drawn = false;
}

/* Records tell more than sessions, one of which may be most of the store. */
static void bar_draw(copying *k, const sheaf_copy_totals *t)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	uint64_t whole = t->records != 0 ? t->records : t->sessions;
	uint64_t done = t->records != 0 ? t->records_done : t->done;
	if (done > whole)
		done = whole;
	size_t full = whole != 0 ? (size_t)(done * BAR_COLUMNS / whole) : BAR_COLUMNS;
	buf_lit(&out, "\r\033[K[");
	for (size_t i = 0; i < BAR_COLUMNS; i++)
		buf_char(&out, i < full ? '#' : '.');
	buf_format(&out, "] %3u%%  %llu/%llu sessions  %llu records  ",
	           whole != 0 ? (unsigned)(done * 100 / whole) : 100u, (unsigned long long)t->done,
	           (unsigned long long)t->sessions, (unsigned long long)t->records_copied);
	text_bytes(&out, t->bytes_copied);
	int64_t took_us = clock_monotonic_us() - k->began_us;
	if (took_us > 0) {
		buf_lit(&out, "  ");
		text_bytes(&out, (uint64_t)((double)t->bytes_copied * 1e6 / (double)took_us));
		buf_lit(&out, "/s");
	}
	(void)fwrite(out.ptr, 1, out.len, stderr);
	k->drawn = true;
}

static int progress(void *ctx, const sheaf_copy_totals *totals)
{
	copying *k = ctx;
	int64_t now = clock_monotonic_us();
	if (!k->bar || (k->drawn && now - k->drawn_us < BAR_EVERY_US))
		return 0;
	k->drawn_us = now;
	bar_draw(k, totals);
	return 0;
}

static void note_json(const sheaf_copy_note *n)
{
	static const char *const names[] = {
		[SHEAF_COPY_CONFLICT] = "conflict",
		[SHEAF_COPY_FAILED] = "failed",
		[SHEAF_COPY_CHANGED] = "changed",
		[SHEAF_COPY_LEFT] = "left",
	};
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "note",
	        n->what > 0 && (size_t)n->what < COUNT_OF(names) ? names[n->what] : NULL);
	js_text(&b, "code", n->code != 0 ? sheaf_code_name(n->code) : NULL);
	js_str(&b, "app", n->app);
	js_str(&b, "user", n->user);
	js_str(&b, "session", n->session);
	js_u64(&b, "seq", n->seq);
	js_str(&b, "detail", n->detail);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void note(void *ctx, const sheaf_copy_note *n)
{
	copying *k = ctx;
	bar_clear(k);
	if (k->c->json) {
		note_json(n);
		return;
	}
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	if (n->app.len != 0 || n->user.len != 0) {
		buf_str(&line, n->app);
		buf_char(&line, '/');
		buf_str(&line, n->user);
		buf_char(&line, '/');
	}
	buf_str(&line, n->session);
	if (n->what == SHEAF_COPY_CONFLICT)
		buf_lit(&line, ": conflict");
	if (n->what == SHEAF_COPY_CONFLICT && n->seq != 0)
		buf_format(&line, " at @%llu", (unsigned long long)n->seq);
	buf_lit(&line, ": ");
	buf_str(&line, n->detail);
	buf_char(&line, '\0');
	if (line.status == 0)
		say(k->c, "%s", line.ptr);
}

static void put_part(buf *out, uint64_t count, const char *what)
{
	if (count != 0)
		buf_format(out, ", %llu %s", (unsigned long long)count, what);
}

static void put_totals(const sheaf_copy_totals *t)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	text_count(&out, t->sessions, "session", "sessions");
	buf_format(&out, ": %llu copied", (unsigned long long)t->copied);
	put_part(&out, t->extended, "extended");
	put_part(&out, t->equal, "there already");
	put_part(&out, t->ahead, "further on there");
	put_part(&out, t->conflicts, "in conflict");
	put_part(&out, t->failed, "failed");
	put_part(&out, t->changed, "changed meanwhile");
	buf_char(&out, '\n');
	text_count(&out, t->records_copied, "record", "records");
	buf_lit(&out, ", ");
	text_bytes(&out, t->bytes_copied);
	buf_lit(&out, " written; ");
	text_count(&out, t->records_verified, "record", "records");
	buf_lit(&out, " compared");
	put_part(&out, t->state_items, "keys of state set");
	put_part(&out, t->queue_items, "items put into queues");
	buf_char(&out, '\n');
	print_out(&out);
}

static void put_totals_json(const sheaf_copy_totals *t)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_u64(&b, "sessions", t->sessions);
	js_u64(&b, "done", t->done);
	js_u64(&b, "copied", t->copied);
	js_u64(&b, "extended", t->extended);
	js_u64(&b, "equal", t->equal);
	js_u64(&b, "ahead", t->ahead);
	js_u64(&b, "conflicts", t->conflicts);
	js_u64(&b, "failed", t->failed);
	js_u64(&b, "changed", t->changed);
	js_u64(&b, "records_copied", t->records_copied);
	js_u64(&b, "bytes_copied", t->bytes_copied);
	js_u64(&b, "records_verified", t->records_verified);
	js_u64(&b, "state_items", t->state_items);
	js_u64(&b, "queue_items", t->queue_items);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void store_closep(sheaf_store **store)
{
	sheaf_close(*store);
}

int cmd_copy(cli *c)
{
	if (given(c, OPT_STORE))
		return usage(c, "a copy names both its stores");
	if (given(c, OPT_ALL) && given(c, OPT_USER))
		return usage(c, "--all is every user");
	_cleanup_(store_closep) sheaf_store *from = NULL;
	_cleanup_(store_closep) sheaf_store *to = NULL;
	sheaf_store_options reading = SHEAF_STORE_OPTIONS_INIT;
	reading.readonly = 1;
	if (sheaf_open(&from, c->words[0], &reading, &c->err) != 0 ||
	    sheaf_open(&to, c->words[1], NULL, &c->err) != 0)
		return fail(c);
	copying k = {
		.c = c,
		.bar = isatty(STDERR_FILENO) && !c->quiet && !c->json,
		.began_us = clock_monotonic_us(),
	};
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.app = c->app;
	options.user = c->user;
	options.all_users = given(c, OPT_ALL);
	options.all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	options.progress = progress;
	options.note = note;
	options.ctx = &k;
	sheaf_copy_totals totals = SHEAF_COPY_TOTALS_INIT;
	int rc = sheaf_store_copy(&totals, from, to, &options, &c->err);
	bar_clear(&k);
	if (rc == SHEAF_UNSUPPORTED)
		snprintf(c->err.hint, sizeof(c->err.hint),
		         "copy one user after the other, with --app and --user");
	/* What came about before it broke off is worth knowing, too. */
	if (c->json)
		put_totals_json(&totals);
	else if (!c->quiet && totals.sessions != 0)
		put_totals(&totals);
	if (rc != 0)
		return fail(c);
	if (totals.sessions == 0 && !given(c, OPT_ALL))
		say(c, "there is nothing of this app and user; --all copies everybody's");
	return 0;
}
