/*
 * Which session a file of Claude Code is: by its name and its first lines.
 *
 * A fork is a whole copy under another id that does not say what of. But its
 * first line is of the moment it was made, later than the conversation that
 * follows; and the file it was copied from lies beside it.
 */
#include <fcntl.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "convert/claude_code.h"
#include "entry/members.h"

#define SIBLINGS_MAX 10000
#define META_BYTES_MAX 65536
#define PATH_ROOM 4096

/* What the first lines say. Strings are in the arena. */
typedef struct opening {
	sheaf_str session, agent, cwd;
	sheaf_str first;    /* the uuid of the first line of the tree */
	int64_t created_us; /* the first time there is */
	int64_t tree_us;    /* of the first line of the tree */
} opening;

static int opening_read(opening *o, sheaf_str head, arena *a)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	int ok = 1;
	*o = (opening){0};
	for (size_t at = 0; at < head.len && o->first.ptr == NULL;) {
		const char *end = memchr(head.ptr + at, '\n', head.len - at);
		size_t len = end != NULL ? (size_t)(end - head.ptr) - at : head.len - at;
		sheaf_str line = {head.ptr + at, len};
		at += len + 1;
		int rc = json_parse(&doc, line, NULL);
		if (rc == SHEAF_NOMEM)
			return rc;
		if (rc != 0)
			continue;
		value v = {json_root(doc), line};
		int64_t time_us = value_time(v, "timestamp");
		if (o->created_us == 0)
			o->created_us = time_us;
		if (o->session.ptr == NULL)
			o->session = arena_dup(a, value_string(v, "sessionId"), &ok);
		if (value_string(v, "uuid").len == 0)
			continue;
		o->first = arena_dup(a, value_string(v, "uuid"), &ok);
		o->agent = arena_dup(a, value_string(v, "agentId"), &ok);
		o->cwd = arena_dup(a, value_string(v, "cwd"), &ok);
		o->tree_us = time_us;
	}
	return ok ? 0 : SHEAF_NOMEM;
}

static bool is_copy(const opening *o)
{
	return o->tree_us != 0 && o->tree_us < o->created_us;
}

static sheaf_str name_in_path(sheaf_str path)
{
	size_t from = path.len;
	while (from > 0 && path.ptr[from - 1] != '/')
		from--;
	sheaf_str name = {path.ptr + from, path.len - from};
	if (name.len > 6 && memcmp(name.ptr + name.len - 6, ".jsonl", 6) == 0)
		name.len -= 6;
	return name;
}

/* ---- Forks ----------------------------------------------------------------- */

typedef struct sibling {
	const opening *o;
	sheaf_str own; /* name of the file itself */
	sheaf_str dir; /* with its slash */
	arena *arena;
	size_t seen;
	sheaf_str found;
	bool found_copy; /* the one found is a fork itself */
} sibling;

static int sibling_look(sibling *s, sheaf_str name)
{
	_cleanup_(source_closep) source *from = NULL;
	char path[PATH_ROOM];
	sheaf_str head;
	opening other;
	int ok = 1;
	int len = snprintf(path, sizeof(path), "%.*s%.*s", (int)s->dir.len, s->dir.ptr,
	                   (int)name.len, name.ptr);
	if (len < 0 || (size_t)len >= sizeof(path))
		return 0;
	int rc = source_open(&from, path, NULL);
	if (rc == 0)
		rc = source_head(from, &head, NULL);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : 0;
	rc = opening_read(&other, head, s->arena);
	if (rc != 0 || !str_eq(other.first, s->o->first))
		return rc;
	if (s->found.ptr != NULL && (is_copy(&other) || !s->found_copy))
		return 0;
	s->found_copy = is_copy(&other);
	s->found = arena_dup(s->arena, name_in_path(name), &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

static int sibling_name(void *ctx, const char *name, unsigned char type)
{
	sibling *s = ctx;
	sheaf_str file = sheaf_str_of(name);
	(void)type;
	if (file.len <= 6 || memcmp(name + file.len - 6, ".jsonl", 6) != 0 ||
	    str_starts(file, "agent-") || str_eq(name_in_path(file), s->own) ||
	    s->seen++ == SIBLINGS_MAX)
		return 0;
	return sibling_look(s, file);
}

static int source_of_copy(import *im, const opening *o, sheaf_str *out)
{
	sibling s = {.o = o, .own = name_in_path(im->file), .arena = im->arena};
	char dir[PATH_ROOM] = "./";
	size_t len = im->file.len;
	*out = (sheaf_str){NULL, 0};
	while (len > 0 && im->file.ptr[len - 1] != '/')
		len--;
	if (len >= sizeof(dir))
		return 0;
	if (len != 0) {
		memcpy(dir, im->file.ptr, len);
		dir[len] = '\0';
	}
	s.dir = sheaf_str_of(dir);
	_cleanup_(io_closep) int fd = io_open_root(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd >= 0 && io_each_name(fd, sibling_name, &s) == SHEAF_NOMEM)
		return err_nomem(im->err);
	*out = s.found;
	return 0;
}

/* ---- Sub-agents ------------------------------------------------------------ */

static void member_put(buf *out, const char *name, sheaf_str text)
{
	if (text.len == 0)
		return;
	buf_str(out, out->len == 0 ? SHEAF_STR("{\"") : SHEAF_STR(",\""));
	buf_str(out, sheaf_str_of(name));
	buf_lit(out, "\":");
	buf_json(out, text);
}

/* agent-ID.meta.json beside it says which call began it. */
static int agent_meta(import *im, buf *extra)
{
	_cleanup_(source_closep) source *from = NULL;
	_cleanup_(json_freep) json_doc *doc = NULL;
	char path[PATH_ROOM];
	sheaf_str text;
	if (im->file.len < 6 || im->file.len + 4 >= sizeof(path))
		return 0;
	memcpy(path, im->file.ptr, im->file.len - 6);
	memcpy(path + im->file.len - 6, ".meta.json", sizeof(".meta.json"));
	int rc = source_open(&from, path, NULL);
	if (rc == 0)
		rc = source_peek(from, META_BYTES_MAX, &text, NULL);
	if (rc == 0)
		rc = json_parse(&doc, text, NULL);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? err_nomem(im->err) : 0;
	value meta = {json_root(doc), text};
	member_put(extra, "tool_use_id", value_string(meta, "toolUseId"));
	member_put(extra, "agent_type", value_string(meta, "agentType"));
	member_put(extra, "description", value_string(meta, "description"));
	if (extra->len != 0)
		buf_char(extra, '}');
	return buf_status(extra, im->err);
}

int cc_open(import *im)
{
	_cleanup_(buf_free) buf extra = BUF_INIT(META_BYTES_MAX);
	cc_state *s = im->state;
	char id[SHEAF_ID_ROOM];
	opening o;
	sheaf_str head, name = name_in_path(im->file), parent = {NULL, 0};
	int rc = source_head(im->source, &head, im->err);
	if (rc == 0 && opening_read(&o, head, im->arena) != 0)
		rc = err_nomem(im->err);
	if (rc != 0)
		return rc;
	import_session session = {.id = name, .cwd = o.cwd, .created_us = o.created_us};
	s->is_agent = str_starts(name, "agent-") && o.session.len != 0;
	if (s->is_agent) {
		int len = snprintf(id, sizeof(id), "%.*s.%.*s", (int)o.session.len, o.session.ptr,
		                   (int)name.len, name.ptr);
		session.id = str_make(id, len > 0 && (size_t)len < sizeof(id) ? (size_t)len : 0);
		session.kind = SHEAF_STR("subagent");
		session.parent = o.session;
		rc = agent_meta(im, &extra);
		if (extra.len != 0)
			session.extra = buf_view(&extra);
	} else if (is_copy(&o)) {
		s->own_us = o.created_us;
		rc = source_of_copy(im, &o, &parent);
		session.parent = parent;
	}
	return rc == 0 ? import_open(im, &session) : rc;
}
