/* URLs of stores, the table of schemes, and modules. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "fake_store.h"
#include "store/store.h"
#include "store/store_url.h"
#include "support/fail_alloc.h"

#define assert_text(str, text)                                                                     \
	do {                                                                                       \
		sheaf_str str_ = (str);                                                            \
		assert_non_null(str_.ptr);                                                         \
		assert_string_equal(str_.ptr, (text));                                             \
		assert_int_equal(str_.len, strlen(text));                                          \
	} while (0)

/* Each test begins with the same surroundings. */
static int surroundings(void **state)
{
	(void)state;
	fake_reset();
	assert_int_equal(setenv("HOME", "/home/a b?c", 1), 0);
	assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
	assert_int_equal(unsetenv("SHEAF_STORE"), 0);
	return 0;
}

/* The scheme "color" of the fake store is registered once for the whole program. */
static int register_fake(void **state)
{
	static const sheaf_store_ops ops = FAKE_OPS("fake");
	(void)state;
	return sheaf_store_register(&ops, NULL);
}

/* Taking apart ------------------------------------------------------------------ */

static void schemes(void **state)
{
	(void)state;
	static const char *const good[] = {"ab", "memory", "postgres+shards",
	                                   "s3", "a+",     "a234567890123456"};
	static const char *const bad[] = {
		"",    "a",   "3s",  "+a",        "Memory",           "a-b",
		"a.b", "a/b", "a b", "\xc3\xa4h", "a2345678901234567"};
	for (size_t i = 0; i < COUNT_OF(good); i++)
		assert_true(store_scheme_ok(sheaf_str_of(good[i])));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(store_scheme_ok(sheaf_str_of(bad[i])));
	assert_false(store_scheme_ok((sheaf_str){NULL, 0}));
}

static void forms(void **state)
{
	(void)state;
	static const struct {
		const char *url, *scheme, *rest;
		size_t options;
	} cases[] = {
		{"memory:", "memory", "", 0},
		{"memory:?", "memory", "", 0},
		{"jsonl:/dir", "jsonl", "/dir", 0},
		{"jsonl:", "jsonl", "", 0},
		{"jsonl:dir/sub", "jsonl", "dir/sub", 0},
		{"jsonl:/path/x.jsonl", "jsonl", "/path/x.jsonl", 0},
		{"jsonl:/dir?readonly=1&unsafe_fs=1", "jsonl", "/dir", 2},
		{"jsonl:/dir/a%2Fb c:d#e", "jsonl", "/dir/a%2Fb c:d#e", 0},
		{"jsonl:~", "jsonl", "/home/a b?c", 0},
		{"jsonl:~/", "jsonl", "/home/a b?c/", 0},
		{"jsonl:~/x?readonly=0", "jsonl", "/home/a b?c/x", 1},
		{"jsonl:./~bob", "jsonl", "./~bob", 0},
		{"jsonl:/x/~/y", "jsonl", "/x/~/y", 0},
		{"postgres://u:p@h:5432/db?prefix=x", "postgres", "//u:p@h:5432/db", 1},
		{"redis:~/x", "redis", "~/x", 0},
		{"postgres+shards:map.json", "postgres+shards", "map.json", 0},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		store_url u;
		assert_int_equal(store_url_parse(&u, cases[i].url, NULL), 0);
		assert_text(u.scheme, cases[i].scheme);
		assert_text(u.rest, cases[i].rest);
		assert_int_equal(u.count, cases[i].options);
		store_url_free(&u);
	}
}

static void refused(void **state)
{
	(void)state;
	static const char *const urls[] = {
		"",
		":",
		":x",
		"/dir",
		"dir",
		"~/dir",
		"jsonl",
		"jsonl/x:y",
		"JSONL:/dir",
		"j:/dir",
		"jsonl :/dir",
		"a2345678901234567:/dir",
		"jsonl:~bob",
		"jsonl:~bob/dir",
		"jsonl:/d?readonly",
		"jsonl:/d?=1",
		"jsonl:/d?a=1&",
		"jsonl:/d?a=1&&b=1",
		"jsonl:/d?&a=1",
		"jsonl:/d?a=1&a=2",
		"jsonl:/d?a=1?b=2&a=3",
		"jsonl:/d?A=1",
		"jsonl:/d?a-b=1",
		"jsonl:/d?1a=1",
		"jsonl:/d?%61=1",
		"jsonl:/d?a=%",
		"jsonl:/d?a=%4",
		"jsonl:/d?a=%4&b=1",
		"jsonl:/d?a=%zz",
		"jsonl:/d?a=%4g",
		"jsonl:/d?a=x%00y",
	};
	for (size_t i = 0; i < COUNT_OF(urls); i++) {
		store_url u;
		sheaf_error err;
		if (store_url_parse(&u, urls[i], &err) != SHEAF_INVALID)
			fail_msg("not refused: %s", urls[i]);
		assert_int_equal(err.code, SHEAF_INVALID);
		assert_true(err.message[0] != '\0');
		assert_null(u.text);
		assert_null(u.path);
	}
}

static void values(void **state)
{
	(void)state;
	store_url u;
	assert_int_equal(
		store_url_parse(&u, "fake:x?a=&b=1%202&c=%26%3d%3F%25&d=p+q=r&e_2=?", NULL), 0);
	assert_int_equal(u.count, 5);
	assert_text(store_url_option(&u, "a"), "");
	assert_text(store_url_option(&u, "b"), "1 2");
	assert_text(store_url_option(&u, "c"), "&=?%");
	assert_text(store_url_option(&u, "d"), "p+q=r");
	assert_text(store_url_option(&u, "e_2"), "?");
	assert_null(store_url_option(&u, "e").ptr);
	assert_null(store_url_option(&u, "").ptr);
	store_url_free(&u);
	store_url_free(&u);
	assert_null(store_url_option(&u, "a").ptr);
}

static void too_many_options(void **state)
{
	(void)state;
	char url[256] = "fake:x?";
	for (unsigned i = 0; i <= STORE_URL_OPTIONS_MAX; i++) {
		store_url u;
		size_t len = strlen(url);
		(void)snprintf(url + len, sizeof(url) - len, "%so%u=1", i == 0 ? "" : "&", i);
		int rc = store_url_parse(&u, url, NULL);
		assert_int_equal(rc, i < STORE_URL_OPTIONS_MAX ? 0 : SHEAF_INVALID);
		store_url_free(&u);
	}
}

/* The environment ------------------------------------------------------------------ */

static void assert_default(const char *scheme, const char *rest)
{
	store_url u;
	assert_int_equal(store_url_parse(&u, NULL, NULL), 0);
	assert_text(u.scheme, scheme);
	assert_text(u.rest, rest);
	store_url_free(&u);
}

static void defaults(void **state)
{
	(void)state;
	assert_default("jsonl", "/home/a b?c/.local/share/sheaf");
	assert_int_equal(setenv("XDG_DATA_HOME", "/data", 1), 0);
	assert_default("jsonl", "/data/sheaf");
	/* The specification says that a relative one is to be ignored. */
	assert_int_equal(setenv("XDG_DATA_HOME", "data", 1), 0);
	assert_default("jsonl", "/home/a b?c/.local/share/sheaf");
	assert_int_equal(setenv("XDG_DATA_HOME", "", 1), 0);
	assert_default("jsonl", "/home/a b?c/.local/share/sheaf");
	assert_int_equal(setenv("SHEAF_STORE", "", 1), 0);
	assert_default("jsonl", "/home/a b?c/.local/share/sheaf");
	assert_int_equal(setenv("SHEAF_STORE", "memory:", 1), 0);
	assert_default("memory", "");
	assert_int_equal(setenv("SHEAF_STORE", "jsonl:~/s", 1), 0);
	assert_default("jsonl", "/home/a b?c/s");

	store_url u;
	assert_int_equal(setenv("SHEAF_STORE", "nonsense", 1), 0);
	assert_int_equal(store_url_parse(&u, NULL, NULL), SHEAF_INVALID);
}

static void no_home(void **state)
{
	(void)state;
	static const char *const homes[] = {NULL, "", "relative"};
	for (size_t i = 0; i < COUNT_OF(homes); i++) {
		store_url u;
		sheaf_error err;
		if (homes[i] != NULL)
			assert_int_equal(setenv("HOME", homes[i], 1), 0);
		else
			assert_int_equal(unsetenv("HOME"), 0);
		assert_int_equal(store_url_parse(&u, "jsonl:~/x", &err), SHEAF_INVALID);
		assert_true(err.hint[0] != '\0');
		assert_int_equal(store_url_parse(&u, NULL, &err), SHEAF_INVALID);
		assert_int_equal(store_url_parse(&u, "jsonl:/x", &err), 0);
		store_url_free(&u);
	}
	char longest[8192];
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	store_url u;
	assert_int_equal(setenv("HOME", longest, 1), 0);
	assert_int_equal(store_url_parse(&u, NULL, NULL), SHEAF_INVALID);
}

/* Options of every store -------------------------------------------------------------- */

static int settle(const char *url, const char *names, sheaf_store_options *options)
{
	store_url u;
	assert_int_equal(store_url_parse(&u, url, NULL), 0);
	int rc = store_url_settle(&u, names, options, NULL);
	store_url_free(&u);
	return rc;
}

static void common_options(void **state)
{
	(void)state;
	static const struct {
		const char *url;
		int32_t readonly, durability; /* asked by the caller */
		int rc;
		int32_t readonly_after, durability_after;
	} cases[] = {
		{"fake:", 0, 0, 0, 0, 0},
		{"fake:?readonly=1", 0, 0, 0, 1, 0},
		{"fake:?readonly=0", 0, 0, 0, 0, 0},
		{"fake:?readonly=0", 1, 0, 0, 1, 0},
		{"fake:?readonly=", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?readonly=2", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?readonly=yes", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?durability=none", 0, 0, 0, 0, SHEAF_DURABILITY_NONE},
		{"fake:?durability=process", 0, 0, 0, 0, SHEAF_DURABILITY_PROCESS},
		{"fake:?durability=disk", 0, 0, 0, 0, SHEAF_DURABILITY_DISK},
		{"fake:?durability=replica", 0, 0, 0, 0, SHEAF_DURABILITY_REPLICA},
		{"fake:?durability=default", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?durability=Disk", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?durability=", 0, 0, SHEAF_INVALID, 0, 0},
		{"fake:?durability=process", 0, 3, 0, 0, 3},
		{"fake:?durability=disk", 0, 2, 0, 0, 3},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
		options.readonly = cases[i].readonly;
		options.durability = cases[i].durability;
		assert_int_equal(settle(cases[i].url, NULL, &options), cases[i].rc);
		assert_int_equal(options.readonly, cases[i].readonly_after);
		assert_int_equal(options.durability, cases[i].durability_after);
	}
}

static void own_options(void **state)
{
	(void)state;
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	assert_int_equal(settle("fake:?color=red", "unsafe_fs color", &options), 0);
	assert_int_equal(settle("fake:?unsafe_fs=1", "unsafe_fs color", &options), 0);
	assert_int_equal(settle("fake:?colo=1", "unsafe_fs color", &options), SHEAF_INVALID);
	assert_int_equal(settle("fake:?colors=1", "unsafe_fs color", &options), SHEAF_INVALID);
	assert_int_equal(settle("fake:?unsafe=1", "unsafe_fs  color", &options), SHEAF_INVALID);
	assert_int_equal(settle("fake:?color=1", "unsafe_fs  color", &options), 0);
	assert_int_equal(settle("fake:?color=1", "", &options), SHEAF_INVALID);
	assert_int_equal(settle("fake:?color=1", NULL, &options), SHEAF_INVALID);
}

static void reaches_the_store(void **state)
{
	(void)state;
	sheaf_store *s = NULL;
	sheaf_error err;
	assert_int_equal(sheaf_open(&s, "fake:a/b?color=%23f00&durability=disk", NULL, &err), 0);
	assert_string_equal(fake.rest, "a/b");
	assert_true(fake.has_value);
	assert_string_equal(fake.value, "#f00");
	assert_int_equal(fake.options.size, sizeof(sheaf_store_options));
	assert_int_equal(fake.options.durability, SHEAF_DURABILITY_DISK);
	sheaf_close(s);
	assert_int_equal(fake.closed, 1);

	s = NULL;
	assert_int_equal(sheaf_open(&s, "fake:a?colour=1", NULL, &err), SHEAF_INVALID);
	assert_string_equal(err.message, "fake stores have no option colour");
	assert_int_equal(sheaf_open(&s, "memory:?color=1", NULL, &err), SHEAF_INVALID);
	assert_int_equal(sheaf_open(&s, "memory:x", NULL, &err), SHEAF_INVALID);
	assert_null(s);
	assert_int_equal(fake.opened, 1);

	assert_int_equal(setenv("SHEAF_STORE", "fake:from-environment", 1), 0);
	assert_int_equal(sheaf_open(&s, NULL, NULL, &err), 0);
	assert_string_equal(fake.rest, "from-environment");
	assert_false(fake.has_value);
	sheaf_close(s);
}

/* A URL may hold a password; no message may. */
static void no_secrets(void **state)
{
	(void)state;
	static const char *const urls[] = {
		"nosuch://u:hunter2@h/db",
		"hunter2",
		"fake:hunter2?hunter2",
		"fake:hunter2?a=hunter2",
		"fake:hunter2?readonly=hunter2",
		"fake:hunter2?durability=hunter2",
		"fake:hunter2?color=%hunter2",
		"memory:hunter2",
		"jsonl:~hunter2",
	};
	for (size_t i = 0; i < COUNT_OF(urls); i++) {
		sheaf_store *s = NULL;
		sheaf_error err;
		assert_true(sheaf_open(&s, urls[i], NULL, &err) < 0);
		assert_null(s);
		assert_null(strstr(err.message, "hunter2"));
		assert_null(strstr(err.hint, "hunter2"));
	}
}

static void open_without_memory(void **state)
{
	(void)state;
	assert_int_equal(setenv("HOME", "/home", 1), 0);
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		sheaf_store *s = NULL;
		sheaf_error err;
		fail_alloc_at(n, false);
		int rc = sheaf_open(&s, "memory:?readonly=1", NULL, &err);
		if (!fail_alloc_hit()) {
			assert_int_equal(rc, 0);
			sheaf_close(s);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_null(s);
		assert_int_equal(fail_alloc_live(), 0);
	}
	for (size_t n = 1;; n++) {
		store_url u;
		fail_alloc_at(n, false);
		int rc = store_url_parse(&u, "jsonl:~/x", NULL);
		if (!fail_alloc_hit()) {
			assert_int_equal(rc, 0);
			store_url_free(&u);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_int_equal(fail_alloc_live(), 0);
	}
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

/* Registering --------------------------------------------------------------------------- */

static void register_refusals(void **state)
{
	(void)state;
	sheaf_error err;
	sheaf_store_ops ops = FAKE_OPS("refused");
	assert_int_equal(sheaf_store_register(NULL, &err), SHEAF_INVALID);
	ops.size = 0;
	assert_int_equal(sheaf_store_register(&ops, &err), SHEAF_INVALID);
	ops.size = offsetof(sheaf_store_ops, check) - 1;
	assert_int_equal(sheaf_store_register(&ops, &err), SHEAF_INVALID);
	ops.size = sizeof(ops);
	static const char *const bad[] = {NULL, "", "a", "A", "a:b", "a2345678901234567"};
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		ops.scheme = bad[i];
		assert_int_equal(sheaf_store_register(&ops, &err), SHEAF_INVALID);
	}
	static const char *const taken[] = {"memory", "jsonl", "fake"};
	for (size_t i = 0; i < COUNT_OF(taken); i++) {
		ops.scheme = taken[i];
		assert_int_equal(sheaf_store_register(&ops, &err), SHEAF_EXISTS);
	}
	sheaf_store *s = NULL;
	assert_int_equal(sheaf_open(&s, "refused:", NULL, &err), SHEAF_UNSUPPORTED);
}

static void register_missing_slots(void **state)
{
	(void)state;
	sheaf_error err;
	char expected[128];
#define WITHOUT(slot)                                                                              \
	do {                                                                                       \
		sheaf_store_ops ops = FAKE_OPS("without");                                         \
		ops.slot = NULL;                                                                   \
		assert_int_equal(sheaf_store_register(&ops, &err), SHEAF_INVALID);                 \
		(void)snprintf(expected, sizeof(expected),                                         \
		               "the table of without lacks the slot " #slot);                      \
		assert_string_equal(err.message, expected);                                        \
	} while (0)
	WITHOUT(open);
	WITHOUT(close);
	WITHOUT(describe);
	WITHOUT(head);
	WITHOUT(append);
	WITHOUT(scan);
	WITHOUT(find);
	WITHOUT(header);
	WITHOUT(list);
	WITHOUT(remove);
	WITHOUT(replace);
	static sheaf_store_ops enough = FAKE_OPS("enough");
	enough.check = NULL;
	enough.repair = NULL;
	enough.option_names = NULL;
	assert_int_equal(sheaf_store_register(&enough, &err), 0);
}

/* Slots behind the end of an older table are not looked at. */
static void older_table(void **state)
{
	(void)state;
	static sheaf_store_ops older = FAKE_OPS("older");
	older.size = offsetof(sheaf_store_ops, check);
	assert_int_equal(sheaf_store_register(&older, NULL), 0);
	sheaf_store *s = NULL;
	assert_int_equal(sheaf_open(&s, "older:x", NULL, NULL), 0);
	sheaf_store_info info = {.size = sizeof(info)};
	assert_int_equal(sheaf_store_describe(s, &info, NULL), 0);
	assert_string_equal(info.scheme, "older");
	assert_int_equal(info.repairs, 0);
	sheaf_check_totals totals;
	assert_int_equal(store_check(s, NULL, NULL, NULL, &totals, NULL), SHEAF_UNSUPPORTED);
	assert_int_equal(fake.calls, 0);
	sheaf_close(s);
}

static void *register_racing(void *ops)
{
	return (void *)(intptr_t)sheaf_store_register(ops, NULL);
}

static void register_race(void **state)
{
	(void)state;
	enum {
		THREADS = 8
	};
	static sheaf_store_ops ops[THREADS];
	pthread_t threads[THREADS];
	int won = 0;
	for (int i = 0; i < THREADS; i++) {
		ops[i] = (sheaf_store_ops)FAKE_OPS("racing");
		assert_int_equal(pthread_create(&threads[i], NULL, register_racing, &ops[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *rc;
		assert_int_equal(pthread_join(threads[i], &rc), 0);
		if ((intptr_t)rc == 0)
			won++;
		else
			assert_int_equal((intptr_t)rc, SHEAF_EXISTS);
	}
	assert_int_equal(won, 1);
}

/* Modules -------------------------------------------------------------------------------- */

static char module_dir[512];

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void module_path(char out[1024], const char *name)
{
	(void)snprintf(out, 1024, "%s/%s", module_dir, name);
}

static int make_module_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");
	(void)snprintf(module_dir, sizeof(module_dir), "%s/sheaf-modules-XXXXXX",
	               tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
	return mkdtemp(module_dir) != NULL ? surroundings(state) : -1;
}

static int remove_module_dir(void **state)
{
	static const char *const names[] = {"plain.so", "link.so", "other.so", "empty.so",
	                                    "good.so",  "bare.so", "m.c"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char path[1024];
		module_path(path, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(module_dir);
	return 0;
}

static int load(const char *scheme, sheaf_error *err)
{
	const sheaf_store_ops *ops = NULL;
	int rc = store_module_load(module_dir, sheaf_str_of(scheme), &ops, err);
	assert_true((rc == 0) == (ops != NULL));
	return rc;
}

static void module_absent(void **state)
{
	(void)state;
	sheaf_error err;
	sheaf_store *s = NULL;
	const sheaf_store_ops *ops = NULL;
	assert_int_equal(load("absent", &err), SHEAF_UNSUPPORTED);
	assert_string_equal(err.message, "no store is known for the scheme absent");
	assert_int_equal(sheaf_open(&s, "absent:x", NULL, &err), SHEAF_UNSUPPORTED);
	assert_string_equal(err.message, "no store is known for the scheme absent");
	assert_int_equal(store_module_load("/nonexistent/dir", SHEAF_STR("absent"), &ops, &err),
	                 SHEAF_UNSUPPORTED);
	assert_null(ops);
}

static void module_untrusted(void **state)
{
	(void)state;
	sheaf_error err;
	char plain[1024], link[1024];
	module_path(plain, "plain.so");
	module_path(link, "link.so");
	write_text(plain, "this is no library\n");

	static const mode_t bad[] = {0664, 0646, 0666, 0620, 0602};
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(chmod(plain, bad[i]), 0);
		assert_int_equal(load("plain", &err), SHEAF_DENIED);
	}
	assert_int_equal(chmod(plain, 0644), 0);
	static const mode_t bad_dir[] = {0770, 0707, 0777, 01777};
	for (size_t i = 0; i < COUNT_OF(bad_dir); i++) {
		assert_int_equal(chmod(module_dir, bad_dir[i]), 0);
		assert_int_equal(load("plain", &err), SHEAF_DENIED);
		/* Nothing to load is no danger. */
		assert_int_equal(load("absent", &err), SHEAF_UNSUPPORTED);
	}
	assert_int_equal(chmod(module_dir, 0755), 0);
	assert_int_equal(symlink(plain, link), 0);
	assert_int_equal(load("link", &err), SHEAF_DENIED);
	assert_int_equal(load("plain", &err),
	                 SHEAF_UNSUPPORTED); /* now dlopen() says what is wrong */
	assert_true(err.message[0] != '\0');

	if (geteuid() == 0) {
		assert_int_equal(chown(plain, 65534, 65534), 0);
		assert_int_equal(load("plain", &err), SHEAF_DENIED);
		assert_int_equal(chown(plain, 0, 0), 0);
		assert_int_equal(chown(module_dir, 65534, 65534), 0);
		assert_int_equal(load("plain", &err), SHEAF_DENIED);
		assert_int_equal(chown(module_dir, 0, 0), 0);
	}
}

/* Compiles a module with the system's compiler; false if there is none. */
static bool build_module(const char *name, const char *text)
{
	char source[1024], target[1024], command[4096];
	module_path(source, "m.c");
	module_path(target, name);
	write_text(source, text);
	const char *cc = getenv("CC");
	(void)snprintf(command, sizeof(command),
	               "'%s' -shared -fPIC -o '%s' '%s' >/dev/null 2>&1 && chmod 0644 '%s'",
	               cc != NULL && cc[0] != '\0' ? cc : "cc", target, source, target);
	return system(command) == 0;
}

/* The layout of a table, for modules that are built without our headers. */
#define MODULE(scheme)                                                                             \
	"#include <stddef.h>\n"                                                                    \
	"static int fn(void) { return -18; }\n"                                                    \
	"const struct { size_t size; const char *scheme; int (*open)(void);\n"                     \
	"  const char *options; int (*slots[10])(void); } sheaf_store_module =\n"                  \
	"  {sizeof(sheaf_store_module), \"" scheme "\", fn, NULL,\n"                               \
	"   {fn, fn, fn, fn, fn, fn, fn, fn, fn, fn}};\n"

static void module_loaded(void **state)
{
	(void)state;
	sheaf_error err;
	if (!build_module("empty.so", "int sheaf_nothing;\n")) {
		print_message("no compiler: skipped\n");
		skip();
	}
	assert_int_equal(load("empty", &err), SHEAF_UNSUPPORTED);
	assert_non_null(strstr(err.message, "has no sheaf_store_module"));
	assert_true(build_module("other.so", MODULE("another")));
	assert_int_equal(load("other", &err), SHEAF_UNSUPPORTED);
	assert_true(build_module("bare.so",
	                         "const struct { unsigned long size; const char *scheme; }\n"
	                         "sheaf_store_module = {16, \"bare\"};\n"));
	assert_int_equal(load("bare", &err), SHEAF_INVALID);

	assert_true(build_module("good.so", MODULE("good")));
	const sheaf_store_ops *first = NULL, *second = NULL;
	assert_int_equal(store_module_load(module_dir, SHEAF_STR("good"), &first, &err), 0);
	assert_string_equal(first->scheme, "good");
	/* A second one, as another thread may have loaded it, gives the same table. */
	assert_int_equal(store_module_load(module_dir, SHEAF_STR("good"), &second, &err), 0);
	assert_ptr_equal(first, second);
	sheaf_store *s = NULL;
	assert_int_equal(sheaf_open(&s, "good:", NULL, &err), SHEAF_UNSUPPORTED);
	assert_string_equal(err.message, sheaf_code_text(SHEAF_UNSUPPORTED));
}

/* Last: the table cannot be emptied again. */
static void register_limit(void **state)
{
	(void)state;
	static sheaf_store_ops ops[STORE_SCHEMES_MAX + 1];
	static char names[STORE_SCHEMES_MAX + 1][16];
	int rc = 0;
	size_t i = 0;
	for (; i < COUNT_OF(ops) && rc == 0; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "many%zu", i);
		ops[i] = (sheaf_store_ops)FAKE_OPS(names[i]);
		rc = sheaf_store_register(&ops[i], NULL);
	}
	assert_int_equal(rc, SHEAF_LIMIT);
	sheaf_store *s = NULL;
	assert_int_equal(sheaf_open(&s, "many0:", NULL, NULL), 0);
	sheaf_close(s);
	assert_int_equal(sheaf_store_register(&ops[0], NULL), SHEAF_EXISTS);
}

#define CASE(name) cmocka_unit_test_setup(name, surroundings)
#define MODULE_CASE(name) cmocka_unit_test_setup_teardown(name, make_module_dir, remove_module_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(schemes),
		CASE(forms),
		CASE(refused),
		CASE(values),
		CASE(too_many_options),
		CASE(defaults),
		CASE(no_home),
		CASE(common_options),
		CASE(own_options),
		CASE(reaches_the_store),
		CASE(no_secrets),
		CASE(open_without_memory),
		CASE(register_refusals),
		CASE(register_missing_slots),
		CASE(older_table),
		CASE(register_race),
		MODULE_CASE(module_absent),
		MODULE_CASE(module_untrusted),
		MODULE_CASE(module_loaded),
		CASE(register_limit),
	};
	return cmocka_run_group_tests(tests, register_fake, NULL);
}
