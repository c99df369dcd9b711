/*
 * Waiting for a session to change: functions that write publish on a channel of
 * the session. A subscription outlives the call that made it, because watchers
 * wait in short pieces, one after the other.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "store/redis.h"

#define MOST_US INT64_C(1000000)
#define IDLE_US INT64_C(10000000)
#define PAUSE_US 20000

static void listener_free(rlistener *l)
{
	rconn_free(l->conn);
	buf_free(&l->channel);
	mem_free(l);
}

void redis_listeners_free(rstore *s)
{
	while (s->listeners != NULL) {
		rlistener *l = s->listeners;
		s->listeners = l->next;
		listener_free(l);
	}
}

/* The one of that channel, out of the list; those nobody has used for long go. */
static rlistener *take_listener(rstore *s, sheaf_str channel)
{
	rlistener *found = NULL, *old = NULL;
	int64_t now = clock_monotonic_us();
	(void)pthread_mutex_lock(&s->mutex);
	for (rlistener **at = &s->listeners; *at != NULL;) {
		rlistener *l = *at;
		if (found == NULL && str_eq(buf_view(&l->channel), channel)) {
			*at = l->next;
			found = l;
		} else if (now - l->used_us > IDLE_US) {
			*at = l->next;
			l->next = old;
			old = l;
		} else {
			at = &l->next;
		}
	}
	(void)pthread_mutex_unlock(&s->mutex);
	while (old != NULL) {
		rlistener *l = old;
		old = l->next;
		listener_free(l);
	}
	return found;
}

static void give_listener(rstore *s, rlistener *l)
{
	if (l->conn->c->err != 0) {
		listener_free(l);
		return;
	}
	l->used_us = clock_monotonic_us();
	(void)pthread_mutex_lock(&s->mutex);
	l->next = s->listeners;
	s->listeners = l;
	(void)pthread_mutex_unlock(&s->mutex);
}

static bool subscribe(rlistener *l)
{
	_cleanup_(rcmd_free) rcmd cmd;
	bool sent = false;
	rcmd_begin(&cmd);
	rcmd_text(&cmd, "SSUBSCRIBE");
	rcmd_arg(&cmd, buf_view(&l->channel));
	sheaf_str bytes = rcmd_bytes(&cmd);
	if (bytes.ptr == NULL || !rconn_send(l->conn, bytes.ptr, bytes.len, &sent))
		return false;
	_cleanup_(redis_reply_free) redisReply *reply = rconn_reply(l->conn);
	return reply != NULL && reply->type == REDIS_REPLY_ARRAY;
}

/* A new subscription, or NULL: then the caller polls. */
static rlistener *new_listener(rstore *s, const sheaf_store_key *key, sheaf_str channel,
                               int64_t deadline_us)
{
	sheaf_error ignored;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, s, "", key, NULL); /* for the slot */
	uint16_t node = redis_node_of(s, cmd.slot);
	rlistener *l = mem_zalloc(sizeof(*l));
	if (l == NULL)
		return NULL;
	l->channel.max = 4096;
	buf_str(&l->channel, channel);
	if (node == REDIS_NO_NODE || l->channel.status != 0 ||
	    rconn_new(s, node, deadline_us, &l->conn, &ignored) != 0 || !subscribe(l)) {
		listener_free(l);
		return NULL;
	}
	return l;
}

/* Takes what has come; the server may also say that the slot is somebody else's now. */
static void drain(rlistener *l)
{
	redisContext *c = l->conn->c;
	char byte;
	while (c->err == 0 && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) {
		if (redisBufferRead(c) != REDIS_OK)
			return;
		for (;;) {
			void *next = NULL;
			if (redisGetReplyFromReader(c, &next) != REDIS_OK || next == NULL)
				break;
			_cleanup_(redis_reply_free) redisReply *reply = next;
			if (str_is(reply_str(reply, 0), "sunsubscribe"))
				c->err = REDIS_ERR_OTHER;
		}
	}
}

/* Whether the session is not at that revision, or cannot be asked. */
static bool moved(rstore *s, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us)
{
	sheaf_error ignored = {0};
	_cleanup_(rstate_free) rstate at = {0};
	int rc = redis_state(s, key, false, deadline_us, &at, &ignored);
	return rc != 0 || at.hidden || at.revision != revision;
}

int redis_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err)
{
	rstore *s = backend;
	_cleanup_(buf_free) buf channel = BUF_INIT(4096);
	int64_t now = clock_monotonic_us();
	int64_t until = deadline_us < now + MOST_US ? deadline_us : now + MOST_US;
	redis_key(&channel, s, key->owner, "w:", key->session);
	int rc = buf_status(&channel, err);
	if (rc != 0)
		return rc;
	rlistener *l = take_listener(s, buf_view(&channel));
	if (l != NULL)
		drain(l);
	else
		l = new_listener(s, key, buf_view(&channel), now + MOST_US);
	if (!moved(s, key, revision, now + MOST_US)) {
		int64_t left = until - clock_monotonic_us();
		char byte;
		if (l == NULL && left > 0) {
			clock_sleep_us(left < PAUSE_US ? left : PAUSE_US);
		} else if (l != NULL && left > 0) {
			rconn_until(l->conn, until);
			if (recv(l->conn->c->fd, &byte, 1, MSG_PEEK) >= 0)
				drain(l);
			else if (errno != EAGAIN && errno != EINTR)
				l->conn->c->err = REDIS_ERR_IO;
		}
	}
	if (l != NULL)
		give_listener(s, l);
	return 0;
}
