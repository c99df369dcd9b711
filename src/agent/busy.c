/* One run at a time on a session: the sessions of this process that are being worked on. */
#include <pthread.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define LOOK_AGAIN_US 10000

struct busy {
	struct busy *next;
	pthread_t thread;
	const sheaf_store *store;
	sheaf_session *session; /* its key lives as long as the run */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct busy *first;

/* Two handles on one session are the same session. */
static bool same(const struct busy *b, const sheaf_session *session)
{
	sheaf_key mine = sheaf_session_key(session), theirs = sheaf_session_key(b->session);
	return b->store == sheaf_session_store(session) && str_eq(mine.session, theirs.session) &&
	       str_eq(mine.user, theirs.user) && str_eq(mine.app, theirs.app);
}

/* Adds it unless the session is there; `*mine` tells that this very thread works on it. */
static bool add(struct busy *new, bool *mine)
{
	bool free = true;
	*mine = false;
	(void)pthread_mutex_lock(&lock);
	for (const struct busy *b = first; b != NULL && free; b = b->next) {
		free = !same(b, new->session);
		*mine = !free && pthread_equal(b->thread, new->thread);
	}
	if (free) {
		new->next = first;
		first = new;
	}
	(void)pthread_mutex_unlock(&lock);
	return free;
}

int busy_take(struct busy **out, sheaf_session *session, int64_t wait_us,
              const sheaf_cancel *cancel, sheaf_error *err)
{
	struct busy *new = mem_alloc(sizeof(*new));
	if (new == NULL)
		return err_nomem(err);
	*new = (struct busy){NULL, pthread_self(), sheaf_session_store(session), session};
	int64_t begun = clock_monotonic_us();
	bool mine = false;
	int rc = 0;
	while (rc == 0 && !add(new, &mine)) {
		/* Who is called by a run would wait for itself. */
		if (mine)
			rc = err_set(err, SHEAF_BUSY,
			             "a run cannot start another on its own session");
		else if (sheaf_cancel_is_set(cancel))
			rc = err_set(err, SHEAF_CANCELLED,
			             "cancelled while another run was going on");
		else if (clock_monotonic_us() - begun >= wait_us)
			rc = err_set(err, SHEAF_BUSY, "another run is going on in this session");
		else
			clock_sleep_us(LOOK_AGAIN_US);
	}
	if (rc != 0)
		mem_free(new);
	else
		*out = new;
	return rc;
}

void busy_release(struct busy *busy)
{
	if (busy == NULL)
		return;
	(void)pthread_mutex_lock(&lock);
	for (struct busy **at = &first; *at != NULL; at = &(*at)->next) {
		if (*at == busy) {
			*at = busy->next;
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	mem_free(busy);
}
