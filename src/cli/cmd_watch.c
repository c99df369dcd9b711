/* sheaf watch: a session as it is written, until it is interrupted. */
#include <signal.h>
#include <stdio.h>

#include "find.h"
#include "opt.h"
#include "view.h"

static sheaf_watch *watching; /* for the signal handler, which may only cancel */

static void stop(int signal_number)
{
	(void)signal_number;
	sheaf_watch_cancel(watching);
}

static void watch_closep(sheaf_watch **watch)
{
	watching = NULL;
	sheaf_watch_close(*watch);
}

/* A fact is no part of the conversation: one line of what it says. */
static void put_fact(view *v, const sheaf_entry *entry)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	text_safe(&line, entry->type, TEXT_LINE);
	buf_format(&line, " @%llu ", (unsigned long long)entry->seq);
	text_safe(&line, entry->body, TEXT_LINE);
	if (v->gap)
		buf_char(&v->out, '\n');
	v->gap = true;
	print_styled(&v->c->screen, &v->out, STYLE_DIM, buf_view(&line));
	buf_char(&v->out, '\n');
	print_out(&v->out);
}

static void put(view *v, const sheaf_entry *entry)
{
	if (v->c->json && entry->damaged) {
		js_open(&v->out, NULL, '{');
		js_u64(&v->out, "seq", entry->seq);
		js_bool(&v->out, "damaged", true);
		js_close(&v->out, '}');
	} else if (v->c->json) {
		js_line(&v->out, entry->line);
	} else if (!entry->damaged && (SHEAF_KIND_BIT(entry->kind) & SHEAF_KINDS_ENTRIES) == 0) {
		put_fact(v, entry);
		return;
	} else {
		view_entry(v, entry);
		return;
	}
	buf_char(&v->out, '\n');
	print_out(&v->out);
}

static int follow(cli *c, sheaf_watch *watch)
{
	_cleanup_(view_done) view v = VIEW_INIT(c, given(c, OPT_FULL));
	for (;;) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		int rc = sheaf_watch_next(&page, watch, -1, &c->err);
		if (rc == SHEAF_CANCELLED)
			return 0;
		if (rc != 0)
			return fail(c);
		for (size_t i = 0; i < page->count; i++)
			put(&v, page->items[i]);
		if (v.out.status != 0)
			return fail_memory(c);
		if (fflush(stdout) != 0)
			return 0; /* the end of the command says it */
	}
}

int cmd_watch(cli *c)
{
	uint64_t from = 0;
	int rc = opt_u64(c, OPT_FROM, &from);
	if (rc != 0)
		return rc;
	_cleanup_(session_closep) sheaf_session *session = NULL;
	rc = open_for_reading(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	if (!given(c, OPT_FROM)) {
		_cleanup_(head_freep) sheaf_head_view *head = NULL;
		if (sheaf_session_head(&head, session, &c->err) != 0)
			return fail(c);
		from = head->info->revision;
	}
	_cleanup_(watch_closep) sheaf_watch *watch = NULL;
	if (sheaf_watch_open(&watch, session, from, &c->err) != 0)
		return fail(c);
	watching = watch;
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	return follow(c, watch);
}
