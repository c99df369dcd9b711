/* What a list shows of an imported session: the user's first words, not those its agent put before. */
#include "unit/convert/convert_kit.h"

static void shows(const char *name, const char *id, const char *text)
{
	kit k;
	char path[128];
	sheaf_head_view *head;
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/%s", kit_dir(&k), name);
	file_write(path, text, strlen(text));
	kit_import(&k, path);
	sheaf_session *s = kit_session(&k, id);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_int_equal(head->info->messages, 2);
	assert_str(head->info->preview, "The question");
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_claude_code(void **state)
{
	(void)state;
	shows("5.jsonl", "claude-code.5",
	      "{\"parentUuid\":null,\"sessionId\":\"5\",\"cwd\":\"/p\",\"version\":\"2.1.197\","
	      "\"type\":\"user\",\"isMeta\":true,\"uuid\":\"a\","
	      "\"timestamp\":\"2026-11-14T22:58:25.886Z\","
	      "\"message\":{\"role\":\"user\",\"content\":\"Caveat: commands follow\"}}\n"
	      "{\"parentUuid\":\"a\",\"sessionId\":\"5\",\"cwd\":\"/p\",\"version\":\"2.1.197\","
	      "\"type\":\"user\",\"uuid\":\"b\",\"timestamp\":\"2026-11-14T22:58:26.886Z\","
	      "\"message\":{\"role\":\"user\",\"content\":\"The question\"}}\n");
}

static void test_codex(void **state)
{
	(void)state;
	shows("rollout-2026-11-14T22-58-25-5.jsonl", "codex.5",
	      "{\"timestamp\":\"2026-11-14T22:58:25.886Z\",\"type\":\"session_meta\",\"payload\":"
	      "{\"id\":\"5\",\"timestamp\":\"2026-11-14T22:58:25.886Z\",\"cwd\":\"/p\","
	      "\"originator\":\"codex_exec\",\"cli_version\":\"0.135.0\"}}\n"
	      "{\"timestamp\":\"2026-11-14T22:58:26.886Z\",\"type\":\"response_item\",\"payload\":"
	      "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
	      "\"text\":\"<environment_context>here</environment_context>\"}]}}\n"
	      "{\"timestamp\":\"2026-11-14T22:58:27.886Z\",\"type\":\"response_item\",\"payload\":"
	      "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
	      "\"text\":\"The question\"}]}}\n");
}

static void test_gemini_cli(void **state)
{
	(void)state;
	shows("session-2026-11-14T22-58-5.jsonl", "gemini-cli.5",
	      "{\"sessionId\":\"5\",\"projectHash\":\"9dad\","
	      "\"startTime\":\"2026-11-14T22:58:25.886Z\","
	      "\"lastUpdated\":\"2026-11-14T22:58:25.886Z\",\"kind\":\"main\"}\n"
	      "{\"$set\":{\"messages\":[{\"id\":\"a\",\"timestamp\":\"2026-11-14T22:58:26.886Z\","
	      "\"type\":\"user\",\"content\":[{\"text\":\"<session_context>here\"}]}]}}\n"
	      "{\"id\":\"b\",\"timestamp\":\"2026-11-14T22:58:27.886Z\",\"type\":\"user\","
	      "\"content\":[{\"text\":\"The question\"}]}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claude_code),
		cmocka_unit_test(test_codex),
		cmocka_unit_test(test_gemini_cli),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
