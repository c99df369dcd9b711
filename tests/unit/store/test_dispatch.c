/* The dispatch: what is checked, filled in and refused before a store is called. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"
#include "fake_store.h"
#include "store/store.h"

static key_box box;
static sheaf_store *store;

static int register_fake(void **state)
{
	static const sheaf_store_ops ops = FAKE_OPS("fake");
	static sheaf_store_ops small = FAKE_OPS("small");
	(void)state;
	small.check = NULL;
	small.repair = NULL;
	const sheaf_key key = {SHEAF_STR("app"), SHEAF_STR("us er"), SHEAF_STR("session")};
	if (key_box_init(&box, &key, NULL) != 0 || sheaf_store_register(&small, NULL) != 0)
		return -1;
	return sheaf_store_register(&ops, NULL);
}

static int open_fake(void **state)
{
	(void)state;
	fake_reset();
	return sheaf_open(&store, "fake:x", NULL, NULL);
}

static int close_fake(void **state)
{
	(void)state;
	store_set_fault(NULL, NULL);
	sheaf_close(store);
	store = NULL;
	return 0;
}

static void reopen(const char *url, const sheaf_store_options *options)
{
	sheaf_close(store);
	store = NULL;
	assert_int_equal(sheaf_open(&store, url, options, NULL), 0);
}

/* Callbacks that are never called by the fake store, but for on_row. */

static int on_row_rc;

static int on_row(UNUSED void *ctx, UNUSED const sheaf_row *row)
{
	return on_row_rc;
}

static int on_info(UNUSED void *ctx, UNUSED const sheaf_store_key *key,
                   UNUSED const sheaf_session_info *info)
{
	return 0;
}

static int on_problem(UNUSED void *ctx, UNUSED const sheaf_problem *problem)
{
	return 0;
}

static int on_rows(UNUSED void *ctx, UNUSED sheaf_row *row, UNUSED sheaf_error *err)
{
	return 0;
}

static int on_stamp(UNUSED void *ctx, UNUSED const sheaf_head *head, UNUSED sheaf_head *next,
                    UNUSED const sheaf_row **rows, UNUSED size_t *count, UNUSED sheaf_error *err)
{
	return 0;
}

/* Every call with good arguments, by the name of its slot. */

static sheaf_head *const some_head = (sheaf_head *)&box; /* never looked into */

static int call_head(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_head_state head_state;
	return store_head(s, key, 1, some_head, &head_state, err);
}

static int call_append(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_append_request request = {.size = sizeof(request), .stamp = on_stamp};
	return store_append(s, key, &request, NULL, err);
}

static int call_scan(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_scan scan = {.size = sizeof(scan), .limit = 1, .kinds = SHEAF_KINDS_ALL};
	return store_scan(s, key, &scan, on_row, NULL, err);
}

static int call_find(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	uint64_t seq;
	return store_find(s, key, SHEAF_STR("id"), &seq, err);
}

static int call_header(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	return store_header(s, key, on_row, NULL, err);
}

static int call_list(sheaf_store *s, UNUSED const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_list_query query = {.size = sizeof(query)};
	return store_list(s, &query, on_info, NULL, err);
}

static int call_remove(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_remove_request request = {.size = sizeof(request)};
	return store_remove(s, key, &request, NULL, err);
}

static int call_replace(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	return store_replace(s, key, 1, on_rows, NULL, err);
}

static int call_check(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_check_totals totals;
	return store_check(s, key, on_problem, NULL, &totals, err);
}

static int call_repair(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_check_totals totals;
	return store_repair(s, key, on_problem, NULL, &totals, err);
}

static int call_describe(sheaf_store *s, UNUSED const sheaf_store_key *key, sheaf_error *err)
{
	sheaf_store_info info = {.size = sizeof(info)};
	return sheaf_store_describe(s, &info, err);
}

static const struct slot {
	const char *name;
	int (*call)(sheaf_store *s, const sheaf_store_key *key, sheaf_error *err);
	bool writes;
	bool needs_key;
} slots[] = {
	{"head", call_head, false, true},          {"append", call_append, true, true},
	{"scan", call_scan, false, true},          {"find", call_find, false, true},
	{"header", call_header, false, true},      {"list", call_list, false, false},
	{"remove", call_remove, true, true},       {"replace", call_replace, true, true},
	{"check", call_check, false, false},       {"repair", call_repair, true, true},
	{"describe", call_describe, false, false},
};

static bool is_describe(const struct slot *slot)
{
	return strcmp(slot->name, "describe") == 0;
}

/* Arguments ----------------------------------------------------------------------- */

static void good_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		sheaf_error err;
		memset(&err, 0x5a, sizeof(err));
		sheaf_error before = err;
		fake.calls = 0;
		assert_int_equal(slots[i].call(store, &box.store, &err), 0);
		assert_memory_equal(&err, &before, sizeof(err));
		assert_int_equal(slots[i].call(store, &box.store, NULL), 0);
		if (is_describe(&slots[i]))
			continue;
		assert_string_equal(fake.last, slots[i].name);
		assert_int_equal(fake.calls, 2);
		assert_non_null(fake.err); /* a store never sees NULL */
	}
}

static void no_store(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		sheaf_error err;
		assert_int_equal(slots[i].call(NULL, &box.store, &err), SHEAF_INVALID);
		assert_int_equal(err.code, SHEAF_INVALID);
		assert_int_equal(slots[i].call(NULL, &box.store, NULL), SHEAF_INVALID);
	}
	sheaf_close(NULL);
}

static void bad_keys(void **state)
{
	(void)state;
	char longest[SHEAF_KEY_PART_BYTES_MAX + 2];
	memset(longest, 'x', sizeof(longest));
	longest[SHEAF_KEY_PART_BYTES_MAX + 1] = '\0';
	const sheaf_str parts[] = {{NULL, 0},
	                           SHEAF_STR(""),
	                           SHEAF_STR(".."),
	                           SHEAF_STR(".x"),
	                           SHEAF_STR("a/b"),
	                           SHEAF_STR("a b"),
	                           SHEAF_STR("a\nb"),
	                           SHEAF_STR("a\0b"),
	                           {"session-more", 7},
	                           SHEAF_STR("\xc3x"),
	                           {longest, sizeof(longest) - 1}};
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		const struct slot *slot = &slots[i];
		if (slot->needs_key)
			assert_int_equal(slot->call(store, NULL, NULL), SHEAF_INVALID);
		if (!slot->needs_key && strcmp(slot->name, "check") != 0)
			continue;
		for (size_t k = 0; k < COUNT_OF(parts); k++) {
			sheaf_store_key key = box.store;
			key.session = parts[k];
			assert_int_equal(slot->call(store, &key, NULL), SHEAF_INVALID);
			key = box.store;
			key.user = parts[k];
			assert_int_equal(slot->call(store, &key, NULL), SHEAF_INVALID);
			key = box.store;
			key.app = parts[k];
			assert_int_equal(slot->call(store, &key, NULL), SHEAF_INVALID);
		}
	}
	const sheaf_str owners[] = {{NULL, 0},
	                            SHEAF_STR("app"),
	                            SHEAF_STR("app/us%21er"),
	                            SHEAF_STR("apq/us%20er"),
	                            SHEAF_STR("app.us%20er"),
	                            {"app/us%20erx", 11}};
	for (size_t k = 0; k < COUNT_OF(owners); k++) {
		sheaf_store_key key = box.store;
		key.owner = owners[k];
		assert_int_equal(call_find(store, &key, NULL), SHEAF_INVALID);
	}
	assert_int_equal(fake.calls, 0);

	/* The longest part, and those of a lone session id. */
	longest[SHEAF_KEY_PART_BYTES_MAX] = '\0';
	sheaf_store_key key = box.store;
	key.session = sheaf_str_of(longest);
	assert_int_equal(call_find(store, &key, NULL), 0);
	key_box lone;
	const sheaf_key plain = sheaf_key_of("x");
	assert_int_equal(key_box_init(&lone, &plain, NULL), 0);
	assert_int_equal(call_find(store, &lone.store, NULL), 0);
	assert_int_equal(call_check(store, NULL, NULL), 0);
}

static void bad_reads(void **state)
{
	(void)state;
	const sheaf_store_key *key = &box.store;
	uint64_t seq;
	sheaf_check_totals totals;
	assert_int_equal(store_head(store, key, 0, NULL, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_header(store, key, NULL, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_find(store, key, (sheaf_str){NULL, 0}, &seq, NULL), SHEAF_INVALID);
	assert_int_equal(store_find(store, key, SHEAF_STR(""), &seq, NULL), SHEAF_INVALID);
	assert_int_equal(store_find(store, key, SHEAF_STR("x"), NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_check(store, key, NULL, NULL, &totals, NULL), SHEAF_INVALID);
	assert_int_equal(store_check(store, key, on_problem, NULL, NULL, NULL), SHEAF_INVALID);

	sheaf_scan scan = {.size = sizeof(scan)};
	assert_int_equal(store_scan(store, key, &scan, NULL, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_scan(store, key, NULL, on_row, NULL, NULL), SHEAF_INVALID);
	scan.size--;
	assert_int_equal(store_scan(store, key, &scan, on_row, NULL, NULL), SHEAF_INVALID);

	assert_int_equal(store_list(store, NULL, on_info, NULL, NULL), SHEAF_INVALID);
	sheaf_list_query query = {.size = sizeof(query)};
	assert_int_equal(store_list(store, &query, NULL, NULL, NULL), SHEAF_INVALID);
	query.app = SHEAF_STR("../x");
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_INVALID);
	query.app = SHEAF_STR("a");
	query.user = SHEAF_STR("");
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_INVALID);
	query.user = SHEAF_STR("u");
	query.has_after = 1;
	query.after_owner = SHEAF_STR("a/u");
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_INVALID);
	query.after_session = SHEAF_STR("s");
	assert_int_equal(fake.calls, 0);
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), 0);
	query.size = 8;
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_INVALID);
}

static void bad_writes(void **state)
{
	(void)state;
	const sheaf_store_key *key = &box.store;
	uint64_t seqs[2] = {7, 7};
	const sheaf_str ids[2] = {SHEAF_STR("a"), SHEAF_STR("b")};
	const sheaf_append_request good = {
		.size = sizeof(good), .stamp = on_stamp, .ids = ids, .seqs = seqs, .id_count = 2};
	assert_int_equal(store_append(store, key, NULL, NULL, NULL), SHEAF_INVALID);
#define BAD_APPEND(member, value)                                                                  \
	do {                                                                                       \
		sheaf_append_request request = good;                                               \
		request.member = (value);                                                          \
		assert_int_equal(store_append(store, key, &request, NULL, NULL), SHEAF_INVALID);   \
	} while (0)
	BAD_APPEND(size, sizeof(good) - 1);
	BAD_APPEND(stamp, NULL);
	BAD_APPEND(ids, NULL);
	BAD_APPEND(seqs, NULL);
	BAD_APPEND(durability, -1);
	BAD_APPEND(durability, 5);
	BAD_APPEND(source, SHEAF_STR("x"));
	sheaf_append_request request = good;
	request.create = 1;
	request.source = SHEAF_STR("x/y");
	assert_int_equal(store_append(store, key, &request, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(seqs[0], 7);
	request.source = SHEAF_STR("x");
	assert_int_equal(fake.calls, 0);
	assert_int_equal(store_append(store, key, &request, NULL, NULL), 0);
	assert_int_equal(seqs[0], 0);
	assert_int_equal(seqs[1], 0);

	sheaf_check_totals totals;
	sheaf_remove_request removal = {.size = sizeof(removal) - 1};
	assert_int_equal(store_remove(store, key, NULL, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_remove(store, key, &removal, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_replace(store, key, 0, NULL, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(store_repair(store, key, NULL, NULL, &totals, NULL), SHEAF_INVALID);
	assert_int_equal(store_repair(store, key, on_problem, NULL, NULL, NULL), SHEAF_INVALID);
}

static void bad_opens(void **state)
{
	(void)state;
	sheaf_store *s = NULL;
	sheaf_error err;
	assert_int_equal(sheaf_open(NULL, "fake:", NULL, &err), SHEAF_INVALID);
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	options.size = 0;
	assert_int_equal(sheaf_open(&s, "fake:", &options, &err), SHEAF_INVALID);
	options.size = sizeof(options);
	options.durability = -1;
	assert_int_equal(sheaf_open(&s, "fake:", &options, &err), SHEAF_INVALID);
	options.durability = 5;
	assert_int_equal(sheaf_open(&s, "fake:", &options, &err), SHEAF_INVALID);
	options.durability = 0;
	options.deadline_us = -1;
	assert_int_equal(sheaf_open(&s, "fake:", &options, &err), SHEAF_INVALID);
	/* An older caller's struct ends before the deadline. */
	options.size = offsetof(sheaf_store_options, deadline_us);
	options.readonly = 1;
	assert_int_equal(sheaf_open(&s, "fake:", &options, &err), 0);
	assert_int_equal(fake.options.readonly, 1);
	assert_int_equal(fake.options.deadline_us, 0);
	assert_int_equal(fake.options.size, sizeof(options));
	sheaf_close(s);

	s = NULL;
	fake.rc = SHEAF_STORAGE;
	fake.message = "the cupboard is locked";
	assert_int_equal(sheaf_open(&s, "fake:", NULL, &err), SHEAF_STORAGE);
	assert_string_equal(err.message, "the cupboard is locked");
	assert_null(s);
	fake.rc = 0;
}

/* Errors ---------------------------------------------------------------------------- */

static void errors(void **state)
{
	(void)state;
	sheaf_error err;
	fake.rc = SHEAF_BUSY;
	fake.message = "somebody sits on it";
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		if (is_describe(&slots[i]))
			continue;
		memset(&err, 0x5a, sizeof(err));
		assert_int_equal(slots[i].call(store, &box.store, &err), SHEAF_BUSY);
		assert_int_equal(err.code, SHEAF_BUSY);
		assert_int_equal(err.outcome, SHEAF_FAILED);
		assert_string_equal(err.message, "somebody sits on it");
		assert_int_equal(slots[i].call(store, &box.store, NULL), SHEAF_BUSY);
	}
	/* A code alone gets the table's words, an answer that is no code is not believed. */
	fake.message = NULL;
	assert_int_equal(call_find(store, &box.store, &err), SHEAF_BUSY);
	assert_int_equal(err.code, SHEAF_BUSY);
	assert_string_equal(err.message, sheaf_code_text(SHEAF_BUSY));
	fake.rc = 3;
	assert_int_equal(call_append(store, &box.store, &err), SHEAF_STORAGE);
	assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	fake.rc = 0;
	on_row_rc = SHEAF_CANCELLED;
	assert_int_equal(call_scan(store, &box.store, &err), SHEAF_CANCELLED);
	assert_string_equal(err.message, sheaf_code_text(SHEAF_CANCELLED));
	on_row_rc = 0;
}

/* A server that dies under a read leaves no write open, whatever its store says. */
static void reads_have_failed(void **state)
{
	(void)state;
	fake.rc = SHEAF_STORAGE;
	fake.message = "the server is gone";
	fake.unknown = true;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		sheaf_error err;
		if (is_describe(&slots[i]))
			continue;
		assert_int_equal(slots[i].call(store, &box.store, &err), SHEAF_STORAGE);
		assert_string_equal(err.message, "the server is gone");
		assert_int_equal(err.outcome, slots[i].writes ? SHEAF_UNKNOWN : SHEAF_FAILED);
		assert_int_equal(slots[i].call(store, &box.store, NULL), SHEAF_STORAGE);
	}
}

static int fail_with_words(void *ctx, UNUSED const sheaf_row *row)
{
	return err_set(ctx, SHEAF_DAMAGED, "words of the callback");
}

/* A callback may fill the error that the call itself was given. */
static void callback_errors(void **state)
{
	(void)state;
	sheaf_error err;
	memset(&err, 0x5a, sizeof(err));
	sheaf_scan scan = {.size = sizeof(scan), .limit = 1, .kinds = SHEAF_KINDS_ALL};
	assert_int_equal(store_scan(store, &box.store, &scan, fail_with_words, &err, &err),
	                 SHEAF_DAMAGED);
	assert_string_equal(err.message, "words of the callback");
}

/* What a store lacks ------------------------------------------------------------------ */

static void lacks(void **state)
{
	(void)state;
	sheaf_error err;
	reopen("small:", NULL);
	assert_int_equal(call_check(store, &box.store, &err), SHEAF_UNSUPPORTED);
	assert_string_equal(err.message, "small stores cannot check");
	assert_int_equal(call_repair(store, &box.store, &err), SHEAF_UNSUPPORTED);
	sheaf_store_info info = {.size = sizeof(info)};
	assert_int_equal(sheaf_store_describe(store, &info, NULL), 0);
	assert_int_equal(info.repairs, 0);

	fake.info.lists_app = 0;
	reopen("fake:", NULL);
	sheaf_list_query query = {.size = sizeof(query)};
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_UNSUPPORTED);
	query.app = SHEAF_STR("a");
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), SHEAF_UNSUPPORTED);
	assert_int_equal(fake.calls, 0);
	query.user = SHEAF_STR("u");
	assert_int_equal(store_list(store, &query, on_info, NULL, NULL), 0);
}

static void readonly(void **state)
{
	(void)state;
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	assert_false(store_readonly(store));
	for (int way = 0; way < 3; way++) { /* by options, by URL, because the backend says so */
		options.readonly = way == 0;
		fake.info.readonly = way == 2;
		reopen(way == 1 ? "fake:?readonly=1" : "fake:", &options);
		assert_true(store_readonly(store));
		sheaf_store_info info = {.size = sizeof(info)};
		assert_int_equal(sheaf_store_describe(store, &info, NULL), 0);
		assert_int_equal(info.readonly, 1);
		for (size_t i = 0; i < COUNT_OF(slots); i++) {
			sheaf_error err = {0};
			fake.calls = 0;
			int rc = slots[i].call(store, &box.store, &err);
			assert_int_equal(rc, slots[i].writes ? SHEAF_READONLY : 0);
			assert_int_equal(err.code, rc);
			if (slots[i].writes)
				assert_int_equal(fake.calls, 0);
		}
	}
	/* A head can be read; that the caller means to write is not passed on. */
	sheaf_head_state head_state;
	memset(&head_state, 0x5a, sizeof(head_state));
	assert_int_equal(store_head(store, &box.store, 1, some_head, &head_state, NULL), 0);
	assert_int_equal(fake.write, 0);
	assert_int_equal(head_state.readonly, 1);
	assert_int_equal(head_state.damaged, 0);
	assert_int_equal(head_state.tail_bytes, 7);
	fake.info.readonly = 0;
	reopen("fake:", NULL);
	assert_int_equal(store_head(store, &box.store, 1, some_head, &head_state, NULL), 0);
	assert_int_equal(fake.write, 1);
	assert_int_equal(head_state.readonly, 0);
	assert_int_equal(store_head(store, &box.store, 0, some_head, NULL, NULL), 0);
	assert_int_equal(fake.write, 0);
}

/* Durability --------------------------------------------------------------------------- */

/* Every level asked at open and at the append, of a store of every reach. */
static void durability_matrix(void **state)
{
	(void)state;
	for (int32_t max = SHEAF_DURABILITY_NONE; max <= SHEAF_DURABILITY_REPLICA; max++) {
		fake.info.durability_max = max;
		fake.info.durability = max > SHEAF_DURABILITY_DISK ? SHEAF_DURABILITY_DISK : max;
		for (int32_t at_open = 0; at_open <= SHEAF_DURABILITY_REPLICA; at_open++) {
			sheaf_store *s = NULL;
			sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
			options.durability = at_open;
			int opened = fake.opened, closed = fake.closed;
			int rc = sheaf_open(&s, "fake:", &options, NULL);
			assert_int_equal(rc, at_open > max ? SHEAF_UNSUPPORTED : 0);
			if (rc != 0) {
				assert_null(s);
				assert_int_equal(fake.opened - opened, fake.closed - closed);
				continue;
			}
			int32_t usual = at_open != 0 ? at_open : fake.info.durability;
			sheaf_store_info info = {.size = sizeof(info)};
			assert_int_equal(sheaf_store_describe(s, &info, NULL), 0);
			assert_int_equal(info.durability, usual);
			assert_int_equal(info.durability_max, max);
			for (int32_t asked = 0; asked <= SHEAF_DURABILITY_REPLICA; asked++) {
				sheaf_append_request request = {.size = sizeof(request),
				                                .stamp = on_stamp,
				                                .durability = asked};
				sheaf_append_reply reply;
				fake.append.durability = -1;
				rc = store_append(s, &box.store, &request, &reply, NULL);
				assert_int_equal(rc, asked > max ? SHEAF_UNSUPPORTED : 0);
				assert_int_equal(fake.append.durability, rc != 0      ? -1
				                                         : asked != 0 ? asked
				                                                      : usual);
				if (rc == 0)
					assert_int_equal(reply.durability, fake.append.durability);
				assert_int_equal(request.durability, asked);
			}
			sheaf_close(s);
		}
	}
}

/* More than asked is fine and said; less is not believed to be a success. */
static void durability_reached(void **state)
{
	(void)state;
	sheaf_append_request request = {
		.size = sizeof(request), .stamp = on_stamp, .durability = SHEAF_DURABILITY_NONE};
	sheaf_append_reply reply;
	sheaf_error err;
	fake.level = SHEAF_DURABILITY_PROCESS;
	assert_int_equal(store_append(store, &box.store, &request, &reply, &err), 0);
	assert_int_equal(reply.durability, SHEAF_DURABILITY_PROCESS);
	request.durability = SHEAF_DURABILITY_DISK;
	assert_int_equal(store_append(store, &box.store, &request, &reply, &err), SHEAF_STORAGE);
	assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	/* Nothing was written, so nothing was promised. */
	fake.known = 1;
	assert_int_equal(store_append(store, &box.store, &request, &reply, &err), 0);
	assert_int_equal(reply.known, 1);
}

static void describe_sizes(void **state)
{
	(void)state;
	sheaf_store_info info;
	memset(&info, 0x5a, sizeof(info));
	info.size = offsetof(sheaf_store_info, lists_app);
	assert_int_equal(sheaf_store_describe(store, &info, NULL), 0);
	assert_int_equal(info.size, offsetof(sheaf_store_info, lists_app));
	assert_string_equal(info.scheme, "fake");
	assert_int_equal(info.durability, SHEAF_DURABILITY_PROCESS);
	assert_int_equal(info.readonly, 0);
	assert_int_equal(info.lists_app, 0x5a5a5a5a);
	info.size = sizeof(info);
	assert_int_equal(sheaf_store_describe(store, &info, NULL), 0);
	assert_int_equal(info.lists_app, 1);
	assert_int_equal(info.repairs, 1);
	info.size = 0;
	assert_int_equal(sheaf_store_describe(store, &info, NULL), SHEAF_INVALID);
	assert_int_equal(sheaf_store_describe(store, NULL, NULL), SHEAF_INVALID);
}

/* Deadlines ------------------------------------------------------------------------------ */

static void assert_deadline(int64_t deadline_us, int64_t before_us, int64_t wait_us)
{
	assert_true(deadline_us >= before_us + wait_us);
	assert_true(deadline_us <= clock_monotonic_us() + wait_us);
}

static void deadlines(void **state)
{
	(void)state;
	static const int64_t waits[] = {0, 1, 2500000};
	for (size_t i = 0; i < COUNT_OF(waits); i++) {
		sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
		options.deadline_us = waits[i];
		reopen("fake:", &options);
		int64_t wait = waits[i] != 0 ? waits[i] : 10000000, now = clock_monotonic_us();
		assert_int_equal(call_append(store, &box.store, NULL), 0);
		assert_deadline(fake.append.deadline_us, now, wait);
		assert_int_equal(call_remove(store, &box.store, NULL), 0);
		assert_deadline(fake.remove.deadline_us, now, wait);
		assert_int_equal(call_replace(store, &box.store, NULL), 0);
		assert_deadline(fake.deadline_us, now, wait);
		fake.deadline_us = 0;
		assert_int_equal(call_repair(store, &box.store, NULL), 0);
		assert_deadline(fake.deadline_us, now, wait);
	}
	/* One that is given is passed on; one for ever does not overflow. */
	sheaf_append_request request = {
		.size = sizeof(request), .stamp = on_stamp, .deadline_us = 12345};
	assert_int_equal(store_append(store, &box.store, &request, NULL, NULL), 0);
	assert_int_equal(fake.append.deadline_us, 12345);
	sheaf_remove_request removal = {.size = sizeof(removal), .deadline_us = 54321};
	assert_int_equal(store_remove(store, &box.store, &removal, NULL, NULL), 0);
	assert_int_equal(fake.remove.deadline_us, 54321);
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	options.deadline_us = INT64_MAX;
	reopen("fake:", &options);
	assert_int_equal(call_append(store, &box.store, NULL), 0);
	assert_true(fake.append.deadline_us == INT64_MAX);
}

/* fork() ----------------------------------------------------------------------------------- */

/* In the child; the number of the first check that failed. */
static int child_checks(void)
{
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		sheaf_error err = {0};
		if (slots[i].call(store, &box.store, &err) != SHEAF_FORKED ||
		    err.code != SHEAF_FORKED)
			return (int)i + 1;
	}
	if (fake.calls != 0)
		return 100;
	sheaf_close(store);
	if (fake.closed != 0)
		return 101;
	/* The child can open its own. */
	sheaf_store *own = NULL;
	if (sheaf_open(&own, "fake:", NULL, NULL) != 0)
		return 102;
	if (call_find(own, &box.store, NULL) != 0)
		return 103;
	sheaf_close(own);
	return fake.closed == 1 ? 0 : 104;
}

static void forked(void **state)
{
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(child_checks());
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(call_find(store, &box.store, NULL), 0);
}

/* Fault points -------------------------------------------------------------------------------- */

typedef struct fault_plan {
	const char *slot;
	int rc;
	int seen;
} fault_plan;

static int fault(void *ctx, const char *slot, sheaf_error *err)
{
	fault_plan *plan = ctx;
	plan->seen++;
	if (strcmp(slot, plan->slot) != 0)
		return 0;
	return err_unknown(err, err_set(err, plan->rc, "planned"));
}

static void faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		fault_plan plan = {slots[i].name, SHEAF_STORAGE, 0};
		sheaf_error err;
		store_set_fault(fault, &plan);
		for (size_t k = 0; k < COUNT_OF(slots); k++) {
			memset(&err, 0, sizeof(err));
			fake.calls = 0;
			int rc = slots[k].call(store, &box.store, &err);
			assert_int_equal(rc, k == i ? SHEAF_STORAGE : 0);
			assert_int_equal(fake.calls, k == i || is_describe(&slots[k]) ? 0 : 1);
			if (k != i)
				continue;
			assert_string_equal(err.message, "planned");
			assert_int_equal(err.outcome,
			                 slots[i].writes ? SHEAF_UNKNOWN : SHEAF_FAILED);
		}
		assert_int_equal(plan.seen, COUNT_OF(slots));
		/* What is refused does not get that far. */
		assert_int_equal(slots[i].call(NULL, &box.store, &err), SHEAF_INVALID);
		assert_int_equal(plan.seen, COUNT_OF(slots));
		store_set_fault(NULL, NULL);
		assert_int_equal(slots[i].call(store, &box.store, &err), 0);
	}
}

static void fault_at_open(void **state)
{
	(void)state;
	fault_plan plan = {"open", SHEAF_DENIED, 0};
	sheaf_store *s = NULL;
	int opened = fake.opened;
	store_set_fault(fault, &plan);
	assert_int_equal(sheaf_open(&s, "fake:", NULL, NULL), SHEAF_DENIED);
	assert_null(s);
	assert_int_equal(fake.opened, opened);
	store_set_fault(NULL, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(good_calls),
		CASE(no_store),
		CASE(bad_keys),
		CASE(bad_reads),
		CASE(bad_writes),
		CASE(bad_opens),
		CASE(errors),
		CASE(reads_have_failed),
		CASE(callback_errors),
		CASE(lacks),
		CASE(readonly),
		CASE(durability_matrix),
		CASE(durability_reached),
		CASE(describe_sizes),
		CASE(deadlines),
		CASE(forked),
		CASE(faults),
		CASE(fault_at_open),
	};
	return cmocka_run_group_tests(tests, register_fake, NULL);
}
