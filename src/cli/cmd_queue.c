/* sheaf queue: input that waits for a session: added, claimed, acknowledged, cancelled, listed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "find.h"
#include "input.h"
#include "opt.h"
#include "print.h"

static void items_freep(sheaf_queue_items **items)
{
	sheaf_queue_items_free(*items);
}

static void merged_freep(sheaf_queue_merged **merged)
{
	sheaf_queue_merged_free(*merged);
}

static int print_line(cli *c, buf *out)
{
	buf_char(out, '\n');
	print_out(out);
	return out->status != 0 ? fail_memory(c) : 0;
}

static void js_int(buf *b, const char *name, int64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", (long long)value);
	js_raw(b, name, (sheaf_str){digits, (size_t)len});
}

/* ---- Adding ------------------------------------------------------------- */

static int read_priority(cli *c, int32_t *out)
{
	const char *text = c->values[OPT_PRIORITY];
	char *end;
	if (text == NULL)
		return 0;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < INT32_MIN || value > INT32_MAX)
		return usage(c, "--priority takes a number, not '%.40s'", text);
	*out = (int32_t)value;
	return 0;
}

static int add(cli *c, sheaf_session *session)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_QUEUE_ITEM_BYTES_MAX + 2);
	sheaf_enqueue_options options = SHEAF_ENQUEUE_OPTIONS_INIT;
	sheaf_enqueued done = SHEAF_ENQUEUED_INIT;
	int rc = read_priority(c, &options.priority);
	if (rc == 0)
		rc = input_words(c, 2, &text);
	if (rc != 0)
		return rc;
	options.id = opt_str(c, OPT_ID);
	options.environment = opt_str(c, OPT_ENV);
	if (sheaf_session_enqueue(session, buf_view(&text), &options, &done, &c->err) != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_text(&out, "id", done.id);
		js_bool(&out, "existed", done.existed != 0);
		js_close(&out, '}');
	} else {
		text_safe_of(&out, done.id, TEXT_ID);
	}
	return print_line(c, &out);
}

/* ---- Working ------------------------------------------------------------ */

static void js_item(buf *out, const sheaf_queue_item *item)
{
	js_open(out, NULL, '{');
	js_str(out, "id", item->id);
	js_str(out, "content", item->content);
	js_raw(out, "environment", item->environment);
	js_int(out, "priority", item->priority);
	js_u64(out, "claims", (uint64_t)item->claims);
	js_time(out, "enqueued", item->enqueued_us);
	js_time(out, "claimed_until", item->claimed_until_us);
	js_close(out, '}');
}

/* How the work is ended goes to people; programs read it from the JSON. */
static void say_claimed(cli *c, size_t count, sheaf_str token, uint64_t seconds)
{
	say(c, "%zu %s for %llu s; when done: sheaf queue %.200s ack %.*s", count,
	    count == 1 ? "item" : "items", (unsigned long long)seconds, c->words[0], (int)token.len,
	    token.ptr);
}

static int claim_some(cli *c, sheaf_session *session, const sheaf_claim_options *options,
                      uint64_t seconds)
{
	_cleanup_(items_freep) sheaf_queue_items *items = NULL;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (sheaf_session_claim(&items, session, options, &c->err) != 0)
		return fail(c);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "token", items->token);
		js_open(&out, "items", '[');
		for (size_t i = 0; i < items->count; i++)
			js_item(&out, items->items[i]);
		js_close(&out, ']');
		js_close(&out, '}');
		return print_line(c, &out);
	}
	for (size_t i = 0; i < items->count; i++) {
		text_safe(&out, items->items[i]->content, TEXT_BLOCK);
		buf_char(&out, '\n');
	}
	print_out(&out);
	if (items->count == 0)
		say(c, "nothing waits");
	else
		say_claimed(c, items->count, items->token, seconds);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int claim_all(cli *c, sheaf_session *session, const sheaf_claim_options *options,
                     uint64_t seconds)
{
	_cleanup_(merged_freep) sheaf_queue_merged *merged = NULL;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (sheaf_session_merge_all(&merged, session, options, &c->err) != 0)
		return fail(c);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "token", merged->token);
		js_open(&out, "ids", '[');
		for (size_t i = 0; i < merged->count; i++)
			js_str(&out, NULL, merged->ids[i]);
		js_close(&out, ']');
		js_str(&out, "content",
		       merged->count != 0 ? merged->content : (sheaf_str){NULL, 0});
		js_raw(&out, "environment", merged->environment);
		js_close(&out, '}');
		return print_line(c, &out);
	}
	if (merged->count == 0) {
		say(c, "nothing waits");
		return 0;
	}
	text_safe(&out, merged->content, TEXT_BLOCK);
	int rc = print_line(c, &out);
	say_claimed(c, merged->count, merged->token, seconds);
	return rc;
}

static int claim(cli *c, sheaf_session *session)
{
	sheaf_claim_options options = SHEAF_CLAIM_OPTIONS_INIT;
	uint64_t seconds = 60, limit = 0;
	int rc = opt_u64(c, OPT_LEASE, &seconds);
	if (rc == 0)
		rc = opt_u64(c, OPT_LIMIT, &limit);
	if (rc != 0)
		return rc;
	if (seconds == 0 || seconds > 86400)
		return usage(c, "--lease takes 1 to 86400 seconds");
	options.lease_us = (int64_t)seconds * 1000000;
	options.limit = (size_t)limit;
	return given(c, OPT_ALL) ? claim_all(c, session, &options, seconds)
	                         : claim_some(c, session, &options, seconds);
}

static int ack(cli *c, sheaf_session *session)
{
	if (sheaf_session_ack(session, sheaf_str_of(c->words[2]), &c->err) != 0)
		return fail(c);
	if (!c->json) {
		say(c, "done");
		return 0;
	}
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	js_open(&out, NULL, '{');
	js_text(&out, "token", c->words[2]);
	js_close(&out, '}');
	return print_line(c, &out);
}

static int cancel(cli *c, sheaf_session *session)
{
	int32_t existed = 0;
	if (sheaf_session_cancel(session, sheaf_str_of(c->words[2]), &existed, &c->err) != 0)
		return fail(c);
	if (!c->json) {
		say(c, existed ? "taken back" : "there was no such item");
		return 0;
	}
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	js_open(&out, NULL, '{');
	js_text(&out, "id", c->words[2]);
	js_bool(&out, "existed", existed != 0);
	js_close(&out, '}');
	return print_line(c, &out);
}

/* ---- Looking ------------------------------------------------------------- */

static void put_item(cli *c, buf *out, const sheaf_queue_item *item)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	size_t start = out->len;
	text_safe(out, item->id, TEXT_ID);
	buf_format(out, "  %d  ", (int)item->priority);
	print_on(&c->screen, out, item->claimed_until_us ? STYLE_WARN : STYLE_DIM);
	if (item->claimed_until_us)
		buf_lit(out, "claimed");
	else
		text_ago(out, item->enqueued_us, c->screen.now_us);
	print_off(&c->screen, out);
	buf_lit(out, "  ");
	size_t used = out->len - start;
	text_safe(&text, item->content, TEXT_LINE);
	text_cut(out, buf_view(&text), c->screen.width > used + 16 ? c->screen.width - used : 60);
	buf_char(out, '\n');
}

static int list(cli *c, sheaf_session *session)
{
	_cleanup_(items_freep) sheaf_queue_items *items = NULL;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (sheaf_session_pending(&items, session, &c->err) != 0)
		return fail(c);
	for (size_t i = 0; i < items->count; i++) {
		if (!c->json) {
			put_item(c, &out, items->items[i]);
			continue;
		}
		js_item(&out, items->items[i]);
		buf_char(&out, '\n');
	}
	print_out(&out);
	if (items->count == 0 && !c->json)
		say(c, "nothing waits");
	return out.status != 0 ? fail_memory(c) : 0;
}

/* ---- All of them ---------------------------------------------------------- */

/* Options that one of the verbs takes, and no other. */
static int check_options(cli *c, const char *verb)
{
	static const struct {
		opt_id id;
		const char *verb;
		const char *name;
	} of[] = {{OPT_PRIORITY, "add", "priority"},
	          {OPT_ENV, "add", "env"},
	          {OPT_ID, "add", "id"},
	          {OPT_LEASE, "claim", "lease"},
	          {OPT_ALL, "claim", "all"},
	          {OPT_LIMIT, "claim", "limit"}};
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (given(c, of[i].id) && strcmp(verb, of[i].verb) != 0)
			return usage(c, "--%s is for `sheaf queue SESSION %s`", of[i].name,
			             of[i].verb);
	return 0;
}

int cmd_queue(cli *c)
{
	static const struct {
		const char *name;
		int words; /* -1: any number */
		int (*run)(cli *c, sheaf_session *session);
		const char *usage;
	} verbs[] = {{"ls", 2, list, "queue ls takes a session"},
	             {"add", -1, add, ""},
	             {"claim", 2, claim, "queue claim takes a session"},
	             {"ack", 3, ack, "queue ack takes a session and the token of a claim"},
	             {"cancel", 3, cancel, "queue cancel takes a session and the id of an item"}};
	const char *verb = c->word_count > 1 ? c->words[1] : "ls";
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].name, verb) != 0)
			continue;
		if (verbs[i].words > 0 && c->word_count > 1 && c->word_count != verbs[i].words)
			return usage(c, "%s", verbs[i].usage);
		int rc = check_options(c, verb);
		_cleanup_(session_closep) sheaf_session *session = NULL;
		if (rc == 0)
			rc = i == 0 ? open_for_reading(c, c->words[0], &session)
			            : open_for_writing(c, c->words[0], &session);
		return rc != 0 ? rc : verbs[i].run(c, session);
	}
	return usage(c, "'%.40s' is none of ls, add, claim, ack, cancel", verb);
}
