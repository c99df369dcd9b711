/* Repeating an append: stored once, for ever, and never mistaken for something else. */
#include <stdio.h>

#include "suite.h"

CASE(repeat_existed)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	for (int i = 0; i < 3; i++) {
		SAY(s, "user", "1", .id = "u1");
		EQ(t->out.existed, 1);
		EQ(t->out.seq, 1);
		EQ(t->out.first_seq, 1);
		CSTR(t->out.id, "u1");
	}
	EQ(t_revision(t, s), 2);
	LEAF(s, "a1");
}

CASE(repeat_existed_after_restart)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 30; i++)
		SAY(s, "user", "same text", .id = t_format(t, "u%d", i));
	s = t_restart(t, "s");
	for (int i = 29; i >= 0; i -= 7) {
		SAY(s, "user", "same text", .id = t_format(t, "u%d", i));
		EQ(t->out.existed, 1);
		EQ(t->out.seq, (uint64_t)i + 1);
	}
	EQ(t_revision(t, s), 30);
}

CASE(repeat_with_other_text_conflicts)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	FAILS(CONFLICT, TRY_SAY(s, "user", "2", .id = "u1"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "1 ", .id = "u1"));
	FAILS(CONFLICT, TRY_SAY(s, "assistant", "1", .id = "u1"));
	EQ(t_revision(t, s), 1);
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "1");
}

CASE(repeat_with_other_type_conflicts)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("u1");
	FAILS(CONFLICT, sheaf_session_append_thinking_level(s, S("high"), &e, NULL, NULL, &t->err));
	FAILS(CONFLICT, TRY_COMPACT(s, "sum", "u1", .id = "u1"));
	EQ(t_revision(t, s), 1);
}

CASE(repeat_on_other_branch_conflicts)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	BRANCH(s, "side", "u1");
	SAY(s, "user", "2", .id = "x1", .branch = "side");
	FAILS(CONFLICT, TRY_SAY(s, "user", "2", .id = "x1"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "1", .id = "u1", .branch = "side"));
	SAY(s, "user", "2", .id = "x1", .branch = "side");
	EQ(t->out.existed, 1);
	SAY(s, "user", "1", .id = "u1", .branch = "main");
	EQ(t->out.existed, 1);
	EQ(t_revision(t, s), 3);
}

CASE(repeat_with_other_parent_conflicts)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	SAY(s, "user", "3", .id = "u3", .parent = "u1");
	FAILS(CONFLICT, TRY_SAY(s, "user", "3", .id = "u3", .parent = "u2"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "3", .id = "u3", .root = 1));
	SAY(s, "user", "3", .id = "u3", .parent = "u1");
	EQ(t->out.existed, 1);
	SAY(s, "user", "3", .id = "u3"); /* a parent not given is not compared */
	EQ(t->out.existed, 1);
	SAY(s, "user", "2", .id = "u2", .parent = "u1"); /* given now, and it is the one */
	EQ(t->out.existed, 1);
	EQ(t_revision(t, s), 3);
}

CASE(repeat_of_a_root)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "1", .id = "u1", .root = 1);
	EQ(t->out.existed, 1);
	SAY(s, "user", "2", .id = "r2", .root = 1);
	FAILS(CONFLICT, TRY_SAY(s, "user", "2", .id = "r2", .parent = "u1"));
	EQ(t_revision(t, s), 2);
}

CASE(repeat_after_the_leaf_moved)
{
	sheaf_session *a = t_new(t, "s");
	sheaf_session *b = t_existing(t, "s");
	SAY(a, "user", "1", .id = "u1");
	SAY(a, "assistant", "2", .id = "a1");
	SAY(b, "user", "other", .id = "b1");
	BRANCH(b, NULL, "u1");
	SAY(a, "assistant", "2", .id = "a1");
	EQ(t->out.existed, 1);
	EQ(t->out.seq, 2);
	EQ(t_revision(t, a), 4);
	LEAF(a, "u1"); /* a repeat moves nothing */
}

CASE(repeat_is_tested_before_expect)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_LEAF);
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_LEAF);
	EQ(t->out.existed, 1);
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_REVISION, .revision = 0);
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_SAY(s, "user", "other", .id = "u1", .expect = SHEAF_EXPECT_REVISION,
	                        .revision = 0));
	EQ(t_revision(t, s), 2);
}

CASE(repeat_ignores_the_time)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .time_us = 1700000000000000);
	SAY(s, "user", "1", .id = "u1", .time_us = 1800000000000000);
	EQ(t->out.existed, 1);
	SAY(s, "user", "1", .id = "u1");
	EQ(t->out.existed, 1);
	EQ(t_get(t, s, "u1")->time_us, 1700000000000000);
}

CASE(repeat_compares_every_member)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .turn = "t1", .extra = "{\"metadata\":{\"a\":1}}");
	FAILS(CONFLICT, TRY_SAY(s, "user", "1", .id = "u1"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "1", .id = "u1", .turn = "t2",
	                        .extra = "{\"metadata\":{\"a\":1}}"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "1", .id = "u1", .turn = "t1",
	                        .extra = "{\"metadata\":{\"a\":1.0}}"));
	SAY(s, "user", "1", .id = "u1", .turn = "t1", .extra = "{\"metadata\":{\"a\":1}}");
	EQ(t->out.existed, 1);
}

CASE(repeat_of_a_batch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t->out.existed, 0);
	SAY(s, "user", "4", .id = "u3");
	OK(t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_REVISION, .revision = 0}));
	EQ(t->out.existed, 1);
	EQ(t->out.first_seq, 1);
	EQ(t->out.seq, 3);
	CSTR(t->out.id, "u2");
	EQ(t_revision(t, s), 4);
	s = t_restart(t, "s");
	sheaf_batch *again = t_batch(t);
	ADD(again, "user", "1", .id = "u1");
	ADD(again, "assistant", "2", .id = "a1");
	ADD(again, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, again, (put){0}));
	EQ(t->out.existed, 1);
	EQ(t_revision(t, s), 4);
}

CASE(repeat_of_a_batch_with_other_content)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	OK(t_append_batch(t, s, b, (put){0}));
	sheaf_batch *other = t_batch(t);
	ADD(other, "user", "1", .id = "u1");
	ADD(other, "assistant", "two", .id = "a1");
	FAILS(CONFLICT, t_append_batch(t, s, other, (put){0}));
	EQ(t_revision(t, s), 2);
}

CASE(repeat_of_part_of_a_batch)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	FAILS(CONFLICT, t_append_batch(t, s, b, (put){0}));
	EQ(t_revision(t, s), 1);
	sheaf_batch *late = t_batch(t);
	ADD(late, "assistant", "2", .id = "a1");
	ADD(late, "user", "1", .id = "u1");
	FAILS(CONFLICT, t_append_batch(t, s, late, (put){0}));
	EQ(t_revision(t, s), 1);
}

CASE(repeat_as_another_batch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, b, (put){0}));
	/* The list of ids is compared too: fewer, or in another order, is another batch. */
	sheaf_batch *fewer = t_batch(t);
	ADD(fewer, "user", "1", .id = "u1");
	ADD(fewer, "assistant", "2", .id = "a1");
	FAILS(CONFLICT, t_append_batch(t, s, fewer, (put){0}));
	sheaf_batch *order = t_batch(t);
	ADD(order, "assistant", "2", .id = "a1");
	ADD(order, "user", "1", .id = "u1");
	ADD(order, "user", "3", .id = "u2");
	FAILS(CONFLICT, t_append_batch(t, s, order, (put){0}));
	SAY(s, "user", "4", .id = "u4");
	sheaf_batch *glued = t_batch(t);
	ADD(glued, "user", "3", .id = "u2");
	ADD(glued, "user", "4", .id = "u4");
	FAILS(CONFLICT, t_append_batch(t, s, glued, (put){0}));
	EQ(t_revision(t, s), 4);
}

CASE(repeat_of_one_record_of_a_batch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	OK(t_append_batch(t, s, b, (put){0}));
	FAILS(CONFLICT, TRY_SAY(s, "user", "1", .id = "u1")); /* it was not an append of its own */
	EQ(t_revision(t, s), 2);
}

CASE(repeat_of_an_id_within_a_batch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	int rc = t_batch_say(t, b, "user", "2", (put){.id = "u1"});
	if (rc == 0)
		rc = t_append_batch(t, s, b, (put){0});
	CHECK(rc == SHEAF_INVALID || rc == SHEAF_CONFLICT);
	EQ(t_revision(t, s), 0);
}

CASE(repeat_of_an_inherited_id)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "1", .id = "u1");
	EQ(t->out.existed, 1);
	EQ(t->out.seq, 1);
	FAILS(CONFLICT, TRY_SAY(f, "user", "changed", .id = "u1"));
	sheaf_session *ff = t_fork(t, f, NULL, "ff");
	SAY(ff, "assistant", "2", .id = "a1");
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_SAY(ff, "user", "changed", .id = "a1"));
	SAY(s, "user", "after", .id = "u9"); /* not inherited: free in the forks */
	SAY(f, "user", "mine", .id = "u9");
	EQ(t->out.existed, 0);
	IDS(t_path(t, f, NULL), "u1 a1 u9");
}

CASE(repeat_of_a_facts_id)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "l");
	const char *id = t_format(t, "%s", t->out.id);
	FAILS(CONFLICT, TRY_SAY(s, "user", "2", .id = id));
	EQ(t_revision(t, s), 2);
	JSON(s, "label", "{\"label\":{\"target_id\":\"u1\",\"label\":\"m\"}}", .id = "fact1");
	JSON(s, "label", "{\"label\":{\"target_id\":\"u1\",\"label\":\"m\"}}", .id = "fact1");
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_JSON(s, "label", "{\"label\":{\"target_id\":\"u1\",\"label\":\"n\"}}",
	                         .id = "fact1"));
	TEXT(t_get(t, s, "u1")->label, "m");
}

CASE(repeat_of_a_turn)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "2", .id = "a1");
	sheaf_usage u = {.input = 10, .output = 5};
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_turn(s, b, S("t1"), S("completed"), &u, NULL, &out, &t->err));
	EQ(out.existed, 0);
	EQ(out.seq, 3);
	OK(sheaf_session_append_turn(s, b, S("t1"), S("completed"), &u, NULL, &out, &t->err));
	EQ(out.existed, 1);
	EQ(t_revision(t, s), 3);
	EQ(t_head(t, s)->info->usage.input, 10);
	EQ(t_head(t, s)->info->turns, 1);
}

CASE(repeat_of_deleted_sessions_ids)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	s = t_new(t, "s");
	SAY(s, "user", "something else", .id = "u1"); /* deleting forgets ids */
	EQ(t->out.existed, 0);
	EQ(t->out.seq, 1);
}

CASE(repeat_keeps_sessions_apart)
{
	sheaf_session *a = t_new(t, "a");
	sheaf_session *b = t_new(t, "b");
	SAY(a, "user", "1", .id = "u1");
	SAY(b, "user", "other", .id = "u1");
	EQ(t->out.existed, 0);
	FAILS(CONFLICT, TRY_SAY(b, "user", "1", .id = "u1"));
}

/* A label is a name for a moment: a repeat is one also when the name is gone or means another. */
CASE(repeat_after_its_label_went)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	LABEL(s, "u1", "start");
	SAY(s, "user", "again", .id = "u2", .parent = "start");
	LABEL(s, "u1", "");
	SAY(s, "user", "again", .id = "u2", .parent = "start");
	EQ(t->out.existed, 1);
	EQ(t->out.seq, 4);
	LABEL(s, "a1", "start"); /* and now it is another entry's */
	SAY(s, "user", "again", .id = "u2", .parent = "start");
	EQ(t->out.existed, 1);
	SAY(s, "user", "again", .id = "u2", .parent = "u1");
	EQ(t->out.existed, 1);
	/* A name that never was its parent's, other content, and what is new stay what they are. */
	FAILS(CONFLICT, TRY_SAY(s, "user", "again", .id = "u2", .parent = "nothing"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "other", .id = "u2", .parent = "start"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "again", .id = "u2", .parent = "a1"));
	FAILS(NOT_FOUND, TRY_SAY(s, "user", "again", .id = "u3", .parent = "nothing"));
	FAILS(NOT_FOUND, TRY_SAY(s, "user", "again", .parent = "nothing"));
	EQ(t_revision(t, s), 6);
}

CASE(repeat_of_a_batch_after_its_label_went)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "start");
	for (int again = 0; again < 2; again++) {
		sheaf_batch *b = t_batch(t);
		ADD(b, "user", "2", .id = "b1", .parent = "start");
		ADD(b, "assistant", "3", .id = "b2");
		OK(t_append_batch(t, s, b, (put){0}));
		EQ(t->out.existed, again);
		if (again == 0)
			LABEL(s, "u1", "");
	}
	sheaf_session *f = t_fork(t, s, "b2", "f");
	SAY(f, "user", "on", .id = "f1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "2", .id = "b1", .parent = "start");
	ADD(b, "assistant", "3", .id = "b2");
	OK(t_append_batch(t, f, b, (put){0})); /* inherited */
	EQ(t->out.existed, 1);
}
