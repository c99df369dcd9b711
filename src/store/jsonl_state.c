/*
 * User and app state of the jsonl store: reading, applying, and the line that
 * goes before an append. See jsonl_state.h for how a line and its record keep
 * together.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/jsonl_state.h"

/* A file is written anew when it is over this and four times what is live. */
#define COMPACT_BYTES ((uint64_t)1 << 20)
#define COMPACT_TIMES 4u
#define READ_DEADLINE_US (INT64_C(10) * 1000000)

static int no_state(sheaf_error *err)
{
	return err_set(err, SHEAF_UNSUPPORTED,
	               "a store of one file keeps no state of users and apps");
}

/* If it fails the file is as good as before. */
static void compact(jstate *s)
{
	sheaf_error err;
	uint64_t live = s->image ? s->image->bytes : 0;
	if (s->size > COMPACT_BYTES && s->size > COMPACT_TIMES * live &&
	    jstate_write_anew(s, &err) == 0)
		jstate_unload(s);
}

/* ---- With an append --------------------------------------------------------------------- */

int jstate_begin(jowner *o, int64_t deadline_us, sheaf_error *err)
{
	jstate *s = o->state;
	if (o->store->single)
		return no_state(err);
	pthread_mutex_lock(&s->mutex);
	int rc = jstate_enter(s, true, deadline_us, err);
	if (rc)
		pthread_mutex_unlock(&s->mutex);
	return rc;
}

void jstate_end(jowner *o)
{
	jstate_leave(o->state);
	pthread_mutex_unlock(&o->state->mutex);
}

int jstate_line(jowner *o, const char *session, const sheaf_append_request *q, sheaf_str id,
                bool durable, sheaf_error *err)
{
	jstate *s = o->state;
	int rc = image_apply(&s->next, s->image, false, q->user_state, q->user_state_count, err);
	if (rc)
		return rc;
	buf_reset(&s->out);
	jstate_write_user(&s->out, session, id, q->user_state, q->user_state_count);
	rc = jstate_add(s, durable, err);
	if (rc) {
		image_unref(s->next);
		s->next = NULL;
	} else if (durable) {
		s->synced = s->next_size;
	}
	return rc;
}

void jstate_done(jowner *o, const char *session, int rc, int32_t outcome)
{
	jstate *s = o->state;
	if (s->next_size == 0)
		return;
	if (rc == 0) {
		image_unref(s->image);
		s->image = s->next;
		s->size = s->next_size;
		s->next = NULL;
		s->next_size = 0;
		snprintf(s->last_session, sizeof(s->last_session), "%s", session);
		compact(s);
		return;
	}
	/* What certainly was not stored leaves no line; of anything else the next one who looks
	 * finds out. */
	if (outcome == SHEAF_FAILED)
		(void)io_ftruncate(s->fd, (off_t)s->size);
	jstate_unload(s);
}

bool jstate_durable(const jowner *o)
{
	return o->state->synced >= o->state->size;
}

int jstate_make_durable(jowner *o, sheaf_error *err)
{
	jstate *s = o->state;
	if (jstate_durable(o))
		return 0;
	if (jstate_sync(s))
		return err_unknown(err,
		                   err_sys(err, SHEAF_STORAGE, errno, "cannot sync the state"));
	s->synced = s->size;
	return 0;
}

bool jstate_there(const jowner *o)
{
	io_stat st;
	return !o->store->single && io_stat_at(o->dir, JSONL_STATE_FILE, &st) == 0;
}

int jstate_hold(jowner *o, const char *session, int64_t deadline_us, bool *held, sheaf_error *err)
{
	jstate *s = o->state;
	*held = false;
	if (o->store->readonly || !jstate_there(o))
		return 0;
	int rc = jstate_begin(o, deadline_us, err);
	if (rc) /* what cannot be read must not keep a session from being deleted */
		return rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT ? 0 : rc;
	*held = true;
	if (strcmp(s->last_session, session) != 0)
		return 0;
	buf_reset(&s->out);
	jstate_write_settled(&s->out);
	rc = jstate_add(s, true, err);
	if (rc) {
		jstate_unload(s);
		jstate_end(o);
		*held = false;
		return rc;
	}
	s->size = s->synced = s->next_size;
	s->next_size = 0;
	s->last_session[0] = 0;
	return 0;
}

/* ---- Reading and applying ------------------------------------------------------------------ */

static int give(jstate *s, state_image *image, sheaf_state_fn fn, void *ctx)
{
	int rc = 0;
	for (size_t i = 0; image && rc == 0 && i < image->count; i++)
		rc = fn(ctx, &image->items[i]);
	pthread_mutex_lock(&s->mutex);
	image_unref(image);
	pthread_mutex_unlock(&s->mutex);
	return rc < 0 ? rc : 0;
}

static int read_state(jstate *s, sheaf_state_fn fn, void *ctx, sheaf_error *err)
{
	pthread_mutex_lock(&s->mutex);
	int rc = jstate_enter(s, false, clock_monotonic_us() + READ_DEADLINE_US, err);
	state_image *image = rc == 0 ? image_ref(s->image) : NULL;
	if (rc == 0)
		jstate_leave(s);
	pthread_mutex_unlock(&s->mutex);
	return rc < 0 ? rc : give(s, image, fn, ctx);
}

int jsonl_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err)
{
	jstore *js = backend;
	sheaf_error local;
	jowner *o = NULL;
	int rc;
	if (js->single)
		return 0;
	if (app) {
		rc = jowner_app(js, scope, false, &o, &local);
	} else {
		const char *slash = memchr(scope.ptr, '/', scope.len);
		size_t len = (size_t)(slash - scope.ptr);
		rc = jowner_open(js, str_make(scope.ptr, len),
		                 str_make(slash + 1, scope.len - len - 1), false, &o, &local);
	}
	if (rc) {
		if (rc == SHEAF_NOT_FOUND)
			return 0;
		*err = local;
		return rc;
	}
	rc = read_state(o->state, fn, ctx, err);
	if (app)
		jowner_app_put(o);
	else
		jowner_put(o);
	return rc;
}

static int apply(jstate *s, const sheaf_state_item *items, size_t count, sheaf_error *err)
{
	int rc = image_apply(&s->next, s->image, true, items, count, err);
	if (rc)
		return rc;
	if (s->next == s->image) { /* all of it is old */
		image_unref(s->next);
		s->next = NULL;
		return 0;
	}
	buf_reset(&s->out);
	jstate_write_app(&s->out, items, count);
	rc = jstate_add(s, true, err);
	if (rc) { /* cut back, but perhaps not on the disk */
		jstate_unload(s);
		return err_unknown(err, rc);
	}
	image_unref(s->image);
	s->image = s->next;
	s->next = NULL;
	s->size = s->next_size;
	s->next_size = 0;
	compact(s);
	return 0;
}

int jsonl_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                      int64_t deadline_us, sheaf_error *err)
{
	jstore *js = backend;
	jowner *o = NULL;
	if (js->single)
		return no_state(err);
	int rc = jowner_app(js, app, true, &o, err);
	if (rc)
		return rc;
	jstate *s = o->state;
	pthread_mutex_lock(&s->mutex);
	rc = jstate_enter(s, true, deadline_us, err);
	if (rc == 0) {
		rc = apply(s, items, count, err);
		jstate_leave(s);
	}
	pthread_mutex_unlock(&s->mutex);
	jowner_app_put(o);
	return rc;
}
