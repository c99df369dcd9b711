/* Waiting for a session in memory to change: whoever changes one wakes all that wait. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "store/memory.h"

int memory_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
                UNUSED sheaf_error *err)
{
	mstore *m = backend;
	memory_lock(m);
	for (;;) {
		const mlog *l = mlog_find(m, key->owner, key->session);
		int64_t left = deadline_us - clock_monotonic_us();
		if (l == NULL || mlog_hidden(l) || sheaf_head_revision(l->now->head) != revision ||
		    left <= 0)
			break;
		clock_wait_us(&m->changed, &m->mutex, left);
	}
	memory_unlock(m);
	return 0;
}
