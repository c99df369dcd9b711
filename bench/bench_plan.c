/* Planning a compaction, beside building the context it is about: in CPU time, for there is nothing
 * to wait for. */
#include "bench.h"

enum {
	MESSAGES = 10000,
	ROUNDS = 101
};

static double plan_once(sheaf_session *s)
{
	sheaf_cut *plan;
	sheaf_error err;
	double t = bench_cpu_us();
	bench_check(sheaf_compaction_plan(&plan, s, NULL, &err), &err, "plan");
	t = bench_cpu_us() - t;
	if (plan->covered_count + plan->kept_count != MESSAGES)
		bench_check(SHEAF_COMPACT, NULL, "the plan is not about all of it");
	sheaf_cut_free(plan);
	return t / 1000;
}

static double context_once(sheaf_session *s)
{
	sheaf_context *c;
	sheaf_error err;
	double t = bench_cpu_us();
	bench_check(sheaf_session_context(&c, s, NULL, &err), &err, "context");
	t = bench_cpu_us() - t;
	sheaf_context_free(c);
	return t / 1000;
}

int bench_plan(bench *b)
{
	size_t rounds = b->quick ? 21 : ROUNDS;
	double ours[ROUNDS], context[ROUNDS];
	char url[512];
	sheaf_store *store;
	sheaf_session *s;
	sheaf_error err;
	sheaf_key key = sheaf_key_of("plan");

	bench_url(b, url, "plan", "?durability=process");
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open");
	bench_fill(store, "plan", MESSAGES, false);
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &ours[i] : &context[i]) = (k ^ first) ? plan_once(s)
			                                                      : context_once(s);
	sheaf_session_close(s);
	sheaf_close(store);
	double value = bench_median(ours, rounds);
	bench_report_value(b, "plan", value, "ms of CPU", 20);
	/* How much of it is reading, which a context costs, too. */
	bench_report(b, "plan-by-context", value, "ms of CPU", bench_median(context, rounds), 0,
	             false);
	return 0;
}
