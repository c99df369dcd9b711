/* A bounded pool of connections, and calls that outlive a failover. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/postgres.h"

#define PAUSE_LEAST_US INT64_C(5000)
#define PAUSE_MOST_US INT64_C(500000)

/* Waits for a connection to come back; false at the deadline. The mutex is held. */
static bool wait_freed(pg_server *s, int64_t deadline_us)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline_us / 1000000),
		.tv_nsec = (long)(deadline_us % 1000000 * 1000),
	};
	return pthread_cond_timedwait(&s->freed, &s->mutex, &until) != ETIMEDOUT;
}

/* An idle connection, or leave to open one (NULL with *open set), or neither at the deadline. */
static pg_conn *take(pg_server *s, int64_t deadline_us, bool *open)
{
	pg_conn *c = NULL;
	*open = false;
	(void)pthread_mutex_lock(&s->mutex);
	for (;;) {
		if (s->idle != NULL) {
			c = s->idle;
			s->idle = c->next;
			break;
		}
		if (s->open < s->most) {
			s->open++;
			*open = true;
			break;
		}
		if (!wait_freed(s, deadline_us))
			break;
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return c;
}

static void give(pg_server *s, pg_conn *c)
{
	(void)pthread_mutex_lock(&s->mutex);
	if (c != NULL) {
		c->next = s->idle;
		s->idle = c;
	} else {
		s->open--;
	}
	(void)pthread_cond_signal(&s->freed);
	(void)pthread_mutex_unlock(&s->mutex);
}

void pg_server_free(pg_server *s)
{
	if (s->info == NULL)
		return;
	while (s->idle != NULL) {
		pg_conn *c = s->idle;
		s->idle = c->next;
		pg_conn_close(c);
	}
	PQconninfoFree(s->info);
	s->info = NULL;
	(void)pthread_cond_destroy(&s->freed);
	(void)pthread_mutex_destroy(&s->mutex);
}

/* After anything but an answer the connection is not used again: it may lead to a server that is no
 * longer the right one, or still be busy; or a cancellation may come late and meet the next call. */
static pg_end attempt(pg_server *s, pg_statement which, const pg_args *args, int64_t deadline_us,
                      PGresult **out, sheaf_error *err)
{
	bool open;
	pg_end end = PG_DONE;
	pg_conn *c = take(s, deadline_us, &open);
	if (c == NULL && !open) {
		(void)err_set(err, SHEAF_BUSY, "all %u connections are in use", s->most);
		return PG_ERROR;
	}
	if (c == NULL)
		c = pg_conn_open(s, deadline_us, &end, err);
	if (c == NULL) {
		give(s, NULL);
		return end;
	}
	end = pg_conn_run(s, c, which, args, deadline_us, out, err);
	bool usable = (end == PG_DONE || end == PG_KNOWN || end == PG_ERROR) &&
	              PQstatus(c->pq) == CONNECTION_OK && !c->cancelled;
	if (!usable)
		pg_conn_close(c);
	give(s, usable ? c : NULL);
	return end;
}

int pg_call(pg_server *s, pg_statement which, pg_args *args, int64_t deadline_us, bool *lost,
            PGresult **out, sheaf_error *err)
{
	bool was_lost = false;
	int64_t pause = PAUSE_LEAST_US;
	*out = NULL;
	for (;;) {
		pg_end end = attempt(s, which, args, deadline_us, out, err);
		if (end == PG_LOST) {
			was_lost = true;
			if (args->retry >= 0)
				args->bytes.ptr[args->at[args->retry]] = 1;
		}
		if (lost != NULL && was_lost)
			*lost = true;
		if (end == PG_DONE)
			return 0;
		int64_t now = clock_monotonic_us();
		if (end == PG_ERROR || end == PG_KNOWN || now + pause >= deadline_us)
			return was_lost ? err_unknown(err, err->code) : err->code;
		clock_sleep_us(pause / 2 + now % (pause / 2));
		if (pause < PAUSE_MOST_US)
			pause *= 2;
	}
}
