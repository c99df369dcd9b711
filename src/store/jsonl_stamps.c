/* Stamps: which sessions there are and whether their logs look as before, by a look at each file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "store/jsonl.h"

typedef struct stamping {
	jstore *js;
	sheaf_stamp_seen_fn fn;
	void *ctx;
	sheaf_error *err;
	sheaf_str app;  /* of the directories that are being walked */
	sheaf_str user; /* {NULL,0}: any */
	jowner *o;      /* of the files that are being looked at */
} stamping;

static uint64_t stamp_of(const io_stat *st)
{
	uint64_t parts[3] = {st->size, st->inode, (uint64_t)st->mtime_ns};
	uint64_t stamp = str_hash(str_make((const char *)parts, sizeof(parts)));
	return stamp != 0 ? stamp : 1;
}

static int stamp_file(stamping *s, const char *file, const char *session)
{
	io_stat st;
	if (io_stat_at(s->o->dir, file, &st) != 0)
		return errno == ENOENT
		               ? 0
		               : err_sys(s->err, SHEAF_STORAGE, errno, "cannot look at a log");
	if (!S_ISREG(st.mode))
		return 0;
	sheaf_store_key key = {sheaf_str_of(s->o->key), sheaf_str_of(s->o->app),
	                       sheaf_str_of(s->o->user), sheaf_str_of(session)};
	return s->fn(s->ctx, &key, stamp_of(&st));
}

static int stamp_name(void *ctx, const char *name, unsigned char type)
{
	char session[SHEAF_KEY_PART_ROOM];
	size_t len = strlen(name);
	(void)type;
	if (name[0] == '.' || len < 7 || strcmp(name + len - 6, ".jsonl") != 0 ||
	    len - 6 >= sizeof(session))
		return 0;
	memcpy(session, name, len - 6);
	session[len - 6] = '\0';
	return stamp_file(ctx, name, session);
}

static int walk(stamping *s, int dir, int (*fn)(void *ctx, const char *name, unsigned char type))
{
	s->err->code = 0;
	int rc = io_each_name(dir, fn, s);
	/* -1 is also a code of ours; then there are words. */
	if (rc == -1 && s->err->code == 0)
		return err_sys(s->err, SHEAF_STORAGE, errno, "cannot read a directory");
	return rc;
}

static int stamp_owner(stamping *s, sheaf_str app, sheaf_str user)
{
	_cleanup_(jowner_putp) jowner *o = NULL;
	int rc = jowner_open(s->js, app, user, false, &o, s->err);
	if (rc != 0)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	s->o = o;
	return walk(s, o->dir, stamp_name);
}

static int stamp_user(void *ctx, const char *name, unsigned char type)
{
	stamping *s = ctx;
	(void)type;
	if (name[0] == '.' || strlen(name) >= SHEAF_KEY_PART_ROOM ||
	    (s->user.ptr != NULL && !str_is(s->user, name)))
		return 0;
	return stamp_owner(s, s->app, sheaf_str_of(name));
}

static int stamp_app(void *ctx, const char *name, unsigned char type)
{
	stamping *s = ctx;
	size_t len = strlen(name);
	(void)type;
	if (name[0] == '.' || len >= SHEAF_KEY_PART_ROOM ||
	    (len >= 6 && strcmp(name + len - 6, ".jsonl") == 0))
		return 0;
	_cleanup_(io_closep) int dir = io_open(s->js->root, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return errno == ENOENT || errno == ENOTDIR
		               ? 0
		               : err_sys(s->err, SHEAF_STORAGE, errno, "cannot open a directory");
	s->app = sheaf_str_of(name);
	return walk(s, dir, stamp_user);
}

static int stamp_single(stamping *s, sheaf_str app, sheaf_str user)
{
	jowner *o = s->js->single_owner;
	if ((app.ptr != NULL && !str_is(app, o->app)) ||
	    (user.ptr != NULL && !str_is(user, o->user)))
		return 0;
	s->o = o;
	return stamp_file(s, s->js->single_file, s->js->single_session);
}

int jsonl_stamps(void *backend, sheaf_str app, sheaf_str user, sheaf_stamp_seen_fn fn, void *ctx,
                 sheaf_error *err)
{
	static const sheaf_str none = {"%", 1};
	stamping s = {.js = backend, .fn = fn, .ctx = ctx, .err = err, .user = user};
	int rc = 0;
	if (s.js->single)
		return stamp_single(&s, app, user);
	if (app.ptr != NULL && user.ptr != NULL)
		return stamp_owner(&s, app, user);
	/* An app and a user that are both empty have the root itself. */
	if ((app.ptr == NULL || str_eq(app, none)) && (user.ptr == NULL || str_eq(user, none)))
		rc = stamp_owner(&s, none, none);
	if (rc != 0)
		return rc;
	return app.ptr != NULL ? stamp_app(&s, app.ptr, 0) : walk(&s, s.js->root, stamp_app);
}
