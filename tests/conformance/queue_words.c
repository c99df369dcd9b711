/* The words of queue_words.h. */
#include "queue_words.h"

#include <time.h>

int64_t q_now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void q_doze(int64_t us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};
	nanosleep(&ts, NULL);
}

int q_put(suite *t, sheaf_session *s, q_item i)
{
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	o.id = S(i.id);
	o.environment = S(i.environment);
	o.priority = i.priority;
	return sheaf_session_enqueue(s, S(i.content ? i.content : i.id), &o, NULL, &t->err);
}

static q_got got_of(suite *t, const sheaf_queue_items *items)
{
	q_got g = {items->count, "", "", NULL, 0};
	for (size_t i = 0; i < items->count; i++) {
		const sheaf_queue_item *x = items->items[i];
		g.ids = t_format(t, "%s%s%.*s", g.ids, i ? " " : "", (int)x->id.len, x->id.ptr);
		g.claims = t_format(t, "%s%s%d", g.claims, i ? " " : "", (int)x->claims);
		g.waiting += x->claimed_until_us == 0;
	}
	if (items->token.ptr)
		g.token = t_format(t, "%.*s", (int)items->token.len, items->token.ptr);
	return g;
}

q_got q_claim(suite *t, sheaf_session *s, size_t limit, int64_t lease_us)
{
	sheaf_claim_options o = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_items *items = NULL;
	o.limit = limit;
	o.lease_us = lease_us;
	OK(sheaf_session_claim(&items, s, &o, &t->err));
	q_got g = got_of(t, items);
	sheaf_queue_items_free(items);
	CHECK((g.token != NULL) == (g.count != 0));
	return g;
}

q_got q_look(suite *t, sheaf_session *s)
{
	sheaf_queue_items *items = NULL;
	OK(sheaf_session_pending(&items, s, &t->err));
	CHECK(items->token.ptr == NULL);
	q_got g = got_of(t, items);
	sheaf_queue_items_free(items);
	return g;
}

int q_ack(suite *t, sheaf_session *s, const char *token)
{
	return sheaf_session_ack(s, S(token), &t->err);
}

int q_cancel(suite *t, sheaf_session *s, const char *id, int32_t *existed)
{
	*existed = -1;
	return sheaf_session_cancel(s, S(id), existed, &t->err);
}

q_got q_claim_late(suite *t, sheaf_session *s, size_t limit, int64_t lease_us)
{
	for (int64_t end = q_now_us() + PATIENCE_US; q_now_us() < end; q_doze(5000)) {
		q_got g = q_claim(t, s, limit, lease_us);
		if (g.count)
			return g;
	}
	FAIL("the lease did not end");
}

void q_wait_until_free(suite *t, sheaf_session *s, size_t count)
{
	for (int64_t end = q_now_us() + PATIENCE_US; q_now_us() < end; q_doze(5000))
		if (q_look(t, s).waiting == count)
			return;
	FAIL("the lease did not end");
}

q_merged q_merge(suite *t, sheaf_session *s)
{
	sheaf_queue_merged *m = NULL;
	OK(sheaf_session_merge_all(&m, s, NULL, &t->err));
	q_merged g = {.count = m->count, .ids = "", .bytes = m->content.len};
	for (size_t i = 0; i < m->count; i++)
		g.ids = t_format(t, "%s%s%.*s", g.ids, i ? " " : "", (int)m->ids[i].len,
		                 m->ids[i].ptr);
	g.content = t_format(t, "%.*s", (int)m->content.len, m->content.ptr);
	if (m->environment.ptr)
		g.environment = t_format(t, "%.*s", (int)m->environment.len, m->environment.ptr);
	if (m->token.ptr)
		g.token = t_format(t, "%.*s", (int)m->token.len, m->token.ptr);
	sheaf_queue_merged_free(m);
	CHECK((g.token != NULL) == (g.count != 0));
	return g;
}
