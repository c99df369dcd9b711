/* Reads the messages of Gemini CLI: parts as the API has them, calls with their answers. */
#include "convert/gemini_message.h"

#include "base/err.h"
#include "base/str.h"

#define PROVIDER "google"
#define WIRE "gemini"

void gemini_freep(sheaf_message **m)
{
	sheaf_message_free(*m);
}

static sheaf_message *message_begin(const char *role)
{
	sheaf_message *m = sheaf_message_new(role);
	if (m != NULL)
		sheaf_message_mend_text(m, 1);
	return m;
}

/* ---- Content ------------------------------------------------------------- */

/* Content is a string, a part, or a list of both. */
typedef struct content {
	value one;
	value_iter list;
	bool is_list;
} content;

static content content_of(value message)
{
	value v = value_get(message, "content");
	content c = {.one = v};
	c.is_list = json_type_of(v.v) == JSON_ARRAY;
	if (c.is_list)
		c.list = value_each(v);
	return c;
}

static bool content_next(content *c, value *part)
{
	if (c->is_list)
		return value_next(&c->list, part);
	*part = c->one;
	c->one = (value){NULL, {NULL, 0}};
	return part->v != NULL;
}

static sheaf_str text_of(value part)
{
	return json_type_of(part.v) == JSON_STRING ? json_string(part.v)
	                                           : value_string(part, "text");
}

static bool is_thought(value part)
{
	return json_bool(json_get(part.v, "thought"));
}

/* An image or a document; false for what is neither. */
static bool media_put(sheaf_message *m, value part)
{
	value data = value_get(part, "inlineData");
	bool inlined = data.v != NULL;
	if (!inlined)
		data = value_get(part, "fileData");
	sheaf_str type = value_string(data, "mimeType");
	sheaf_str where = value_string(data, inlined ? "data" : "fileUri");
	const sheaf_str by = inlined ? SHEAF_STR("base64") : SHEAF_STR("url");
	if (where.ptr == NULL)
		return false;
	if (str_starts(type, "image/"))
		return sheaf_message_image(m, by, type, where) == 0;
	if (str_is(type, "application/pdf"))
		return sheaf_message_document(m, by, type, where) == 0;
	return false;
}

static void part_put(sheaf_message *m, value part)
{
	sheaf_str text = text_of(part), signature = value_string(part, "thoughtSignature");
	if (text.ptr != NULL && is_thought(part)) {
		(void)sheaf_message_thinking(m, text, signature, 0);
	} else if (text.ptr != NULL) {
		(void)sheaf_message_text(m, text);
		if (signature.len != 0)
			(void)sheaf_message_signature(m, signature);
	} else if (!media_put(m, part)) {
		(void)sheaf_message_opaque(m, SHEAF_STR(WIRE), part.text);
	}
}

/* ---- Calls --------------------------------------------------------------- */

/* Ids get the tool's name put before them; to the model they are what it gave. */
static sheaf_str bare_id(sheaf_str id, sheaf_str name)
{
	if (name.len != 0 && id.len > name.len + 2 && memcmp(id.ptr, name.ptr, name.len) == 0 &&
	    memcmp(id.ptr + name.len, "__", 2) == 0)
		return str_make(id.ptr + name.len + 2, id.len - name.len - 2);
	return id;
}

sheaf_str gemini_call_id(value call)
{
	return bare_id(value_string(call, "id"), value_string(call, "name"));
}

static void call_put(sheaf_message *m, value call, sheaf_str signature)
{
	value args = value_get(call, "args");
	(void)sheaf_message_tool_use(m, gemini_call_id(call), value_string(call, "name"),
	                             args.v != NULL ? args.text : SHEAF_STR("{}"));
	/* Gemini CLI sends these words where it has lost the signature. */
	if (signature.len != 0 && !str_is(signature, "skip_thought_signature_validator"))
		(void)sheaf_message_signature(m, signature);
}

/* The text of an answer, and whether it tells of a failure. */
static sheaf_str response_text(value response, bool *failed)
{
	sheaf_str output = value_string(response, "output"),
		  error = value_string(response, "error");
	*failed = json_get(response.v, "error") != NULL;
	if (json_count(response.v) == 1 && (output.ptr != NULL || error.ptr != NULL))
		return output.ptr != NULL ? output : error;
	return response.v != NULL ? response.text : SHEAF_STR("");
}

/* Whether a response is the one to this call: of several at once, each call may list all. */
static bool is_response_to(value response, value call)
{
	sheaf_str id = gemini_call_id(response);
	return id.len == 0 || str_eq(id, gemini_call_id(call));
}

static void result_part_put(sheaf_message *m, value part, value call)
{
	value response = value_get(part, "functionResponse");
	bool failed;
	if (response.v == NULL)
		part_put(m, part);
	else if (is_response_to(response, call))
		(void)sheaf_message_text(m,
		                         response_text(value_get(response, "response"), &failed));
}

/* 1, 0, or -1 for what is not said. */
static int failed_of(value call, value result)
{
	value part;
	bool failed = false, any = false;
	for (value_iter it = value_each(result); value_next(&it, &part);) {
		value response = value_get(part, "functionResponse");
		if (response.v != NULL && is_response_to(response, call) && !any)
			(void)response_text(value_get(response, "response"), &failed);
		any = any || response.v != NULL;
	}
	if (failed || str_is(value_string(call, "status"), "error"))
		return 1;
	return str_is(value_string(call, "status"), "success") ? 0 : -1;
}

static bool has_result(value call)
{
	const json_val *result = json_get(call.v, "result");
	return json_type_of(result) == JSON_STRING || json_count(result) != 0;
}

static void result_put(sheaf_message *m, value call)
{
	value result = value_get(call, "result"), part;
	int failed = failed_of(call, result);
	sheaf_str id = gemini_call_id(call), name = value_string(call, "name");
	if (json_type_of(result.v) == JSON_STRING) {
		(void)sheaf_message_tool_result(m, id, name, json_string(result.v), failed);
		return;
	}
	(void)sheaf_message_tool_result_begin(m, id, name, failed);
	for (value_iter it = value_each(result); value_next(&it, &part);)
		result_part_put(m, part, call);
	if (json_type_of(result.v) == JSON_OBJECT)
		result_part_put(m, result, call);
	(void)sheaf_message_tool_result_end(m);
}

static bool is_in(const window *answered, sheaf_str id)
{
	return id.len != 0 && window_get(answered, id).ptr != NULL;
}

int gemini_answers(import *im, window *answered, value message, sheaf_message **out)
{
	value call;
	*out = NULL;
	for (value_iter it = value_each(value_get(message, "toolCalls")); value_next(&it, &call);) {
		sheaf_str id = gemini_call_id(call);
		if (!has_result(call) || is_in(answered, id))
			continue;
		if (*out == NULL && (*out = message_begin(SHEAF_ROLE_TOOL)) == NULL)
			return err_nomem(im->err);
		result_put(*out, call);
		if (window_set(answered, id, SHEAF_STR("")) != 0)
			return err_nomem(im->err);
	}
	return 0;
}

/* ---- Messages ------------------------------------------------------------ */

bool gemini_is_double(const window *answered, value message)
{
	value part;
	bool any = false;
	content c = content_of(message);
	if (!str_is(value_string(message, "type"), "user"))
		return false;
	while (content_next(&c, &part)) {
		value response = value_get(part, "functionResponse");
		if (response.v != NULL && is_in(answered, gemini_call_id(response)))
			any = true;
		else if (!any || json_get(part.v, "inlineData") == NULL)
			return false;
	}
	return any;
}

/* What follows an answer in the user's message and is data belongs to it. */
static bool is_data(value part)
{
	return json_get(part.v, "inlineData") != NULL || json_get(part.v, "fileData") != NULL;
}

/* Answers that came as the user's message only, with the data behind each. */
static int responses_put(import *im, window *answered, value message, sheaf_message *m)
{
	value part;
	bool within = false, failed;
	for (content c = content_of(message); content_next(&c, &part);) {
		value response = value_get(part, "functionResponse");
		sheaf_str id = gemini_call_id(response);
		if (within && is_data(part))
			part_put(m, part);
		if (response.v == NULL)
			continue;
		if (within)
			(void)sheaf_message_tool_result_end(m);
		within = !is_in(answered, id);
		if (!within)
			continue;
		sheaf_str text = response_text(value_get(response, "response"), &failed);
		(void)sheaf_message_tool_result_begin(m, id, value_string(response, "name"),
		                                      failed ? 1 : -1);
		(void)sheaf_message_text(m, text);
		if (id.len != 0 && window_set(answered, id, SHEAF_STR("")) != 0)
			return err_nomem(im->err);
	}
	if (within)
		(void)sheaf_message_tool_result_end(m);
	return 0;
}

static bool has_response(value message)
{
	value part;
	for (content c = content_of(message); content_next(&c, &part);) {
		if (json_get(part.v, "functionResponse") != NULL)
			return true;
	}
	return false;
}

int gemini_responses(import *im, window *answered, value message, sheaf_message **out)
{
	*out = NULL;
	if (!has_response(message))
		return 0;
	*out = message_begin(SHEAF_ROLE_TOOL);
	return *out != NULL ? responses_put(im, answered, message, *out) : err_nomem(im->err);
}

int gemini_user(import *im, value message, sheaf_message **out)
{
	value part;
	bool answers = has_response(message), within = false;
	*out = NULL;
	for (content c = content_of(message); content_next(&c, &part);) {
		bool response = json_get(part.v, "functionResponse") != NULL;
		within = response || (within && is_data(part));
		if (within)
			continue;
		if (*out == NULL && (*out = message_begin(SHEAF_ROLE_USER)) == NULL)
			return err_nomem(im->err);
		part_put(*out, part);
	}
	if (*out == NULL && !answers)
		*out = message_begin(SHEAF_ROLE_USER);
	return *out != NULL || answers ? 0 : err_nomem(im->err);
}

static void thoughts_put(sheaf_message *m, value message)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	value thought;
	for (value_iter it = value_each(value_get(message, "thoughts"));
	     value_next(&it, &thought);) {
		sheaf_str subject = value_string(thought, "subject");
		sheaf_str description = value_string(thought, "description");
		buf_reset(&text);
		if (subject.len != 0) {
			buf_lit(&text, "**");
			buf_str(&text, subject);
			buf_lit(&text, "**");
		}
		if (subject.len != 0 && description.len != 0)
			buf_char(&text, ' ');
		buf_str(&text, description.ptr != NULL ? description : SHEAF_STR(""));
		(void)sheaf_message_thinking(m, buf_view(&text), (sheaf_str){NULL, 0}, 0);
	}
}

static void said_put(sheaf_message *m, value message, bool has_calls)
{
	value part;
	bool thinks = false;
	for (content c = content_of(message); content_next(&c, &part);)
		thinks |= is_thought(part);
	if (!thinks)
		thoughts_put(m, message);
	for (content c = content_of(message); content_next(&c, &part);) {
		value call = value_get(part, "functionCall");
		if (call.v == NULL)
			part_put(m, part);
		else if (!has_calls)
			call_put(m, call, value_string(part, "thoughtSignature"));
	}
}

sheaf_message *gemini_reply(value message, size_t first_call, bool rest)
{
	value calls = value_get(message, "toolCalls"), call;
	sheaf_message *m = message_begin(SHEAF_ROLE_ASSISTANT);
	size_t i = 0;
	if (m == NULL)
		return NULL;
	if (!rest)
		said_put(m, message, json_count(calls.v) != 0);
	for (value_iter it = value_each(calls); value_next(&it, &call);) {
		if (i++ >= first_call)
			call_put(m, call, value_string(call, "thoughtSignature"));
	}
	(void)sheaf_message_provider(m, SHEAF_STR(PROVIDER));
	if (value_string(message, "model").len != 0)
		(void)sheaf_message_model(m, value_string(message, "model"));
	return m;
}

sheaf_usage gemini_usage(value message)
{
	const json_val *tokens = json_get(message.v, "tokens");
	uint64_t input = 0, output = 0, cached = 0, thoughts = 0, tool = 0;
	(void)json_u64(json_get(tokens, "input"), &input);
	(void)json_u64(json_get(tokens, "output"), &output);
	(void)json_u64(json_get(tokens, "cached"), &cached);
	(void)json_u64(json_get(tokens, "thoughts"), &thoughts);
	(void)json_u64(json_get(tokens, "tool"), &tool);
	return (sheaf_usage){.input = (input > cached ? input - cached : 0) + tool,
	                     .cache_read = cached,
	                     .output = output + thoughts,
	                     .reasoning = thoughts};
}

uint64_t gemini_digest(value message)
{
	value part;
	uint64_t h = str_hash(value_string(message, "type"));
	for (content c = content_of(message); content_next(&c, &part);) {
		sheaf_str text = text_of(part);
		if (is_thought(part) || json_get(part.v, "functionCall") != NULL)
			continue;
		h = h * 31 + str_hash(text.ptr != NULL ? text : part.text);
	}
	return h;
}
