/*
 * Expiry: who expires and when, what an expired session answers, and bringing it
 * back.
 *
 * A ttl of a microsecond has passed before the next call, a ttl of a day has not:
 * only where time itself is asked about does a case wait for it.
 */
#include "words_expiry.h"

/* ---- Who expires ----------------------------------------------------------------- */

CASE(expiry_never_by_default)
{
	sheaf_key key = t_key(t, "old");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.created_us = 1; /* 1970 */
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	SAY(s, "user", "old", .id = "u1", .time_us = 2);
	const sheaf_session_info *info = t_info(t, s);
	EQ(info->ttl_us, 0);
	EQ(info->grace_us, SHEAF_GRACE_US_DEFAULT);
	EQ(info->pinned, 0);
	EQ(info->expired, SHEAF_EXPIRY_NONE);
	CSTR(t_sweep(t, 0, 0), " | ");
	IDS(t_path(t, t_restart(t, "old"), NULL), "u1");
}

CASE(expiry_ttl_at_creation)
{
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.name = S("named");
	o.ttl_us = DAY_US + 500000;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	EQ(t_info(t, s)->ttl_us, DAY_US + 500000);
	const sheaf_records *all = t_all(t, s);
	EQ(all->count, 2);
	EQ(all->items[1]->kind, SHEAF_KIND_RETENTION);
	EQ(all->items[1]->batch_count, 2); /* with the name, in the batch that made it */
	TEXT(all->items[1]->body, "\"retention\":{\"ttl\":86400.5}");
	/* Opening what is there changes nothing. */
	o.ttl_us = 1;
	t_close(t, s);
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	EQ(t_info(t, s)->ttl_us, DAY_US + 500000);
	EQ(t_info(t, t_restart(t, "s"))->ttl_us, DAY_US + 500000);
}

CASE(expiry_created_expired)
{
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.ttl_us = 1;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	t_wait_ms(5);
	FAILS(EXPIRED, TRY_SAY(s, "user", "late", .id = "u1"));
	EQ(t_open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_EXPIRED);
}

CASE(expiry_by_the_stores_clock)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, DAY_US, 0, 0));
	/* A record of long ago is an append of now. */
	SAY(s, "user", "past", .id = "p", .time_us = 1);
	CHECK(t_info(t, s)->modified_us == 1);
	EQ(t_info(t, s)->expired, SHEAF_EXPIRY_NONE);
	SAY(s, "user", "on", .id = "o", .time_us = 2);
	/* One of the far future does not keep anything alive. */
	SAY(s, "user", "future", .id = "f", .time_us = INT64_C(4000000000) * SECOND_US);
	t_expire(t, s);
	FAILS(EXPIRED,
	      TRY_SAY(s, "user", "x", .id = "x", .time_us = INT64_C(5000000000) * SECOND_US));
	t_revive(t, "s");
	IDS(t_path(t, s, NULL), "u1 a1 p o f");
}

CASE(expiry_stored_is_now)
{
	int64_t before = t_now_us(CLOCK_REALTIME);
	sheaf_session *s = t_two(t, "s");
	SAY(s, "user", "3", .id = "u2", .time_us = 5);
	int64_t after = t_now_us(CLOCK_REALTIME);
	int64_t stored = t_info(t, s)->stored_us;
	/* A store's clock is its own; a minute is what machines of one place may differ by. */
	CHECK(stored > before - 60 * SECOND_US && stored < after + 60 * SECOND_US);
	const sheaf_list *list = t_list_mine(t);
	EQ(list->count, 1);
	EQ(list->items[0]->stored_us, stored);
	t_wait_ms(30);
	EQ(t_info(t, s)->stored_us, stored); /* reading is not storing */
	SAY(s, "user", "4", .id = "u3");
	CHECK(t_info(t, s)->stored_us > stored);
}

CASE(expiry_append_prolongs)
{
	const int64_t ttl = 600000;
	/* On a machine that stands still for longer than the ttl nothing can be said: again. */
	for (int again = 0; again < 20; again++) {
		sheaf_session *s = t_new(t, t_format(t, "s%d", again));
		int64_t last = t_now_us(CLOCK_MONOTONIC), begun = last;
		bool late = false;
		OK(t_retain(t, s, ttl, DAY_US, 0));
		for (int i = 0; i < 4 && !late; i++) {
			t_wait_ms(200);
			int rc = TRY_SAY(s, "user", "on", 0);
			int64_t now = t_now_us(CLOCK_MONOTONIC);
			late = now - last >= ttl - 100000;
			if (!late)
				EQ(rc, 0);
			last = now;
		}
		if (late)
			continue;
		CHECK(last - begun > ttl);
		t_wait_ms(620);
		FAILS(EXPIRED, TRY_SAY(s, "user", "late", 0));
		return;
	}
}

/* ---- What an expired session answers ---------------------------------------------- */

CASE(expiry_every_read)
{
	sheaf_session *s = t_two(t, "s");
	LABEL(s, "u1", "start");
	t_expire(t, s);
	sheaf_head_view *h = NULL;
	sheaf_records *r = NULL;
	sheaf_context *c = NULL;
	sheaf_tree *tree = NULL;
	char id[SHEAF_ID_ROOM];
	FAILS(EXPIRED, sheaf_session_head(&h, s, &t->err));
	FAILS(EXPIRED, sheaf_session_leaf(s, S(NULL), id, &t->err));
	FAILS(EXPIRED, sheaf_session_resolve(s, S("start"), id, &t->err));
	FAILS(EXPIRED, sheaf_session_path(&r, s, S(NULL), S(NULL), 0, &t->err));
	FAILS(EXPIRED, sheaf_session_records(&r, s, NULL, &t->err));
	FAILS(EXPIRED, sheaf_session_get(&r, s, S("u1"), &t->err));
	FAILS(EXPIRED, sheaf_session_children(&r, s, S("u1"), &t->err));
	FAILS(EXPIRED, sheaf_session_labels(&r, s, &t->err));
	FAILS(EXPIRED, sheaf_session_tree(&tree, s, &t->err));
	FAILS(EXPIRED, sheaf_session_context(&c, s, NULL, &t->err));
}

CASE(expiry_every_write)
{
	sheaf_session *s = t_two(t, "s"), *made = NULL;
	t_expire(t, s);
	FAILS(EXPIRED, TRY_SAY(s, "user", "x", .id = "x"));
	FAILS(EXPIRED, TRY_SAY(s, "user", "x", .id = "x", .parent = "u1"));
	FAILS(EXPIRED, TRY_SAY(s, "user", "x", .id = "x", .parent = "nothing"));
	FAILS(EXPIRED, TRY_JSON(s, "note", "{\"note\":{}}", .id = "x"));
	FAILS(EXPIRED, t_label(t, s, "u1", "l"));
	FAILS(EXPIRED, t_branch(t, s, "b", "u1"));
	FAILS(EXPIRED, t_rename(t, s, "name"));
	FAILS(EXPIRED, TRY_COMPACT(s, "summary", "", .id = "x"));
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "x", .id = "x");
	FAILS(EXPIRED, t_append_batch(t, s, b, (put){0}));
	FAILS(EXPIRED,
	      sheaf_session_append_turn(s, b, S(NULL), S(NULL), NULL, NULL, NULL, &t->err));
	FAILS(EXPIRED, t_retain(t, s, SHEAF_TTL_NEVER, 0, 0));
	FAILS(EXPIRED, t_retain(t, s, 0, 0, 1));
	sheaf_key key = t_key(t, "f");
	FAILS(EXPIRED, sheaf_session_fork(&made, s, S(NULL), &key, NULL, &t->err));
	FAILS(EXPIRED, sheaf_session_copy(&made, s, t->store, &key, &t->err));
	FAILS(EXPIRED, sheaf_session_export_path(&made, s, S(NULL), t->store, &key, &t->err));
	EQ(t_list_mine(t)->count, 0);
	/* None of these has brought it back or left anything in it. */
	FAILS(EXPIRED, TRY_SAY(s, "user", "x", .id = "x"));
	t_revive(t, "s");
	EQ(t_revision(t, s), 4);
	IDS(t_path(t, s, NULL), "u1 a1");
}

CASE(expiry_open)
{
	t_close(t, t_two(t, "other"));
	t_expire(t, t_two(t, "s"));
	EQ(t_open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_EXPIRED);
	EQ(t_open_code(t, "s", SHEAF_OPEN_EITHER), SHEAF_EXPIRED);
	EQ(t_open_code(t, "s", SHEAF_OPEN_NEW), SHEAF_EXISTS); /* the key is taken */
	suite_reopen(t);
	EQ(t_open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_EXPIRED);
	EQ(t_open_code(t, "other", SHEAF_OPEN_EXISTING), 0);
}

CASE(expiry_repeats)
{
	sheaf_session *s = t_two(t, "s");
	t_expire(t, s);
	FAILS(EXPIRED, TRY_SAY(s, "user", "1", .id = "u1"));
	FAILS(EXPIRED, TRY_SAY(s, "user", "other", .id = "u1"));
	t_revive(t, "s");
	SAY(s, "user", "1", .id = "u1");
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_SAY(s, "user", "other", .id = "u1"));
}

CASE(expiry_lists)
{
	t_two(t, "alive");
	OK(t_retain(t, t_two(t, "long"), DAY_US, 0, 0));
	t_expire(t, t_two(t, "grace"));
	t_end(t, t_two(t, "over"));
	CSTR(t_names(t, t_list_mine(t)), "alive long");
	const sheaf_list *list = t_list_expired(t);
	CSTR(t_names(t, list), "alive grace long");
	for (size_t i = 0; i < list->count; i++) {
		const sheaf_session_info *info = list->items[i];
		bool grace = sheaf_str_is(info->session, "grace");
		EQ(info->expired, grace ? SHEAF_EXPIRY_GRACE : SHEAF_EXPIRY_NONE);
		EQ(info->ttl_us, grace ? 1 : sheaf_str_is(info->session, "long") ? DAY_US : 0);
		CHECK(info->stored_us != 0);
	}
	suite_reopen(t);
	CSTR(t_names(t, t_list_mine(t)), "alive long");
	CSTR(t_names(t, t_list_expired(t)), "alive grace long");
}

CASE(expiry_lists_in_pages)
{
	for (int i = 0; i < 9; i++) {
		sheaf_session *s = t_two(t, t_format(t, "s%d", i));
		if (i % 3 == 1)
			t_expire(t, s);
	}
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S(t->app);
	o.limit = 2;
	char *names = t_format(t, "%s", "");
	for (int page = 0; page < 9; page++) {
		const sheaf_list *list = t_list(t, &o);
		CHECK(list->count == 2 || list->cursor.len == 0);
		for (size_t i = 0; i < list->count; i++)
			names = t_format(t, "%s %.*s", names, (int)list->items[i]->session.len,
			                 list->items[i]->session.ptr);
		if (list->cursor.len == 0)
			break;
		o.cursor = list->cursor;
	}
	CSTR(names, " s8 s6 s5 s3 s2 s0");
}

CASE(expiry_continue_recent)
{
	sheaf_session *s = NULL, *new = t_two(t, "new");
	t_two(t, "old");
	SAY(new, "user", "newest", .id = "u2");
	t_expire(t, new);
	OK(sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	t_keep(t, s);
	CSTR(sheaf_session_id(s), "old");
	t_expire(t, s);
	FAILS(NOT_FOUND, sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
}

/* ---- Setting ------------------------------------------------------------------------ */

CASE(expiry_pin)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, 1, 0, 1));
	t_wait_ms(5);
	SAY(s, "user", "3", .id = "u2");
	EQ(t_info(t, s)->pinned, 1);
	EQ(t_info(t, s)->ttl_us, 1);
	CSTR(t_sweep(t, 0, 0), " | ");
	CSTR(t_names(t, t_list_mine(t)), "s");
	s = t_restart(t, "s");
	EQ(t_info(t, s)->pinned, 1);
	OK(t_retain(t, s, 0, 0, -1));
	t_wait_ms(5);
	FAILS(EXPIRED, TRY_SAY(s, "user", "4", .id = "u3"));
}

CASE(expiry_pin_without_ttl)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, 0, 0, 1));
	OK(t_retain(t, s, 1, SHEAF_GRACE_NONE, 0));
	t_wait_ms(5);
	EQ(t_info(t, s)->expired, SHEAF_EXPIRY_NONE);
	OK(t_retain(t, s, SHEAF_TTL_NEVER, 0, 0));
	OK(t_retain(t, s, 0, 0, -1));
	EQ(t_info(t, s)->pinned, 0);
	SAY(s, "user", "3", .id = "u2");
}

CASE(expiry_clear_the_ttl)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, DAY_US, 0, 0));
	OK(t_retain(t, s, SHEAF_TTL_NEVER, 0, 0));
	EQ(t_info(t, s)->ttl_us, 0);
	const sheaf_records *all = t_all(t, s);
	TEXT(all->items[all->count - 1]->body, "\"retention\":{\"ttl\":null}");
	EQ(t_info(t, t_restart(t, "s"))->ttl_us, 0);
}

CASE(expiry_members_are_set_apart)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, DAY_US, 2 * DAY_US, 1));
	OK(t_retain(t, s, 3 * DAY_US, 0, 0));
	const sheaf_session_info *info = t_info(t, s);
	EQ(info->ttl_us, 3 * DAY_US);
	EQ(info->grace_us, 2 * DAY_US);
	EQ(info->pinned, 1);
	OK(t_retain(t, s, 0, SHEAF_GRACE_NONE, 0));
	OK(t_retain(t, s, 0, 0, -1));
	s = t_restart(t, "s");
	info = t_info(t, s);
	EQ(info->ttl_us, 3 * DAY_US);
	EQ(info->grace_us, 0);
	EQ(info->pinned, 0);
	JSON(s, "retention", "{\"retention\":{\"grace\":0.000001,\"why\":\"a note\"}}", 0);
	EQ(t_info(t, s)->grace_us, 1);
}

CASE(expiry_bad_values)
{
	sheaf_session *s = t_two(t, "s");
	uint64_t revision = t_revision(t, s);
	FAILS(INVALID, sheaf_session_retain(s, NULL, NULL, NULL, &t->err));
	FAILS(INVALID, t_retain(t, s, 0, 0, 0));
	FAILS(INVALID, t_retain(t, s, -2, 0, 0));
	FAILS(INVALID, t_retain(t, s, 0, -2, 0));
	FAILS(INVALID, t_retain(t, s, 0, 0, 2));
	FAILS(INVALID, t_retain(t, s, 0, 0, -2));
	FAILS(LIMIT, t_retain(t, s, SHEAF_TTL_US_MAX + 1, 0, 0));
	FAILS(LIMIT, t_retain(t, s, 0, SHEAF_TTL_US_MAX + 1, 0));
	static const char *const bad[] = {
		"{\"retention\":1}",
		"{\"retention\":{\"ttl\":\"1\"}}",
		"{\"retention\":{\"ttl\":0}}",
		"{\"retention\":{\"ttl\":-1}}",
		"{\"retention\":{\"ttl\":1e3}}",
		"{\"retention\":{\"ttl\":0.0000001}}",
		"{\"retention\":{\"ttl\":true}}",
		"{\"retention\":{\"grace\":null}}",
		"{\"retention\":{\"grace\":-1}}",
		"{\"retention\":{\"pin\":1}}",
		"{\"retention\":{\"pin\":null}}",
		"{\"ttl\":1}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(INVALID, TRY_JSON(s, "retention", bad[i], 0));
	FAILS(LIMIT, TRY_JSON(s, "retention", "{\"retention\":{\"ttl\":3155760000.000001}}", 0));
	FAILS(LIMIT, TRY_JSON(s, "retention",
	                      "{\"retention\":{\"ttl\":99999999999999999999999999999}}", 0));
	EQ(t_revision(t, s), revision);
	OK(t_retain(t, s, SHEAF_TTL_US_MAX, SHEAF_TTL_US_MAX, 0));
	EQ(t_info(t, s)->ttl_us, SHEAF_TTL_US_MAX);
	EQ(t_info(t, s)->expired, SHEAF_EXPIRY_NONE);
	sheaf_key key = t_key(t, "n");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *n = NULL;
	o.ttl_us = -1;
	FAILS(INVALID, sheaf_session_open(&n, t->store, &key, &o, &t->err));
	o.ttl_us = SHEAF_TTL_US_MAX + 1;
	FAILS(LIMIT, sheaf_session_open(&n, t->store, &key, &o, &t->err));
	EQ(t_open_code(t, "n", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
}

CASE(expiry_retain_expects)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_retention r = SHEAF_RETENTION_INIT;
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	r.ttl_us = DAY_US;
	how.expect = SHEAF_EXPECT_REVISION;
	how.revision = 1;
	FAILS(STALE, sheaf_session_retain(s, &r, &how, &out, &t->err));
	how.revision = 2;
	OK(sheaf_session_retain(s, &r, &how, &out, &t->err));
	EQ(out.seq, 3);
	LEAF(s, "a1"); /* a fact moves no leaf */
}

/* ---- Bringing back -------------------------------------------------------------------- */

CASE(expiry_undelete_gives_all_back)
{
	sheaf_session *s = t_two(t, "s");
	LABEL(s, "u1", "start");
	BRANCH(s, "side", "u1");
	SAY(s, "user", "aside", .id = "b1", .branch = "side");
	OK(t_rename(t, s, "name"));
	t_expire(t, s);
	OK(t_undelete(t, "s", &(sheaf_retention){sizeof(sheaf_retention), 0, 0, 1}, NULL));
	const sheaf_records *before = t_all(t, s);
	s = t_restart(t, "s");
	IDS(t_path(t, s, NULL), "u1 a1");
	LEAF_OF(s, "side", "b1");
	TEXT(t_labels(t, s)->items[0]->label, "start");
	TEXT(t_info(t, s)->name, "name");
	EQ(t_info(t, s)->ttl_us, 1);
	EQ(t_info(t, s)->pinned, 1);
	const sheaf_records *after = t_all(t, s);
	/* What was written before, and the fact that brought it back. */
	EQ(after->count, 8);
	EQ(before->count, 8);
	EQ(after->items[7]->kind, SHEAF_KIND_RETENTION);
	TEXT(after->items[7]->body, "\"retention\":{\"pin\":true}");
	EQ(t_list_mine(t)->count, 1);
	SAY(s, "user", "on", .id = "u2");
}

CASE(expiry_undelete_changes_no_byte)
{
	sheaf_session *s = t_two(t, "s");
	char *lines[8];
	const sheaf_records *all = t_all(t, s);
	for (size_t i = 0; i < 2; i++)
		lines[i] = t_format(t, "%.*s", (int)all->items[i]->line.len,
		                    all->items[i]->line.ptr);
	t_expire(t, s);
	t_revive(t, "s");
	all = t_all(t, s);
	EQ(all->count, 4);
	for (size_t i = 0; i < 2; i++)
		TEXT(all->items[i]->line, lines[i]);
	TEXT(all->items[2]->body, "\"retention\":{\"ttl\":0.000001,\"grace\":86400}");
	TEXT(all->items[3]->body, "\"retention\":{\"ttl\":null}");
}

CASE(expiry_undelete_counts_anew)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, 1500000, DAY_US, 0));
	for (int again = 0; again < 20; again++) {
		t_wait_ms(1550);
		FAILS(EXPIRED, TRY_SAY(s, "user", "late", 0));
		int64_t begun = t_now_us(CLOCK_MONOTONIC);
		OK(t_undelete(t, "s", NULL, NULL));
		int rc = t_retain(t, s, DAY_US, 0, 0);
		if (t_now_us(CLOCK_MONOTONIC) - begun > 1400000)
			continue; /* the machine stood still */
		EQ(rc, 0);
		const sheaf_records *all = t_all(t, s);
		TEXT(all->items[all->count - 2]->body, "\"retention\":{}");
		return;
	}
}

CASE(expiry_undelete_what_lives)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_retention r = SHEAF_RETENTION_INIT;
	int32_t existed = 0;
	r.ttl_us = 1;
	OK(t_undelete(t, "s", &r, &existed));
	EQ(existed, 1);
	EQ(t_revision(t, s), 2); /* and nothing was set */
	OK(t_retain(t, s, DAY_US, 0, 0));
	OK(t_undelete(t, "s", NULL, NULL));
	EQ(t_revision(t, s), 3);
}

CASE(expiry_undelete_what_is_not_there)
{
	FAILS(NOT_FOUND, t_undelete(t, "nothing", NULL, NULL));
	FAILS(INVALID, t_undelete(t, "", NULL, NULL));
	sheaf_session *s = t_two(t, "s"), *f;
	sheaf_key key = t_key(t, "s");
	f = t_fork(t, s, "u1", "f");
	t_expire(t, s);
	sheaf_retention bad = SHEAF_RETENTION_INIT;
	bad.ttl_us = -7;
	FAILS(INVALID, t_undelete(t, "s", &bad, NULL));
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	FAILS(NOT_FOUND, t_undelete(t, "s", NULL, NULL)); /* hidden: the fork reads it */
	IDS(t_path(t, f, NULL), "u1");
	t_end(t, t_two(t, "over"));
	FAILS(NOT_FOUND, t_undelete(t, "over", NULL, NULL));
}

/* ---- Past the grace --------------------------------------------------------------------- */

CASE(expiry_over_is_deleted)
{
	sheaf_session *s = t_two(t, "s"), *made = NULL;
	t_end(t, s);
	EQ(t_open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	sheaf_head_view *h = NULL;
	sheaf_context *c = NULL;
	FAILS(GONE, sheaf_session_head(&h, s, &t->err));
	FAILS(GONE, sheaf_session_context(&c, s, NULL, &t->err));
	FAILS(GONE, TRY_SAY(s, "user", "x", .id = "x"));
	FAILS(GONE, TRY_SAY(s, "user", "x", .id = "x", .parent = "u1"));
	FAILS(GONE, t_retain(t, s, 0, 0, 1));
	sheaf_key key = t_key(t, "f");
	FAILS(GONE, sheaf_session_fork(&made, s, S(NULL), &key, NULL, &t->err));
	EQ(t_list_expired(t)->count, 0);
	suite_reopen(t);
	EQ(t_open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
}

CASE(expiry_over_can_be_made_again)
{
	t_end(t, t_two(t, "new"));
	t_end(t, t_two(t, "either"));
	t_end(t, t_two(t, "fork"));
	t_end(t, t_two(t, "copy"));
	sheaf_session *s = t_new(t, "new");
	EQ(t_revision(t, s), 0);
	EQ(t_info(t, s)->ttl_us, 0);
	SAY(s, "user", "new", .id = "u1");
	EQ(t->out.seq, 1);
	EQ(t_open_code(t, "either", SHEAF_OPEN_EITHER), 0);
	IDS(t_path(t, t_fork(t, s, "u1", "fork"), NULL), "u1");
	sheaf_key key = t_key(t, "copy");
	sheaf_session *copy = NULL;
	OK(sheaf_session_copy(&copy, s, t->store, &key, &t->err));
	t_keep(t, copy);
	CSTR(t_names(t, t_list_mine(t)), "copy either fork new");
	s = t_restart(t, "new");
	IDS(t_all(t, s), "u1");
	IDS(t_all(t, t_existing(t, "copy")), "u1");
}

CASE(expiry_over_and_deleted)
{
	t_expire(t, t_two(t, "grace"));
	t_end(t, t_two(t, "over"));
	sheaf_key grace = t_key(t, "grace"), over = t_key(t, "over");
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &grace, NULL, &t->err));
	EQ(d->existed, 1);
	sheaf_deleted_free(d);
	OK(sheaf_store_delete(&d, t->store, &over, NULL, &t->err));
	EQ(d->existed, 0); /* it was as if deleted already */
	sheaf_deleted_free(d);
	EQ(t_open_code(t, "grace", SHEAF_OPEN_NEW), 0);
	EQ(t_open_code(t, "over", SHEAF_OPEN_NEW), 0);
	CSTR(t_sweep(t, 0, 0), " | ");
}
