/* Compactions: what they keep, what they refuse, how they are undone. */
#include <stdio.h>

#include "suite.h"

/* u1 a1 u2 a2 … un an */
static sheaf_session *talk(suite *t, int pairs)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 1; i <= pairs; i++) {
		SAY(s, "user", t_format(t, "question %d", i), .id = t_format(t, "u%d", i));
		SAY(s, "assistant", t_format(t, "reply %d", i), .id = t_format(t, "a%d", i));
	}
	return s;
}

CASE(compaction_keeps_from_the_cut)
{
	sheaf_session *s = talk(t, 3);
	COMPACT(s, "what was", "u3", .id = "c1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(what was) u3 a3");
	EQ(c->items[0]->kind, SHEAF_ITEM_COMPACTION_SUMMARY);
	TEXT(c->items[0]->message->role, "compactionSummary");
	TEXT(c->items[0]->entry->id, "c1");
	TEXT(c->compaction->id, "c1");
	const sheaf_entry *e = t_get(t, s, "c1");
	EQ(e->kind, SHEAF_KIND_COMPACTION);
	TEXT(e->text, "what was");
	TEXT(e->target_id, "u3");
	CHECK(t_contains(e->body, "\"tokens_before\":1500"));
	LEAF(s, "c1");
	SAY(s, "user", "on", .id = "u4");
	ITEMS(t_context(t, s), "S(what was) u3 a3 u4");
	s = t_restart(t, "s");
	ITEMS(t_context(t, s), "S(what was) u3 a3 u4");
	EQ(t_path(t, s, NULL)->count, 8); /* nothing is deleted */
}

CASE(compaction_of_everything)
{
	sheaf_session *s = talk(t, 2);
	COMPACT(s, "all of it", NULL, .id = "c1");
	ITEMS(t_context(t, s), "S(all of it)");
	CHECK(t_get(t, s, "c1")->target_id.len == 0);
	SAY(s, "user", "new", .id = "u3");
	ITEMS(t_context(t, s), "S(all of it) u3");
}

CASE(compaction_at_a_label)
{
	sheaf_session *s = talk(t, 3);
	LABEL(s, "u2", "keep from here");
	COMPACT(s, "sum", "keep from here", .id = "c1");
	ITEMS(t_context(t, s), "S(sum) u2 a2 u3 a3");
	TEXT(t_get(t, s, "c1")->target_id, "u2");
	LABEL(s, "u2", "");
	ITEMS(t_context(t, s), "S(sum) u2 a2 u3 a3");
}

CASE(first_kept_is_label)
{
	/* The first kept entry named by a label record, then a fork: nothing is lost (A1.1b). */
	sheaf_session *s = talk(t, 2);
	LABEL(s, "u1", "mark");
	const char *fact = t_format(t, "%s", t->out.id);
	SAY(s, "user", "question 3", .id = "u3");
	SAY(s, "assistant", "reply 3", .id = "a3");
	JSON(s, "compaction",
	     t_format(t, "{\"compaction\":{\"summary\":\"sum\",\"first_kept_entry_id\":\"%s\"}}",
	              fact),
	     .id = "c1");
	ITEMS(t_context(t, s), "S(sum) u3 a3"); /* what comes after the label */
	sheaf_session *f = t_fork(t, s, NULL, "f");
	ITEMS(t_context(t, f), "S(sum) u3 a3");
	f = t_restart(t, "f");
	ITEMS(t_context(t, f), "S(sum) u3 a3");
	s = t_existing(t, "s");
	sheaf_key key = t_key(t, "e");
	sheaf_session *e = NULL;
	OK(sheaf_session_export_path(&e, s, S(NULL), t->store, &key, &t->err));
	t_keep(t, e);
	const sheaf_context *c = t_context(t, e);
	/* The label record is not exported: what was kept is there, and more than that is noted. */
	if (c->count > 3)
		CHECK(t_noted(c, SHEAF_NOTE_FIRST_KEPT, fact));
	const char *items = t_items(t, c);
	CHECK(strncmp(items, "S(sum) ", 7) == 0);
	CHECK(strlen(items) > 6 && strcmp(items + strlen(items) - 5, "u3 a3") == 0);
}

CASE(first_kept_by_a_facts_id)
{
	sheaf_session *s = talk(t, 1);
	LABEL(s, "u1", "mark");
	const char *fact = t_format(t, "%s", t->out.id);
	SAY(s, "user", "question 2", .id = "u2");
	COMPACT(s, "sum", fact, .id = "c1");
	ITEMS(t_context(t, s), "S(sum) u2");
}

CASE(second_compaction_keeps)
{
	/* The second compaction keeps what the first one kept, from the new cut on (A1.3). */
	sheaf_session *s = talk(t, 6);
	COMPACT(s, "first", "u4", .id = "c1");
	ITEMS(t_context(t, s), "S(first) u4 a4 u5 a5 u6 a6");
	SAY(s, "user", "7", .id = "u7");
	COMPACT(s, "second", "u5", .id = "c2");
	ITEMS(t_context(t, s), "S(second) u5 a5 u6 a6 u7");
	SAY(s, "assistant", "7", .id = "a7");
	COMPACT(s, "third", "u7", .id = "c3");
	ITEMS(t_context(t, s), "S(third) u7 a7");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.without = S("c3");
	ITEMS(t_context_with(t, s, &o), "S(second) u5 a5 u6 a6 u7 a7");
}

CASE(second_compaction_further_back)
{
	sheaf_session *s = talk(t, 4);
	COMPACT(s, "first", "u3", .id = "c1");
	COMPACT(s, "second", "u2", .id = "c2"); /* keeps more than the first one did */
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(second) u2 a2 u3 a3 u4 a4"); /* the older one emits nothing */
	TEXT(c->compaction->id, "c2");
}

CASE(second_compaction_further_back_with_orphans)
{
	/* Answers without calls are separated from nothing, wherever the cut is. */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	ANSWER(s, "never-called", "an orphan", .id = "t1");
	CALL(s, "c1", "ls", .id = "a1");
	ANSWER(s, "c1", "once", .id = "t2");
	ANSWER(s, "c1", "twice", .id = "t3");
	SAY(s, "user", "2", .id = "u2");
	COMPACT(s, "first", "u2");
	COMPACT(s, "second", "u1"); /* before the root there is no call at all */
	EQ(t_context(t, s)->count, 6);
	COMPACT(s, "third", "u2");
	COMPACT(s, "fourth", "a1");
	FAILS(COMPACT, TRY_COMPACT(s, "between", "t2"));
}

CASE(compaction_undone)
{
	sheaf_session *s = talk(t, 3);
	COMPACT(s, "one", "u2", .id = "c1");
	COMPACT(s, "two", "u3", .id = "c2");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.without_compaction = 1;
	const sheaf_context *c = t_context_with(t, s, &o);
	ITEMS(c, "u1 a1 u2 a2 u3 a3");
	CHECK(c->compaction == NULL);
	o.without_compaction = 0;
	o.without = S("c2");
	ITEMS(t_context_with(t, s, &o), "S(one) u2 a2 u3 a3");
	o.without = S("c1"); /* the newer one still decides */
	ITEMS(t_context_with(t, s, &o), "S(two) u3 a3");
	sheaf_context *none = NULL;
	o.without = S("ghost");
	FAILS(NOT_FOUND, sheaf_session_context(&none, s, &o, &t->err));
	o.without = S("u1");
	FAILS(NOT_FOUND, sheaf_session_context(&none, s, &o, &t->err));
	BRANCH(s, NULL, "a3");
	ITEMS(t_context(t, s), "u1 a1 u2 a2 u3 a3"); /* or one goes back before it */
}

CASE(compaction_off_the_path)
{
	sheaf_session *s = talk(t, 2);
	SAY(s, "user", "elsewhere", .id = "x1", .parent = "u1");
	FAILS(COMPACT, TRY_COMPACT(s, "sum", "u2"));
	FAILS(NOT_FOUND, TRY_COMPACT(s, "sum", "ghost"));
	EQ(t_revision(t, s), 5);
	COMPACT(s, "sum", "x1");
	ITEMS(t_context(t, s), "S(sum) x1");
}

CASE(compaction_between_call_and_answer)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "ls", .id = "a1");
	ANSWER(s, "c1", "files", .id = "t1");
	SAY(s, "assistant", "2", .id = "a2");
	SAY(s, "user", "3", .id = "u2");
	FAILS(COMPACT, TRY_COMPACT(s, "sum", "t1"));
	EQ(t_revision(t, s), 5);
	COMPACT(s, "sum", "a1"); /* the whole pair is kept */
	ITEMS(t_context(t, s), "S(sum) a1 t1 a2 u2");
	COMPACT(s, "more", "a2");
	ITEMS(t_context(t, s), "S(more) a2 u2");
}

CASE(compaction_with_an_open_call)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "ls", .id = "a1");
	SAY(s, "user", "2", .id = "u2");
	FAILS(COMPACT, TRY_COMPACT(s, "sum", "u2")); /* the answer may still come */
	FAILS(COMPACT, TRY_COMPACT(s, "sum", NULL));
	COMPACT(s, "sum", "a1"); /* an open call that is kept is fine */
	ITEMS(t_context(t, s), "S(sum) a1 !c1 u2");
	ANSWER(s, "c1", "late", .id = "t1");
	ITEMS(t_context(t, s), "S(sum) a1 t1 u2");
}

CASE(compaction_with_a_late_answer)
{
	sheaf_session *s = t_new(t, "s");
	CALL(s, "c1", "slow", .id = "a1");
	SAY(s, "user", "meanwhile", .id = "u1");
	ANSWER(s, "c1", "late", .id = "t1");
	SAY(s, "user", "next", .id = "u2");
	FAILS(COMPACT, TRY_COMPACT(s, "sum", "u1")); /* its answer lies behind the cut */
	COMPACT(s, "sum", "u2");
	ITEMS(t_context(t, s), "S(sum) u2");
}

CASE(compaction_repeated)
{
	sheaf_session *s = talk(t, 2);
	COMPACT(s, "sum", "u2", .id = "c1");
	SAY(s, "user", "3", .id = "u3");
	COMPACT(s, "sum", "u2", .id = "c1");
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_COMPACT(s, "other", "u2", .id = "c1"));
	FAILS(CONFLICT, TRY_COMPACT(s, "sum", "u1", .id = "c1"));
	EQ(t_revision(t, s), 6);
}

CASE(compaction_expects)
{
	sheaf_session *s = talk(t, 2);
	FAILS(STALE, TRY_COMPACT(s, "sum", "u2", .expect = SHEAF_EXPECT_LEAF, .leaf = "u2"));
	FAILS(STALE, TRY_COMPACT(s, "sum", "u2", .expect = SHEAF_EXPECT_REVISION, .revision = 1));
	COMPACT(s, "sum", "u2", .expect = SHEAF_EXPECT_LEAF, .leaf = "a2");
}

CASE(compaction_on_a_branch)
{
	sheaf_session *s = talk(t, 3);
	BRANCH(s, "side", "a2");
	COMPACT(s, "side sum", "u2", .branch = "side", .id = "c1");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = S("side");
	ITEMS(t_context_with(t, s, &o), "S(side sum) u2 a2");
	ITEMS(t_context(t, s), "u1 a1 u2 a2 u3 a3"); /* a sibling's compaction is none of ours */
	FAILS(COMPACT, TRY_COMPACT(s, "x", "u3", .branch = "side"));
}

CASE(compaction_with_replacement)
{
	sheaf_session *s = talk(t, 2);
	JSON(s, "compaction",
	     "{\"compaction\":{\"summary\":\"sum\",\"replacement\":["
	     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"r1\"}}]},"
	     "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"r2\"}}]}"
	     "]}}",
	     .id = "c1");
	SAY(s, "user", "3", .id = "u3");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(sum) R(r1) R(r2) u3");
	TEXT(c->items[1]->entry->id, "c1");
	TEXT(c->items[1]->message->role, "user");
	TEXT(c->items[2]->message->role, "assistant");
	s = t_restart(t, "s");
	ITEMS(t_context(t, s), "S(sum) R(r1) R(r2) u3");
}

CASE(compaction_with_kept_ids)
{
	sheaf_session *s = talk(t, 3);
	JSON(s, "compaction", "{\"compaction\":{\"summary\":\"sum\",\"kept_ids\":[\"u1\",\"a3\"]}}",
	     .id = "c1");
	SAY(s, "user", "4", .id = "u4");
	ITEMS(t_context(t, s), "S(sum) u1 a3 u4");
	JSON(s, "compaction", "{\"compaction\":{\"summary\":\"none\",\"kept_ids\":[]}}",
	     .id = "c2");
	ITEMS(t_context(t, s), "S(none)");
}

CASE(compaction_whose_first_kept_is_nowhere)
{
	sheaf_session *s = talk(t, 2);
	SAY(s, "user", "elsewhere", .id = "x1", .root = 1);
	BRANCH(s, NULL, "a2");
	JSON(s, "compaction",
	     "{\"compaction\":{\"summary\":\"sum\",\"first_kept_entry_id\":\"x1\"}}", .id = "c1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(sum) u1 a1 u2 a2"); /* kept whole, and said so */
	CHECK(t_noted(c, SHEAF_NOTE_FIRST_KEPT, "c1"));
	JSON(s, "compaction",
	     "{\"compaction\":{\"summary\":\"sum2\",\"first_kept_entry_id\":\"ghost\"}}",
	     .id = "c2");
	c = t_context(t, s);
	ITEMS(c, "S(sum2) u1 a1 u2 a2");
	CHECK(t_noted(c, SHEAF_NOTE_FIRST_KEPT, "ghost"));
}

CASE(compaction_settings_survive)
{
	sheaf_session *s = t_new(t, "s");
	OK(sheaf_session_append_model_change(s, S("openai"), S("gpt"), NULL, NULL, NULL, &t->err));
	OK(sheaf_session_append_thinking_level(s, S("high"), NULL, NULL, NULL, &t->err));
	SAY(s, "user", "1", .id = "u1");
	COMPACT(s, "sum", NULL);
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(sum)");
	TEXT(c->provider, "openai");
	TEXT(c->model, "gpt");
	TEXT(c->thinking_level, "high");
	OK(sheaf_session_append_thinking_level(s, S("off"), NULL, NULL, NULL, &t->err));
	TEXT(t_context(t, s)->thinking_level, "off");
	TEXT(t_context(t, s)->model, "gpt");
}

CASE(oversized_last_tool_result)
{
	/* A last tool result larger than anything one wants to keep: the cut goes elsewhere (A1.4). */
	sheaf_session *s = talk(t, 3);
	CALL(s, "c1", "cat", .id = "big-call");
	ANSWER(s, "c1", t_fill(t, 'x', 2 << 20), .id = "big");
	FAILS(COMPACT, TRY_COMPACT(s, "sum", "big"));
	COMPACT(s, "everything", NULL, .id = "cc"); /* so one compacts all of it */
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "S(everything)");
	CHECK(c->bytes < 10000);
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.without = S("cc");
	o.bytes_max = 1 << 20;
	sheaf_context *none = NULL;
	FAILS(TOO_LARGE, sheaf_session_context(&none, s, &o, &t->err));
	SAY(s, "user", "on", .id = "u9");
	ITEMS(t_context(t, s), "S(everything) u9");
}

CASE(compaction_in_a_fork)
{
	sheaf_session *s = talk(t, 3);
	sheaf_session *f = t_fork(t, s, "a3", "f");
	COMPACT(f, "fork sum", "u3");
	ITEMS(t_context(t, f), "S(fork sum) u3 a3"); /* the cut is inherited */
	ITEMS(t_context(t, s), "u1 a1 u2 a2 u3 a3");
	COMPACT(s, "source sum", "u2", .id = "c1");
	sheaf_session *g = t_fork(t, s, NULL, "g");
	ITEMS(t_context(t, g), "S(source sum) u2 a2 u3 a3");
	SAY(g, "user", "x", .id = "x1");
	COMPACT(g, "next", "u3");
	ITEMS(t_context(t, g), "S(next) u3 a3 x1");
}

CASE(compaction_of_many)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	for (int i = 0; i < 1500; i++)
		ADD(b, "user", "x", .id = t_format(t, "e%d", i));
	OK(t_append_batch(t, s, b, (put){0}));
	COMPACT(s, "far", "e3"); /* farther back than any one look */
	EQ(t_context(t, s)->count, 1498);
	COMPACT(s, "near", "e1499");
	ITEMS(t_context(t, s), "S(near) e1499");
	LABEL(s, "e700", "seven");
	COMPACT(s, "middle", "seven");
	const sheaf_context *c = t_context(t, s);
	EQ(c->count, 801);
	TEXT(c->items[1]->entry->id, "e700");
}

CASE(compaction_of_an_empty_session)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(NOT_FOUND, TRY_COMPACT(s, "sum", "ghost"));
	COMPACT(s, "nothing yet", NULL);
	ITEMS(t_context(t, s), "S(nothing yet)");
}

/* ---- Planned ------------------------------------------------------------- */

static uint64_t ten_each(void *ctx, const sheaf_item *item)
{
	(void)ctx;
	return item->kind == SHEAF_ITEM_COMPACTION_SUMMARY ? 3 : 10;
}

static sheaf_compaction_options tens(uint64_t keep)
{
	sheaf_compaction_options o = SHEAF_COMPACTION_OPTIONS_INIT;
	o.keep_recent = keep;
	o.tokens = ten_each;
	return o;
}

/* What a plan covers and where it cuts: "u1 a1 | u2", with ~ in place of | within a turn. */
static const char *plan_line(suite *t, const sheaf_cut *plan)
{
	char *line = "";
	for (size_t i = 0; i < plan->covered_count; i++)
		line = t_format(t, "%s%s ", line, plan->covered[i].ptr);
	return t_format(t, "%s%s%s%s", line, plan->split ? "~" : "|",
	                plan->first_kept.len != 0 ? " " : "",
	                plan->first_kept.len != 0 ? plan->first_kept.ptr : "");
}

static void t_plan(suite *t, sheaf_session *s, uint64_t keep, const char *want)
{
	sheaf_compaction_options o = tens(keep);
	sheaf_cut *plan = NULL;
	OK(sheaf_compaction_plan(&plan, s, &o, &t->err));
	const char *got = plan_line(t, plan);
	sheaf_cut_free(plan);
	CSTR(got, want);
}

static int summarise(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err)
{
	(void)err;
	return plan->prompt.len != 0 ? sheaf_summary_add(out, sheaf_str_of(ctx)) : SHEAF_INVALID;
}

static int try_whole(suite *t, sheaf_session *s, uint64_t keep, char *summary)
{
	sheaf_compaction_options o = tens(keep);
	t->out = (sheaf_appended)SHEAF_APPENDED_INIT;
	return sheaf_compact(s, &o, summarise, summary, &t->out, &t->err);
}

#define UNDO(s) OK(sheaf_compaction_undo((s), S(NULL), NULL, &t->err))

CASE(compaction_planned)
{
	sheaf_session *s = talk(t, 3);
	t_plan(t, s, 20, "u1 a1 u2 a2 | u3");
	t_plan(t, s, 30, "u1 a1 u2 ~ a2");
	t_plan(t, s, 0, "u1 a1 u2 a2 u3 a3 |");
	FAILS(COMPACT, try_whole(t, s, 60, "s"));
	EQ(t_revision(t, s), 6);
	char summary[] = "in short";
	OK(try_whole(t, s, 20, summary));
	ITEMS(t_context(t, s), "S(in short) u3 a3");
	s = t_restart(t, "s");
	ITEMS(t_context(t, s), "S(in short) u3 a3");
	const sheaf_entry *e = t_get(t, s, t->out.id);
	CHECK(t_contains(e->body,
	                 "\"tokens_before\":60,\"tokens_after\":23,\"trigger\":\"manual\""));
}

CASE(compaction_planned_over_an_older_one)
{
	/* What the first one kept is summed up by the second (A1.3). */
	sheaf_session *s = talk(t, 4);
	COMPACT(s, "first", "u3", .id = "c1");
	SAY(s, "user", "5", .id = "u5");
	t_plan(t, s, 10, "u3 a3 u4 a4 | u5");
	OK(try_whole(t, s, 10, "second"));
	ITEMS(t_context(t, s), "S(second) u5");
}

CASE(compaction_planned_with_calls)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "do", .id = "u1");
	for (int i = 1; i <= 5; i++) {
		const char *call = t_format(t, "c%d", i);
		CALL(s, call, "ls", .id = t_format(t, "a%d", i));
		ANSWER(s, call, "files", .id = t_format(t, "t%d", i));
	}
	t_plan(t, s, 20, "u1 a1 t1 a2 t2 a3 t3 a4 t4 ~ a5"); /* no place is better */
	CALL(s, "c6", "ls", .id = "a6");
	FAILS(COMPACT, try_whole(t, s, 0, "s")); /* it is open */
	OK(try_whole(t, s, 10, "s"));
	ITEMS(t_context(t, s), "S(s) a6 !c6");
	ANSWER(s, "c6", "files", .id = "t6");
	ITEMS(t_context(t, s), "S(s) a6 t6");
}

CASE(compaction_planned_with_a_call_given_up)
{
	sheaf_session *s = t_new(t, "s");
	CALL(s, "c1", "ls", .id = "a1");
	SAY(s, "user", "never mind", .id = "u1");
	FAILS(COMPACT, try_whole(t, s, 0, "s"));
	SAY(s, "assistant", "fine", .id = "a2");
	OK(try_whole(t, s, 0, "s"));
	ITEMS(t_context(t, s), "S(s)");
}

CASE(compaction_planned_in_a_fork)
{
	sheaf_session *s = talk(t, 3);
	sheaf_session *f = t_fork(t, s, "a2", "f");
	SAY(f, "user", "other", .id = "x1");
	t_plan(t, f, 10, "u1 a1 u2 a2 | x1");
	OK(try_whole(t, f, 10, "s"));
	ITEMS(t_context(t, f), "S(s) x1");
	ITEMS(t_context(t, s), "u1 a1 u2 a2 u3 a3");
	UNDO(f);
	ITEMS(t_context(t, f), "u1 a1 u2 a2 x1");
}

CASE(compaction_applied_later)
{
	sheaf_session *s = talk(t, 2);
	sheaf_compaction_options o = tens(0);
	sheaf_cut *plan = NULL, *other = NULL;
	OK(sheaf_compaction_plan(&plan, s, &o, &t->err));
	OK(sheaf_compaction_plan(&other, s, &o, &t->err));
	SAY(s, "user", "meanwhile", .id = "u3");
	OK(sheaf_compaction_apply(s, plan, S("s"), &t->out, &t->err));
	EQ(t->out.existed, 0);
	ITEMS(t_context(t, s), "S(s) u3");
	OK(sheaf_compaction_apply(s, plan, S("s"), &t->out, &t->err));
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, sheaf_compaction_apply(s, plan, S("t"), &t->out, &t->err));
	FAILS(STALE, sheaf_compaction_apply(s, other, S("s"), &t->out, &t->err));
	EQ(t_revision(t, s), 6);
	sheaf_cut_free(plan);
	sheaf_cut_free(other);
}

CASE(compaction_applied_elsewhere)
{
	sheaf_session *s = talk(t, 2);
	sheaf_compaction_options o = tens(10);
	sheaf_cut *plan = NULL;
	OK(sheaf_compaction_plan(&plan, s, &o, &t->err));
	FAILS(INVALID, sheaf_compaction_apply(s, plan, S(" \n"), NULL, &t->err));
	BRANCH(s, NULL, "a1");
	FAILS(STALE, sheaf_compaction_apply(s, plan, S("s"), NULL, &t->err));
	BRANCH(s, NULL, "a2");
	OK(sheaf_compaction_apply(s, plan, S("s"), NULL, &t->err));
	ITEMS(t_context(t, s), "S(s) a2");
	sheaf_cut_free(plan);
}

CASE(compaction_that_would_not_shrink)
{
	sheaf_session *s = talk(t, 2);
	sheaf_compaction_options o = SHEAF_COMPACTION_OPTIONS_INIT;
	sheaf_cut *plan = NULL;
	o.keep_recent = 0;
	OK(sheaf_compaction_plan(&plan, s, &o, &t->err));
	FAILS(COMPACT, sheaf_compaction_apply(s, plan, S(t_fill(t, 'x', 200)), NULL, &t->err));
	EQ(t_revision(t, s), 4);
	sheaf_cut_free(plan);
}

CASE(compaction_undone_by_an_entry)
{
	sheaf_session *s = talk(t, 3);
	FAILS(NOT_FOUND, sheaf_compaction_undo(s, S(NULL), NULL, &t->err));
	uint64_t before = t_context(t, s)->prefix_hash;
	COMPACT(s, "one", "u2", .id = "c1");
	uint64_t one = t_context(t, s)->prefix_hash;
	UNDO(s);
	EQ(t_context(t, s)->prefix_hash, before);
	UNDO(s);
	EQ(t_context(t, s)->prefix_hash, one);
	COMPACT(s, "two", "u3", .id = "c2");
	SAY(s, "user", "4", .id = "u4");
	UNDO(s);
	ITEMS(t_context(t, s), "S(one) u2 a2 u3 a3 u4");
	s = t_restart(t, "s");
	ITEMS(t_context(t, s), "S(one) u2 a2 u3 a3 u4");
	OK(try_whole(t, s, 10, "all")); /* and on it goes */
	ITEMS(t_context(t, s), "S(all) u4");
	sheaf_compactions *list = NULL;
	OK(sheaf_session_compactions(&list, s, S("main"), &t->err));
	EQ(list->count, 6);
	TEXT(list->items[4]->trigger, "undo");
	TEXT(list->items[4]->summary, "one");
	sheaf_compactions_free(list);
}

CASE(compaction_undone_on_a_branch)
{
	sheaf_session *s = talk(t, 2);
	BRANCH(s, "side", "a1");
	COMPACT(s, "side", NULL, .branch = "side");
	COMPACT(s, "main", NULL);
	OK(sheaf_compaction_undo(s, S("side"), NULL, &t->err));
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = S("side");
	ITEMS(t_context_with(t, s, &o), "u1 a1");
	ITEMS(t_context(t, s), "S(main)");
}

CASE(compaction_needed)
{
	sheaf_session *s = talk(t, 2);
	sheaf_compaction_options o = tens(0);
	sheaf_fill fill;
	o.window = 100;
	OK(sheaf_compaction_need(&fill, s, &o, &t->err));
	EQ(fill.tokens, 40);
	EQ(fill.limit, 80);
	EQ(fill.needed, 0);
	JSON(s, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":\"x\",\"usage\":{\"input\":60,"
	     "\"cache_read\":10,\"output\":5}}}");
	SAY(s, "user", "and");
	OK(sheaf_compaction_need(&fill, s, &o, &t->err));
	EQ(fill.tokens, 85);
	EQ(fill.counted, 75);
	EQ(fill.needed, 1);
	OK(try_whole(t, s, 10, "s"));
	OK(sheaf_compaction_need(&fill, s, &o, &t->err));
	EQ(fill.tokens, 13);
	EQ(fill.unknown, 1);
}
