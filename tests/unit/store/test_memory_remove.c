/* The store in memory: deleting what forks read and what they do not, and replacing logs. */
#include "log_writer.h"

/* Deleting ------------------------------------------------------------------------------------ */

static void removes(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", "a b"), 0);
	assert_int_equal(create(store, "t", "a"), 0);
	assert_removal(erase("s", 1), 1, 0, ""); /* visible: nothing to give back */
	assert_log(store, "s", "1:a 2:b");
	assert_removal(erase("s", 0), 1, 0, "");
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);
	assert_int_equal(append(store, "s", "c"), SHEAF_NOT_FOUND);
	assert_removal(erase("s", 0), 0, 0, "");
	assert_log(store, "t", "1:a");
	assert_int_equal(create(store, "s", "x"), 0);
	assert_log(store, "s", "1:x");
}

static void removes_what_forks_read(void **state)
{
	(void)state;
	int hidden = 0;
	const sheaf_list_query seen_all = {.size = sizeof(seen_all)};
	const sheaf_list_query all = {.size = sizeof(all), .hidden = 1};
	assert_int_equal(create(store, "s", "a b"), 0);
	assert_int_equal(append(store, "s", "c"), 0);
	assert_int_equal(append(store, "s", "d e"), 0);
	assert_int_equal(fork_at(store, "f2", "s", 2, "x"), 0);
	assert_int_equal(fork_at(store, "f3", "s", 3, ""), 0);
	/* Another owner's sessions read nothing here, whatever their links are called. */
	writer stranger = {WRITER_INIT,
	                   .owner = "a/v",
	                   .session = "g",
	                   .create = true,
	                   .links = {{SHEAF_STR("s"), 5}},
	                   .link_count = 1};
	assert_int_equal(writer_run(&stranger, store), 0);

	removal r = erase("s", 0);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.reply.existed, 1);
	assert_int_equal(r.reply.hidden, 1);
	assert_int_equal(r.readers.rows, 2);
	assert_non_null(strstr(r.readers.text, "a/u/f2"));
	assert_non_null(strstr(r.readers.text, "a/u/f3"));

	/* What is read stays, the rest is gone, and the key is taken. */
	assert_log(store, "s", "1:a 2:b 3:c");
	assert_int_equal(revision("s", &hidden), 3);
	assert_int_equal(hidden, 1);
	assert_int_equal(find("s", "c"), 3);
	assert_int_equal(find("s", "d"), SHEAF_NOT_FOUND);
	assert_int_equal(create(store, "s", "z"), SHEAF_EXISTS);
	writer w = {WRITER_INIT, .session = "s", .ids = "a", .known = "a"};
	assert_int_equal(writer_run(&w, store), SHEAF_GONE);
	assert_int_equal(w.reply.known, 0);
	writer again = {WRITER_INIT, .session = "s", .ids = "a", .known = "a", .create = true};
	assert_int_equal(writer_run(&again, store), SHEAF_EXISTS);
	assert_int_equal(fork_at(store, "f4", "s", 1, ""), SHEAF_GONE);
	seen s = {.len = 0};
	assert_int_equal(store_list(store, &seen_all, seen_info, &s, NULL), 0);
	assert_int_equal(s.rows, 3);
	assert_null(strstr(s.text, "hidden"));
	s = (seen){.len = 0};
	assert_int_equal(store_list(store, &all, seen_info, &s, NULL), 0);
	assert_int_equal(s.rows, 4);
	assert_non_null(strstr(s.text, "a/u/s(hidden)"));

	/* Deleting it again says that it was not there, and who still reads it. */
	r = erase("s", 0);
	assert_int_equal(r.reply.existed, 0);
	assert_int_equal(r.reply.hidden, 1);
	assert_int_equal(r.readers.rows, 2);

	/* As readers go, more of it does. */
	assert_removal(erase("f3", 0), 1, 0, "");
	assert_removal(erase("s", 1), 1, 1, "a/u/f2");
	assert_log(store, "s", "1:a 2:b");
	assert_removal(erase("s", 1), 1, 1, "a/u/f2");
	assert_removal(erase("f2", 0), 1, 0, "");
	assert_removal(erase("s", 1), 1, 0, "");
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);
	assert_removal(erase("s", 1), 0, 0, "");
	assert_int_equal(create(store, "s", "z"), 0);
}

/* Whatever order they are met in, the fork that reads most decides what stays. */
static void the_highest_base_decides(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", "a b c d e f g h"), 0);
	for (uint64_t base = 1; base <= 7; base++) {
		char name[] = {'f', (char)('0' + base), '\0'};
		assert_int_equal(fork_at(store, name, "s", base, ""), 0);
	}
	/* They are named in the order of lists. */
	assert_removal(erase("s", 0), 1, 1, "a/u/f1 a/u/f2 a/u/f3 a/u/f4 a/u/f5 a/u/f6 a/u/f7");
	assert_log(store, "s", "1:a 2:b 3:c 4:d 5:e 6:f 7:g");
}

/* s is read by f, and by g through f: every link of a chain counts. */
static void removes_in_chains(void **state)
{
	(void)state;
	assert_int_equal(create(store, "s", "a b c"), 0);
	assert_int_equal(fork_at(store, "f", "s", 2, "x y"), 0);
	writer g = {WRITER_INIT,    .session = "g",
	            .ids = "p",     .create = true,
	            .source = "f",  .links = {{SHEAF_STR("f"), 3}, {SHEAF_STR("s"), 2}},
	            .link_count = 2};
	assert_int_equal(writer_run(&g, store), 0);
	assert_log(store, "g", "4:p");
	assert_removal(erase("f", 0), 1, 1, "a/u/g");
	assert_log(store, "f", "3:x");
	/* f is hidden: no longer a reader of its own account. */
	assert_removal(erase("s", 0), 1, 1, "a/u/g");
	assert_log(store, "s", "1:a 2:b");
	assert_removal(erase("g", 0), 1, 0, "");
	assert_removal(erase("f", 1), 1, 0, "");
	assert_removal(erase("s", 1), 1, 0, "");
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);
	assert_int_equal(revision("f", NULL), SHEAF_NOT_FOUND);
}

static void fork_sources(void **state)
{
	(void)state;
	assert_int_equal(fork_at(store, "f", "s", 1, ""), SHEAF_GONE);
	writer other = {WRITER_INIT, .owner = "a/v", .session = "s", .ids = "a", .create = true};
	assert_int_equal(writer_run(&other, store), 0); /* another owner's is not meant */
	writer w = {WRITER_INIT,
	            .session = "f",
	            .create = true,
	            .source = "s",
	            .links = {{SHEAF_STR("s"), 1}},
	            .link_count = 1};
	assert_int_equal(writer_run(&w, store), SHEAF_GONE);
	assert_int_equal(w.stamped, 0);
	assert_int_equal(create(store, "s", "a"), 0);
	assert_int_equal(fork_at(store, "f", "s", 1, "b"), 0);
	assert_log(store, "f", "2:b");
	key_box box;
	uint64_t base = 0;
	make_key(&box, NULL, "f");
	assert_int_equal(store_header(store, &box.store, first_row, &base, NULL), 0);
	assert_int_equal(base, 1);
}

static int reader_fails(UNUSED void *ctx, UNUSED const sheaf_store_key *key,
                        UNUSED const sheaf_session_info *info)
{
	return SHEAF_NOMEM;
}

static void reader_callback_fails(void **state)
{
	(void)state;
	key_box box;
	sheaf_error err;
	int hidden = 0;
	make_key(&box, NULL, "s");
	assert_int_equal(create(store, "s", "a"), 0);
	assert_int_equal(fork_at(store, "f", "s", 1, ""), 0);
	sheaf_remove_request request = {.size = sizeof(request), .reader = reader_fails};
	assert_int_equal(store_remove(store, &box.store, &request, NULL, &err), SHEAF_NOMEM);
	assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	assert_int_equal(revision("s", &hidden), 1);
	assert_int_equal(hidden, 1);
	request.reader = NULL;
	assert_int_equal(store_remove(store, &box.store, &request, NULL, &err), 0);
}

/* Replacing --------------------------------------------------------------------------------------- */

static int replace(const char *session, uint64_t expected, copy_rows *c, sheaf_error *err)
{
	key_box box;
	make_key(&box, NULL, session);
	c->at = 0;
	return store_replace(store, &box.store, expected, copy_next, c, err);
}

static void replaces(void **state)
{
	(void)state;
	copy_rows c;
	sheaf_error err;
	uint64_t parents[8] = {0};
	key_box box;
	make_key(&box, NULL, "s");
	assert_int_equal(create(store, "s", "a b ~x c"), 0);
	copy_session(&c, "s");
	assert_int_equal(append(store, "s", "d"), 0);

	assert_int_equal(replace("s", 4, &c, &err), SHEAF_STALE);
	assert_int_equal(err.revision, 5);
	assert_log(store, "s", "1:a 2:b 3:~x 4:c 5:d");
	assert_int_equal(replace("s", 5, &c, &err), 0);
	assert_log(store, "s", "1:a 2:b 3:~x 4:c");
	assert_int_equal(revision("s", NULL), 4);
	assert_int_equal(find("s", "d"), SHEAF_NOT_FOUND);
	assert_int_equal(find("s", "c"), 4);
	/* Kind, parent and id were worked out from the lines. */
	sheaf_scan scan = {.size = sizeof(scan), .limit = 9, .kinds = SHEAF_KINDS_ENTRIES};
	assert_int_equal(store_scan(store, &box.store, &scan, collect_parents, parents, NULL), 0);
	assert_int_equal(parents[2], 1);
	assert_int_equal(parents[3], 0);
	assert_int_equal(parents[4], 2);
	/* And it goes on from there. */
	assert_int_equal(append(store, "s", "d"), 0);
	assert_log(store, "s", "1:a 2:b 3:~x 4:c 5:d");
	copy_free(&c);
}

static void replace_refusals(void **state)
{
	(void)state;
	copy_rows c;
	sheaf_error err;
	assert_int_equal(create(store, "s", "a b"), 0);
	copy_session(&c, "s");
	assert_int_equal(append(store, "s", "c"), 0);
	c.fail_at_end = SHEAF_CANCELLED;
	assert_int_equal(replace("s", 3, &c, &err), SHEAF_CANCELLED);
	assert_string_equal(err.message, "no more");
	c.fail_at_end = 0;
	copy_rows empty = {.count = 0};
	assert_int_equal(replace("s", 3, &empty, &err), SHEAF_INVALID);
	copy_rows headless = c;
	memmove(headless.rows, headless.rows + 1, sizeof(*headless.rows) * 2);
	headless.count = 2;
	assert_true(replace("s", 3, &headless, &err) < 0);
	copy_rows gap = c;
	gap.rows[1] = gap.rows[2];
	gap.count = 2;
	assert_true(replace("s", 3, &gap, &err) < 0);
	assert_log(store, "s", "1:a 2:b 3:c");
	copy_free(&c);
}

static void append_meanwhile(void)
{
	assert_int_equal(append(store, "s", "c"), 0);
}

static void delete_meanwhile(void)
{
	assert_removal(erase("s", 0), 1, 0, "");
}

static void recreate_meanwhile(void)
{
	delete_meanwhile();
	assert_int_equal(create(store, "s", "x y"), 0);
}

static void replace_races(void **state)
{
	(void)state;
	copy_rows c;
	assert_int_equal(create(store, "s", "a b"), 0);
	copy_session(&c, "s");
	c.meanwhile = append_meanwhile;
	assert_int_equal(replace("s", 2, &c, NULL), SHEAF_STALE);
	assert_log(store, "s", "1:a 2:b 3:c");
	c.meanwhile = delete_meanwhile;
	assert_int_equal(replace("s", 3, &c, NULL), SHEAF_NOT_FOUND);
	/* A new session of the same length is not the one that was meant. */
	assert_int_equal(create(store, "s", "a b"), 0);
	c.meanwhile = recreate_meanwhile;
	assert_int_equal(replace("s", 2, &c, NULL), SHEAF_STALE);
	assert_log(store, "s", "1:x 2:y");
	copy_free(&c);
}

static void replace_keeps_hidden(void **state)
{
	(void)state;
	copy_rows c;
	int hidden = 0;
	assert_int_equal(create(store, "s", "a b"), 0);
	assert_int_equal(fork_at(store, "f", "s", 2, ""), 0);
	copy_session(&c, "s");
	assert_removal(erase("s", 0), 1, 1, "a/u/f");
	assert_int_equal(replace("s", 2, &c, NULL), 0);
	assert_int_equal(revision("s", &hidden), 2);
	assert_int_equal(hidden, 1);
	copy_free(&c);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(removes),
		CASE(the_highest_base_decides),
		CASE(removes_what_forks_read),
		CASE(removes_in_chains),
		CASE(fork_sources),
		CASE(reader_callback_fails),
		CASE(replaces),
		CASE(replace_refusals),
		CASE(replace_races),
		CASE(replace_keeps_hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
