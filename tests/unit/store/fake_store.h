/* A store that keeps nothing: it notes what it was asked and answers what the test says. */
#ifndef TEST_FAKE_STORE_H
#define TEST_FAKE_STORE_H

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sheaf/sys/store.h"

typedef struct fake_store {
	int rc;              /* what every slot answers */
	const char *message; /* with this error, if set */
	bool unknown;        /* and an outcome that nobody knows */
	sheaf_store_info info;
	int32_t level; /* durability an append says it reached; 0: does not say */
	size_t known;
	int calls; /* of slots other than open, close and describe */
	int opened;
	int closed;
	const char *last; /* the slot called last */
	char rest[256];
	char value[64]; /* of the option "color" */
	int has_value;
	sheaf_store_options options;
	int write;
	sheaf_append_request append;
	sheaf_remove_request remove;
	int64_t deadline_us;
	const sheaf_error *err;
} fake_store;

static fake_store fake;

UNUSED static void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.info.durability = SHEAF_DURABILITY_PROCESS;
	fake.info.durability_max = SHEAF_DURABILITY_DISK;
	fake.info.lists_app = 1;
	fake.info.repairs = 1;
}

static int fake_answer(const char *slot, sheaf_error *err)
{
	fake.calls++;
	fake.last = slot;
	fake.err = err;
	if (fake.rc != 0 && fake.message != NULL) {
		(void)err_set(err, fake.rc, "%s", fake.message);
		return fake.unknown ? err_unknown(err, fake.rc) : fake.rc;
	}
	return fake.rc;
}

static int fake_open(void **backend, sheaf_str rest, const sheaf_store_options *options,
                     sheaf_str (*option)(const void *url, const char *name), const void *url,
                     sheaf_error *err)
{
	(void)snprintf(fake.rest, sizeof(fake.rest), "%s", rest.ptr);
	sheaf_str value = option(url, "color");
	fake.has_value = value.ptr != NULL;
	if (fake.has_value)
		(void)snprintf(fake.value, sizeof(fake.value), "%s", value.ptr);
	fake.options = *options;
	int rc = fake_answer("open", err);
	fake.calls--;
	if (rc == 0) {
		fake.opened++;
		*backend = &fake;
	}
	return rc;
}

static void fake_close(void *backend)
{
	((fake_store *)backend)->closed++;
}

static void fake_describe(void *backend, sheaf_store_info *out)
{
	size_t size = out->size;
	*out = ((fake_store *)backend)->info;
	out->size = size;
}

static int fake_head(UNUSED void *backend, UNUSED const sheaf_store_key *key, int write,
                     UNUSED sheaf_head *out, sheaf_head_state *state, sheaf_error *err)
{
	fake.write = write;
	state->tail_bytes = 7;
	return fake_answer("head", err);
}

static int fake_append(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                       const sheaf_append_request *request, sheaf_append_reply *reply,
                       sheaf_error *err)
{
	fake.append = *request;
	reply->known = fake.known;
	reply->durability = fake.level;
	return fake_answer("append", err);
}

static int fake_scan(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                     UNUSED const sheaf_scan *scan, sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	sheaf_row row = {0};
	int rc = fake_answer("scan", err);
	return rc != 0 ? rc : fn(ctx, &row);
}

static int fake_find(UNUSED void *backend, UNUSED const sheaf_store_key *key, UNUSED sheaf_str id,
                     uint64_t *seq, sheaf_error *err)
{
	*seq = 42;
	return fake_answer("find", err);
}

static int fake_header(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                       UNUSED sheaf_row_fn fn, UNUSED void *ctx, sheaf_error *err)
{
	return fake_answer("header", err);
}

static int fake_list(UNUSED void *backend, UNUSED const sheaf_list_query *query,
                     UNUSED sheaf_info_fn fn, UNUSED void *ctx, sheaf_error *err)
{
	return fake_answer("list", err);
}

static int fake_remove(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                       const sheaf_remove_request *request, UNUSED sheaf_remove_reply *reply,
                       sheaf_error *err)
{
	fake.remove = *request;
	return fake_answer("remove", err);
}

static int fake_replace(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                        UNUSED uint64_t revision, UNUSED sheaf_rows_fn next, UNUSED void *ctx,
                        int64_t deadline_us, sheaf_error *err)
{
	fake.deadline_us = deadline_us;
	return fake_answer("replace", err);
}

static int fake_check(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                      UNUSED sheaf_problem_fn fn, UNUSED void *ctx, sheaf_check_totals *totals,
                      sheaf_error *err)
{
	totals->records++;
	return fake_answer("check", err);
}

static int fake_repair(UNUSED void *backend, UNUSED const sheaf_store_key *key,
                       UNUSED sheaf_problem_fn fn, UNUSED void *ctx, sheaf_check_totals *totals,
                       int64_t deadline_us, sheaf_error *err)
{
	totals->records++;
	fake.deadline_us = deadline_us;
	return fake_answer("repair", err);
}

#define FAKE_OPS(name)                                                                             \
	{                                                                                          \
		.size = sizeof(sheaf_store_ops), .scheme = (name), .open = fake_open,              \
		.option_names = "color unsafe_fs", .close = fake_close, .describe = fake_describe, \
		.head = fake_head, .append = fake_append, .scan = fake_scan, .find = fake_find,    \
		.header = fake_header, .list = fake_list, .remove = fake_remove,                   \
		.replace = fake_replace, .check = fake_check, .repair = fake_repair,               \
	}

#endif
