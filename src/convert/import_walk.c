/* Which files are imported: the one named, or all below a directory that a converter knows. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "convert/import_inside.h"

#define DEPTH_MAX 32

typedef struct names {
	char **items;
	size_t count, room;
} names;

static void names_free(names *n)
{
	for (size_t i = 0; i < n->count; i++)
		mem_free(n->items[i]);
	mem_free(n->items);
}

/* Adds DIR/NAME. */
static int names_add(names *n, sheaf_str dir, const char *name)
{
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	void *items = n->items;
	buf_str(&path, dir);
	if (dir.len != 0 && dir.ptr[dir.len - 1] != '/')
		buf_char(&path, '/');
	buf_str(&path, sheaf_str_of(name));
	if (path.status == SHEAF_TOO_LARGE)
		return 0;
	if (path.status != 0 || mem_grow(&items, &n->room, n->count + 1, sizeof(*n->items)) != 0)
		return SHEAF_NOMEM;
	n->items = items;
	n->items[n->count] = mem_dup(path.ptr, path.len);
	if (n->items[n->count] == NULL)
		return SHEAF_NOMEM;
	n->count++;
	return 0;
}

typedef struct listing {
	names *names;
	sheaf_str dir;
} listing;

static int listing_add(void *ctx, const char *name, unsigned char type)
{
	listing *l = ctx;
	if (type != DT_REG && type != DT_DIR && type != DT_UNKNOWN)
		return 0;
	return names_add(l->names, l->dir, name);
}

/* Sorted, so that what is imported does not depend on the order of a directory. */
static void names_sort(names *n)
{
	for (size_t gap = n->count / 2; gap > 0; gap /= 2) {
		for (size_t i = gap; i < n->count; i++) {
			char *item = n->items[i];
			size_t k = i;
			for (; k >= gap && strcmp(n->items[k - gap], item) > 0; k -= gap)
				n->items[k] = n->items[k - gap];
			n->items[k] = item;
		}
	}
}

/* Opens a directory; -1 with errno ENOTDIR for what is none. */
static int dir_open(const char *path)
{
	return io_open_root(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

static int dir_list(names *out, const char *path, sheaf_error *err)
{
	_cleanup_(io_closep) int fd = dir_open(path);
	listing l = {out, sheaf_str_of(path)};
	if (fd < 0)
		return err_sys(err, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, errno, "%s",
		               path);
	int rc = io_each_name(fd, listing_add, &l);
	if (rc == SHEAF_NOMEM)
		return err_nomem(err);
	if (rc != 0)
		return err_sys(err, SHEAF_STORAGE, errno, "%s", path);
	names_sort(out);
	return 0;
}

int file_below(report *r, sheaf_store *store, const sheaf_import_options *options, const char *path,
               sheaf_error *err)
{
	sheaf_error mine = {0};
	int rc = import_file(r, store, options, sheaf_str_of(path), &mine);
	if (rc == 0 || rc == SHEAF_FORMAT)
		return 0;
	if (rc == SHEAF_NOT_FOUND || rc == SHEAF_DENIED || rc == SHEAF_LIMIT ||
	    rc == SHEAF_INVALID || rc == SHEAF_UNSUPPORTED)
		return report_problem(r, sheaf_str_of(path), 0, sheaf_str_of(mine.message), err);
	*err = mine;
	return rc;
}

static bool is_dir(const char *path)
{
	_cleanup_(io_closep) int fd = dir_open(path);
	return fd >= 0;
}

bool is_there(const char *path)
{
	_cleanup_(io_closep) int fd = io_open_root(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	return fd >= 0;
}

/* A directory below another: one that cannot be read is a problem. */
static int dir_below(report *r, names *out, const char *path, sheaf_error *err)
{
	sheaf_error mine = {0};
	int rc = dir_list(out, path, &mine);
	if (rc == SHEAF_DENIED)
		return report_problem(r, sheaf_str_of(path), 0, sheaf_str_of(mine.message), err);
	if (rc != 0)
		*err = mine;
	return rc;
}

static void many_drop(many **m)
{
	many_free(*m);
}

static int walk(report *r, sheaf_store *store, sheaf_import_options *options, const char *top,
                sheaf_error *err)
{
	/* Other files lie there, too: a format that is asked for is a choice among them. */
	r->only = options->format;
	options->format = (sheaf_str){NULL, 0};
	names levels[DEPTH_MAX] = {0};
	size_t at[DEPTH_MAX] = {0}, depth = 0;
	_cleanup_(many_drop) many *files = NULL;
	int rc = many_new(&files, r, store, options, err);
	if (rc == 0)
		rc = dir_list(&levels[0], top, err);
	while (rc == 0) {
		if (at[depth] == levels[depth].count) {
			names_free(&levels[depth]);
			levels[depth] = (names){0};
			at[depth] = 0;
			if (depth-- == 0)
				break;
			continue;
		}
		const char *path = levels[depth].items[at[depth]++];
		if (!is_dir(path))
			rc = many_add(files, path, err);
		else if (depth + 1 < DEPTH_MAX)
			rc = dir_below(r, &levels[++depth], path, err);
		else
			rc = report_problem(r, sheaf_str_of(path), 0,
			                    SHEAF_STR("too deep: not looked into"), err);
	}
	for (size_t i = 0; i < DEPTH_MAX; i++)
		names_free(&levels[i]);
	return rc == 0 ? many_end(files, err) : rc;
}

int sheaf_import(sheaf_import_report **out, sheaf_store *store, sheaf_str path,
                 const sheaf_import_options *options, sheaf_error *err)
{
	sheaf_error mine = {0};
	if (out == NULL || store == NULL || path.len == 0)
		return err_set(err, SHEAF_INVALID, "an import needs a store, a path and a place");
	sheaf_import_options whole = SHEAF_IMPORT_OPTIONS_INIT;
	if (options != NULL)
		memcpy(&whole, options,
		       options->size < sizeof(whole) ? options->size : sizeof(whole));
	if (whole.format.len != 0 && converter_named(whole.format) == NULL)
		return err_set(err, SHEAF_INVALID, "there is no format of that name");
	report *r = report_new();
	char *name = mem_dup(path.ptr, path.len);
	int rc = r != NULL && name != NULL ? 0 : err_nomem(&mine);
	if (rc == 0)
		rc = is_dir(name) ? walk(r, store, &whole, name, &mine)
		                  : import_file(r, store, &whole, sheaf_str_of(name), &mine);
	mem_free(name);
	if (rc != 0 && err != NULL)
		*err = mine;
	*out = r != NULL ? &r->is : NULL;
	return rc;
}

/* ---- Places --------------------------------------------------------------- */

typedef struct places {
	sheaf_import_places is; /* first: the caller's pointer is also this struct's */
	arena *arena;
	sheaf_import_place **items;
	size_t room;
} places;

/* Where an agent keeps things: below the home directory, or where its variable says. */
static void home_put(buf *out, const converter *how, sheaf_str home)
{
	const char *own = home.ptr == NULL && how->is.home_variable != NULL
	                          ? getenv(how->is.home_variable)
	                          : NULL;
	if (own != NULL && own[0] != '\0') {
		buf_str(out, sheaf_str_of(own));
		return;
	}
	buf_str(out, home.ptr != NULL ? home : sheaf_str_of(getenv("HOME")));
	buf_char(out, '/');
	buf_str(out, sheaf_str_of(how->is.home));
}

static int place_add(places *p, const converter *how, sheaf_str home, const char *below)
{
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	void *items = p->items;
	int ok = 1;
	home_put(&path, how, home);
	if (path.len != 0 && path.ptr[path.len - 1] != '/')
		buf_char(&path, '/');
	buf_str(&path, sheaf_str_of(below));
	buf_nul(&path);
	if (path.status == SHEAF_TOO_LARGE || (path.status == 0 && !is_there(path.ptr)))
		return 0;
	if (path.status != 0 || mem_grow(&items, &p->room, p->is.count + 1, sizeof(*p->items)) != 0)
		return SHEAF_NOMEM;
	p->items = items;
	sheaf_import_place *place = arena_alloc(p->arena, sizeof(*place));
	if (place == NULL)
		return SHEAF_NOMEM;
	*place = (sheaf_import_place){how->is.name, arena_dup(p->arena, buf_view(&path), &ok)};
	p->items[p->is.count++] = place;
	p->is.items = (const sheaf_import_place *const *)p->items;
	return ok ? 0 : SHEAF_NOMEM;
}

int sheaf_import_find(sheaf_import_places **out, sheaf_str home, sheaf_error *err)
{
	const converter *how;
	arena *a = arena_new();
	places *p = a != NULL ? arena_zalloc(a, sizeof(*p)) : NULL;
	int rc = p != NULL ? 0 : SHEAF_NOMEM;
	if (p != NULL)
		p->arena = a;
	for (size_t i = 0; rc == 0 && (how = converter_at(i)) != NULL; i++) {
		for (size_t k = 0; rc == 0 && k < COUNT_OF(how->places) && how->places[k] != NULL;
		     k++)
			rc = place_add(p, how, home, how->places[k]);
	}
	if (rc == 0) {
		*out = &p->is;
		return 0;
	}
	if (p != NULL)
		mem_free(p->items);
	arena_free(a);
	return err_nomem(err);
}

void sheaf_import_places_free(const sheaf_import_places *found)
{
	places *p = (places *)(uintptr_t)(const void *)found;
	if (p == NULL)
		return;
	mem_free(p->items);
	arena_free(p->arena);
}
