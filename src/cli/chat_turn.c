/* One turn of a chat: asking the model, showing what it says as it says it, and what went wrong. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/str.h"
#include "chat.h"
#include "chat_flow.h"
#include "chat_term.h"
#include "find.h"
#include "view.h"

#define INDENT 2u
#define READING_COLUMNS 100u
#define EXIT_STOPPED 130 /* as shells have it for Ctrl-C */

static void agent_freep(sheaf_agent **agent)
{
	sheaf_agent_free(*agent);
}

static void turn_freep(sheaf_turn **turn)
{
	sheaf_turn_free(*turn);
}

static void cancel_freep(sheaf_cancel **cancel)
{
	sheaf_cancel_free(*cancel);
}

/* ---- Ctrl-C ------------------------------------------------------------ */

#define PATIENCE 2 /* seconds */

static sheaf_cancel *running; /* for the handler, which may only set it */
static volatile time_t asked;

/* The first asks the turn to end; another, if it does not, ends the chat: nothing said is lost. */
static void stop(int number)
{
	if (sheaf_cancel_is_set(running)) {
		if (time(NULL) - asked < PATIENCE)
			return;
		term_mode(TERM_FOUND);
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	asked = time(NULL);
	sheaf_cancel_set(running, 1);
}

static void catch_stop(sheaf_cancel *cancel)
{
	static void (*before)(int) = SIG_DFL;
	/* The handler is never there without what it sets. */
	if (cancel == NULL)
		signal(SIGINT, before);
	running = cancel;
	if (cancel != NULL)
		before = signal(SIGINT, stop);
}

/* ---- Showing ----------------------------------------------------------- */

typedef struct showing {
	chat *ch;
	flow text;
	buf reply; /* in a pipe: what came of one that is not whole yet */
	size_t turns;
} showing;

static void showing_done(showing *s)
{
	flow_done(&s->text);
	buf_free(&s->reply);
}

/* What was printed cannot be taken back, and a pipe has no eyes: it gets whole replies only. */
static void put_reply(showing *s)
{
	if (s->reply.status != 0)
		say(s->ch->c, "out of memory; `sheaf show` has the reply");
	else if (s->reply.len != 0)
		flow_add(&s->text, NULL, buf_view(&s->reply));
	buf_reset(&s->reply);
}

static void put_delta(showing *s, const sheaf_event *event)
{
	bool terminal = s->ch->terminal;
	switch (event->delta) {
	case SHEAF_DELTA_TEXT:
		if (terminal)
			flow_add(&s->text, NULL, event->text);
		else
			buf_str(&s->reply, event->text);
		break;
	case SHEAF_DELTA_THINKING:
		if (terminal)
			flow_add(&s->text, STYLE_DIM, event->text);
		break;
	case SHEAF_DELTA_TOOL_USE:
		flow_end(&s->text);
		say(s->ch->c, "it calls the tool %.*s, which a chat does not have",
		    (int)event->text.len, event->text.ptr);
		break;
	default:
		break;
	}
}

/* Input that waited in the queue becomes a turn of its own: it is shown as if typed. */
static void put_message(showing *s, const sheaf_entry *entry)
{
	if (s->turns < 2 || !s->ch->terminal || entry == NULL || entry->message == NULL ||
	    !str_is(entry->message->role, SHEAF_ROLE_USER))
		return;
	flow_end(&s->text);
	_cleanup_(view_done) view v = VIEW_INIT(s->ch->c, false);
	v.gap = true;
	view_entry(&v, entry);
}

static void put_retry(showing *s, const sheaf_event *event)
{
	flow_end(&s->text);
	buf_reset(&s->reply);
	say(s->ch->c, "%.*s: trying again in %lld.%lld s",
	    (int)(event->text.len < 200 ? event->text.len : 200), event->text.ptr,
	    (long long)(event->wait_us / 1000000), (long long)(event->wait_us / 100000 % 10));
}

static void see(void *ctx, const sheaf_event *event)
{
	showing *s = ctx;
	if (s->ch->c->json)
		return;
	switch (event->kind) {
	case SHEAF_EVENT_TURN_START:
		s->turns++;
		break;
	case SHEAF_EVENT_REQUEST: /* so what came before it was whole */
		put_reply(s);
		break;
	case SHEAF_EVENT_DELTA:
		put_delta(s, event);
		break;
	case SHEAF_EVENT_MESSAGE_END:
		put_message(s, event->entry);
		break;
	case SHEAF_EVENT_RETRY:
		put_retry(s, event);
		break;
	case SHEAF_EVENT_COMPACTION_START:
		flow_end(&s->text);
		say(s->ch->c, "summing up what came before ...");
		break;
	case SHEAF_EVENT_INTERRUPTED:
		say(s->ch->c, "the turn before was interrupted; it stays as it is");
		break;
	case SHEAF_EVENT_TURN_END:
		if (event->turn->code == 0 || event->turn->code == SHEAF_CANCELLED)
			put_reply(s);
		break;
	default:
		break;
	}
}

static void start_showing(showing *s, chat *ch)
{
	cli *c = ch->c;
	*s = (showing){.ch = ch, .reply = BUF_INIT(SIZE_MAX)};
	if (ch->terminal)
		c->screen.width = term_measure().columns;
	size_t columns = c->screen.width > READING_COLUMNS ? READING_COLUMNS : c->screen.width;
	flow_start(&s->text, &c->screen, ch->terminal ? INDENT : 0, ch->terminal ? columns : 0);
	if (ch->terminal) {
		buf_char(&s->text.out, '\n');
		print_out(&s->text.out);
	}
}

/* ---- Afterwards -------------------------------------------------------- */

static void put_usage(buf *out, const sheaf_usage *usage)
{
	uint64_t in = usage->input + usage->cache_read + usage->cache_write_5m +
	              usage->cache_write_1h;
	if (in + usage->output == 0)
		return;
	buf_format(out, " %s ", text_glyphs()->dot);
	text_count(out, in, "token in", "tokens in");
	if (usage->cache_read != 0) {
		buf_lit(out, " (");
		text_count(out, usage->cache_read, "cached)", "cached)");
	}
	buf_lit(out, ", ");
	text_count(out, usage->output, "out", "out");
}

/* Below a reply: its number, which /branch and /label take, and what it used. */
static void put_foot(chat *ch, const sheaf_turn *turn)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX), out = BUF_INIT(SIZE_MAX);
	size_t count = turn->records->count;
	if (count == 0)
		return;
	buf_format(&text, "  @%llu", (unsigned long long)turn->records->items[count - 1]->seq);
	if (turn->outcome == SHEAF_TURN_CANCELLED)
		buf_format(&text, " %s stopped; what came is kept", text_glyphs()->dot);
	else if (turn->stop == SHEAF_STOP_LENGTH)
		buf_format(&text, " %s cut off: it was too long", text_glyphs()->dot);
	else if (turn->stop == SHEAF_STOP_REFUSAL)
		buf_format(&text, " %s refused", text_glyphs()->dot);
	put_usage(&text, &turn->usage);
	print_styled(&ch->c->screen, &out, STYLE_DIM, buf_view(&text));
	buf_lit(&out, "\n\n");
	print_out(&out);
}

/* A reply of nothing is not stored: without a word it would look as if none had been asked for. */
static void put_silence(const chat *ch, const sheaf_turn *turn)
{
	size_t count = turn->records->count;
	const sheaf_entry *last = count != 0 ? turn->records->items[count - 1] : NULL;
	if (last != NULL && last->message != NULL && str_is(last->message->role, SHEAF_ROLE_USER))
		say(ch->c, "the model said nothing");
}

/* What was said is in the session already. */
static int report(chat *ch)
{
	char again[100] = "/retry";
	if (ch->c->err.code == SHEAF_CONTEXT)
		snprintf(ch->c->err.hint, sizeof(ch->c->err.hint),
		         "/compact makes room; /branch ENTRY goes on from an earlier one");
	if (!ch->terminal)
		snprintf(again, sizeof(again),
		         "`echo /retry | sheaf chat %.36s` with the same options",
		         sheaf_session_id(ch->session));
	return model_failed(ch->c, &ch->model, again);
}

static void put_records(const sheaf_turn *turn)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < turn->records->count; i++) {
		js_line(&out, turn->records->items[i]->line);
		buf_char(&out, '\n');
	}
	print_out(&out);
	fflush(stdout);
}

/* ---- Asking ------------------------------------------------------------ */

/* An agent for one run: what is asked of it may be another thing each time. */
static int make_agent(chat *ch, showing *s, const sheaf_compaction_options *compaction,
                      sheaf_agent **out)
{
	sheaf_agent_options how = SHEAF_AGENT_OPTIONS_INIT;
	ch->how.stream = 1;
	ch->how.system = &ch->system;
	ch->how.system_count = ch->system.text.len != 0;
	ch->how.cache_key = sheaf_session_key(ch->session).session;
	how.model = sheaf_client_model(ch->model.client);
	how.session = ch->session;
	how.branch = sheaf_str_of(ch->branch);
	how.render = &ch->how;
	how.compaction = compaction;
	how.on_event = see;
	how.event_ctx = s;
	return sheaf_agent_new(out, &how, &ch->c->err) != 0 ? fail(ch->c) : 0;
}

int chat_ask(chat *ch, sheaf_str text)
{
	_cleanup_(agent_freep) sheaf_agent *agent = NULL;
	_cleanup_(cancel_freep) sheaf_cancel *cancel = sheaf_cancel_new();
	_cleanup_(turn_freep) sheaf_turn *turn = NULL;
	_cleanup_(showing_done) showing s;
	start_showing(&s, ch);
	int rc = cancel != NULL ? chat_session(ch) : fail_memory(ch->c);
	if (rc == 0)
		rc = make_agent(ch, &s, NULL, &agent);
	if (rc != 0) {
		chat_offer(ch, text);
		return rc;
	}
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	how.cancel = cancel;
	catch_stop(cancel);
	if (text.ptr != NULL)
		rc = sheaf_agent_run_text(&turn, agent, text, &how, &ch->c->err);
	else
		rc = sheaf_agent_run(&turn, agent, NULL, 0, &how, &ch->c->err);
	catch_stop(NULL);
	flow_end(&s.text);
	/* What did not come as far as the log is on the line again. */
	if (text.ptr != NULL && (turn == NULL || turn->records->count == 0))
		chat_offer(ch, text);
	if (turn != NULL && rc == 0)
		put_silence(ch, turn);
	if (turn != NULL && ch->c->json)
		put_records(turn);
	else if (turn != NULL && ch->terminal && (rc == 0 || rc == SHEAF_CANCELLED))
		put_foot(ch, turn);
	if (rc == 0 || (rc == SHEAF_CANCELLED && ch->terminal))
		return 0;
	return rc == SHEAF_CANCELLED ? EXIT_STOPPED : report(ch);
}

static void show_summary(chat *ch, const char *id)
{
	_cleanup_(records_freep) sheaf_records *found = NULL;
	_cleanup_(view_done) view v = VIEW_INIT(ch->c, false);
	v.gap = true;
	if (sheaf_session_get(&found, ch->session, sheaf_str_of(id), NULL) == 0)
		view_entry(&v, found->items[0]);
	say(ch->c, "\nthe model now sees this in place of what came before; /undo takes it back");
}

int chat_compact(chat *ch, sheaf_str instructions)
{
	_cleanup_(agent_freep) sheaf_agent *agent = NULL;
	_cleanup_(cancel_freep) sheaf_cancel *cancel = sheaf_cancel_new();
	if (cancel == NULL)
		return fail_memory(ch->c);
	_cleanup_(showing_done) showing s;
	start_showing(&s, ch);
	/* Who asks for it means all of it. */
	sheaf_compaction_options everything = SHEAF_COMPACTION_OPTIONS_INIT;
	everything.keep_recent = 0;
	int rc = make_agent(ch, &s, &everything, &agent);
	if (rc != 0)
		return rc;
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	how.cancel = cancel;
	catch_stop(cancel);
	rc = sheaf_agent_compact(agent, instructions, &how, &done, &ch->c->err);
	catch_stop(NULL);
	flow_end(&s.text);
	if (rc == SHEAF_CANCELLED)
		say(ch->c, "stopped; nothing was changed");
	else if (rc != 0)
		return report(ch);
	else
		show_summary(ch, done.id);
	return 0;
}
