/* Takes store URLs apart and finds the default one. */
#include "store/store_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define PATH_BYTES_MAX 4096u

bool store_scheme_ok(sheaf_str scheme)
{
	if (scheme.len < 2 || scheme.len > 16 || scheme.ptr[0] < 'a' || scheme.ptr[0] > 'z')
		return false;
	for (size_t i = 1; i < scheme.len; i++) {
		char c = scheme.ptr[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+'))
			return false;
	}
	return true;
}

void store_url_free(store_url *u)
{
	mem_free(u->text);
	mem_free(u->path);
	memset(u, 0, sizeof(*u));
}

sheaf_str store_url_option(const void *url, const char *name)
{
	const store_url *u = url;
	for (size_t i = 0; i < u->count; i++) {
		if (strcmp(u->options[i].name, name) == 0)
			return u->options[i].value;
	}
	return (sheaf_str){NULL, 0};
}

/* Paths -------------------------------------------------------------------- */

/* Makes first + second the rest. */
static int set_path(store_url *u, const char *first, const char *second, sheaf_error *err)
{
	_cleanup_(buf_free) buf b = BUF_INIT(PATH_BYTES_MAX);
	buf_add(&b, first, strlen(first));
	buf_add(&b, second, strlen(second));
	buf_nul(&b);
	if (b.status == SHEAF_TOO_LARGE)
		return err_set(err, SHEAF_INVALID, "the path of the store is too long");
	if (b.status != 0)
		return buf_status(&b, err);
	u->path = b.ptr;
	u->rest = (sheaf_str){b.ptr, b.len};
	b.ptr = NULL;
	return 0;
}

/* A relative $HOME would mean another directory after each chdir(). */
static const char *absolute_env(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] == '/' ? value : NULL;
}

static int no_home(sheaf_error *err)
{
	int rc = err_set(err, SHEAF_INVALID, "HOME is not set to an absolute path");
	err_hint(err, "name the store: set SHEAF_STORE=jsonl:/some/dir");
	return rc;
}

static int expand_home(store_url *u, sheaf_error *err)
{
	const char *rest = u->rest.ptr;
	if (rest[0] != '~')
		return 0;
	if (rest[1] != '/' && rest[1] != '\0') {
		int rc = err_set(err, SHEAF_INVALID, "only ~/ is expanded, not ~user");
		err_hint(err, "a directory with such a name is ./~name");
		return rc;
	}
	const char *home = absolute_env("HOME");
	return home != NULL ? set_path(u, home, rest + 1, err) : no_home(err);
}

/* Not through the text of a URL: a '?' in $HOME is part of a path, not the start of options. */
static int set_default(store_url *u, sheaf_error *err)
{
	u->scheme = SHEAF_STR("jsonl");
	const char *data = absolute_env("XDG_DATA_HOME");
	if (data != NULL)
		return set_path(u, data, "/sheaf", err);
	const char *home = absolute_env("HOME");
	return home != NULL ? set_path(u, home, "/.local/share/sheaf", err) : no_home(err);
}

/* Options ------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes %XX in place; false for a '%' without two digits, and for %00, which would cut. */
static bool percent_decode(char *text, size_t *len)
{
	size_t to = 0;
	for (size_t from = 0; text[from] != '\0'; from++) {
		char c = text[from];
		if (c == '%') {
			int high = hex_digit(text[from + 1]);
			int low = high < 0 ? -1 : hex_digit(text[from + 2]);
			if (low < 0 || high * 16 + low == 0)
				return false;
			c = (char)(high * 16 + low);
			from += 2;
		}
		text[to++] = c;
	}
	text[to] = '\0';
	*len = to;
	return true;
}

static bool name_ok(const char *name)
{
	if (name[0] < 'a' || name[0] > 'z')
		return false;
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static int add_option(store_url *u, char *pair, sheaf_error *err)
{
	char *value = strchr(pair, '=');
	if (value == NULL)
		return err_set(err, SHEAF_INVALID, "an option of a store URL is name=value");
	*value++ = '\0';
	if (!name_ok(pair))
		return err_set(err, SHEAF_INVALID, "an option of a store URL has no valid name");
	if (store_url_option(u, pair).ptr != NULL)
		return err_set(err, SHEAF_INVALID, "the store option %s is given twice", pair);
	if (u->count == STORE_URL_OPTIONS_MAX)
		return err_set(err, SHEAF_INVALID, "a store URL has at most %u options",
		               STORE_URL_OPTIONS_MAX);
	size_t len;
	if (!percent_decode(value, &len))
		return err_set(err, SHEAF_INVALID, "the store option %s has a bad %%XX", pair);
	u->options[u->count++] = (store_url_pair){pair, {value, len}};
	return 0;
}

static int add_options(store_url *u, char *query, sheaf_error *err)
{
	while (query != NULL && query[0] != '\0') {
		char *next = strchr(query, '&');
		if (next != NULL) {
			*next++ = '\0';
			if (next[0] == '\0')
				return err_set(err, SHEAF_INVALID, "the store URL ends in '&'");
		}
		int rc = add_option(u, query, err);
		if (rc != 0)
			return rc;
		query = next;
	}
	return 0;
}

/* Whether a space-separated list holds a word. */
static bool lists(const char *words, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = words; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, " ");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
		p += n;
		p += strspn(p, " ");
	}
	return false;
}

static int read_durability(sheaf_str value, int32_t *out, sheaf_error *err)
{
	for (int32_t d = SHEAF_DURABILITY_NONE; d <= SHEAF_DURABILITY_REPLICA; d++) {
		if (str_is(value, sheaf_durability_name(d))) {
			*out = d;
			return 0;
		}
	}
	return err_set(err, SHEAF_INVALID, "durability is none, process, disk or replica");
}

int store_url_settle(const store_url *u, const char *names, sheaf_store_options *options,
                     sheaf_error *err)
{
	for (size_t i = 0; i < u->count; i++) {
		const store_url_pair *o = &u->options[i];
		if (strcmp(o->name, "readonly") == 0) {
			if (!str_is(o->value, "0") && !str_is(o->value, "1"))
				return err_set(err, SHEAF_INVALID, "readonly is 0 or 1");
			if (o->value.ptr[0] == '1')
				options->readonly = 1;
		} else if (strcmp(o->name, "durability") == 0) {
			int32_t asked = 0;
			int rc = read_durability(o->value, &asked, err);
			if (rc != 0)
				return rc;
			/* The greater level gives both what they asked for. */
			if (asked > options->durability)
				options->durability = asked;
		} else if (!lists(names, o->name)) {
			return err_set(err, SHEAF_INVALID, "%s stores have no option %s",
			               u->scheme.ptr, o->name);
		}
	}
	return 0;
}

/* The whole ------------------------------------------------------------------ */

static int split(store_url *u, sheaf_error *err)
{
	char *colon = strchr(u->text, ':');
	size_t len = colon != NULL ? (size_t)(colon - u->text) : 0;
	if (colon == NULL || !store_scheme_ok((sheaf_str){u->text, len})) {
		int rc = err_set(err, SHEAF_INVALID, "a store URL begins with its scheme");
		err_hint(err, "a directory is jsonl:/dir, a store in memory is memory:");
		return rc;
	}
	*colon = '\0';
	u->scheme = (sheaf_str){u->text, len};
	char *rest = colon + 1, *query = strchr(rest, '?');
	if (query != NULL)
		*query++ = '\0';
	u->rest = sheaf_str_of(rest);
	int rc = add_options(u, query, err);
	if (rc == 0 && str_is(u->scheme, "jsonl"))
		rc = expand_home(u, err);
	return rc;
}

int store_url_parse(store_url *u, const char *url, sheaf_error *err)
{
	int rc;
	memset(u, 0, sizeof(*u));
	if (url == NULL) {
		url = getenv("SHEAF_STORE");
		if (url != NULL && url[0] == '\0')
			url = NULL;
	}
	if (url == NULL) {
		rc = set_default(u, err);
	} else {
		u->text = mem_dup(url, strlen(url));
		rc = u->text != NULL ? split(u, err) : err_nomem(err);
	}
	if (rc != 0)
		store_url_free(u);
	return rc;
}
