/* Requests that would be too large: what is left out, and for how long the same is. */
#include "render_test.h"

#include "base/utf8.h"
#include "support/fail_alloc.h"

#define OUTPUT 20000u
#define IMAGE 8000u

static char output[OUTPUT * 4], image[IMAGE];

/* A turn: a question with an image, a call with a long answer, and a word. */
static void turn(kit *k, unsigned number)
{
	char id[16];
	sheaf_message *u = sheaf_message_new("user"), *a = sheaf_message_new("assistant");
	sheaf_message *t = sheaf_message_new("tool"), *e = sheaf_message_new("assistant");
	(void)snprintf(id, sizeof(id), "c%u", number);
	sheaf_message_image(u, SHEAF_STR("base64"), SHEAF_STR("image/png"),
	                    str_make(image, sizeof(image)));
	sheaf_message_text(u, sheaf_str_of(id));
	sheaf_message_tool_use(a, sheaf_str_of(id), SHEAF_STR("x"), SHEAF_STR("{}"));
	sheaf_message_tool_result_begin(t, sheaf_str_of(id), SHEAF_STR("x"), 0);
	sheaf_message_text(t, str_make(output, OUTPUT));
	sheaf_message_image(t, SHEAF_STR("base64"), SHEAF_STR("image/png"), SHEAF_STR("AAAA"));
	sheaf_message_tool_result_end(t);
	sheaf_message_text(e, SHEAF_STR("done"));
	sheaf_message *const all[] = {u, a, t, e};
	for (size_t i = 0; i < COUNT_OF(all); i++) {
		(void)snprintf(id, sizeof(id), "%c%u", "uate"[i], number);
		/* Strings are borrowed until the message is stored. */
		assert_int_equal(kit_put(k, k->s, sheaf_str_of(id), all[i]), 0);
	}
}

static void every_format_gets_smaller(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	for (unsigned i = 0; i < 8; i++)
		turn(&k, i);
	for (int32_t format = 1; format <= 4; format++) {
		sheaf_render_options how = how_to(format);
		sheaf_request *whole = rendered(&k, &how), *q;
		assert_true(whole->body.len > 8 * (OUTPUT + IMAGE));
		how.bytes_max = whole->body.len - 1;
		const sheaf_context *c = kit_context(&k, NULL);
		assert_int_equal(sheaf_render(&q, c, &how, &k.err), SHEAF_TOO_LARGE);
		sheaf_context_free(c);
		for (int32_t may = 1; may <= 3; may++) {
			how.elide = may;
			how.bytes_max = whole->body.len;
			q = rendered(&k, &how);
			assert_true(str_eq(q->body, whole->body));
			sheaf_request_free(q);
			how.bytes_max = whole->body.len - 1;
			q = rendered(&k, &how);
			assert_true(notes_of(q, SHEAF_NOTE_ELIDED) != 0);
			assert_true(notes_of(q, SHEAF_NOTE_ELIDED) <=
			            (may == SHEAF_ELIDE_OUTPUTS ? 8 : 16));
			if (may & SHEAF_ELIDE_OUTPUTS)
				assert_non_null(strstr(q->body.ptr, " bytes left out]"));
			else
				assert_null(strstr(q->body.ptr, " bytes left out]"));
			assert_int_equal(strstr(q->body.ptr, "[image, image/png: left out]") !=
			                         NULL,
			                 (may & SHEAF_ELIDE_IMAGES) != 0);
			/* Down to three quarters at once, as far as it goes. */
			if (may == 3)
				assert_true(q->body.len <= how.bytes_max / 4 * 3 + 1);
			assert_true(q->tokens < whole->tokens);
			sheaf_request_free(q);
		}
		sheaf_request_free(whole);
	}
	kit_close(&k);
}

/* The answer to the newest question goes last. */
static void the_newest_goes_last(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	kit_open(&k);
	for (unsigned i = 0; i < 4; i++)
		turn(&k, i);
	sheaf_request *q = rendered(&k, &how);
	size_t len = q->body.len;
	sheaf_request_free(q);
	how.elide = SHEAF_ELIDE_OUTPUTS | SHEAF_ELIDE_IMAGES;
	for (how.bytes_max = len; how.bytes_max > 9000; how.bytes_max -= 1000) {
		const sheaf_context *c = kit_context(&k, NULL);
		int rc = sheaf_render(&q, c, &how, &k.err);
		sheaf_context_free(c);
		if (rc == SHEAF_TOO_LARGE)
			break;
		assert_int_equal(rc, 0);
		assert_true(q->body.len <= how.bytes_max);
		/* An older one stands only where all newer ones do. */
		const char *from = q->body.ptr;
		bool whole = false;
		for (unsigned i = 0; i < 4; i++) {
			char id[32];
			(void)snprintf(id, sizeof(id), "\"tool_use_id\":\"c%u\"", i);
			const char *at = strstr(from, id), *end = strstr(at, "\"role\"");
			bool cut = end == NULL ? strstr(at, "bytes left out") != NULL
			                       : memmem(at, (size_t)(end - at), "bytes left out",
			                                14) != NULL;
			assert_false(whole && cut);
			whole = !cut;
			from = at;
		}
		assert_valid(how.format, q->body);
		sheaf_request_free(q);
	}
	assert_true(how.bytes_max > 9000 && how.bytes_max < 16000);
	kit_close(&k);
}

/* Turn by turn the beginning stays as it is, for many turns. */
static void the_cut_moves_rarely(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	sheaf_request *before = NULL;
	size_t moved = 0, elided = 0;
	how.elide = SHEAF_ELIDE_OUTPUTS | SHEAF_ELIDE_IMAGES;
	how.bytes_max = 400000;
	kit_open(&k);
	for (unsigned i = 0; i < 80; i++) {
		turn(&k, i);
		sheaf_request *q = rendered(&k, &how);
		elided = notes_of(q, SHEAF_NOTE_ELIDED);
		if (before != NULL)
			moved += sheaf_request_common(before, q) < before->body.len - 2;
		sheaf_request_free(before);
		before = q;
	}
	assert_true(elided > 60);
	assert_in_range(moved, 10, 25);
	sheaf_request_free(before);
	kit_close(&k);
}

/* Characters stay whole. */
static void cuts_lie_between_characters(void **state)
{
	(void)state;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	how.elide = SHEAF_ELIDE_OUTPUTS;
	how.bytes_max = 4000;
	for (size_t shift = 0; shift < 4; shift++) {
		kit k;
		kit_open(&k);
		say(&k, "user", TEXT("1"));
		say(&k, "assistant", CALL("a", "x", "{}"));
		memset(output, 'a', shift);
		for (size_t i = 0; i < 4000; i++)
			memcpy(output + shift + 4 * i, "😀", 4);
		size_t len = shift + 16000 + (shift + 1) % 4;
		memset(output + shift + 16000, 'z', 4);
		sheaf_message *t = sheaf_message_new("tool");
		sheaf_message_tool_result(t, SHEAF_STR("a"), SHEAF_STR("x"), str_make(output, len),
		                          0);
		assert_int_equal(kit_put(&k, k.s, SHEAF_STR("t"), t), 0);
		sheaf_request *q = rendered(&k, &how);
		assert_true(utf8_valid(q->body));
		const char *at = strstr(q->body.ptr, " bytes left out]");
		assert_non_null(at);
		size_t gone = strtoul(at - 5, NULL, 10);
		assert_true(gone >= len - 2048 && gone <= len - 2048 + 6);
		sheaf_request_free(q);
		kit_close(&k);
	}
	memset(output, 'o', sizeof(output));
}

static void memory_runs_out(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	sheaf_request *q = NULL;
	how.elide = SHEAF_ELIDE_OUTPUTS | SHEAF_ELIDE_IMAGES;
	how.bytes_max = 40000;
	kit_open(&k);
	turn(&k, 0);
	turn(&k, 1);
	const sheaf_context *c = kit_context(&k, NULL);
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = sheaf_render(&q, c, &how, &k.err);
		if (!fail_alloc_hit()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_int_equal(fail_alloc_live(), 0);
	}
	sheaf_request_free(q);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
	sheaf_context_free(c);
	kit_close(&k);
}

int main(void)
{
	memset(output, 'o', sizeof(output));
	memset(image, 'A', sizeof(image));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_gets_smaller),
		cmocka_unit_test(the_newest_goes_last),
		cmocka_unit_test(the_cut_moves_rarely),
		cmocka_unit_test(cuts_lie_between_characters),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
