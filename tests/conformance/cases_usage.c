/* Usage: what reports say is the same on every store, after a restart too. */
#include "suite.h"

/* Replies in and outside turns, ends of turns that repeat or alone know, two models, two days. */
static sheaf_session *used(suite *t, const char *name)
{
	const int64_t day = INT64_C(86400000000);
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", "hi", .id = "u1", .turn = "t1", .time_us = day);
	JSON(s, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":\"a\",\"provider\":\"anthropic\","
	     "\"model\":\"claude-opus-4-5\",\"usage\":{\"input\":1000,\"cache_write_1h\":2000}}}",
	     .id = "a1", .turn = "t1", .time_us = day);
	JSON(s, "turn_end", "{\"turn_end\":{\"turn\":\"t1\",\"usage\":{\"input\":1000}}}",
	     .id = "e1", .time_us = day);
	JSON(s, "model_change",
	     "{\"model_change\":{\"provider\":\"openai\",\"model_id\":\"gpt-5\"}}", .id = "m1",
	     .time_us = day);
	JSON(s, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":\"b\",\"usage\":{\"cache_read\":"
	     "4000,\"output\":100}}}",
	     .id = "a2", .time_us = 2 * day);
	JSON(s, "turn_end",
	     "{\"turn_end\":{\"turn\":\"t2\",\"outcome\":\"completed\",\"usage\":{\"output\":7}}}",
	     .id = "e2", .time_us = 2 * day);
	return s;
}

static char *spell_sum(suite *t, const sheaf_usage_sum *sum)
{
	char cost[SHEAF_MONEY_ROOM];
	const sheaf_usage *u = &sum->tokens;
	sheaf_money_exact(cost, sum->cost);
	return t_format(t, "%llu:%llu/%llu/%llu/%llu/%llu=%s%s", (unsigned long long)sum->replies,
	                (unsigned long long)u->input, (unsigned long long)u->cache_read,
	                (unsigned long long)u->cache_write_5m,
	                (unsigned long long)u->cache_write_1h, (unsigned long long)u->output, cost,
	                sum->unpriced != 0 ? "+" : "");
}

/* A report in a line: KEY own|inherited for each row, then the totals. */
static const char *spell(suite *t, const sheaf_usage_report *r)
{
	char *line = t_format(t, "%s", "");
	for (size_t i = 0; i < r->count; i++) {
		const sheaf_usage_row *row = r->rows[i];
		line = t_format(t, "%s%.*s %s", line, (int)row->key.len, row->key.ptr,
		                spell_sum(t, &row->own));
		if (row->inherited.replies != 0)
			line = t_format(t, "%s|%s", line, spell_sum(t, &row->inherited));
		line = t_format(t, "%s; ", line);
	}
	line = t_format(t, "%s%s", line, spell_sum(t, &r->own));
	if (r->inherited.replies != 0)
		line = t_format(t, "%s|%s", line, spell_sum(t, &r->inherited));
	sheaf_usage_report_free(r);
	return line;
}

static const char *session_usage(suite *t, sheaf_session *s, int by)
{
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	sheaf_usage_report *r = NULL;
	how.by = by;
	OK(sheaf_session_usage(&r, s, &how, &t->err));
	sheaf_usage head = t_head(t, s)->info->usage;
	CHECK(memcmp(&head, &r->own.tokens, sizeof(head)) == 0);
	return spell(t, r);
}

static const char *store_usage(suite *t, int by)
{
	sheaf_list_options which = SHEAF_LIST_OPTIONS_INIT;
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	sheaf_usage_report *r = NULL;
	which.app = S(t->app);
	how.by = by;
	OK(sheaf_store_usage(&r, t->store, &which, &how, &t->err));
	return spell(t, r);
}

static void used_rows(suite *t, sheaf_session *s)
{
	CSTR(session_usage(t, s, SHEAF_USAGE_BY_TURN),
	     "t1 1:1000/0/0/2000/0=0.025; a2 1:0/4000/0/0/100=0.0015; t2 1:0/0/0/0/7=0.00007; "
	     "3:1000/4000/0/2000/107=0.02657");
	CSTR(session_usage(t, s, SHEAF_USAGE_BY_MODEL),
	     "claude-opus-4-5 1:1000/0/0/2000/0=0.025; gpt-5 2:0/4000/0/0/107=0.00157; "
	     "3:1000/4000/0/2000/107=0.02657");
	CSTR(session_usage(t, s, SHEAF_USAGE_BY_DAY),
	     "1970-01-02 1:1000/0/0/2000/0=0.025; 1970-01-03 2:0/4000/0/0/107=0.00157; "
	     "3:1000/4000/0/2000/107=0.02657");
	CSTR(session_usage(t, s, SHEAF_USAGE_BY_SESSION),
	     "s 3:1000/4000/0/2000/107=0.02657; 3:1000/4000/0/2000/107=0.02657");
}

CASE(usage_of_a_session)
{
	sheaf_session *s = used(t, "s");
	used_rows(t, s);
	used_rows(t, t_restart(t, "s"));
}

CASE(usage_of_branches)
{
	sheaf_session *s = used(t, "s");
	BRANCH(s, "main", "u1");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":\"c\",\"provider\":\"openai\","
	     "\"model\":\"gpt-5\",\"usage\":{\"output\":1}}}",
	     .id = "a3");
	/* What was left behind was paid for. */
	CSTR(session_usage(t, s, SHEAF_USAGE_BY_NONE), "4:1000/4000/0/2000/108=0.02658");
}

CASE(usage_of_forks)
{
	sheaf_session *s = used(t, "s");
	sheaf_session *fork = t_fork(t, s, "a2", "f");
	JSON(fork, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":\"d\",\"usage\":{\"input\":8}}}",
	     .id = "d1");
	/* The fork's own reply has the model in force where it was forked. */
	CSTR(session_usage(t, fork, SHEAF_USAGE_BY_MODEL),
	     "claude-opus-4-5 0:0/0/0/0/0=0|1:1000/0/0/2000/0=0.025; "
	     "gpt-5 1:8/0/0/0/0=0.00001|1:0/4000/0/0/100=0.0015; "
	     "1:8/0/0/0/0=0.00001|2:1000/4000/0/2000/100=0.0265");
	sheaf_session *second = t_fork(t, fork, "d1", "g");
	CSTR(session_usage(t, second, SHEAF_USAGE_BY_NONE),
	     "0:0/0/0/0/0=0|3:1008/4000/0/2000/100=0.02651");
	/* Over the store nothing is counted twice. */
	CSTR(store_usage(t, SHEAF_USAGE_BY_MODEL),
	     "claude-opus-4-5 1:1000/0/0/2000/0=0.025; gpt-5 3:8/4000/0/0/107=0.00158; "
	     "4:1008/4000/0/2000/107=0.02658");
	suite_reopen(t);
	CSTR(store_usage(t, SHEAF_USAGE_BY_NONE), "4:1008/4000/0/2000/107=0.02658");
}

CASE(usage_by_project)
{
	static const char *const rows[][2] = {{"a", "/x"}, {"b", "/y"}, {"c", "/x"}, {"d", ""}};
	for (size_t i = 0; i < 4; i++) {
		sheaf_session_options so = SHEAF_SESSION_OPTIONS_INIT;
		so.cwd = S(rows[i][1]);
		so.created_us = 1000000;
		sheaf_key key = t_key(t, rows[i][0]);
		sheaf_session *s = NULL;
		OK(sheaf_session_open(&s, t->store, &key, &so, &t->err));
		t_keep(t, s);
		JSON(s, "message",
		     t_format(t,
		              "{\"message\":{\"role\":\"assistant\",\"content\":\"a\","
		              "\"model\":\"gpt-5\",\"usage\":{\"output\":%zu}}}",
		              i + 1),
		     .time_us = (int64_t)(i + 1) * 1000000);
	}
	/* The newest first. */
	CSTR(store_usage(t, SHEAF_USAGE_BY_PROJECT),
	     " 1:0/0/0/0/4=0.00004; /x 2:0/0/0/0/4=0.00004; /y 1:0/0/0/0/2=0.00002; "
	     "4:0/0/0/0/10=0.0001");
}

CASE(usage_of_a_copy)
{
	sheaf_session *s = used(t, "s");
	sheaf_session *fork = t_fork(t, s, "a1", "f"), *copy = NULL;
	sheaf_key key = t_key(t, "c");
	OK(sheaf_session_copy(&copy, fork, t->store, &key, &t->err));
	t_keep(t, copy);
	/* A copy has taken in what the fork only reads. */
	CSTR(session_usage(t, fork, SHEAF_USAGE_BY_NONE), "0:0/0/0/0/0=0|1:1000/0/0/2000/0=0.025");
	sheaf_usage_report *r = NULL;
	OK(sheaf_session_usage(&r, copy, NULL, &t->err));
	EQ(r->own.tokens.input + r->inherited.tokens.input, 1000);
	sheaf_usage_report_free(r);
}

CASE(usage_of_a_store)
{
	sheaf_session *s = used(t, "s");
	sheaf_usage_report *r = NULL;
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	(void)t_new(t, "empty");
	CSTR(store_usage(t, SHEAF_USAGE_BY_DAY),
	     "1970-01-02 1:1000/0/0/2000/0=0.025; 1970-01-03 2:0/4000/0/0/107=0.00157; "
	     "3:1000/4000/0/2000/107=0.02657");
	how.by = SHEAF_USAGE_BY_TURN;
	FAILS(INVALID, sheaf_store_usage(&r, t->store, NULL, &how, &t->err));
	how.by = 9;
	FAILS(INVALID, sheaf_session_usage(&r, s, &how, &t->err));
	sheaf_key key = sheaf_session_key(s);
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	FAILS(GONE, sheaf_session_usage(&r, s, NULL, &t->err));
	CSTR(store_usage(t, SHEAF_USAGE_BY_NONE), "0:0/0/0/0/0=0");
}
