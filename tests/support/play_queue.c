/* The steps of play.h that work on a queue, and a queue as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_io.h"
#include "play.h"

#define LEASE_US 1000000

static int put(sheaf_session *s, unsigned at, const char *content, player *p, sheaf_error *err)
{
	sheaf_enqueue_options options = SHEAF_ENQUEUE_OPTIONS_INIT;
	sheaf_enqueued out = SHEAF_ENQUEUED_INIT;
	char id[32];

	snprintf(id, sizeof(id), "item-%02u", at);
	options.id = sheaf_str_of(id);
	options.environment = at % 2 ? SHEAF_STR("{\"cwd\" : \"/tmp\"}") : (sheaf_str){NULL, 0};
	options.priority = (int32_t)(at % 3) - 1;
	int rc = sheaf_session_enqueue(s, sheaf_str_of(content), &options, &out, err);
	p->existed = rc == 0 && out.existed;
	return rc;
}

/*
 * Claims and acknowledges. What an earlier try claimed, it still has the token
 * of, or the lease must end first; what it acknowledged is gone.
 */
static int take(player *p, sheaf_session *s, const step *what, unsigned at, bool again,
                sheaf_error *err)
{
	sheaf_claim_options options = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_items *items = NULL;
	int rc = 0;

	if (again && p->token[at][0]) {
		rc = sheaf_session_ack(s, sheaf_str_of(p->token[at]), err);
		if (rc == 0 || rc == SHEAF_STALE)
			p->token[at][0] = 0;
		p->existed = rc == SHEAF_STALE;
		return rc == SHEAF_STALE ? 0 : rc;
	}
	if (again)
		fault_io_wait(2 * LEASE_US);
	options.lease_us = LEASE_US;
	options.limit = what->count;
	rc = sheaf_session_claim(&items, s, &options, err);
	if (rc == 0 && items->count) {
		snprintf(p->token[at], SHEAF_ID_ROOM, "%s", items->token.ptr);
		rc = sheaf_session_ack(s, items->token, err);
		if (rc == 0)
			p->token[at][0] = 0;
	}
	sheaf_queue_items_free(items);
	return rc;
}

static int cancel(player *p, sheaf_session *s, const step *what, sheaf_error *err)
{
	char id[32];
	int32_t existed = 0;
	snprintf(id, sizeof(id), "item-%02u", what->count);
	int rc = sheaf_session_cancel(s, sheaf_str_of(id), &existed, err);
	p->existed = rc == 0 && !existed;
	return rc;
}

int player_queue(player *p, sheaf_session *s, const step *what, unsigned at, bool again,
                 const char *content, sheaf_error *err)
{
	if (what->kind == STEP_PUT)
		return put(s, at, content, p, err);
	if (what->kind == STEP_TAKE)
		return take(p, s, what, at, again, err);
	return cancel(p, s, what, err);
}

/*
 * A line for each item with the beginning of its content. Claims are left out:
 * a try that failed half way may have made one more, and that is as it should be.
 */
char *queue_text(sheaf_session *s, int *rc, sheaf_error *err)
{
	sheaf_queue_items *items = NULL;
	size_t room = 200, len = 0;
	char *text = calloc(1, room);

	*rc = sheaf_session_pending(&items, s, err);
	for (size_t i = 0; *rc == 0 && i < items->count; i++) {
		const sheaf_queue_item *x = items->items[i];
		unsigned sum = 0;
		for (size_t k = 0; k < x->content.len; k++)
			sum = sum * 31 + (unsigned char)x->content.ptr[k];
		text = realloc(text, room += 200);
		if (text == NULL)
			abort();
		len += (size_t)snprintf(
			text + len, room - len, "  queue %.*s %d %.*s %.*s, %zu bytes %08x\n",
			(int)x->id.len, x->id.ptr, (int)x->priority, (int)x->environment.len,
			x->environment.ptr, (int)strcspn(x->content.ptr, " "), x->content.ptr,
			x->content.len, sum);
	}
	sheaf_queue_items_free(items);
	return text;
}
