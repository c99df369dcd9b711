/* Knows which table serves which scheme: built in, registered, or loaded from a module. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "sheaf/sys/seams.h"
#include "store/store.h"
#include "store/store_url.h"

#ifndef SHEAF_MODULE_DIR
#define SHEAF_MODULE_DIR "/usr/local/lib/sheaf"
#endif

#define MODULE_SYMBOL "sheaf_store_module"
#define PATH_BYTES_MAX 4096u

/*
 * Filled from the front and never emptied, so a slot that is set stays as it
 * is. No mutex: another thread may hold one at the moment of a fork(), and the
 * child must be able to open its own store.
 */
static _Atomic(const sheaf_store_ops *) schemes[STORE_SCHEMES_MAX] = {
	&store_memory_ops,
	&store_jsonl_ops,
};

static const sheaf_store_ops *registered(sheaf_str scheme)
{
	for (size_t i = 0; i < STORE_SCHEMES_MAX; i++) {
		const sheaf_store_ops *ops = atomic_load(&schemes[i]);
		if (ops == NULL)
			return NULL;
		if (str_is(scheme, ops->scheme))
			return ops;
	}
	return NULL;
}

/* Takes the first free slot. Whoever else adds the same scheme meets it there. */
static int add(const sheaf_store_ops *ops, sheaf_error *err)
{
	for (size_t i = 0; i < STORE_SCHEMES_MAX; i++) {
		const sheaf_store_ops *there = NULL;
		if (atomic_compare_exchange_strong(&schemes[i], &there, ops))
			return 0;
		if (strcmp(there->scheme, ops->scheme) == 0)
			return err_set(err, SHEAF_EXISTS, "the scheme %s is taken", ops->scheme);
	}
	return err_set(err, SHEAF_LIMIT, "at most %u schemes can be known", STORE_SCHEMES_MAX);
}

int sheaf_store_register(const sheaf_store_ops *ops, sheaf_error *err)
{
	/* `check` is the first slot that a table may be too old to have. */
	if (ops == NULL || ops->size < offsetof(sheaf_store_ops, check))
		return err_set(err, SHEAF_INVALID, "the store's table is too small");
	if (!store_scheme_ok(sheaf_str_of(ops->scheme)))
		return err_set(err, SHEAF_INVALID, "a scheme is spelled [a-z][a-z0-9+]{1,15}");
	const char *missing = NULL;
#define REQUIRE(slot)                                                                              \
	if (ops->slot == NULL && missing == NULL)                                                  \
		missing = #slot;
	REQUIRE(open)
	REQUIRE(close)
	REQUIRE(describe)
	REQUIRE(head)
	REQUIRE(append)
	REQUIRE(scan)
	REQUIRE(find)
	REQUIRE(header)
	REQUIRE(list)
	REQUIRE(remove)
	REQUIRE(replace)
#undef REQUIRE
	if (missing != NULL)
		return err_set(err, SHEAF_INVALID, "the table of %s lacks the slot %s", ops->scheme,
		               missing);
	return add(ops, err);
}

/* Modules -------------------------------------------------------------------- */

/* What is loaded runs as the user: nobody else may have had a hand in it. */
static int check_trust(const struct statx *st, const char *path, sheaf_error *err)
{
	if (st->stx_uid != 0 && st->stx_uid != geteuid())
		return err_set(err, SHEAF_DENIED, "%s belongs to another user", path);
	if ((st->stx_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, SHEAF_DENIED, "%s can be written by others", path);
	return 0;
}

/*
 * By the system's own call, also where a test has replaced the others: dlopen()
 * looks at the real file too. Absence is SHEAF_UNSUPPORTED.
 */
static int look_at(const char *path, int flags, struct statx *out, sheaf_str scheme,
                   sheaf_error *err)
{
	memset(out, 0, sizeof(*out));
	if (sheaf_system_io()->statx(NULL, AT_FDCWD, path, flags, STATX_BASIC_STATS, out) == 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return err_set(err, SHEAF_UNSUPPORTED, "no store is known for the scheme %s",
		               scheme.ptr);
	return err_sys(err, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, errno, "%s", path);
}

/* A link is refused, since it may lead out of the directory that was checked. */
static int check_module(const char *dir, const char *path, sheaf_str scheme, sheaf_error *err)
{
	struct statx in, file;
	int rc = look_at(dir, 0, &in, scheme, err);
	if (rc == 0)
		rc = look_at(path, AT_SYMLINK_NOFOLLOW, &file, scheme, err);
	if (rc == 0)
		rc = check_trust(&in, dir, err);
	if (rc == 0 && !S_ISREG(file.stx_mode))
		rc = err_set(err, SHEAF_DENIED, "%s is no regular file", path);
	return rc == 0 ? check_trust(&file, path, err) : rc;
}

static int load(const char *path, sheaf_str scheme, const sheaf_store_ops **out, sheaf_error *err)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module == NULL) {
		const char *why = dlerror();
		return err_set(err, SHEAF_UNSUPPORTED, "%s", why != NULL ? why : path);
	}
	const sheaf_store_ops *ops = dlsym(module, MODULE_SYMBOL);
	int rc = 0;
	if (ops == NULL)
		rc = err_set(err, SHEAF_UNSUPPORTED, "%s has no " MODULE_SYMBOL, path);
	else if (ops->scheme == NULL || !str_is(scheme, ops->scheme))
		rc = err_set(err, SHEAF_UNSUPPORTED, "%s is a store for another scheme", path);
	else
		rc = sheaf_store_register(ops, err);
	/*
	 * Taken means that another thread was faster, or that the module has registered itself.
	 * Either way it stays loaded: the table that is known may live in it.
	 */
	if (rc == 0 || rc == SHEAF_EXISTS) {
		*out = registered(scheme);
		return 0;
	}
	(void)dlclose(module);
	return rc;
}

/* `*there` says whether the directory has such a module, whatever is wrong with it. */
static int load_from(const char *dir, sheaf_str scheme, const sheaf_store_ops **out, bool *there,
                     sheaf_error *err)
{
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	buf_format(&path, "%s/%s.so", dir, scheme.ptr);
	buf_nul(&path);
	int rc = buf_status(&path, err);
	if (rc == 0)
		rc = check_module(dir, path.ptr, scheme, err);
	*there = rc != SHEAF_UNSUPPORTED;
	if (rc == 0)
		rc = load(path.ptr, scheme, out, err);
	return rc;
}

int store_module_load(const char *dir, sheaf_str scheme, const sheaf_store_ops **out,
                      sheaf_error *err)
{
	bool there;
	return load_from(dir, scheme, out, &there, err);
}

/*
 * The directory of modules that belongs to the file this code is in: sheaf/
 * beside a library, ../lib/sheaf beside a program. An installation that was
 * moved, and a build tree, find their own modules that way. Nothing of it comes
 * from the environment.
 */
static bool own_dir(char *out, size_t room)
{
	Dl_info self;
	if (dladdr(&schemes, &self) == 0 || self.dli_fname == NULL || self.dli_fname[0] != '/')
		return false;
	const char *end = strrchr(self.dli_fname, '/');
	size_t len = (size_t)(end - self.dli_fname);
	bool in_bin = len >= 4 && memcmp(end - 4, "/bin", 4) == 0;
	const char *below = in_bin ? "/../lib/sheaf" : "/sheaf";
	if (len + strlen(below) + 1 > room)
		return false;
	memcpy(out, self.dli_fname, len);
	memcpy(out + len, below, strlen(below) + 1);
	return true;
}

int store_scheme_find(sheaf_str scheme, const sheaf_store_ops **out, sheaf_error *err)
{
	*out = registered(scheme);
	if (*out != NULL)
		return 0;
	char dir[PATH_BYTES_MAX];
	bool there = false;
	int rc = 0;
	if (own_dir(dir, sizeof(dir)))
		rc = load_from(dir, scheme, out, &there, err);
	/* One that is there and cannot be loaded is what is wrong, not that another one is absent. */
	return there ? rc : store_module_load(SHEAF_MODULE_DIR, scheme, out, err);
}
