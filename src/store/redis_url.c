/* URLs of the redis module: "//[user:password@]host[:port][,host[:port]…][/db]". */
#include <string.h>

#include "store/redis.h"

#define PORT_DEFAULT 6379
#define SECRET_MAX 1024u

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A percent-decoded copy; NULL when it is malformed or memory is out. */
static char *decode(sheaf_str text)
{
	char *out = mem_alloc(text.len + 1);
	size_t len = 0;
	for (size_t i = 0; out != NULL && i < text.len; i++) {
		char c = text.ptr[i];
		if (c == '%') {
			int high = text.len - i > 2 ? hex(text.ptr[i + 1]) : -1;
			int low = text.len - i > 2 ? hex(text.ptr[i + 2]) : -1;
			if (high < 0 || low < 0 || high + low == 0) {
				mem_free(out);
				return NULL;
			}
			c = (char)(high * 16 + low);
			i += 2;
		}
		out[len++] = c;
	}
	if (out != NULL)
		out[len] = '\0';
	return out;
}

/* Cuts `text` at the first `c`: what is before it is returned, what is after stays. */
static sheaf_str cut(sheaf_str *text, char c, bool *found)
{
	const char *at = text->len != 0 ? memchr(text->ptr, c, text->len) : NULL;
	sheaf_str before = *text;
	*found = at != NULL;
	if (at == NULL) {
		*text = str_make("", 0);
		return before;
	}
	before.len = (size_t)(at - text->ptr);
	*text = str_make(at + 1, text->len - before.len - 1);
	return before;
}

static bool number(sheaf_str text, long max, long *out)
{
	long value = 0;
	if (text.len == 0 || text.len > 9)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		value = value * 10 + (text.ptr[i] - '0');
	}
	*out = value;
	return value <= max;
}

static int take_secrets(rstore *s, sheaf_str text, sheaf_error *err)
{
	bool both;
	if (text.len > SECRET_MAX)
		return err_set(err, SHEAF_INVALID, "user and password are too long");
	sheaf_str user = cut(&text, ':', &both);
	/* One word alone is a password, as redis-cli takes it. */
	if (!both) {
		text = user;
		user.len = 0;
	}
	if (user.len != 0)
		s->user = decode(user);
	s->password = decode(text);
	if (s->password == NULL || (user.len != 0 && s->user == NULL))
		return err_set(err, SHEAF_INVALID, "user or password are not percent-encoded text");
	return 0;
}

static int take_host(rstore *s, sheaf_str text, sheaf_error *err)
{
	char host[REDIS_HOST_ROOM];
	long port = PORT_DEFAULT;
	bool ok = text.len != 0;
	sheaf_str name = text, digits = {NULL, 0};
	if (ok && text.ptr[0] == '[') { /* an address with colons */
		const char *end = memchr(text.ptr, ']', text.len);
		ok = end != NULL;
		name = ok ? str_make(text.ptr + 1, (size_t)(end - text.ptr) - 1) : name;
		digits = ok ? str_make(end + 1, text.len - name.len - 2) : digits;
		ok = ok && (digits.len == 0 || digits.ptr[0] == ':');
		if (ok && digits.len != 0)
			digits = str_make(digits.ptr + 1, digits.len - 1);
	} else if (ok) {
		digits = text;
		name = cut(&digits, ':', &ok);
		ok = true;
	}
	if (ok && digits.len != 0)
		ok = number(digits, 65535, &port) && port != 0;
	if (!ok || name.len == 0 || name.len >= sizeof(host))
		return err_set(err, SHEAF_INVALID,
		               "a redis URL names host:port, and more after a ,");
	str_copy_cut(host, sizeof(host), name);
	if (redis_node(s, host, (int)port) == REDIS_NO_NODE)
		return err_nomem(err);
	s->seed_count = s->node_count;
	return 0;
}

int redis_url_parse(rstore *s, sheaf_str rest, sheaf_error *err)
{
	if (!str_starts(rest, "//"))
		return err_set(err, SHEAF_INVALID, "a redis URL begins with redis://");
	sheaf_str text = str_make(rest.ptr + 2, rest.len - 2), db, hosts;
	bool found;
	const char *at = memrchr(text.ptr, '@', text.len);
	int rc = 0;
	if (at != NULL) {
		rc = take_secrets(s, str_make(text.ptr, (size_t)(at - text.ptr)), err);
		text = str_make(at + 1, text.len - (size_t)(at - text.ptr) - 1);
	}
	db = text;
	hosts = cut(&db, '/', &found);
	if (rc == 0 && db.len != 0 && !number(db, 1000000, &s->db))
		rc = err_set(err, SHEAF_INVALID, "the database of a redis URL is a number");
	if (rc == 0 && hosts.len == 0)
		rc = take_host(s, SHEAF_STR("127.0.0.1"), err);
	while (rc == 0 && hosts.len != 0)
		rc = take_host(s, cut(&hosts, ',', &found), err);
	return rc;
}
