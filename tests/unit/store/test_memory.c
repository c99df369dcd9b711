/* The store in memory, the model of the contract. */
#include "log_writer.h"

/* Creating and appending --------------------------------------------------------------- */

static void create_append_read(void **state)
{
	(void)state;
	key_box box;
	uint64_t base = 99;
	int hidden = 1;
	make_key(&box, NULL, "s");
	assert_int_equal(create(store, "s", ""), 0);
	assert_log(store, "s", "");
	assert_int_equal(revision("s", &hidden), 0);
	assert_int_equal(hidden, 0);
	assert_int_equal(store_header(store, &box.store, first_row, &base, NULL), 0);
	assert_int_equal(base, 0);

	writer w = {WRITER_INIT, .session = "s", .ids = "a b"};
	assert_int_equal(writer_run(&w, store), 0);
	assert_int_equal(w.reply.known, 0);
	assert_int_equal(w.reply.durability, SHEAF_DURABILITY_NONE);
	assert_int_equal(w.stamped, 1);
	assert_int_equal(w.saw, 0);
	assert_int_equal(append(store, "s", "c"), 0);
	assert_log(store, "s", "1:a 2:b 3:c");
	assert_int_equal(revision("s", NULL), 3);
	assert_int_equal(find("s", "b"), 2);
	assert_int_equal(find("s", "x"), SHEAF_NOT_FOUND);

	/* Created with records; another owner's session of the same name is another one. */
	writer other = {WRITER_INIT, .owner = "a/v", .session = "s", .ids = "a", .create = true};
	assert_int_equal(writer_run(&other, store), 0);
	assert_true(other.saw == UINT64_MAX);
	assert_log(store, "s", "1:a 2:b 3:c");
}

static int no_rows(UNUSED void *ctx, UNUSED sheaf_row *row, UNUSED sheaf_error *err)
{
	return 0;
}

static int no_problem(UNUSED void *ctx, UNUSED const sheaf_problem *problem)
{
	fail_msg("there is nothing to find");
	return 0;
}

static void absent(void **state)
{
	(void)state;
	key_box box;
	seen s = {.len = 0};
	sheaf_check_totals totals;
	make_key(&box, NULL, "no");
	assert_int_equal(create(store, "other", "a"), 0);
	assert_int_equal(revision("no", NULL), SHEAF_NOT_FOUND);
	assert_int_equal(scan_text(store, "no", &s), SHEAF_NOT_FOUND);
	assert_int_equal(find("no", "a"), SHEAF_NOT_FOUND);
	assert_int_equal(store_header(store, &box.store, first_row, NULL, NULL), SHEAF_NOT_FOUND);
	assert_int_equal(store_replace(store, &box.store, 0, no_rows, NULL, NULL), SHEAF_NOT_FOUND);
	assert_int_equal(store_check(store, &box.store, no_problem, NULL, &totals, NULL),
	                 SHEAF_NOT_FOUND);
	assert_removal(erase("no", 0), 0, 0, "");
	assert_removal(erase("no", 1), 0, 0, "");
	writer w = {WRITER_INIT, .session = "no", .ids = "a", .known = "a"};
	assert_int_equal(writer_run(&w, store), SHEAF_NOT_FOUND);
	assert_int_equal(w.stamped, 0);
}

static void exists(void **state)
{
	(void)state;
	writer w = {WRITER_INIT, .session = "s", .ids = "b", .create = true};
	assert_int_equal(create(store, "s", "a"), 0);
	assert_int_equal(writer_run(&w, store), SHEAF_EXISTS);
	assert_int_equal(w.stamped, 0);
	assert_log(store, "s", "1:a");
}

static void known_ids(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", "a b"), 0);
	writer w = {WRITER_INIT, .session = "s", .ids = "b", .known = "b"};
	assert_int_equal(writer_run(&w, store), 0);
	assert_int_equal(w.reply.known, 1);
	assert_int_equal(w.seqs[0], 2);
	assert_int_equal(w.stamped, 0);
	/* So that repeating a creation is told from a taken name. */
	writer again = {WRITER_INIT, .session = "s", .ids = "a", .known = "a", .create = true};
	assert_int_equal(writer_run(&again, store), 0);
	assert_int_equal(again.reply.known, 1);
	assert_int_equal(again.seqs[0], 1);
	writer fresh = {WRITER_INIT, .session = "s", .ids = "c", .known = "c"};
	assert_int_equal(writer_run(&fresh, store), 0);
	assert_int_equal(fresh.reply.known, 0);
	assert_int_equal(fresh.seqs[0], 0);
	assert_log(store, "s", "1:a 2:b 3:c");
}

static void refused(void **state)
{
	(void)state;
	writer first = {WRITER_INIT, .session = "s", .ids = "a", .create = true,
	                .refuse = SHEAF_CANCELLED};
	assert_int_equal(writer_run(&first, store), SHEAF_CANCELLED);
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);
	assert_int_equal(create(store, "s", "a"), 0);
	writer w = {WRITER_INIT, .session = "s", .ids = "b", .refuse = SHEAF_STALE};
	assert_int_equal(writer_run(&w, store), SHEAF_STALE);
	assert_string_equal(w.err.message, "refused");
	assert_int_equal(w.saw, 1);
	assert_log(store, "s", "1:a");
	assert_int_equal(find("s", "b"), SHEAF_NOT_FOUND);
}

static void bad_rows(void **state)
{
	(void)state;
	writer headless = {WRITER_INIT, .session = "s", .ids = "a", .create = true,
	                   .headless = true};
	assert_int_equal(writer_run(&headless, store), SHEAF_INVALID);
	writer nothing = {WRITER_INIT, .session = "s", .create = true, .headless = true};
	assert_int_equal(writer_run(&nothing, store), SHEAF_INVALID);
	writer skewed = {WRITER_INIT, .session = "s", .ids = "a", .create = true, .shift = 1};
	assert_int_equal(writer_run(&skewed, store), SHEAF_INVALID);
	writer twice = {WRITER_INIT, .session = "s", .ids = "a b a", .create = true};
	assert_int_equal(writer_run(&twice, store), SHEAF_CONFLICT);
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);

	assert_int_equal(create(store, "s", "a b"), 0);
	writer gap = {WRITER_INIT, .session = "s", .ids = "c", .shift = 1};
	assert_int_equal(writer_run(&gap, store), SHEAF_INVALID);
	writer behind = {WRITER_INIT, .session = "s", .ids = "c", .shift = -1};
	assert_int_equal(writer_run(&behind, store), SHEAF_INVALID);
	assert_int_equal(append(store, "s", "c d a"), SHEAF_CONFLICT);
	assert_int_equal(append(store, "s", "c c"), SHEAF_CONFLICT);
	/* All or nothing: what was taken back can be stored later. */
	assert_int_equal(find("s", "c"), SHEAF_NOT_FOUND);
	assert_int_equal(revision("s", NULL), 2);
	assert_int_equal(append(store, "s", "c d"), 0);
	assert_log(store, "s", "1:a 2:b 3:c 4:d");
}

static void durability(void **state)
{
	(void)state;
	sheaf_store_info info = {.size = sizeof(info)};
	assert_int_equal(sheaf_store_describe(store, &info, NULL), 0);
	assert_string_equal(info.scheme, "memory");
	assert_int_equal(info.durability, SHEAF_DURABILITY_NONE);
	assert_int_equal(info.durability_max, SHEAF_DURABILITY_NONE);
	assert_int_equal(info.lists_app, 1);
	assert_int_equal(info.repairs, 0);
	for (int32_t d = SHEAF_DURABILITY_PROCESS; d <= SHEAF_DURABILITY_REPLICA; d++) {
		writer w = {WRITER_INIT, .session = "s", .create = true, .durability = d};
		assert_int_equal(writer_run(&w, store), SHEAF_UNSUPPORTED);
	}
	writer w = {WRITER_INIT, .session = "s", .create = true,
	            .durability = SHEAF_DURABILITY_NONE};
	assert_int_equal(writer_run(&w, store), 0);
	assert_int_equal(w.reply.durability, SHEAF_DURABILITY_NONE);
}

/* Scanning ------------------------------------------------------------------------------- */

/* Every start, direction, limit and kind mask, against the plainest way to say it. */
static void check_scans(const char *session, uint64_t base, size_t count)
{
	static const uint64_t masks[] = {SHEAF_KINDS_ALL, SHEAF_KINDS_ENTRIES,
	                                 SHEAF_KIND_BIT(SHEAF_KIND_LABEL), 0};
	key_box box;
	make_key(&box, NULL, session);
	for (uint64_t from = 0; from <= base + count + 2; from++) {
		for (size_t limit = 0; limit <= count + 1; limit++) {
			for (size_t variant = 0; variant < 2 * COUNT_OF(masks); variant++) {
				sheaf_scan scan = {.size = sizeof(scan),
				                   .from = from,
				                   .backward = variant & 1,
				                   .limit = limit,
				                   .kinds = masks[variant / 2]};
				seen got = {.len = 0}, want = {.len = 0};
				for (size_t k = 0; k < count && want.rows < limit; k++) {
					uint64_t seq = scan.backward ? base + count - k
					                             : base + 1 + k;
					/* Every third record is a label. */
					bool label = (seq - base) % 3 == 0;
					uint64_t bit = SHEAF_KIND_BIT(label ? SHEAF_KIND_LABEL
					                                    : SHEAF_KIND_MESSAGE);
					if ((scan.kinds & bit) == 0 ||
					    (scan.backward ? seq > from : seq < from))
						continue;
					want.rows++;
					want.len += (size_t)snprintf(
						want.text + want.len, sizeof(want.text) - want.len,
						"%s%llu:%s%llu", want.len != 0 ? " " : "",
						(unsigned long long)seq, label ? "~" : "r",
						(unsigned long long)(seq - base));
				}
				assert_int_equal(
					store_scan(store, &box.store, &scan, seen_row, &got, NULL),
					0);
				assert_string_equal(got.text, want.text);
			}
		}
	}
}

static void scans(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", ""), 0);
	check_scans("s", 0, 0);
	assert_int_equal(append(store, "s", "r1 r2 ~3 r4"), 0);
	assert_int_equal(append(store, "s", "r5"), 0);
	assert_int_equal(append(store, "s", "~6 r7"), 0);
	check_scans("s", 0, 7);
	assert_int_equal(fork_at(store, "f", "s", 4, "r1 r2 ~3"), 0);
	assert_int_equal(append(store, "f", "r4 r5"), 0);
	check_scans("f", 4, 5);
	assert_int_equal(find("f", "r1"), 5);
}

/* More rows than a scan takes at a time. */
static void scan_pages(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", ""), 0);
	for (int i = 0; i < 200; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "%d", i + 1);
		assert_int_equal(append(store, "s", id), 0);
	}
	static const size_t limits[] = {1, 63, 64, 65, 127, 128, 129, 199, 200, 201, SIZE_MAX};
	key_box box;
	make_key(&box, NULL, "s");
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		sheaf_scan scan = {
			.size = sizeof(scan), .limit = limits[i], .kinds = SHEAF_KINDS_ALL};
		seen s = {.len = 0};
		assert_int_equal(store_scan(store, &box.store, &scan, seen_row, &s, NULL), 0);
		assert_int_equal(s.rows, limits[i] < 200 ? limits[i] : 200);
		scan.backward = 1;
		scan.from = 200;
		s = (seen){.len = 0};
		assert_int_equal(store_scan(store, &box.store, &scan, seen_row, &s, NULL), 0);
		assert_int_equal(s.rows, limits[i] < 200 ? limits[i] : 200);
	}
	for (size_t stop = 1; stop <= 200; stop++) {
		seen s = {.stop_after = stop, .stop_with = 1};
		assert_int_equal(scan_text(store, "s", &s), 0);
		assert_int_equal(s.rows, stop);
		s = (seen){.stop_after = stop, .stop_with = SHEAF_CONTEXT};
		assert_int_equal(scan_text(store, "s", &s), SHEAF_CONTEXT);
		assert_int_equal(s.rows, stop);
	}
}

static void rows_as_given(void **state)
{
	(void)state;
	uint64_t parents[8] = {0};
	key_box box;
	make_key(&box, NULL, "s");
	assert_int_equal(create(store, "s", "a ~x b ~y"), 0);
	sheaf_scan scan = {.size = sizeof(scan), .limit = 9, .kinds = SHEAF_KINDS_ALL};
	assert_int_equal(store_scan(store, &box.store, &scan, collect_parents, parents, NULL), 0);
	assert_int_equal(parents[1], 0);
	assert_int_equal(parents[2], 0);
	assert_int_equal(parents[3], 1);
	assert_int_equal(parents[4], 2); /* the label before */
}

/* Listing ---------------------------------------------------------------------------------- */

static void make_at(const char *owner, const char *session, int64_t time_us)
{
	writer w = {WRITER_INIT, .owner = owner, .session = session,
	            .ids = "a",  .create = true, .time_us = time_us};
	assert_int_equal(writer_run(&w, store), 0);
}

static void lists(void **state)
{
	(void)state;
	sheaf_list_query all = {.size = sizeof(all)};
	assert_list(&all, "");
	make_at("a/u", "s2", 50);
	make_at("a/u", "s1", 50);
	make_at("a/u", "s3", 70);
	make_at("a/v", "s0", 50);
	make_at("b/u", "s9", 60);
	make_at("a/", "s8", 10);
	assert_list(&all, "a/u/s3 b/u/s9 a/u/s1 a/u/s2 a/v/s0 a/%/s8");
	sheaf_list_query app = {.size = sizeof(app), .app = SHEAF_STR("a")};
	assert_list(&app, "a/u/s3 a/u/s1 a/u/s2 a/v/s0 a/%/s8");
	sheaf_list_query user = {.size = sizeof(user), .user = SHEAF_STR("u")};
	assert_list(&user, "a/u/s3 b/u/s9 a/u/s1 a/u/s2");
	sheaf_list_query both = {
		.size = sizeof(both), .app = SHEAF_STR("a"), .user = SHEAF_STR("%")};
	assert_list(&both, "a/%/s8");
	both.user = SHEAF_STR("x");
	assert_list(&both, "");

	/* A newer record moves a session to the front. */
	writer w = {WRITER_INIT, .session = "s2", .ids = "b", .time_us = 90};
	assert_int_equal(writer_run(&w, store), 0);
	assert_list(&all, "a/u/s2 a/u/s3 b/u/s9 a/u/s1 a/v/s0 a/%/s8");

	seen s = {.stop_after = 2, .stop_with = 1};
	assert_int_equal(store_list(store, &all, seen_info, &s, NULL), 0);
	assert_string_equal(s.text, "a/u/s2 a/u/s3");
	s = (seen){.stop_after = 2, .stop_with = SHEAF_NOMEM};
	assert_int_equal(store_list(store, &all, seen_info, &s, NULL), SHEAF_NOMEM);
}

static void list_pages(void **state)
{
	(void)state;
	make_at("a/u", "s2", 50);
	make_at("a/u", "s1", 50);
	make_at("a/v", "s0", 50);
	make_at("a/u", "s3", 70);
	sheaf_list_query q = {.size = sizeof(q),
	                      .has_after = 1,
	                      .after_modified_us = 70,
	                      .after_owner = SHEAF_STR("a/u"),
	                      .after_session = SHEAF_STR("s3")};
	assert_list(&q, "a/u/s1 a/u/s2 a/v/s0");
	q.after_session = SHEAF_STR("s2"); /* need not be there */
	assert_list(&q, "a/u/s3 a/u/s1 a/u/s2 a/v/s0");
	q.after_modified_us = 50;
	assert_list(&q, "a/v/s0");
	q.after_session = SHEAF_STR("s1");
	assert_list(&q, "a/u/s2 a/v/s0");
	q.after_owner = SHEAF_STR("a/v");
	q.after_session = SHEAF_STR("s0");
	assert_list(&q, "");
	q.after_modified_us = 49;
	assert_list(&q, "");
}

static int info_fields(void *ctx, UNUSED const sheaf_store_key *key, const sheaf_session_info *info)
{
	*(sheaf_session_info *)ctx = *info;
	return 1;
}

static void list_fields(void **state)
{
	(void)state;
	sheaf_session_info info = {0};
	sheaf_list_query all = {.size = sizeof(all)};
	writer w = {WRITER_INIT, .session = "s", .ids = "a b ~c", .create = true, .time_us = 77};
	assert_int_equal(writer_run(&w, store), 0);
	assert_int_equal(store_list(store, &all, info_fields, &info, NULL), 0);
	assert_int_equal(info.created_us, 77);
	assert_int_equal(info.modified_us, 77);
	assert_int_equal(info.revision, 3);
	assert_int_equal(info.records, 3);
	assert_int_equal(info.messages, 2);
	assert_int_equal(info.hidden, 0);
	assert_int_equal(info.readonly, 0);
	assert_int_equal(info.damaged, 0);
}

/* Checking ------------------------------------------------------------------------------------------ */

static void checks(void **state)
{
	(void)state;
	key_box box;
	copy_rows c;
	sheaf_check_totals one, all;
	make_key(&box, NULL, "s");
	assert_int_equal(create(store, "s", "a b"), 0);
	copy_session(&c, "s");
	uint64_t bytes = 0;
	for (size_t i = 0; i < c.count; i++)
		bytes += c.rows[i].bytes.len + 1;
	copy_free(&c);
	assert_int_equal(store_check(store, &box.store, no_problem, NULL, &one, NULL), 0);
	assert_int_equal(one.sessions, 1);
	assert_int_equal(one.records, 2);
	assert_int_equal(one.bytes, bytes);
	assert_int_equal(create(store, "t", "a"), 0);
	assert_int_equal(store_check(store, NULL, no_problem, NULL, &all, NULL), 0);
	assert_int_equal(all.sessions, 2);
	assert_int_equal(all.records, 3);
	assert_true(all.bytes > one.bytes);
	assert_int_equal(store_repair(store, &box.store, no_problem, NULL, &all, NULL),
	                 SHEAF_UNSUPPORTED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(create_append_read), CASE(absent),  CASE(exists),
		CASE(known_ids),          CASE(refused), CASE(bad_rows),
		CASE(durability),         CASE(scans),   CASE(scan_pages),
		CASE(rows_as_given),      CASE(lists),   CASE(list_pages),
		CASE(list_fields),        CASE(checks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
