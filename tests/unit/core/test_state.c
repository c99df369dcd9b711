/* State when a store fails on the way: values that wait, and appends that do not notice. */
#include "core_test.h"

#include "base/err.h"
#include "store/store.h"

typedef struct plan {
	const char *slot;
	int left; /* how often it fails */
} plan;

static int fault(void *ctx, const char *slot, sheaf_error *e)
{
	plan *p = ctx;
	if (strcmp(slot, p->slot) != 0 || p->left == 0)
		return 0;
	p->left--;
	return err_set(e, SHEAF_STORAGE, "planned");
}

static int32_t say(sheaf_session *s, const char *id, const char *delta)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	entry.id = S(id);
	entry.state_delta = S(delta);
	OK(sheaf_session_append_custom(s, S("c"), S("{}"), &entry, NULL, &out, &err));
	return out.app_state;
}

/* The state in a line. */
static const char *all(sheaf_session *s)
{
	static char line[500];
	sheaf_state *state = NULL;
	size_t n = 0;
	OK(sheaf_session_state_all(&state, s, &err));
	line[0] = '\0';
	for (size_t i = 0; i < state->count; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s=%.*s", i ? " " : "",
		                      (int)state->items[i]->key.len, state->items[i]->key.ptr,
		                      (int)state->items[i]->value.len, state->items[i]->value.ptr);
	sheaf_state_free(state);
	return line;
}

static void pending_is_finished_by_the_next_append(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	plan p = {"state_apply", 2};
	store_set_fault(fault, &p);
	assert_int_equal(say(s, "a", "{\"app:x\":1,\"n\":1}"), SHEAF_APP_STATE_PENDING);
	assert_string_equal(all(s), "n=1");
	assert_int_equal(say(s, "b", NULL), SHEAF_APP_STATE_PENDING);
	assert_int_equal(say(s, "c", "{\"app:y\":2}"), SHEAF_APP_STATE_APPLIED);
	assert_string_equal(all(s), "app:x=1 app:y=2 n=1");
	assert_int_equal(say(s, "d", NULL), SHEAF_APP_STATE_NONE);
	store_set_fault(NULL, NULL);
	sheaf_session_close(s);
}

static void pending_is_finished_by_another_handle(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	plan p = {"state_apply", 1};
	store_set_fault(fault, &p);
	assert_int_equal(say(s, "a", "{\"app:x\":1}"), SHEAF_APP_STATE_PENDING);
	store_set_fault(NULL, NULL);
	sheaf_session_close(s);
	s = session_in(*state, "s", SHEAF_OPEN_EXISTING);
	assert_string_equal(all(s), "");
	assert_int_equal(say(s, "b", NULL), SHEAF_APP_STATE_NONE);
	assert_string_equal(all(s), "app:x=1");
	sheaf_session_close(s);
}

static void pending_does_not_undo_what_was_set_since(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	plan p = {"state_apply", 1};
	store_set_fault(fault, &p);
	assert_int_equal(say(s, "a", "{\"app:x\":1,\"app:y\":1}"), SHEAF_APP_STATE_PENDING);
	store_set_fault(NULL, NULL);
	OK(sheaf_store_state_set(*state, S(""), S("x"), S("2"), &err));
	assert_int_equal(say(s, "b", NULL), SHEAF_APP_STATE_NONE);
	assert_string_equal(all(s), "app:x=2 app:y=1");
	sheaf_session_close(s);
}

static void a_repeat_finishes_what_is_pending(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	plan p = {"state_apply", 1};
	store_set_fault(fault, &p);
	assert_int_equal(say(s, "a", "{\"app:x\":1}"), SHEAF_APP_STATE_PENDING);
	assert_int_equal(say(s, "a", "{\"app:x\":1}"), SHEAF_APP_STATE_APPLIED);
	store_set_fault(NULL, NULL);
	assert_string_equal(all(s), "app:x=1");
	sheaf_session_close(s);
}

static void sets_stay_when_an_append_fails(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	sheaf_batch *b = sheaf_batch_new();
	plan p = {"append", 1};
	OK(sheaf_session_state_set(s, S("a"), S("1"), &err));
	OK(sheaf_batch_json(b, S("thing"), S("{\"x\":1}"), NULL, &err));
	store_set_fault(fault, &p);
	FAILS(STORAGE, sheaf_session_append_batch(s, b, NULL, NULL, &err));
	/* The same batch once more, with a value set in between. */
	OK(sheaf_session_state_set(s, S("a"), S("2"), &err));
	OK(sheaf_session_state_set(s, S("b"), S("2"), &err));
	OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
	sheaf_session *other = session_in(*state, "s", SHEAF_OPEN_EXISTING);
	assert_string_equal(all(other), "a=1");
	assert_string_equal(all(s), "a=2 b=2");
	say(s, "c", NULL);
	assert_string_equal(all(other), "a=2 b=2");
	store_set_fault(NULL, NULL);
	sheaf_batch_free(b);
	sheaf_session_close(s);
	sheaf_session_close(other);
}

static void reads_fail_with_the_store(void **state)
{
	sheaf_session *s = session_in(*state, "s", SHEAF_OPEN_NEW);
	sheaf_state *out = NULL;
	plan p = {"state_read", 4};
	store_set_fault(fault, &p);
	FAILS(STORAGE, sheaf_session_state_all(&out, s, &err));
	FAILS(STORAGE, sheaf_session_state_get(&out, s, S("user:a"), &err));
	FAILS(STORAGE, sheaf_store_state(&out, *state, S(""), S(""), &err));
	FAILS(STORAGE, sheaf_store_state_set(*state, S(""), S("a"), S("1"), &err));
	store_set_fault(NULL, NULL);
	FAILS(NOT_FOUND, sheaf_session_state_get(&out, s, S("a"), &err));
	FAILS(INVALID, sheaf_session_state_set(NULL, S("a"), S("1"), &err));
	FAILS(INVALID, sheaf_session_state_all(NULL, s, &err));
	sheaf_session_state_end_invocation(NULL);
	sheaf_state_free(NULL);
	sheaf_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pending_is_finished_by_the_next_append),
		TEST(pending_is_finished_by_another_handle),
		TEST(pending_does_not_undo_what_was_set_since),
		TEST(a_repeat_finishes_what_is_pending),
		TEST(sets_stay_when_an_append_fails),
		TEST(reads_fail_with_the_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
