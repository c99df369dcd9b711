/* Codex's forks by reference: where the beginning of a rollout is to be found. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "base/uuid.h"
#include "convert/codex.h"
#include "convert/parts.h"

#define PATH_ROOM 4096
#define PAGE 100
#define DAY_US (INT64_C(86400) * 1000000)

/* ---- Files --------------------------------------------------------------- */

typedef struct looking {
	sheaf_str id;
	char name[256];
} looking;

/* rollout-TIME-ID.jsonl, also compressed. */
static int name_look(void *ctx, const char *name, unsigned char type)
{
	looking *l = ctx;
	size_t len = strlen(name);
	(void)type;
	const char *end = strstr(name, ".jsonl");
	if (end == NULL || len >= sizeof(l->name) || !str_starts(sheaf_str_of(name), "rollout-"))
		return 0;
	size_t stem = (size_t)(end - name);
	if (stem < l->id.len || memcmp(end - l->id.len, l->id.ptr, l->id.len) != 0)
		return 0;
	if (strcmp(end, ".jsonl") != 0 && strcmp(end, ".jsonl.zst") != 0)
		return 0;
	memcpy(l->name, name, len + 1);
	return 0;
}

static bool look_in(char *path, const char *dir, sheaf_str id)
{
	looking l = {.id = id};
	_cleanup_(io_closep) int fd = io_open_root(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 || io_each_name(fd, name_look, &l) != 0 || l.name[0] == '\0')
		return false;
	int len = snprintf(path, PATH_ROOM, "%s/%s", dir, l.name);
	return len > 0 && len < PATH_ROOM;
}

/* Cuts the last name off a path; false if it has none. */
static bool go_up(char *dir)
{
	char *slash = strrchr(dir, '/');
	if (slash == NULL || slash == dir)
		return false;
	*slash = '\0';
	return true;
}

/* When a session began, by its id. */
static int64_t time_of(sheaf_str id)
{
	uint64_t ms = 0;
	for (size_t i = 0, n = 0; n < 12 && i < id.len; i++) {
		char c = id.ptr[i];
		if (c == '-')
			continue;
		ms = ms << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		n++;
	}
	return (int64_t)ms * 1000;
}

/* Rollouts lie below a folder a day, by local time: that of the fork, then those around the day
 * the other one began. */
static bool file_find(char *path, sheaf_str from, sheaf_str id)
{
	char dir[PATH_ROOM], day[PATH_ROOM + 16], stamp[CLOCK_TEXT + 1];
	if (from.len >= sizeof(dir) || !uuid7_is(id))
		return false;
	str_copy_cut(dir, sizeof(dir), from);
	if (strchr(dir, '/') == NULL)
		return look_in(path, ".", id);
	if (!go_up(dir))
		return false;
	if (look_in(path, dir, id))
		return true;
	if (!go_up(dir) || !go_up(dir) || !go_up(dir))
		return false;
	for (int64_t off = -DAY_US; off <= DAY_US; off += DAY_US) {
		clock_format(stamp, time_of(id) + off);
		(void)snprintf(day, sizeof(day), "%s/%.4s/%.2s/%.2s", dir, stamp, stamp + 5,
		               stamp + 8);
		if (look_in(path, day, id))
			return true;
	}
	return false;
}

/* ---- Entries ------------------------------------------------------------- */

static void records_freep(sheaf_records **records)
{
	sheaf_records_free(*records);
}

/* The number in an id that codex.c made of one; false for others. */
static bool ordinal_of(sheaf_str id, uint64_t *out)
{
	const sheaf_str opening = SHEAF_STR("ordinal-");
	if (!str_starts(id, opening.ptr))
		return false;
	*out = 0;
	for (size_t i = opening.len; i < id.len && id.ptr[i] >= '0' && id.ptr[i] <= '9'; i++)
		*out = *out * 10 + (uint64_t)(id.ptr[i] - '0');
	return true;
}

/* The last entry before a number. */
static int entry_find(import *im, sheaf_session *in, uint64_t before, sheaf_str *out)
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.backward = 1;
	how.raw = 1;
	how.limit = PAGE;
	how.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE) | SHEAF_KIND_BIT(SHEAF_KIND_MODEL_CHANGE) |
	            SHEAF_KIND_BIT(SHEAF_KIND_THINKING_LEVEL) |
	            SHEAF_KIND_BIT(SHEAF_KIND_COMPACTION);
	for (;;) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		int rc = sheaf_session_records(&page, in, &how, im->err);
		if (rc != 0 || page->count == 0)
			return rc;
		for (size_t i = 0; i < page->count; i++) {
			uint64_t ordinal;
			int ok = 1;
			if (!ordinal_of(page->items[i]->id, &ordinal) || ordinal >= before)
				continue;
			*out = arena_dup(im->arena, page->items[i]->id, &ok);
			return ok ? 0 : err_nomem(im->err);
		}
		how.from_seq = page->items[page->count - 1]->seq;
		if (how.from_seq-- <= 1)
			return 0;
	}
}

int codex_fork_find(import *im, value meta, import_session *session)
{
	value base = value_get(meta, "history_base");
	sheaf_str id = value_string(base, "thread_id");
	char path[PATH_ROOM];
	uint64_t before;
	if (id.len == 0 || id.len > UUID_TEXT ||
	    !json_u64(json_get(base.v, "end_ordinal_exclusive"), &before))
		return 0;
	session->parent = id;
	int rc = import_peer(im, id.ptr, &session->fork);
	if (rc == SHEAF_NOT_FOUND && file_find(path, im->file, id)) {
		rc = import_first(im, path);
		return rc != 0 ? rc : import_problem(im, "begins in %s, which did not come", path);
	}
	if (rc == SHEAF_NOT_FOUND)
		return import_problem(im, "begins in %.*s, which is not here", (int)id.len, id.ptr);
	return rc == 0 ? entry_find(im, session->fork, before, &session->fork_at) : rc;
}
