/* The queue of a session: order, leases, tokens, limits, and what it has to do with its session. */
#include "queue_words.h"

static void erase(suite *t, const char *session)
{
	sheaf_key key = t_key(t, session);
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &key, NULL, &t->err));
	sheaf_deleted_free(d);
}

/* ---- Without queues --------------------------------------------------------- */

CASE(queue_unsupported_where_there_is_none)
{
	if (t->info.queues)
		return;
	sheaf_session *s = t_new(t, "s");
	sheaf_queue_items *items = NULL;
	sheaf_queue_merged *m = NULL;
	FAILS(UNSUPPORTED, TRY_PUT(s, "a"));
	FAILS(UNSUPPORTED, sheaf_session_claim(&items, s, NULL, &t->err));
	FAILS(UNSUPPORTED, sheaf_session_merge_all(&m, s, NULL, &t->err));
	FAILS(UNSUPPORTED, sheaf_session_pending(&items, s, &t->err));
	FAILS(UNSUPPORTED, q_ack(t, s, "token"));
	FAILS(UNSUPPORTED, sheaf_session_cancel(s, S("a"), NULL, &t->err));
}

/* ---- Order ------------------------------------------------------------------ */

QUEUE_CASE(queue_first_in_first_out)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b");
	PUT(s, "c");
	CSTR(q_look(t, s).ids, "a b c");
	q_got a = q_claim(t, s, 0, NEVER), b = q_claim(t, s, 0, NEVER);
	CSTR(a.ids, "a");
	CSTR(b.ids, "b");
	CHECK(strcmp(a.token, b.token) != 0);
	OK(q_ack(t, s, b.token));
	OK(q_ack(t, s, a.token));
	CSTR(q_claim(t, s, 0, NEVER).ids, "c");
	EQ(q_claim(t, s, 0, NEVER).count, 0);
}

QUEUE_CASE(queue_greater_priority_first)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "low", .priority = -5);
	PUT(s, "none");
	PUT(s, "high", .priority = 5);
	PUT(s, "high2", .priority = 5);
	PUT(s, "least", .priority = INT32_MIN);
	PUT(s, "most", .priority = INT32_MAX);
	PUT(s, "none2");
	PUT(s, "low2", .priority = -5);
	CSTR(q_look(t, s).ids, "most high high2 none none2 low low2 least");
	CSTR(q_claim(t, s, 3, NEVER).ids, "most high high2");
	PUT(s, "late", .priority = 6);
	CSTR(q_claim(t, s, 100, NEVER).ids, "late none none2 low low2 least");
}

QUEUE_CASE(queue_order_survives_a_restart)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b", .priority = 1);
	PUT(s, "c");
	q_got b = q_claim(t, s, 1, NEVER);
	s = t_restart(t, "s");
	CSTR(q_look(t, s).ids, "b a c");
	EQ(q_look(t, s).waiting, 2);
	PUT(s, "d", .priority = 1);
	CSTR(q_claim(t, s, 100, NEVER).ids, "d a c");
	OK(q_ack(t, s, b.token));
	CSTR(q_look(t, s).ids, "d a c");
}

QUEUE_CASE(queue_given_back_keeps_its_place)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b");
	CSTR(q_claim(t, s, 1, SHORT_US).ids, "a");
	PUT(s, "c");
	q_wait_until_free(t, s, 3);
	CSTR(q_claim(t, s, 3, NEVER).ids, "a b c");
}

/* ---- Claims ------------------------------------------------------------------ */

QUEUE_CASE(queue_empty_is_no_error)
{
	sheaf_session *s = t_new(t, "s");
	EQ(q_claim(t, s, 0, NEVER).count, 0);
	EQ(q_merge(t, s).count, 0);
	EQ(q_look(t, s).count, 0);
	CSTR(q_merge(t, s).content, "");
	CHECK(q_merge(t, s).environment == NULL);
}

QUEUE_CASE(queue_item_as_given)
{
	static const char text[] = "first line\nsecond\t\"quoted\" \\ \xe2\x82\xac \x01 end";
	static const char env[] = "{\"z\" : 1.50, \"a\":[1e400,18446744073709551617,null]}";
	sheaf_session *s = t_new(t, "s");
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	sheaf_enqueued out = SHEAF_ENQUEUED_INIT;
	sheaf_queue_items *items = NULL;
	o.environment = S(env);
	o.priority = -7;
	OK(sheaf_session_enqueue(s, (sheaf_str){text, sizeof(text)}, &o, &out, &t->err));
	EQ(strlen(out.id), 36);
	EQ(out.existed, 0);
	for (int i = 0; i < 2; i++) {
		OK(i ? sheaf_session_claim(&items, s, NULL, &t->err)
		     : sheaf_session_pending(&items, s, &t->err));
		EQ(items->count, 1);
		const sheaf_queue_item *x = items->items[0];
		CSTR(out.id, t_format(t, "%.*s", (int)x->id.len, x->id.ptr));
		BYTES(x->content, text, sizeof(text)); /* with its NUL */
		TEXT(x->environment, env);
		CHECK(x->priority == -7);
		EQ(x->claims, i);
		CHECK(x->enqueued_us > 0);
		CHECK((x->claimed_until_us > x->enqueued_us) == (i == 1));
		sheaf_queue_items_free(items);
		s = t_restart(t, "s");
	}
}

QUEUE_CASE(queue_empty_content_is_content)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a", .content = "");
	PUT(s, "b", .content = "x");
	PUT(s, "c", .content = "");
	q_merged m = q_merge(t, s);
	EQ(m.count, 3);
	CSTR(m.content, "\nx\n");
}

QUEUE_CASE(queue_claimed_is_not_given_twice)
{
	sheaf_session *s = t_new(t, "s"), *other = t_existing(t, "s");
	PUT(s, "a");
	CSTR(q_claim(t, s, 10, NEVER).ids, "a");
	EQ(q_claim(t, s, 10, NEVER).count, 0);
	EQ(q_claim(t, other, 10, NEVER).count, 0);
	EQ(q_merge(t, other).count, 0);
	CSTR(q_look(t, other).ids, "a");
	EQ(q_look(t, other).waiting, 0);
}

QUEUE_CASE(queue_several_under_one_token)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b");
	PUT(s, "c");
	q_got g = q_claim(t, s, 2, NEVER);
	CSTR(g.ids, "a b");
	CSTR(g.claims, "1 1");
	OK(q_ack(t, s, g.token));
	CSTR(q_look(t, s).ids, "c");
}

QUEUE_CASE(queue_twin_store_sees_it)
{
	sheaf_key key = t_key(t, "s");
	sheaf_session *s = t_new(t, "s");
	sheaf_session *twin = t_open_in(t, suite_twin(t), &key, SHEAF_OPEN_EXISTING);
	for (int round = 0; round < 5; round++) {
		PUT(s, t_format(t, "a%d", round));
		PUT(twin, t_format(t, "b%d", round));
		q_got g = q_claim(t, twin, 2, NEVER);
		CSTR(g.ids, t_format(t, "a%d b%d", round, round));
		EQ(q_claim(t, s, 2, NEVER).count, 0);
		OK(q_ack(t, s, g.token)); /* whoever has the token */
		FAILS(STALE, q_ack(t, twin, g.token));
		EQ(q_look(t, s).count, 0);
		EQ(q_look(t, twin).count, 0);
	}
}

/* ---- Leases ------------------------------------------------------------------ */

QUEUE_CASE(queue_lease_ends_and_it_is_given_again)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	q_got first = q_claim(t, s, 1, SHORT_US);
	CSTR(first.claims, "1");
	q_got second = q_claim_late(t, s, 1, SHORT_US);
	CSTR(second.ids, "a");
	CSTR(second.claims, "2");
	CHECK(strcmp(first.token, second.token) != 0);
	q_got third = q_claim_late(t, s, 1, NEVER);
	CSTR(third.claims, "3");
	OK(q_ack(t, s, third.token));
	EQ(q_look(t, s).count, 0);
}

QUEUE_CASE(queue_late_ack_is_stale)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	q_got first = q_claim(t, s, 1, SHORT_US);
	q_got second = q_claim_late(t, s, 1, NEVER);
	FAILS(STALE, q_ack(t, s, first.token));
	CSTR(q_look(t, s).ids, "a");
	OK(q_ack(t, s, second.token));
	FAILS(STALE, q_ack(t, s, first.token));
}

QUEUE_CASE(queue_late_ack_of_what_nobody_took)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	q_got g = q_claim(t, s, 1, SHORT_US);
	q_wait_until_free(t, s, 1);
	OK(q_ack(t, s, g.token));
	EQ(q_look(t, s).count, 0);
	EQ(q_claim(t, s, 1, NEVER).count, 0);
}

QUEUE_CASE(queue_ack_twice_is_stale)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	q_got g = q_claim(t, s, 1, NEVER);
	OK(q_ack(t, s, g.token));
	FAILS(STALE, q_ack(t, s, g.token));
	FAILS(STALE, q_ack(t, s, "never-given"));
	s = t_restart(t, "s");
	FAILS(STALE, q_ack(t, s, g.token));
}

/* Of a claim of two one was taken over: the ack removes the other only. */
QUEUE_CASE(queue_ack_of_a_part)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b");
	q_got both = q_claim(t, s, 2, SHORT_US);
	q_wait_until_free(t, s, 2);
	q_got one = q_claim(t, s, 1, NEVER);
	CSTR(one.ids, "a");
	OK(q_ack(t, s, both.token));
	CSTR(q_look(t, s).ids, "a");
	OK(q_ack(t, s, one.token));
	EQ(q_look(t, s).count, 0);
}

QUEUE_CASE(queue_claim_survives_a_restart)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	q_got g = q_claim(t, s, 1, NEVER);
	s = t_restart(t, "s");
	EQ(q_claim(t, s, 1, NEVER).count, 0);
	OK(q_ack(t, s, g.token));
	s = t_restart(t, "s");
	EQ(q_look(t, s).count, 0);
}

QUEUE_CASE(queue_claim_options)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_claim_options o = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_items *items = NULL;
	sheaf_queue_merged *m = NULL;
	PUT(s, "a");
	o.limit = SHEAF_QUEUE_MERGE_ITEMS_MAX + 1;
	FAILS(LIMIT, sheaf_session_claim(&items, s, &o, &t->err));
	FAILS(LIMIT, sheaf_session_merge_all(&m, s, &o, &t->err));
	o.limit = 1;
	o.lease_us = -1;
	FAILS(INVALID, sheaf_session_claim(&items, s, &o, &t->err));
	o.lease_us = 86400LL * 1000000 + 1;
	FAILS(LIMIT, sheaf_session_claim(&items, s, &o, &t->err));
	o.lease_us--;
	OK(sheaf_session_claim(&items, s, &o, &t->err));
	EQ(items->count, 1);
	sheaf_queue_items_free(items);
	FAILS(INVALID, q_ack(t, s, ""));
	FAILS(LIMIT, q_ack(t, s, t_fill(t, 'x', SHEAF_ID_BYTES_MAX + 1)));
}

/* ---- Cancelling ---------------------------------------------------------------- */

QUEUE_CASE(queue_cancel)
{
	sheaf_session *s = t_new(t, "s");
	int32_t existed;
	PUT(s, "a");
	PUT(s, "b");
	OK(q_cancel(t, s, "a", &existed));
	EQ(existed, 1);
	OK(q_cancel(t, s, "a", &existed));
	EQ(existed, 0);
	OK(q_cancel(t, s, "nobody", &existed));
	EQ(existed, 0);
	CSTR(q_look(t, s).ids, "b");
	OK(sheaf_session_cancel(s, S("b"), NULL, &t->err));
	EQ(q_look(t, s).count, 0);
	FAILS(INVALID, q_cancel(t, s, "", &existed));
}

QUEUE_CASE(queue_cancel_while_claimed)
{
	sheaf_session *s = t_new(t, "s");
	int32_t existed;
	PUT(s, "a");
	q_got g = q_claim(t, s, 1, NEVER);
	FAILS(BUSY, q_cancel(t, s, "a", &existed));
	OK(q_ack(t, s, g.token));
	OK(q_cancel(t, s, "a", &existed));
	EQ(existed, 0);
}

QUEUE_CASE(queue_cancel_after_the_lease)
{
	sheaf_session *s = t_new(t, "s");
	int32_t existed;
	PUT(s, "a");
	q_got g = q_claim(t, s, 1, SHORT_US);
	q_wait_until_free(t, s, 1);
	OK(q_cancel(t, s, "a", &existed));
	EQ(existed, 1);
	FAILS(STALE, q_ack(t, s, g.token));
}

/* ---- Ids ------------------------------------------------------------------------ */

QUEUE_CASE(queue_repeat_existed)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	sheaf_enqueued out = SHEAF_ENQUEUED_INIT;
	o.id = S("a");
	o.environment = S("{\"x\":1}");
	o.priority = 3;
	OK(sheaf_session_enqueue(s, S("text"), &o, &out, &t->err));
	EQ(out.existed, 0);
	OK(sheaf_session_enqueue(s, S("text"), &o, &out, &t->err));
	EQ(out.existed, 1);
	CSTR(out.id, "a");
	q_got g = q_claim(t, s, 1, NEVER);
	OK(sheaf_session_enqueue(s, S("text"), &o, &out, &t->err)); /* while it is worked on */
	EQ(out.existed, 1);
	EQ(q_look(t, s).count, 1);
	OK(q_ack(t, s, g.token));
	OK(sheaf_session_enqueue(s, S("text"), &o, &out, &t->err)); /* it is not there any more */
	EQ(out.existed, 0);
	CSTR(q_claim(t, s, 1, NEVER).claims, "1");
}

QUEUE_CASE(queue_same_id_other_content)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a", .content = "text", .environment = "{}", .priority = 1);
	FAILS(CONFLICT, TRY_PUT(s, "a", .content = "other", .environment = "{}", .priority = 1));
	FAILS(CONFLICT, TRY_PUT(s, "a", .content = "text", .environment = "{ }", .priority = 1));
	FAILS(CONFLICT, TRY_PUT(s, "a", .content = "text", .environment = NULL, .priority = 1));
	FAILS(CONFLICT, TRY_PUT(s, "a", .content = "text", .environment = "{}", .priority = 2));
	OK(TRY_PUT(s, "a", .content = "text", .environment = "{}", .priority = 1));
	EQ(q_look(t, s).count, 1);
	s = t_restart(t, "s");
	FAILS(CONFLICT, TRY_PUT(s, "a", .content = "other", .environment = "{}", .priority = 1));
}

QUEUE_CASE(queue_ids_are_plain)
{
	sheaf_session *s = t_new(t, "s");
	const char *longest = t_fill(t, 'x', SHEAF_ID_BYTES_MAX);
	FAILS(INVALID, TRY_PUT(s, "", .content = "text"));
	FAILS(INVALID, TRY_PUT(s, "a\nb", .content = "text"));
	FAILS(INVALID, TRY_PUT(s, "a\xff", .content = "text"));
	FAILS(LIMIT, TRY_PUT(s, t_format(t, "%sx", longest), .content = "text"));
	PUT(s, longest, .content = "text");
	PUT(s, "quote\" back\\slash {}", .content = "text");
	s = t_restart(t, "s");
	CSTR(q_look(t, s).ids, t_format(t, "%s quote\" back\\slash {}", longest));
	int32_t existed;
	OK(q_cancel(t, s, "quote\" back\\slash {}", &existed));
	EQ(existed, 1);
}

/* ---- Limits ------------------------------------------------------------------------ */

QUEUE_CASE(queue_item_size)
{
	sheaf_session *s = t_new(t, "s");
	char *most = t_fill(t, 'x', SHEAF_QUEUE_ITEM_BYTES_MAX);
	PUT(s, "a", .content = most);
	FAILS(LIMIT, TRY_PUT(s, "b", .content = t_format(t, "%sx", most)));
	FAILS(LIMIT, TRY_PUT(s, "b", .content = most, .environment = "1"));
	most[SHEAF_QUEUE_ITEM_BYTES_MAX - 4] = '\0';
	FAILS(LIMIT, TRY_PUT(s, "b", .content = most, .environment = "12345"));
	PUT(s, "b", .content = most, .environment = "1234");
	s = t_restart(t, "s");
	sheaf_queue_items *items = NULL;
	OK(sheaf_session_pending(&items, s, &t->err));
	EQ(items->count, 2);
	EQ(items->items[0]->content.len, SHEAF_QUEUE_ITEM_BYTES_MAX);
	EQ(items->items[1]->content.len, SHEAF_QUEUE_ITEM_BYTES_MAX - 4);
	TEXT(items->items[1]->environment, "1234");
	sheaf_queue_items_free(items);
}

QUEUE_CASE(queue_full)
{
	sheaf_session *s = t_new(t, "s");
	for (unsigned i = 0; i < SHEAF_QUEUE_ITEMS_MAX; i++)
		PUT(s, t_format(t, "i%u", i), .content = "x");
	FAILS(LIMIT, TRY_PUT(s, "more", .content = "x"));
	OK(TRY_PUT(s, "i0", .content = "x")); /* that one is there */
	EQ(q_look(t, s).count, SHEAF_QUEUE_ITEMS_MAX);
	q_merged m = q_merge(t, s);
	EQ(m.count, SHEAF_QUEUE_MERGE_ITEMS_MAX);
	FAILS(LIMIT, TRY_PUT(s, "more", .content = "x")); /* claimed ones count */
	OK(q_ack(t, s, m.token));
	PUT(s, "more", .content = "x");
	EQ(q_look(t, s).count, SHEAF_QUEUE_ITEMS_MAX - SHEAF_QUEUE_MERGE_ITEMS_MAX + 1);
}

QUEUE_CASE(queue_refuses_what_is_no_text)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_PUT(s, "a", .content = "\xc3\x28"));
	FAILS(INVALID, sheaf_session_enqueue(s, (sheaf_str){NULL, 0}, NULL, NULL, &t->err));
	FAILS(INVALID, TRY_PUT(s, "a", .content = "x", .environment = "{"));
	FAILS(INVALID, TRY_PUT(s, "a", .content = "x", .environment = ""));
	FAILS(INVALID, TRY_PUT(s, "a", .content = "x", .environment = "{} {}"));
	FAILS(INVALID, TRY_PUT(s, "a", .content = "x", .environment = "{\"a\":1,\"a\":2}"));
	FAILS(INVALID, sheaf_session_enqueue(NULL, S("x"), NULL, NULL, &t->err));
	EQ(q_look(t, s).count, 0);
}

/* ---- Merging -------------------------------------------------------------------------- */

QUEUE_CASE(queue_merge_joins_by_lines)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a", .content = "Hello");
	PUT(s, "b", .content = "World\nand more");
	PUT(s, "c", .content = "!", .priority = 1);
	q_merged m = q_merge(t, s);
	EQ(m.count, 3);
	CSTR(m.ids, "c a b");
	CSTR(m.content, "!\nHello\nWorld\nand more");
	CHECK(m.environment == NULL);
	EQ(q_merge(t, s).count, 0);
	OK(q_ack(t, s, m.token));
	EQ(q_look(t, s).count, 0);
}

QUEUE_CASE(queue_merge_takes_the_last_environment)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a", .environment = "{\"cwd\":\"/a\"}");
	PUT(s, "b", .environment = "{\"cwd\":\"/b\"}");
	PUT(s, "c");
	q_merged m = q_merge(t, s);
	CSTR(m.ids, "a b c");
	CSTR(m.environment, "{\"cwd\":\"/b\"}");
	OK(q_ack(t, s, m.token));
	PUT(s, "d", .environment = "1", .priority = 1);
	PUT(s, "e", .environment = "2", .priority = 2);
	CSTR(q_merge(t, s).environment, "1"); /* the last in the order of claims */
}

QUEUE_CASE(queue_merge_most_items)
{
	sheaf_session *s = t_new(t, "s");
	for (unsigned i = 0; i < SHEAF_QUEUE_MERGE_ITEMS_MAX + 2; i++)
		PUT(s, t_format(t, "i%u", i), .content = "x");
	q_merged m = q_merge(t, s);
	EQ(m.count, SHEAF_QUEUE_MERGE_ITEMS_MAX);
	EQ(m.bytes, 2 * SHEAF_QUEUE_MERGE_ITEMS_MAX - 1);
	m = q_merge(t, s);
	CSTR(m.ids, "i100 i101");
}

QUEUE_CASE(queue_merge_most_bytes)
{
	sheaf_session *s = t_new(t, "s");
	const char *large = t_fill(t, 'l', 60000);
	PUT(s, "a", .content = large);
	PUT(s, "b", .content = t_fill(t, 'x', SHEAF_QUEUE_MERGE_BYTES_MAX - 60001));
	PUT(s, "c", .content = "");
	q_merged m = q_merge(t, s);
	CSTR(m.ids, "a b");
	EQ(m.bytes, SHEAF_QUEUE_MERGE_BYTES_MAX);
	OK(q_ack(t, s, m.token));
	m = q_merge(t, s);
	CSTR(m.ids, "c");
	OK(q_ack(t, s, m.token));
	PUT(s, "d", .content = large);
	PUT(s, "e",
	    .content = t_fill(t, 'x', SHEAF_QUEUE_MERGE_BYTES_MAX - 60000)); /* one byte too many */
	PUT(s, "f", .content = "x"); /* would fit, but order comes first */
	CSTR(q_merge(t, s).ids, "d");
	CSTR(q_merge(t, s).ids, "e f");
}

QUEUE_CASE(queue_merge_first_item_whatever_its_size)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a", .content = t_fill(t, 'x', SHEAF_QUEUE_MERGE_BYTES_MAX + 1));
	PUT(s, "b", .content = "");
	q_merged m = q_merge(t, s);
	CSTR(m.ids, "a");
	EQ(m.bytes, SHEAF_QUEUE_MERGE_BYTES_MAX + 1);
	CSTR(q_merge(t, s).ids, "b");
	PUT(s, "c", .content = t_fill(t, 'x', SHEAF_QUEUE_MERGE_BYTES_MAX));
	PUT(s, "d", .content = "");
	CSTR(q_merge(t, s).ids, "c"); /* the line break counts */
}

QUEUE_CASE(queue_merge_lease)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_claim_options o = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_merged *m = NULL;
	PUT(s, "a");
	PUT(s, "b");
	PUT(s, "c");
	o.lease_us = SHORT_US;
	o.limit = 2;
	OK(sheaf_session_merge_all(&m, s, &o, &t->err));
	EQ(m->count, 2);
	sheaf_queue_merged_free(m);
	q_wait_until_free(t, s, 3);
	CSTR(q_claim(t, s, 100, NEVER).claims, "2 2 1");
}

/* ---- With its session ------------------------------------------------------------------- */

QUEUE_CASE(queue_leaves_the_revision_alone)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	uint64_t revision = t_revision(t, s);
	PUT(s, "a");
	PUT(s, "b");
	q_got g = q_claim(t, s, 1, NEVER);
	OK(q_ack(t, s, g.token));
	int32_t existed;
	OK(q_cancel(t, s, "b", &existed));
	EQ(t_revision(t, s), revision);
	IDS(t_all(t, s), "u1");
	SAY(s, "user", "2", .id = "u2", .expect = SHEAF_EXPECT_REVISION, .revision = revision);
}

QUEUE_CASE(queue_of_each_session_its_own)
{
	sheaf_key key_a = t_key_of(t, "-a", "u", "s"), key_b = t_key_of(t, "-b", "u", "s"),
		  key_v = t_key_of(t, "-a", "v", "s");
	sheaf_session *s = t_new(t, "s"), *other = t_new(t, "s2");
	sheaf_session *a = t_open_in(t, t->store, &key_a, SHEAF_OPEN_NEW);
	sheaf_session *b = t_open_in(t, t->store, &key_b, SHEAF_OPEN_NEW);
	sheaf_session *v = t_open_in(t, t->store, &key_v, SHEAF_OPEN_NEW);
	int32_t existed;
	PUT(s, "x", .content = "of s");
	PUT(a, "x", .content = "of a");
	PUT(v, "x", .content = "of v");
	EQ(q_look(t, other).count, 0);
	EQ(q_look(t, b).count, 0);
	EQ(q_claim(t, b, 1, NEVER).count, 0);
	q_got g = q_claim(t, a, 1, NEVER);
	FAILS(STALE, q_ack(t, s, g.token));
	FAILS(STALE, q_ack(t, b, g.token));
	FAILS(STALE, q_ack(t, v, g.token));
	OK(q_cancel(t, other, "x", &existed));
	EQ(existed, 0);
	EQ(q_look(t, s).waiting, 1);
	EQ(q_look(t, v).waiting, 1);
	OK(q_ack(t, a, g.token));
	CSTR(q_merge(t, s).content, "of s");
	CSTR(q_merge(t, v).content, "of v");
}

QUEUE_CASE(queue_goes_with_its_session)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_queue_items *items = NULL;
	sheaf_queue_merged *m = NULL;
	int32_t existed;
	PUT(s, "a");
	PUT(s, "b");
	q_got g = q_claim(t, s, 1, NEVER);
	erase(t, "s");
	FAILS(GONE, TRY_PUT(s, "c"));
	FAILS(GONE, sheaf_session_claim(&items, s, NULL, &t->err));
	FAILS(GONE, sheaf_session_merge_all(&m, s, NULL, &t->err));
	FAILS(GONE, sheaf_session_pending(&items, s, &t->err));
	FAILS(GONE, q_ack(t, s, g.token));
	FAILS(GONE, q_cancel(t, s, "b", &existed));
}

QUEUE_CASE(queue_not_inherited_by_the_next_of_that_name)
{
	sheaf_session *s = t_new(t, "s");
	PUT(s, "a");
	PUT(s, "b");
	q_got g = q_claim(t, s, 1, NEVER);
	t_close(t, s);
	erase(t, "s");
	s = t_new(t, "s");
	EQ(q_look(t, s).count, 0);
	EQ(q_claim(t, s, 1, NEVER).count, 0);
	FAILS(STALE, q_ack(t, s, g.token));
	PUT(s, "a", .content = "other content");
	CSTR(q_merge(t, s).content, "other content");
	s = t_restart(t, "s");
	CSTR(q_look(t, s).ids, "a");
}

/* The same moment of birth is no way in. */
QUEUE_CASE(queue_not_inherited_by_a_twin)
{
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.mode = SHEAF_OPEN_NEW;
	o.created_us = 1700000000000000;
	for (int round = 0; round < 3; round++) {
		OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
		t_keep(t, s);
		EQ(q_look(t, s).count, 0);
		PUT(s, "a");
		CSTR(q_look(t, s).ids, "a");
		if (round < 2)
			erase(t, "s");
	}
}

QUEUE_CASE(queue_not_taken_by_forks_and_copies)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_key key = t_key(t, "copy");
	sheaf_session *copy = NULL;
	SAY(s, "user", "1", .id = "u1");
	PUT(s, "a");
	sheaf_session *fork = t_fork(t, s, "", "fork");
	OK(sheaf_session_copy(&copy, s, t->store, &key, &t->err));
	t_keep(t, copy);
	EQ(q_look(t, fork).count, 0);
	EQ(q_look(t, copy).count, 0);
	PUT(fork, "a", .content = "the fork's own");
	CSTR(q_merge(t, fork).content, "the fork's own");
	CSTR(q_merge(t, s).content, "a");
	EQ(q_merge(t, copy).count, 0);
}

QUEUE_CASE(queue_of_a_hidden_session)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	PUT(s, "a", .content = "waiting");
	sheaf_session *fork = t_fork(t, s, "", "fork");
	PUT(fork, "f");
	erase(t, "s");
	FAILS(GONE, TRY_PUT(s, "b"));
	FAILS(GONE, q_ack(t, s, "token"));
	CSTR(q_look(t, fork).ids, "f");
	erase(t, "fork");
	s = t_new(t, "s");
	EQ(q_look(t, s).count, 0);
}

QUEUE_CASE(queue_of_a_purged_source_stays_away_from_forks)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_key key = t_key(t, "s");
	sheaf_delete_options o = SHEAF_DELETE_OPTIONS_INIT;
	sheaf_deleted *d = NULL;
	SAY(s, "user", "1", .id = "u1");
	PUT(s, "a");
	sheaf_session *fork = t_fork(t, s, "", "fork");
	PUT(fork, "f");
	q_got g = q_claim(t, fork, 1, NEVER);
	o.purge = 1;
	OK(sheaf_store_delete(&d, t->store, &key, &o, &t->err));
	sheaf_deleted_free(d);
	CSTR(q_look(t, fork).ids, "f"); /* its log was written anew, its queue is the same */
	OK(q_ack(t, fork, g.token));
	EQ(q_look(t, fork).count, 0);
}

QUEUE_CASE(queue_of_a_readonly_handle)
{
	sheaf_session *s = t_new(t, "s"), *reader = NULL;
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_queue_items *items = NULL;
	int32_t existed;
	PUT(s, "a");
	o.readonly = 1;
	OK(sheaf_session_open(&reader, t->store, &key, &o, &t->err));
	t_keep(t, reader);
	FAILS(READONLY, TRY_PUT(reader, "b"));
	FAILS(READONLY, sheaf_session_claim(&items, reader, NULL, &t->err));
	FAILS(READONLY, q_ack(t, reader, "token"));
	FAILS(READONLY, q_cancel(t, reader, "a", &existed));
	CSTR(q_look(t, reader).ids, "a");
}

/* A turn that was thought out before somebody else wrote must learn of it, whatever its worker did
 * with the queue meanwhile. */
QUEUE_CASE(queue_work_is_not_seeing_the_conversation)
{
	sheaf_session *s = t_new(t, "s"), *other = t_existing(t, "s");
	int32_t existed;
	SAY(s, "user", "q", .id = "u1");
	SAY(other, "user", "meanwhile", .id = "u2");
	PUT(s, "a");
	PUT(s, "b");
	OK(q_cancel(t, s, "b", &existed));
	CSTR(q_look(t, s).ids, "a");
	OK(q_ack(t, s, q_claim(t, s, 1, NEVER).token));
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "answer", .id = "a1");
	FAILS(STALE, sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
}

/* A queue that was used for long behaves like a new one. */
QUEUE_CASE(queue_much_used)
{
	sheaf_session *s = t_new(t, "s");
	const char *text = t_fill(t, 'x', 2000);
	PUT(s, "stays", .content = "first", .environment = "{\"e\":1}", .priority = 9);
	q_got kept = q_claim(t, s, 1, NEVER);
	PUT(s, "waits", .content = "last", .environment = NULL, .priority = -9);
	for (int i = 0; i < 120; i++) {
		PUT(s, t_format(t, "i%d", i), .content = text);
		q_got g = q_claim(t, s, 1, NEVER);
		CSTR(g.ids, t_format(t, "i%d", i));
		OK(q_ack(t, s, g.token));
	}
	CSTR(q_look(t, s).ids, "stays waits");
	EQ(q_look(t, s).waiting, 1);
	s = t_restart(t, "s");
	CSTR(q_look(t, s).ids, "stays waits");
	CSTR(q_look(t, s).claims, "1 0");
	EQ(q_look(t, s).waiting, 1);
	OK(TRY_PUT(s, "stays", .content = "first", .environment = "{\"e\":1}", .priority = 9));
	OK(q_ack(t, s, kept.token));
	CSTR(q_merge(t, s).content, "last");
}
