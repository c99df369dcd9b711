/* Finds, checks and loads modules. */
#include "base/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "sheaf/sys/seams.h"

#ifndef SHEAF_MODULE_DIR
#define SHEAF_MODULE_DIR "/usr/local/lib/sheaf"
#endif

#define PATH_BYTES_MAX 4096u

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
static int look_at(const char *path, int flags, struct statx *out, sheaf_error *err)
{
	memset(out, 0, sizeof(*out));
	if (sheaf_system_io()->statx(NULL, AT_FDCWD, path, flags, STATX_BASIC_STATS, out) == 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return err_set(err, SHEAF_UNSUPPORTED, "there is no %s", path);
	return err_sys(err, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, errno, "%s", path);
}

/* A link is refused, since it may lead out of the directory that was checked. */
static int check_module(const char *dir, const char *path, sheaf_error *err)
{
	struct statx in, file;
	int rc = look_at(dir, 0, &in, err);
	if (rc == 0)
		rc = look_at(path, AT_SYMLINK_NOFOLLOW, &file, err);
	if (rc == 0)
		rc = check_trust(&in, dir, err);
	if (rc == 0 && !S_ISREG(file.stx_mode))
		rc = err_set(err, SHEAF_DENIED, "%s is no regular file", path);
	return rc == 0 ? check_trust(&file, path, err) : rc;
}

static int load(const char *path, const char *symbol, module *out, sheaf_error *err)
{
	module m = {dlopen(path, RTLD_NOW | RTLD_LOCAL), NULL};
	if (m.handle == NULL) {
		const char *why = dlerror();
		return err_set(err, SHEAF_UNSUPPORTED, "%s", why != NULL ? why : path);
	}
	m.symbol = dlsym(m.handle, symbol);
	if (m.symbol == NULL) {
		module_unload(&m);
		return err_set(err, SHEAF_UNSUPPORTED, "%s has no %s", path, symbol);
	}
	*out = m;
	return 0;
}

int module_load(const char *dir, const char *name, const char *symbol, module *out, bool *there,
                sheaf_error *err)
{
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	buf_format(&path, "%s/%s.so", dir, name);
	buf_nul(&path);
	int rc = buf_status(&path, err);
	if (rc == 0)
		rc = check_module(dir, path.ptr, err);
	*there = rc != SHEAF_UNSUPPORTED;
	return rc == 0 ? load(path.ptr, symbol, out, err) : rc;
}

/*
 * The directory of modules that belongs to the file this code is in: sheaf/
 * beside a library, ../lib/sheaf beside a program. An installation that was
 * moved, and a build tree, find their own modules that way.
 */
static bool own_dir(char *out, size_t room)
{
	static const char here;
	Dl_info self;
	if (dladdr(&here, &self) == 0 || self.dli_fname == NULL || self.dli_fname[0] != '/')
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

int module_find(const char *name, const char *symbol, module *out, bool *there, sheaf_error *err)
{
	char dir[PATH_BYTES_MAX];
	int rc = 0;
	*there = false;
	if (own_dir(dir, sizeof(dir)))
		rc = module_load(dir, name, symbol, out, there, err);
	/* One that is there and cannot be loaded is what is wrong, not that another one is absent. */
	return *there ? rc : module_load(SHEAF_MODULE_DIR, name, symbol, out, there, err);
}

void module_unload(module *m)
{
	if (m->handle != NULL)
		(void)dlclose(m->handle);
	*m = (module){NULL, NULL};
}
