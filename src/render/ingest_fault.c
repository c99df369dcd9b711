/*
 * What kind of failure a provider reports: from the words it uses, and where
 * those say nothing from the HTTP status.
 *
 * Words come first because a status says too little: 400 may be a window that
 * is full, 429 an account without credit.
 */
#include "render/ingest.h"

#include "base/str.h"

/* How much of an answer that is no JSON is looked at. */
#define TEXT_MAX 4096u

/* An error as any of the providers writes it. */
typedef struct words {
	sheaf_str type;
	sheaf_str code;
	sheaf_str status;
	sheaf_str message;
	uint64_t number; /* a status inside the body, or 0 */
} words;

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Whether the text holds the words, which are in small letters. */
static bool holds(sheaf_str text, const char *small)
{
	size_t n = strlen(small);
	for (size_t i = 0; i + n <= text.len; i++) {
		size_t k = 0;
		while (k < n && lower(text.ptr[i + k]) == small[k])
			k++;
		if (k == n)
			return true;
	}
	return false;
}

static bool holds_any(const words *w, const char *const *list)
{
	for (; *list != NULL; list++) {
		if (holds(w->message, *list) || holds(w->code, *list) || holds(w->type, *list) ||
		    holds(w->status, *list))
			return true;
	}
	return false;
}

static const char *const overflow_words[] = {"prompt is too long",
                                             "prompt too long",
                                             "input is too long",
                                             "context_length_exceeded",
                                             "context length",
                                             "context window",
                                             "context_window_exceeded",
                                             "maximum context",
                                             "exceed context limit",
                                             "available context size",
                                             "maximum prompt length",
                                             "input token count",
                                             "exceeds the maximum number of tokens",
                                             "reduce the length of",
                                             "request too large",
                                             "request_too_large",
                                             NULL};
static const char *const auth_words[] = {"authentication_error",
                                         "permission_error",
                                         "permission_denied",
                                         "unauthenticated",
                                         "invalid_api_key",
                                         "api key not valid",
                                         "incorrect api key",
                                         "billing_error",
                                         "insufficient_quota",
                                         "credit balance",
                                         NULL};
static const char *const rate_words[] = {"rate_limit", "rate limit", "too many requests",
                                         "resource_exhausted", NULL};
static const char *const request_words[] = {
	"invalid_request", "invalid_argument",    "not_found", "invalid_prompt",
	"invalid_image",   "failed_precondition", NULL};

static int32_t by_status(uint64_t status)
{
	if (status < 400)
		return SHEAF_FAULT_NONE;
	switch (status) {
	case 401:
	case 402:
	case 403:
		return SHEAF_FAULT_AUTH;
	case 408:
	case 409:
		return SHEAF_FAULT_SERVER;
	case 413:
		return SHEAF_FAULT_OVERFLOW;
	case 429:
		return SHEAF_FAULT_RATE;
	default:
		return status >= 500 ? SHEAF_FAULT_SERVER : SHEAF_FAULT_REQUEST;
	}
}

static int32_t judge(uint64_t status, const words *w)
{
	if (holds_any(w, overflow_words))
		return SHEAF_FAULT_OVERFLOW;
	if (status < 500 && holds_any(w, auth_words))
		return SHEAF_FAULT_AUTH;
	int32_t kind = by_status(status);
	if (kind != SHEAF_FAULT_NONE)
		return kind;
	/* No status: inside of a stream there is none. */
	if (holds_any(w, rate_words))
		return SHEAF_FAULT_RATE;
	if (holds_any(w, request_words))
		return SHEAF_FAULT_REQUEST;
	return SHEAF_FAULT_SERVER;
}

static void read_words(words *w, node error)
{
	sheaf_str message = node_string(error, "message");
	w->type = node_string(error, "type");
	w->code = node_string(error, "code");
	w->status = node_string(error, "status");
	w->message = message.ptr != NULL ? message : node_string(error, "detail");
	w->number = 0;
	if (node_u64(error, "code", &w->number) && w->number >= 600)
		w->number = 0;
}

/* Where the error stands: under `error`, or it is the object itself. Gemini sends it in a list. */
static node error_of(node root)
{
	if (json_type_of(root.v) == JSON_ARRAY) {
		node_iter it = node_each(root);
		if (node_next(&it))
			root = it.value;
	}
	node error = node_get(root, "error");
	json_type type = json_type_of(error.v);
	if (type == JSON_OBJECT || type == JSON_STRING)
		return error;
	sheaf_str kind = node_string(root, "type"), object = node_string(root, "object");
	return str_is(kind, "error") || str_is(object, "error") ? root : (node){NULL, {NULL, 0}};
}

bool fault_is(node root)
{
	return error_of(root).v != NULL;
}

int32_t fault_of(int32_t http_status, node root, sheaf_str *text)
{
	words w = {0};
	node error = error_of(root);
	if (json_type_of(error.v) == JSON_STRING)
		w.message = json_string(error.v);
	else
		read_words(&w, error.v != NULL ? error : root);
	*text = w.message.ptr != NULL ? w.message : w.code.ptr != NULL ? w.code : w.type;
	/* Gateways report what the provider said inside of a good answer. */
	uint64_t status = http_status >= 400 ? (uint64_t)http_status : w.number;
	if (error.v == NULL && status < 400)
		return SHEAF_FAULT_NONE;
	return judge(status, &w);
}

int32_t sheaf_ingest_fault(int32_t format, int32_t http_status, sheaf_str body)
{
	(void)format; /* their words do not contradict each other */
	_cleanup_(source_free) source s = {0};
	sheaf_str text;
	if (source_read(&s, body, NULL) == 0)
		return fault_of(http_status, s.root, &text);
	if (http_status < 400)
		return SHEAF_FAULT_NONE;
	words w = {.message = {body.ptr, body.len < TEXT_MAX ? body.len : TEXT_MAX}};
	return judge((uint64_t)http_status, &w);
}
