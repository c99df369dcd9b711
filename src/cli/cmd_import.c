/* sheaf import: the sessions of other agents, once or as they are written. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "find.h"
#include "print.h"

#define WATCH_EVERY_US INT64_C(2000000)
#define WATCH_STEP_US INT64_C(100000)

static volatile sig_atomic_t stopped;

typedef struct importing {
	cli *c;
	uint64_t counts[SHEAF_IMPORT_CHANGED + 1];
	uint64_t records, kept, problems, files, skipped;
	bool again; /* a later round of --watch: what is the same is not worth a word */
} importing;

static const char *const states[] = {
	[SHEAF_IMPORT_NEW] = "new",
	[SHEAF_IMPORT_GROWN] = "grown",
	[SHEAF_IMPORT_SAME] = "same",
	[SHEAF_IMPORT_CHANGED] = "changed",
};

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

static void reportp_free(sheaf_import_report **report)
{
	sheaf_import_report_free(*report);
}

static void placesp_free(sheaf_import_places **places)
{
	sheaf_import_places_free(*places);
}

/* ---- Sessions ---------------------------------------------------------- */

static void session_json(const sheaf_imported *s)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "state", states[s->state]);
	js_str(&b, "app", s->key.app);
	js_str(&b, "user", s->key.user);
	js_str(&b, "session", s->key.session);
	js_text(&b, "format", s->format);
	js_str(&b, "file", s->file);
	js_u64(&b, "pieces", s->pieces);
	js_u64(&b, "kept", s->kept);
	js_u64(&b, "records", s->records);
	js_u64(&b, "mended", s->mended);
	js_bool(&b, "partial", s->partial != 0);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void session_text(const cli *c, const sheaf_imported *s)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	if (c->quiet) {
		text_safe(&b, s->key.session, TEXT_ID);
	} else {
		buf_format(&b, "%-8s", states[s->state]);
		text_safe(&b, s->key.session, TEXT_ID);
		buf_lit(&b, "  ");
		text_count(&b, s->records, "record", "records");
		if (s->mended != 0)
			buf_format(&b, ", %llu mended", (unsigned long long)s->mended);
		if (s->partial)
			buf_lit(&b, ", the last line is not whole yet");
	}
	buf_char(&b, '\n');
	print_out(&b);
}

static void on_session(void *ctx, const sheaf_imported *s)
{
	importing *i = ctx;
	i->counts[s->state]++;
	i->records += s->records;
	i->kept += s->state == SHEAF_IMPORT_SAME ? 0 : s->kept;
	if (s->state == SHEAF_IMPORT_SAME && (i->again || !i->c->json))
		return;
	if (i->c->json)
		session_json(s);
	else
		session_text(i->c, s);
}

/* ---- Problems ---------------------------------------------------------- */

static void problem_json(const sheaf_import_problem *p)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_str(&b, "problem", p->text);
	js_str(&b, "file", p->file);
	js_u64(&b, "line", p->line);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void problem_text(const cli *c, const sheaf_import_problem *p)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	text_safe(&b, p->file, TEXT_ID);
	if (p->line != 0)
		buf_format(&b, ":%llu", (unsigned long long)p->line);
	buf_lit(&b, ": ");
	text_safe(&b, p->text, TEXT_LINE);
	buf_char(&b, '\0');
	if (b.status == 0)
		say(c, "%s", b.ptr);
}

static void problems_put(importing *i, const sheaf_import_report *report)
{
	i->problems += report->problem_total;
	i->files += report->file_count;
	i->skipped += report->skipped_count;
	for (size_t k = 0; k < report->problem_count; k++) {
		if (i->c->json)
			problem_json(report->problems[k]);
		else
			problem_text(i->c, report->problems[k]);
	}
	if (report->problem_total > report->problem_count)
		say(i->c, "and %llu more like these",
		    (unsigned long long)(report->problem_total - report->problem_count));
}

/* Two, where there are two processors: each file takes its memory, and that stays below 64 MB. */
static int32_t threads_of_machine(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
}

static int import_path(importing *i, sheaf_str path, const char *format)
{
	cli *c = i->c;
	_cleanup_(reportp_free) sheaf_import_report *report = NULL;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.format = sheaf_str_of(format);
	how.app = c->app;
	how.user = c->user;
	how.dry_run = given(c, OPT_DRY_RUN);
	how.threads = threads_of_machine();
	how.on_session = on_session;
	how.ctx = i;
	int rc = sheaf_import(&report, c->store, path, &how, &c->err);
	if (report != NULL)
		problems_put(i, report);
	if (rc == 0)
		return 0;
	if (rc == SHEAF_FORMAT)
		snprintf(c->err.hint, sizeof(c->err.hint),
		         "--format says which agent wrote it: sheaf help import lists them");
	return fail(c);
}

/* ---- The whole --------------------------------------------------------- */

static void totals_json(const importing *i)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	for (int32_t s = SHEAF_IMPORT_NEW; s <= SHEAF_IMPORT_CHANGED; s++)
		js_u64(&b, states[s], i->counts[s]);
	js_u64(&b, "records", i->records);
	js_u64(&b, "kept", i->kept);
	js_u64(&b, "problems", i->problems);
	js_u64(&b, "files", i->files);
	js_u64(&b, "skipped", i->skipped);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static void totals_say(const importing *i)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	uint64_t all = 0;
	for (int32_t s = SHEAF_IMPORT_NEW; s <= SHEAF_IMPORT_CHANGED; s++)
		all += i->counts[s];
	text_count(&b, all, "session", "sessions");
	buf_format(&b, ": %llu new, %llu grown, %llu changed, %llu as before; ",
	           (unsigned long long)i->counts[SHEAF_IMPORT_NEW],
	           (unsigned long long)i->counts[SHEAF_IMPORT_GROWN],
	           (unsigned long long)i->counts[SHEAF_IMPORT_CHANGED],
	           (unsigned long long)i->counts[SHEAF_IMPORT_SAME]);
	text_count(&b, i->records, "record", "records");
	if (given(i->c, OPT_DRY_RUN))
		buf_lit(&b, " would be written");
	if (i->problems != 0) {
		buf_lit(&b, ", ");
		text_count(&b, i->problems, "problem", "problems");
	}
	buf_char(&b, '\0');
	if (b.status == 0)
		say(i->c, "%s", b.ptr);
}

static int round_run(importing *i, const sheaf_import_places *places)
{
	cli *c = i->c;
	int rc = 0;
	for (int k = 0; rc == 0 && k < c->word_count; k++)
		rc = import_path(i, sheaf_str_of(c->words[k]), c->values[OPT_FORMAT]);
	for (size_t k = 0; rc == 0 && places != NULL && k < places->count && !stopped; k++) {
		const sheaf_import_place *p = places->items[k];
		rc = import_path(i, p->path, p->format);
	}
	return rc;
}

static int watch(importing *i, const sheaf_import_places *places)
{
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	while (!stopped) {
		int64_t began = clock_monotonic_us();
		int rc = round_run(i, places);
		if (rc != 0)
			return rc;
		if (fflush(stdout) != 0)
			return 0; /* the end of the command says it */
		i->again = true;
		/* Many files take long to look at: four fifths of the time belong to others. */
		int64_t rest = (clock_monotonic_us() - began) * 4;
		for (int64_t us = 0;
		     !stopped && us < (rest > WATCH_EVERY_US ? rest : WATCH_EVERY_US);
		     us += WATCH_STEP_US)
			clock_sleep_us(WATCH_STEP_US);
	}
	return 0;
}

static int places_find(cli *c, sheaf_import_places **places)
{
	const char *home = getenv("HOME");
	if (!given(c, OPT_ALL))
		return 0;
	if (home == NULL || home[0] == '\0')
		return fail_with(c, SHEAF_NOT_FOUND, "name the directories instead",
		                 "$HOME is not set");
	if (sheaf_import_find(places, (sheaf_str){NULL, 0}, &c->err) != 0)
		return fail(c);
	if ((*places)->count == 0)
		say(c, "no agent that is known has left anything below %s", home);
	return 0;
}

int cmd_import(cli *c)
{
	_cleanup_(placesp_free) sheaf_import_places *places = NULL;
	importing i = {.c = c};
	if (c->word_count == 0 && !given(c, OPT_ALL))
		return usage(c, "import what? A PATH, or --all for everything agents left here");
	if (given(c, OPT_ALL) && given(c, OPT_FORMAT))
		return usage(c, "--all knows the formats itself");
	int rc = open_store(c);
	if (rc == 0)
		rc = places_find(c, &places);
	if (rc != 0)
		return rc;
	rc = given(c, OPT_WATCH) ? watch(&i, places) : round_run(&i, places);
	if (rc != 0)
		return rc;
	if (c->json)
		totals_json(&i);
	else
		totals_say(&i);
	return 0;
}
