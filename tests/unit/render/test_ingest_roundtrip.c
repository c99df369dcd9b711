/*
 * What is rendered and taken in again renders the same; and so does what other
 * agents sent.
 */
#include "ingest_test.h"

#include "sheaf/store.h"
#include "support/body_lines.h"

#define LIMIT ((size_t)1 << 24)

typedef struct place {
	sheaf_store *store;
	sheaf_session *s;
} place;

static place place_open(void)
{
	place p;
	sheaf_key key = sheaf_key_of("s");
	assert_int_equal(sheaf_open(&p.store, "memory:", NULL, NULL), 0);
	assert_int_equal(sheaf_session_open(&p.s, p.store, &key, NULL, NULL), 0);
	return p;
}

static void place_close(place *p)
{
	sheaf_session_close(p->s);
	sheaf_close(p->store);
}

static void append(const place *p, sheaf_message *m)
{
	sheaf_error err;
	int rc = sheaf_session_append_message(p->s, m, NULL, NULL, NULL, &err);
	if (rc != 0)
		fail_msg("%s", err.message);
}

static sheaf_request *render(const place *p, int32_t format, sheaf_str model)
{
	sheaf_context *c;
	sheaf_request *q = NULL;
	sheaf_error err;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = format;
	how.model = model;
	how.cache = SHEAF_CACHE_OFF;
	assert_int_equal(sheaf_session_context(&c, p->s, NULL, &err), 0);
	int rc = sheaf_render(&q, c, &how, &err);
	if (rc != 0 && rc != SHEAF_CONTEXT)
		fail_msg("%s", err.message);
	sheaf_context_free(c);
	return q;
}

static sheaf_str list_of(int32_t format, sheaf_str body)
{
	return json_member_bytes(body, format == SHEAF_FORMAT_GEMINI             ? "contents"
	                               : format == SHEAF_FORMAT_OPENAI_RESPONSES ? "input"
	                                                                         : "messages");
}

/* A session that has what the list says. */
static place take_in(int32_t format, sheaf_str list)
{
	place p = place_open();
	sheaf_messages *messages = NULL;
	sheaf_error err;
	int rc = sheaf_ingest_messages(&messages, format, NONE, list, &err);
	if (rc != 0)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < messages->count; i++)
		append(&p, messages->items[i]);
	sheaf_messages_free(messages);
	return p;
}

/* ---- What agents sent --------------------------------------------------------- */

static void lines_of(buf *out, int32_t format, sheaf_str body, bool once)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	assert_int_equal(json_parse(&doc, body, NULL), 0);
	if (once)
		body_lines_once(out, json_root(doc));
	else
		body_lines(out, format, json_root(doc), 0);
	buf_nul(out);
	assert_int_equal(out->status, 0);
}

static void check_request(const char *name)
{
	_cleanup_(buf_free) buf sent = BUF_INIT(LIMIT);
	_cleanup_(buf_free) buf again = BUF_INIT(LIMIT);
	char path[512];
	size_t len;
	(void)snprintf(path, sizeof(path), "%s/wire/%s", SHEAF_TEST_DATA, name);
	char *file = file_read(path, &len);
	int32_t format = format_of_file(name);
	sheaf_str body = json_member_bytes(str_make(file, len), "body");
	sheaf_str model = json_member_bytes(body, "model");
	model = model.len > 2 ? str_make(model.ptr + 1, model.len - 2) : S("gemini-2.5-flash");
	place p = take_in(format, list_of(format, body));
	sheaf_request *q = render(&p, format, model);
	bool gemini = format == SHEAF_FORMAT_GEMINI; /* sends answers twice */
	lines_of(&sent, format, body, gemini);
	lines_of(&again, format, q->body, gemini);
	assert_true(sent.len > 200);
	if (strcmp(sent.ptr, again.ptr) != 0) {
		size_t i = 0;
		while (sent.ptr[i] == again.ptr[i])
			i++;
		while (i > 0 && sent.ptr[i - 1] != '\n')
			i--;
		fail_msg("%s sent\n%.200s\nand again\n%.200s", name, sent.ptr + i, again.ptr + i);
	}
	sheaf_request_free(q);
	place_close(&p);
	free(file);
}

static void requests_of_agents(void **state)
{
	(void)state;
	DIR *dir = opendir(SHEAF_TEST_DATA "/wire");
	size_t count = 0;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (strstr(e->d_name, ".json") == NULL)
			continue;
		/* Its answers stand twice, each with an image that is no part of them. */
		if (strcmp(e->d_name, "gemini-gemini-cli-image-result.json") != 0)
			check_request(e->d_name);
		count++;
	}
	(void)closedir(dir);
	assert_true(count >= 12);
}

/* ---- Histories ------------------------------------------------------------------ */

static const char *const words[] = {"a", "Ünï \"q\" \\ \n\t", "{\"x\":1}", "😀", "long long text"};

static sheaf_str word(chance *c)
{
	return sheaf_str_of(words[chance_below(c, COUNT_OF(words))]);
}

/* What one reply of the format may hold, as that format's own; how many calls it has. */
static size_t add_reply(const place *p, chance *c, int32_t format, size_t turn)
{
	static const char *const opaque[] = {
		"",
		"{\"type\":\"server_tool_use\",\"id\":\"s%zu\",\"name\":\"web_search\",\"input\":{}}",
		"", "{\"type\":\"web_search_call\",\"id\":\"ws_%zu\",\"status\":\"completed\"}",
		"{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"%zu\"}}"};
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	sheaf_str name = sheaf_str_of(sheaf_format_name(format));
	char text[160];
	bool responses = format == SHEAF_FORMAT_OPENAI_RESPONSES;
	if (chance_below(c, 2)) {
		(void)sheaf_message_thinking(m, word(c), S("c2ln"), 0);
		(void)snprintf(text, sizeof(text), "{\"id\":\"rs_%zu\"}", turn);
		if (responses)
			(void)sheaf_message_ext(m, name, sheaf_str_of(text));
	}
	if (chance_below(c, 3) && opaque[format][0] != '\0') {
		int n = snprintf(text, sizeof(text), opaque[format], turn);
		(void)sheaf_message_opaque(m, name, str_make(text, (size_t)n));
	}
	if (chance_below(c, 4) != 0)
		(void)sheaf_message_text(m, word(c));
	else
		(void)sheaf_message_text(m, S("x"));
	(void)snprintf(text, sizeof(text), "{\"id\":\"msg_%zu\",\"status\":\"completed\"}", turn);
	if (responses && chance_below(c, 2))
		(void)sheaf_message_ext(m, name, sheaf_str_of(text));
	size_t calls = chance_below(c, 4);
	for (size_t i = 0; i < calls; i++) {
		static const char *const inputs[] = {"{}", "{\"path\": \"a b\", \"n\": 1.50}",
		                                     "{\"t\":\"x\\ny\"}"};
		(void)snprintf(text, sizeof(text), "call_%zu_%zu", turn, i);
		(void)sheaf_message_tool_use(m, sheaf_str_of(text), S("read_file"),
		                             sheaf_str_of(inputs[chance_below(c, 3)]));
		if (format == SHEAF_FORMAT_GEMINI && i == 0)
			(void)sheaf_message_signature(m, S("c2ln"));
	}
	(void)sheaf_message_provider(m, sheaf_str_of(sheaf_format_provider(format)));
	(void)sheaf_message_model(m, S("gemini-3-flash"));
	append(p, m);
	sheaf_message_free(m);
	return calls;
}

static void add_results(const place *p, chance *c, size_t turn, size_t calls)
{
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_TOOL);
	for (size_t i = 0; i < calls; i++) {
		char id[32];
		(void)snprintf(id, sizeof(id), "call_%zu_%zu", turn, i);
		int is_error = (int)chance_below(c, 3) - 1;
		if (chance_below(c, 3)) {
			(void)sheaf_message_tool_result(m, sheaf_str_of(id), NONE, word(c),
			                                is_error);
			continue;
		}
		(void)sheaf_message_tool_result_begin(m, sheaf_str_of(id), NONE, is_error);
		(void)sheaf_message_text(m, word(c));
		if (chance_below(c, 2))
			(void)sheaf_message_image(m, S("base64"), S("image/png"), S("AAAA"));
		(void)sheaf_message_tool_result_end(m);
	}
	append(p, m);
	sheaf_message_free(m);
}

static void add_user(const place *p, chance *c)
{
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	(void)sheaf_message_text(m, word(c));
	if (chance_below(c, 3) == 0)
		(void)sheaf_message_image(m, S("base64"), S("image/png"), S("AAAA"));
	if (chance_below(c, 5) == 0)
		(void)sheaf_message_document(m, S("base64"), S("application/pdf"), S("BBBB"));
	if (chance_below(c, 4) == 0)
		(void)sheaf_message_text(m, word(c));
	append(p, m);
	sheaf_message_free(m);
}

static void check_history(chance *c, int32_t format)
{
	place p = place_open();
	size_t turns = 1 + chance_below(c, 5);
	for (size_t i = 0; i < turns; i++) {
		add_user(&p, c);
		size_t calls = add_reply(&p, c, format, i);
		/* Some are interrupted: the answer is made up then, and taken in like any other. */
		if (calls != 0 && chance_below(c, 5) != 0)
			add_results(&p, c, i, calls);
	}
	sheaf_request *q = render(&p, format, S("gemini-3-flash"));
	place again = take_in(format, list_of(format, q->body));
	sheaf_request *r = render(&again, format, S("gemini-3-flash"));
	sheaf_str want = list_of(format, q->body), got = list_of(format, r->body);
	if (!str_eq(want, got))
		fail_msg("%s\n%.*s\nbecame\n%.*s", sheaf_format_name(format), (int)want.len,
		         want.ptr, (int)got.len, got.ptr);
	sheaf_request_free(q);
	sheaf_request_free(r);
	place_close(&p);
	place_close(&again);
}

static void histories(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 500; seed++) {
		for (int32_t format = 1; format <= 4; format++) {
			chance c = {seed * 4 + (uint64_t)format};
			check_history(&c, format);
		}
	}
}

/* ---- Replies --------------------------------------------------------------------- */

/* The body of a request that holds nothing but the reply, from the reply's own. */
static void request_of(buf *out, int32_t format, const char *reply)
{
	const sheaf_str body = sheaf_str_of(reply);
	sheaf_str choices = json_member_bytes(body, "choices"), choice = NONE;
	switch (format) {
	case SHEAF_FORMAT_ANTHROPIC:
		buf_lit(out, "{\"messages\":[{\"role\":\"assistant\",\"content\":");
		buf_str(out, json_member_bytes(body, "content"));
		buf_lit(out, "}]}");
		break;
	case SHEAF_FORMAT_OPENAI_CHAT:
		assert_true(json_element_next(choices, &(size_t){0}, &choice));
		buf_lit(out, "{\"messages\":[");
		buf_str(out, json_member_bytes(choice, "message"));
		buf_lit(out, "]}");
		break;
	default:
		buf_lit(out, "{\"input\":");
		buf_str(out, json_member_bytes(body, "output"));
		buf_lit(out, "}");
	}
	assert_int_equal(out->status, 0);
}

/* Whether all lines of one text stand in the other, in order. */
static void assert_lines_among(const char *name, const char *some, const char *all)
{
	for (size_t n; (n = strcspn(some, "\n")) != 0; some += n + 1) {
		while (*all != '\0' && (strcspn(all, "\n") != n || memcmp(some, all, n) != 0))
			all += strcspn(all, "\n") + 1;
		if (*all == '\0')
			fail_msg("%s: not sent back: %.*s", name, (int)n, some);
	}
}

/* A reply goes back to where it came from block by block, and comes in again as it was. */
static void reply_goes_back(const char *name)
{
	_cleanup_(buf_free) buf body = BUF_INIT(LIMIT), came = BUF_INIT(LIMIT);
	_cleanup_(buf_free) buf back = BUF_INIT(LIMIT);
	int32_t format = format_of_file(name);
	place p = place_open();
	chance c = {3};
	sheaf_reply *r = NULL;
	size_t len;
	char *reply = reply_file(name, "json", &len);
	assert_int_equal(sheaf_ingest_reply(&r, format, NONE, NONE, str_make(reply, len), NULL), 0);
	add_user(&p, &c);
	append(&p, r->message);
	add_user(&p, &c);
	sheaf_request *q = render(&p, format, r->model);
	request_of(&body, format, reply);
	lines_of(&came, format, buf_view(&body), false);
	lines_of(&back, format, q->body, false);
	assert_true(came.len > 20);
	assert_lines_among(name, came.ptr, back.ptr);
	place again = take_in(format, list_of(format, q->body));
	sheaf_request *second = render(&again, format, r->model);
	assert_true(str_eq(list_of(format, q->body), list_of(format, second->body)));
	sheaf_request_free(second);
	sheaf_request_free(q);
	place_close(&again);
	place_close(&p);
	sheaf_reply_free(r);
	free(reply);
}

/* An image a model made goes back with its signature, but not to another model. */
static void signed_image(void **state)
{
	(void)state;
	place p = place_open();
	chance c = {3};
	sheaf_reply *r = NULL;
	size_t len;
	char *reply = reply_file("gemini-tools", "json", &len);
	assert_int_equal(
		sheaf_ingest_reply(&r, SHEAF_FORMAT_GEMINI, NONE, NONE, str_make(reply, len), NULL),
		0);
	add_user(&p, &c);
	append(&p, r->message);
	sheaf_request *same = render(&p, SHEAF_FORMAT_GEMINI, r->model);
	sheaf_request *other = render(&p, SHEAF_FORMAT_GEMINI, S("gemini-3-pro"));
	assert_non_null(strstr(same->body.ptr,
	                       "{\"inlineData\":{\"mimeType\":\"image/png\","
	                       "\"data\":\"iVBORw0K\"},\"thoughtSignature\":\"Sig3\"}"));
	assert_non_null(strstr(other->body.ptr, "\"data\":\"iVBORw0K\"}}"));
	sheaf_request_free(same);
	sheaf_request_free(other);
	place_close(&p);
	sheaf_reply_free(r);
	free(reply);
}

static void replies_go_back(void **state)
{
	static const char *const names[] = {"anthropic-tools",       "anthropic-search",
	                                    "openai-chat-text",      "openai-chat-tools",
	                                    "openai-responses-text", "openai-responses-tools"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		reply_goes_back(names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_agents),
		cmocka_unit_test(histories),
		cmocka_unit_test(replies_go_back),
		cmocka_unit_test(signed_image),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
