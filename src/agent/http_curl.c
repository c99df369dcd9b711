/*
 * The module http: requests to a model's address with libcurl.
 *
 * Each request runs on a multi handle of its own, so that it can be left within
 * a moment; handles wait in a short list for the next, with their connections.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/http.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define IDLE_HANDLES_MAX 8u
#define SLICE_MS 50 /* how late a cancellation or a timeout may be noticed */
#define URL_BYTES_MAX 8192u
#define US_PER_MS 1000
#define AFTER_END_US 1000000 /* some servers leave a stream open when all is said */

struct http {
	http_config config;
	CURLU *url;
	char *host; /* for messages; libcurl's */
	char *port; /* likewise; NULL: the usual one */
	bool local; /* this machine */
	struct curl_slist *headers;
	pthread_mutex_t lock;
	CURLM *idle[IDLE_HANDLES_MAX];
	size_t idle_count;
};

/* ---- Addresses ----------------------------------------------------------- */

static bool is_local(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host));
}

/* With the parser that also makes the request: two of them may disagree on what the host is. */
static int check_url(http *h, sheaf_error *err)
{
	char *scheme = NULL, *user = NULL;
	CURLUcode bad = curl_url_set(h->url, CURLUPART_URL, h->config.url, 0);
	int rc = 0;
	if (bad == CURLUE_OK)
		bad = curl_url_get(h->url, CURLUPART_SCHEME, &scheme, 0);
	if (bad == CURLUE_OK)
		bad = curl_url_get(h->url, CURLUPART_HOST, &h->host, 0);
	if (bad != CURLUE_OK) {
		rc = err_set(err, SHEAF_INVALID, "the address is none: %s", curl_url_strerror(bad));
	} else if (curl_url_get(h->url, CURLUPART_USER, &user, 0) == CURLUE_OK) {
		rc = err_set(err, SHEAF_INVALID, "an address has no user in it");
	} else {
		h->local = is_local(h->host);
		(void)curl_url_get(h->url, CURLUPART_PORT, &h->port, 0);
		if (strcmp(scheme, "http") == 0 && !h->local && !h->config.any_http)
			rc = err_set(
				err, SHEAF_DENIED,
				"http:// to another machine would show the key to all on the way");
		else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
			rc = err_set(err, SHEAF_INVALID,
			             "an address begins with https://, or http:// on this machine");
	}
	curl_free(scheme);
	curl_free(user);
	return rc;
}

/*
 * Base and path in one. People give the base with or without the version that
 * every path begins with: it is not said twice.
 */
static int join_path(buf *out, const char *base, sheaf_str path, sheaf_error *err)
{
	size_t len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	const char *last = len != 0 ? memrchr(base, '/', len) : NULL;
	size_t segment = last != NULL ? (size_t)(base + len - last) : 0;
	if (segment > 1 && path.len > segment && memcmp(path.ptr, last, segment) == 0 &&
	    path.ptr[segment] == '/')
		len -= segment;
	buf_add(out, base, len);
	buf_str(out, path);
	buf_nul(out);
	return buf_status(out, err);
}

/* The address of a request: base, path, and the path's own query. */
static int request_url(const http *h, sheaf_str path, CURLU **out, sheaf_error *err)
{
	_cleanup_(buf_free) buf joined = BUF_INIT(URL_BYTES_MAX);
	_cleanup_(buf_free) buf query = BUF_INIT(URL_BYTES_MAX);
	char *base = NULL;
	CURLU *url = curl_url_dup(h->url);
	const char *mark = path.len != 0 ? memchr(path.ptr, '?', path.len) : NULL;
	sheaf_str before = {path.ptr, mark != NULL ? (size_t)(mark - path.ptr) : path.len};
	CURLUcode bad = url != NULL ? curl_url_get(url, CURLUPART_PATH, &base, 0)
	                            : CURLUE_OUT_OF_MEMORY;
	int rc = bad == CURLUE_OK ? join_path(&joined, base, before, err) : 0;
	if (mark != NULL)
		buf_add(&query, mark + 1, path.len - before.len - 1);
	buf_nul(&query);
	if (rc == 0)
		rc = buf_status(&query, err);
	if (rc == 0 && bad == CURLUE_OK)
		bad = curl_url_set(url, CURLUPART_PATH, joined.ptr, 0);
	if (rc == 0 && bad == CURLUE_OK && mark != NULL)
		bad = curl_url_set(url, CURLUPART_QUERY, query.ptr, CURLU_APPENDQUERY);
	curl_free(base);
	if (rc == 0 && bad != CURLUE_OK)
		rc = bad == CURLUE_OUT_OF_MEMORY ? err_nomem(err)
		                                 : err_set(err, SHEAF_INVALID, "the address: %s",
		                                           curl_url_strerror(bad));
	if (rc != 0)
		curl_url_cleanup(url);
	else
		*out = url;
	return rc;
}

/* ---- Opening and closing ------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode global;

static void init_global(void)
{
	global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void http_close(http *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->idle_count; i++)
		(void)curl_multi_cleanup(h->idle[i]);
	curl_slist_free_all(h->headers);
	curl_free(h->host);
	curl_free(h->port);
	curl_url_cleanup(h->url);
	(void)pthread_mutex_destroy(&h->lock);
	mem_free(h);
}

static int add_header(http *h, const char *line)
{
	struct curl_slist *more = curl_slist_append(h->headers, line);
	if (more == NULL)
		return SHEAF_NOMEM;
	h->headers = more;
	return 0;
}

static int http_open(http **out, const http_config *config, sheaf_error *err)
{
	(void)pthread_once(&once, init_global);
	if (global != CURLE_OK)
		return err_set(err, SHEAF_UNSUPPORTED, "libcurl: %s", curl_easy_strerror(global));
	http *h = mem_zalloc(sizeof(*h));
	if (h == NULL)
		return err_nomem(err);
	(void)pthread_mutex_init(&h->lock, NULL);
	h->config = *config;
	h->url = curl_url();
	int rc = h->url != NULL ? check_url(h, err) : err_nomem(err);
	for (size_t i = 0; rc == 0 && i < config->header_count; i++)
		rc = add_header(h, config->headers[i]) != 0 ? err_nomem(err) : 0;
	/* libcurl would wait for leave to send a long body; providers do not give it. */
	if (rc == 0 && add_header(h, "Expect:") != 0)
		rc = err_nomem(err);
	if (rc != 0)
		http_close(h);
	else
		*out = h;
	return rc;
}

/* ---- One request --------------------------------------------------------- */

typedef struct transfer {
	http *http;
	CURL *easy;
	sheaf_answer *answer;
	sheaf_error *err;
	int code;    /* what the answer said to a piece */
	long status; /* 0: not told yet */
	bool begun;  /* some byte of the response is here */
	buf held;    /* the end of what came, if the key may begin there */
	int64_t last_us;
	int64_t retry_after_us;
	size_t bytes;
} transfer;

static bool header_is(const char *line, size_t len, const char *name)
{
	size_t n = strlen(name);
	return len > n && strncasecmp(line, name, n) == 0 && line[n] == ':';
}

/* Milliseconds, seconds, or a date. */
static void read_retry_after(transfer *t, const char *line, size_t len)
{
	char value[64];
	bool ms = header_is(line, len, "retry-after-ms");
	const char *at = (const char *)memchr(line, ':', len) + 1;
	size_t left = len - (size_t)(at - line);
	while (left > 0 && (*at == ' ' || *at == '\t'))
		at++, left--;
	if (left >= sizeof(value))
		return;
	memcpy(value, at, left);
	value[left] = '\0';
	char *end = NULL;
	double number = strtod(value, &end);
	if (end != value && number >= 0 && number < 1e9) {
		t->retry_after_us = (int64_t)(number * (ms ? 1e3 : 1e6));
	} else if (!ms) {
		time_t date = curl_getdate(value, NULL);
		int64_t wait = date < 0 ? -1 : (int64_t)date * 1000000 - clock_now_us();
		t->retry_after_us = date < 0 ? -1 : wait > 0 ? wait : 0;
	}
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
	transfer *t = ctx;
	size_t len = size * count;
	t->last_us = clock_monotonic_us();
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		const char *status = memchr(line, ' ', len - 1);
		t->retry_after_us = -1;
		/* 1xx is a word on the way: the time for the first byte goes on. */
		t->begun = status == NULL || status[1] != '1';
	}
	bool ms = header_is(line, len, "retry-after-ms");
	if (ms || (header_is(line, len, "retry-after") && t->retry_after_us < 0))
		read_retry_after(t, line, len);
	return len;
}

static void tell_status(transfer *t)
{
	if (t->status != 0)
		return;
	if (t->begun)
		(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	if (t->status != 0)
		sheaf_answer_status(t->answer, (int32_t)t->status, t->retry_after_us);
}

/* Hides a key; returns how long the end is that may be the beginning of one. */
static size_t mask(const buf *b, const char *key)
{
	size_t len = strlen(key), end = b->len < len ? b->len : len - 1;
	char *at = b->ptr;
	while ((at = memmem(at, b->len - (size_t)(at - b->ptr), key, len)) != NULL)
		memset(at, '*', len);
	while (end != 0 && memcmp(b->ptr + b->len - end, key, end) != 0)
		end--;
	return end;
}

/*
 * Some servers repeat the key they refuse, and their words end up in errors and
 * logs. Where a piece ends as a key begins, that waits for the next.
 */
static int feed_masked(transfer *t, const char *bytes, size_t len)
{
	const char *const *keys = t->http->config.keys;
	buf *b = &t->held;
	size_t keep = 0;
	buf_add(b, bytes, len);
	int rc = buf_status(b, t->err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < COUNT_OF(t->http->config.keys); i++) {
		size_t end = keys[i] != NULL ? mask(b, keys[i]) : 0;
		keep = end > keep ? end : keep;
	}
	sheaf_str whole = {b->ptr, b->len - keep};
	if (whole.len != 0)
		rc = sheaf_answer_feed(t->answer, whole, t->err);
	memmove(b->ptr, b->ptr + whole.len, keep);
	b->len = keep;
	return rc;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
	transfer *t = ctx;
	size_t len = size * count;
	t->last_us = clock_monotonic_us();
	tell_status(t);
	t->bytes += len;
	if (t->bytes > t->http->config.reply_bytes_max)
		t->code = err_set(t->err, SHEAF_TOO_LARGE, "the model's reply is too long");
	else if (t->status < 200 || t->status >= 300)
		t->code = feed_masked(t, bytes, len);
	else
		t->code = sheaf_answer_feed(t->answer, (sheaf_str){bytes, len}, t->err);
	return t->code == 0 ? len : 0;
}

/* `curl_easy_setopt` checks types by macros; what matters here is that each succeeds. */
static CURLcode set_options(transfer *t, CURLU *url, const sheaf_request *request)
{
	const http_config *c = &t->http->config;
	CURLcode bad = CURLE_OK;
#define SET(option, value)                                                                         \
	if (bad == CURLE_OK)                                                                       \
		bad = curl_easy_setopt(t->easy, option, value);
	SET(CURLOPT_CURLU, url)
	SET(CURLOPT_PROTOCOLS_STR, "http,https")
	SET(CURLOPT_FOLLOWLOCATION, 0L)
	SET(CURLOPT_NOSIGNAL, 1L)
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) /* a proxy's word is not the answer */
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2)
	SET(CURLOPT_SSL_VERIFYPEER, 1L)
	SET(CURLOPT_SSL_VERIFYHOST, 2L)
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(c->connect_us / US_PER_MS))
	SET(CURLOPT_USERAGENT, "sheaf")
	SET(CURLOPT_HTTPHEADER, t->http->headers)
	SET(CURLOPT_POST, 1L)
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len)
	SET(CURLOPT_POSTFIELDS, request->body.ptr)
	SET(CURLOPT_HEADERFUNCTION, on_header)
	SET(CURLOPT_HEADERDATA, t)
	SET(CURLOPT_WRITEFUNCTION, on_body)
	SET(CURLOPT_WRITEDATA, t)
	if (t->http->local) /* what stays on this machine needs no way out of it */
		SET(CURLOPT_NOPROXY, "*")
#undef SET
	return bad;
}

static int curl_failed(const transfer *t, CURLcode bad)
{
	const char *why = curl_easy_strerror(bad), *host = t->http->host;
	switch (bad) {
	case CURLE_OK:
		return 0;
	case CURLE_OUT_OF_MEMORY:
		return err_nomem(t->err);
	case CURLE_WRITE_ERROR:
		return t->code != 0 ? t->code : err_set(t->err, SHEAF_MODEL, "%s: %s", host, why);
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(t->err, SHEAF_TIMEOUT, "%s: %s", host, why);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return err_set(t->err, SHEAF_DENIED, "%s: %s", host, why);
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return err_set(t->err, SHEAF_INVALID, "%s: %s", host, why);
	case CURLE_COULDNT_CONNECT:
		return err_set(t->err, SHEAF_MODEL, "%s%s%s cannot be reached", host,
		               t->http->port != NULL ? ":" : "",
		               t->http->port != NULL ? t->http->port : "");
	case CURLE_PARTIAL_FILE: /* libcurl's words speak of a file */
	case CURLE_GOT_NOTHING:
		return err_set(t->err, SHEAF_MODEL, "%s: the connection was closed too early",
		               host);
	default:
		return err_set(t->err, SHEAF_MODEL, "%s: %s", host, why);
	}
}

/* Whether the request goes on: SHEAF_CANCELLED, SHEAF_TIMEOUT, or `*over` when all was said. */
static int look_around(const transfer *t, bool *over)
{
	const http_config *c = &t->http->config;
	int64_t quiet = clock_monotonic_us() - t->last_us;
	if (sheaf_answer_cancelled(t->answer))
		return err_set(t->err, SHEAF_CANCELLED, "cancelled");
	*over = quiet > AFTER_END_US && sheaf_answer_done(t->answer);
	if (!t->begun && quiet > c->first_byte_us)
		return err_set(t->err, SHEAF_TIMEOUT, "%s does not answer", t->http->host);
	if (t->begun && quiet > c->idle_us)
		return err_set(t->err, SHEAF_TIMEOUT, "%s has stopped in the middle of its answer",
		               t->http->host);
	return 0;
}

static int perform(transfer *t, CURLM *multi)
{
	int running = 1, left = 0, rc = 0;
	CURLMcode bad = CURLM_OK;
	bool over = false;
	while (running != 0 && rc == 0 && bad == CURLM_OK && !over) {
		bad = curl_multi_perform(multi, &running);
		if (bad == CURLM_OK && running != 0)
			bad = curl_multi_poll(multi, NULL, 0, SLICE_MS, NULL);
		if (running != 0)
			rc = look_around(t, &over);
	}
	if (rc != 0 || over)
		return rc;
	if (bad != CURLM_OK)
		return bad == CURLM_OUT_OF_MEMORY
		               ? err_nomem(t->err)
		               : err_set(t->err, SHEAF_MODEL, "%s", curl_multi_strerror(bad));
	const CURLMsg *message = curl_multi_info_read(multi, &left);
	return message != NULL ? curl_failed(t, message->data.result)
	                       : err_set(t->err, SHEAF_MODEL, "the request came to nothing");
}

/* ---- Handles that wait --------------------------------------------------- */

static CURLM *take_multi(http *h)
{
	CURLM *multi = NULL;
	(void)pthread_mutex_lock(&h->lock);
	if (h->idle_count != 0)
		multi = h->idle[--h->idle_count];
	(void)pthread_mutex_unlock(&h->lock);
	return multi != NULL ? multi : curl_multi_init();
}

static void give_multi(http *h, CURLM *multi)
{
	(void)pthread_mutex_lock(&h->lock);
	bool room = h->idle_count < IDLE_HANDLES_MAX;
	if (room)
		h->idle[h->idle_count++] = multi;
	(void)pthread_mutex_unlock(&h->lock);
	if (!room)
		(void)curl_multi_cleanup(multi);
}

static int http_send(void *ctx, const sheaf_request *request, sheaf_answer *answer,
                     sheaf_error *err)
{
	http *h = ctx;
	transfer t = {.http = h,
	              .answer = answer,
	              .err = err,
	              .held = BUF_INIT(SIZE_MAX),
	              .last_us = clock_monotonic_us(),
	              .retry_after_us = -1};
	CURLU *url = NULL;
	int rc = request_url(h, request->path, &url, err);
	if (rc != 0)
		return rc;
	CURLM *multi = take_multi(h);
	t.easy = multi != NULL ? curl_easy_init() : NULL;
	CURLcode bad = t.easy != NULL ? set_options(&t, url, request) : CURLE_OUT_OF_MEMORY;
	if (bad != CURLE_OK)
		rc = curl_failed(&t, bad);
	else if (curl_multi_add_handle(multi, t.easy) != CURLM_OK)
		rc = err_nomem(err);
	if (rc == 0) {
		rc = perform(&t, multi);
		tell_status(&t); /* also of a response without a body */
		if (rc == 0 && t.held.len != 0)
			rc = sheaf_answer_feed(answer, buf_view(&t.held), err);
		(void)curl_multi_remove_handle(multi, t.easy);
	}
	curl_easy_cleanup(t.easy);
	curl_url_cleanup(url);
	buf_free(&t.held);
	if (multi != NULL)
		give_multi(h, multi);
	return rc;
}

extern const http_ops sheaf_http_module;

SHEAF_API const http_ops sheaf_http_module = {
	.size = sizeof(http_ops),
	.version = HTTP_VERSION,
	.open = http_open,
	.close = http_close,
	.send = http_send,
};
