/* sheaf pull and sheaf push: what one store has of its sessions into another, and both may go on. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "find.h"
#include "print.h"

#define BAR_COLUMNS 24u
#define BAR_EVERY_US INT64_C(100000)

typedef struct syncing {
	cli *c;
	bool dry_run;
	bool bar; /* there is somebody to watch it */
	bool drawn;
	int64_t drawn_us;
} syncing;

static void bar_clear(syncing *k)
{
	if (k->drawn)
		fputs("\r\033[K", stderr);
	k->drawn = false;
}

static int progress(void *ctx, const sheaf_sync_totals *t)
{
	syncing *k = ctx;
	int64_t now = clock_monotonic_us();
	if (!k->bar || (k->drawn && now - k->drawn_us < BAR_EVERY_US))
		return 0;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	size_t full = t->sessions != 0 ? (size_t)(t->done * BAR_COLUMNS / t->sessions) : 0;
	buf_lit(&out, "\r\033[K[");
	for (size_t i = 0; i < BAR_COLUMNS; i++)
		buf_char(&out, i < full ? '#' : '.');
	buf_format(&out, "] %llu/%llu sessions  ", (unsigned long long)t->done,
	           (unsigned long long)t->sessions);
	text_count(&out, t->records_read, "record", "records");
	buf_lit(&out, " read  ");
	text_bytes(&out, t->bytes);
	buf_lit(&out, " written");
	(void)fwrite(out.ptr, 1, out.len, stderr);
	k->drawn = true;
	k->drawn_us = now;
	return 0;
}

/* ---- A session ------------------------------------------------------------------------ */

static const char *word_of(int32_t what)
{
	static const char *const words[] = {
		[SHEAF_SYNC_COPIED] = "copied", [SHEAF_SYNC_EXTENDED] = "extended",
		[SHEAF_SYNC_MERGED] = "merged", [SHEAF_SYNC_CONFLICT] = "conflict",
		[SHEAF_SYNC_FAILED] = "failed", [SHEAF_SYNC_LEFT] = "left",
	};
	return what > 0 && (size_t)what < COUNT_OF(words) ? words[what] : "";
}

static void note_json(const sheaf_sync_note *n)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "did", word_of(n->what));
	js_text(&b, "code", n->code != 0 ? sheaf_code_name(n->code) : NULL);
	js_str(&b, "app", n->app);
	js_str(&b, "user", n->user);
	js_str(&b, "session", n->session);
	js_str(&b, "name", n->name);
	js_u64(&b, "entries", n->entries);
	js_u64(&b, "facts", n->facts);
	js_u64(&b, "branches", n->branches);
	js_u64(&b, "apart", n->apart);
	if (n->branch.ptr != NULL)
		js_str(&b, "branch", n->branch);
	if (n->detail.ptr != NULL)
		js_str(&b, "detail", n->detail);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void put_key(buf *out, const sheaf_sync_note *n)
{
	if (n->app.len != 0 || n->user.len != 0) {
		text_safe(out, n->app, TEXT_ID);
		buf_char(out, '/');
		text_safe(out, n->user, TEXT_ID);
		buf_char(out, '/');
	}
	text_safe(out, n->session, TEXT_ID);
}

/* What went wrong is said on stderr. */
static void note_problem(syncing *k, const sheaf_sync_note *n)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	put_key(&line, n);
	if (n->what == SHEAF_SYNC_CONFLICT)
		buf_lit(&line, ": conflict");
	buf_lit(&line, ": ");
	text_safe(&line, n->detail, TEXT_LINE);
	buf_char(&line, '\0');
	if (line.status == 0)
		say(k->c, "%s", line.ptr);
}

static void note_done(const sheaf_sync_note *n)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	buf_format(&line, "%-8s  ", word_of(n->what));
	put_key(&line, n);
	if (n->entries != 0 || n->facts == 0) {
		buf_lit(&line, "  +");
		text_count(&line, n->entries, "entry", "entries");
	} else {
		buf_lit(&line, "  +");
		text_count(&line, n->facts, "fact", "facts");
	}
	if (n->branches != 0) {
		buf_lit(&line, ", ");
		text_count(&line, n->branches, "branch", "branches");
		buf_lit(&line, " moved");
	}
	if (n->apart != 0) {
		buf_lit(&line, ", both moved: see ");
		text_safe(&line, n->branch, TEXT_ID);
		if (n->apart > 1)
			buf_format(&line, " and %llu more", (unsigned long long)(n->apart - 1));
	}
	if (n->name.len != 0) {
		buf_lit(&line, "  ");
		text_safe(&line, n->name, TEXT_LINE);
	}
	buf_char(&line, '\n');
	print_out(&line);
}

static void note(void *ctx, const sheaf_sync_note *n)
{
	syncing *k = ctx;
	bar_clear(k);
	if (k->c->json)
		note_json(n);
	else if (n->detail.ptr != NULL)
		note_problem(k, n);
	else if (!k->c->quiet)
		note_done(n);
}

/* ---- The whole ---------------------------------------------------------------------------- */

static void put_part(buf *out, uint64_t count, const char *what)
{
	if (count == 0)
		return;
	if (out->ptr[out->len - 1] != ':')
		buf_char(out, ',');
	buf_format(out, " %llu %s", (unsigned long long)count, what);
}

static void put_totals(const syncing *k, const sheaf_sync_totals *t)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	bool news = t->same + t->left != t->sessions;
	text_count(&out, t->sessions, "session", "sessions");
	buf_char(&out, ':');
	if (!news) {
		buf_lit(&out, " nothing new");
	} else {
		put_part(&out, t->copied, "copied");
		put_part(&out, t->extended, "extended");
		put_part(&out, t->merged, "merged");
		put_part(&out, t->same, "with nothing new");
	}
	put_part(&out, t->left, "left alone");
	put_part(&out, t->conflicts, "in conflict");
	put_part(&out, t->failed, "failed");
	if (news) {
		buf_lit(&out, "; ");
		text_count(&out, t->entries, "entry", "entries");
		if (k->dry_run) {
			buf_lit(&out, " would come: nothing was written");
		} else {
			buf_lit(&out, ", ");
			text_bytes(&out, t->bytes);
			buf_lit(&out, " written");
		}
	}
	buf_char(&out, '\n');
	print_out(&out);
}

static void put_totals_json(const syncing *k, const sheaf_sync_totals *t)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_u64(&b, "sessions", t->sessions);
	js_u64(&b, "done", t->done);
	js_u64(&b, "copied", t->copied);
	js_u64(&b, "extended", t->extended);
	js_u64(&b, "merged", t->merged);
	js_u64(&b, "same", t->same);
	js_u64(&b, "conflicts", t->conflicts);
	js_u64(&b, "failed", t->failed);
	js_u64(&b, "left", t->left);
	js_u64(&b, "entries", t->entries);
	js_u64(&b, "facts", t->facts);
	js_u64(&b, "branches", t->branches);
	js_u64(&b, "apart", t->apart);
	js_u64(&b, "bytes", t->bytes);
	js_bool(&b, "dry_run", k->dry_run);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

/* The ids at the source of what was named. */
static int find_sessions(cli *c, sheaf_store *source, sheaf_str **out)
{
	sheaf_store *own = c->store;
	size_t count = (size_t)c->word_count - 1;
	*out = arena_alloc(c->memory, (count + 1) * sizeof(**out));
	if (*out == NULL)
		return fail_memory(c);
	int rc = 0;
	c->store = source;
	for (size_t i = 0; i < count && rc == 0; i++) {
		sheaf_key key;
		rc = find_session(c, c->words[i + 1], &key);
		if (rc == 0)
			(*out)[i] = key.session;
	}
	c->store = own;
	return rc;
}

static int sync_stores(cli *c, sheaf_store *here, sheaf_store *there, const char *as)
{
	syncing k = {
		.c = c,
		.dry_run = given(c, OPT_DRY_RUN),
		.bar = isatty(STDERR_FILENO) && !c->quiet && !c->json,
	};
	sheaf_sync_options options = SHEAF_SYNC_OPTIONS_INIT;
	sheaf_sync_totals totals = SHEAF_SYNC_TOTALS_INIT;
	sheaf_str *sessions = NULL;
	if (c->word_count > 1) {
		int rc = find_sessions(c, there, &sessions);
		if (rc != 0)
			return rc;
		options.sessions = sessions;
		options.session_count = (size_t)c->word_count - 1;
	}
	options.app = c->app;
	options.user = c->user;
	options.all_users = given(c, OPT_ALL);
	options.all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	options.source = sheaf_str_of(as);
	options.dry_run = k.dry_run;
	options.progress = progress;
	options.note = note;
	options.ctx = &k;
	int rc = sheaf_store_pull(&totals, here, there, &options, &c->err);
	bar_clear(&k);
	if (rc == SHEAF_UNSUPPORTED)
		snprintf(c->err.hint, sizeof(c->err.hint),
		         "take one user after the other, with --app and --user");
	/* What came about before it broke off is worth knowing, too. */
	if (c->json)
		put_totals_json(&k, &totals);
	else if (!c->quiet && (rc == 0 || totals.done != 0))
		put_totals(&k, &totals);
	if (rc != 0)
		return fail(c);
	if (totals.sessions == 0 && !given(c, OPT_ALL))
		say(c, "there is nothing of this app and user; --all takes everybody's");
	return 0;
}

static void store_closep(sheaf_store **store)
{
	sheaf_close(*store);
}

static int check_words(cli *c)
{
	if (given(c, OPT_ALL) && given(c, OPT_USER))
		return usage(c, "--all is every user");
	if (given(c, OPT_ALL) && c->word_count > 1)
		return usage(c, "either sessions or --all");
	return 0;
}

int cmd_pull(cli *c)
{
	_cleanup_(store_closep) sheaf_store *there = NULL;
	sheaf_store_options reading = SHEAF_STORE_OPTIONS_INIT;
	reading.readonly = 1;
	int rc = check_words(c);
	if (rc == 0 && sheaf_open(&there, c->words[0], &reading, &c->err) != 0)
		rc = fail(c);
	if (rc == 0)
		rc = open_store(c);
	return rc != 0 ? rc : sync_stores(c, c->store, there, c->values[OPT_AS]);
}

/* A directory is called after the machine it is on, unless it is told otherwise. */
static const char *machine(const cli *c, char room[SHEAF_SYNC_NAME_BYTES_MAX + 1])
{
	const char *url = c->values[OPT_STORE] != NULL ? c->values[OPT_STORE]
	                                               : getenv("SHEAF_STORE");
	if (url != NULL && url[0] != '\0' && strncmp(url, "jsonl:", 6) != 0)
		return NULL;
	char host[256] = "";
	if (gethostname(host, sizeof(host) - 1) != 0)
		return NULL;
	size_t len = 0;
	for (const char *p = host; *p != '\0' && *p != '.' && len < SHEAF_SYNC_NAME_BYTES_MAX;
	     p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		             (*p >= '0' && *p <= '9') || *p == '-' || *p == '_';
		room[len++] = *p;
		if (!plain)
			room[len - 1] = '-';
	}
	room[len] = '\0';
	return len != 0 ? room : NULL;
}

int cmd_push(cli *c)
{
	_cleanup_(store_closep) sheaf_store *there = NULL;
	char room[SHEAF_SYNC_NAME_BYTES_MAX + 1];
	int rc = check_words(c);
	if (rc == 0 && sheaf_open(&there, c->words[0], NULL, &c->err) != 0)
		rc = fail(c);
	if (rc == 0)
		rc = open_store(c);
	const char *as = given(c, OPT_AS) ? c->values[OPT_AS] : machine(c, room);
	return rc != 0 ? rc : sync_stores(c, there, c->store, as);
}
