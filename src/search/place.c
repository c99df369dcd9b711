/*
 * Where the index of a store lies.
 *
 *   DIR/.search/                           a jsonl store that can be written to
 *   $XDG_CACHE_HOME/sheaf/search/HASH/     every other; HASH is of its URL
 *
 * A file there is named index-UUID.db; the greatest name counts and the others
 * go. An index that is thrown away is never made anew under its old name:
 * somebody may still have it open, and SQLite's journals go by names.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "search/search_inside.h"

#define NAME_ROOM 64
#define BESIDE ".search"

/* ---- Directories ------------------------------------------------------------------ */

/* Makes the last part of a path; those before it too with `deep`. */
static int make_dir(char *path, bool deep)
{
	for (char *p = path + 1; deep && *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		int rc = io_mkdir(AT_FDCWD, path, 0700);
		*p = '/';
		if (rc != 0 && errno != EEXIST)
			return -1;
	}
	return io_mkdir(AT_FDCWD, path, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

static bool is_jsonl_dir(const sheaf_store *store, sheaf_str *dir)
{
	sheaf_str place = sheaf_str_of(store_place(store));
	if (!str_starts(place, "jsonl:"))
		return false;
	*dir = str_make(place.ptr + 6, place.len - 6);
	return dir->len < 6 || memcmp(dir->ptr + dir->len - 6, ".jsonl", 6) != 0;
}

/* What stands for the store in the cache: its URL, with the path of a file as it really is. */
static void cache_hash(const sheaf_store *store, char out[33])
{
	const char *place = store_place(store);
	char real[PATH_MAX];
	if (strncmp(place, "jsonl:", 6) == 0 && realpath(place + 6, real) != NULL)
		place = real;
	static const char digits[] = "0123456789abcdef";
	uint64_t halves[2] = {str_hash(sheaf_str_of(place)), 0};
	_cleanup_(buf_free) buf again = BUF_INIT(SIZE_MAX);
	buf_lit(&again, "again:");
	buf_str(&again, sheaf_str_of(place));
	halves[1] = str_hash(buf_view(&again));
	for (int i = 0; i < 32; i++)
		out[i] = digits[halves[i / 16] >> (4 * (i % 16)) & 15];
	out[32] = '\0';
}

static bool cache_dir(const sheaf_store *store, buf *out)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char hash[33];
	if (cache != NULL && cache[0] == '/')
		buf_str(out, sheaf_str_of(cache));
	else if (home != NULL && home[0] == '/')
		buf_format(out, "%s/.cache", home);
	else
		return false;
	cache_hash(store, hash);
	buf_format(out, "/sheaf/search/%s", hash);
	buf_nul(out);
	return out->status == 0;
}

/* Opens the directory: -1 if there is none. */
static int open_dir(buf *path, bool make, bool deep)
{
	buf_nul(path);
	if (path->status != 0)
		return -1;
	int dir = io_open_root(path->ptr, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 && make && make_dir(path->ptr, deep) == 0)
		dir = io_open_root(path->ptr, O_RDONLY | O_DIRECTORY, 0);
	return dir;
}

/* ---- Files -------------------------------------------------------------------------- */

typedef struct naming {
	int dir;
	bool writable;
	char greatest[NAME_ROOM];
} naming;

static bool is_index(const char *name)
{
	size_t len = strlen(name);
	return strncmp(name, "index-", 6) == 0 && len < NAME_ROOM && len > 9 &&
	       strcmp(name + len - 3, ".db") == 0;
}

static int find_greatest(void *ctx, const char *name, unsigned char type)
{
	naming *n = ctx;
	(void)type;
	if (is_index(name) && strcmp(name, n->greatest) > 0)
		memcpy(n->greatest, name, strlen(name) + 1);
	return 0;
}

/* Whatever is not of the greatest: older ones, and journals nobody needs. */
static int drop_others(void *ctx, const char *name, unsigned char type)
{
	naming *n = ctx;
	(void)type;
	if (strncmp(name, "index-", 6) == 0 &&
	    (n->greatest[0] == '\0' || strncmp(name, n->greatest, strlen(n->greatest)) != 0))
		(void)io_unlink(n->dir, name);
	return 0;
}

static int make_file(naming *n)
{
	char id[SHEAF_ID_ROOM];
	if (sheaf_id_new(id, NULL) != 0)
		return -1;
	_cleanup_(buf_free) buf name = BUF_INIT(NAME_ROOM);
	buf_format(&name, "index-%s.db", id);
	buf_nul(&name);
	if (name.status != 0)
		return -1;
	_cleanup_(io_closep) int fd = io_open(n->dir, name.ptr, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return -1;
	memcpy(n->greatest, name.ptr, name.len + 1);
	return 0;
}

/* The file in a directory: 1, 0 if there is none, -1 with errno. */
static int find_file(int dir, buf *path, bool make)
{
	naming n = {.dir = dir, .greatest = ""};
	if (io_each_name(dir, find_greatest, &n) < 0)
		return -1;
	if (n.greatest[0] == '\0' && (!make || make_file(&n) != 0))
		return make ? -1 : 0;
	(void)io_each_name(dir, drop_others, &n);
	buf_char(path, '/');
	buf_str(path, sheaf_str_of(n.greatest));
	buf_nul(path);
	return 1;
}

static int try_dir(buf *path, bool make, bool deep)
{
	_cleanup_(io_closep) int dir = open_dir(path, make, deep);
	if (dir < 0)
		return make ? -1 : 0;
	return find_file(dir, path, make);
}

/* 1 and the path in `b`, 0 if there is none, -1 with errno. */
static int look_beside(sheaf_store *store, buf *b, bool make)
{
	sheaf_str dir;
	if (!is_jsonl_dir(store, &dir) || store_readonly(store))
		return 0;
	buf_str(b, dir);
	buf_lit(b, "/" BESIDE);
	return try_dir(b, make, false);
}

static int take_path(char **path, const buf *b, sheaf_error *err)
{
	if (b->status != 0)
		return buf_status(b, err);
	*path = mem_dup(b->ptr, b->len);
	return *path != NULL ? 0 : err_nomem(err);
}

int place_make(char **path, sheaf_store *store, sheaf_error *err)
{
	_cleanup_(buf_free) buf b = BUF_INIT(PATH_MAX);
	*path = NULL;
	if (str_starts(sheaf_str_of(store_place(store)), "memory:"))
		return 0;
	int found = look_beside(store, &b, true);
	if (found <= 0) {
		buf_reset(&b);
		if (!cache_dir(store, &b))
			return b.status != 0 ? buf_status(&b, err) : 0;
		found = try_dir(&b, true, true);
	}
	if (found < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot make the search index in %s",
		               b.ptr != NULL ? b.ptr : "the cache");
	return take_path(path, &b, err);
}

int place_look(char **path, sheaf_store *store, bool beside, sheaf_error *err)
{
	_cleanup_(buf_free) buf b = BUF_INIT(PATH_MAX);
	int found = 0;
	*path = NULL;
	if (str_starts(sheaf_str_of(store_place(store)), "memory:"))
		return 0;
	if (beside)
		found = look_beside(store, &b, false);
	else if (cache_dir(store, &b))
		found = try_dir(&b, false, false);
	return found > 0 ? take_path(path, &b, err) : 0;
}

void place_drop(const char *path)
{
	_cleanup_(buf_free) buf journal = BUF_INIT(PATH_MAX);
	if (path == NULL)
		return;
	(void)io_unlink(AT_FDCWD, path);
	buf_format(&journal, "%s-journal", path);
	buf_nul(&journal);
	if (journal.status == 0)
		(void)io_unlink(AT_FDCWD, journal.ptr);
}
