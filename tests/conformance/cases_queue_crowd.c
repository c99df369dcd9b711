/* Queues with many hands on them: each item to one, to another if he dies, to nobody once it is done. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue_words.h"

#define CLAIMERS 16
#define WORK 96

typedef struct crowd {
	sheaf_store *stores[2];
	sheaf_key key;
	int64_t lease_us;
	unsigned dies; /* of so many claims one is left alone; 0: none */
	atomic_int given[WORK];
	atomic_int acked[WORK];
	atomic_int left;
	atomic_int failures;
	atomic_int after_ack;
	atomic_int disorder;
	int64_t deadline;
} crowd;

typedef struct claimer {
	crowd *crowd;
	unsigned number;
} claimer;

static void work_off(claimer *me, sheaf_session *s, const sheaf_queue_items *items,
                     const int *acked_before, unsigned *random)
{
	crowd *c = me->crowd;
	size_t last = 0;
	for (size_t i = 0; i < items->count; i++) {
		size_t n = (size_t)strtoul(items->items[i]->id.ptr, NULL, 10);
		atomic_fetch_add(&c->given[n], 1);
		if (acked_before[n])
			atomic_fetch_add(&c->after_ack, 1);
		if (i && n < last)
			atomic_fetch_add(&c->disorder, 1);
		last = n;
	}
	*random = *random * 1103515245u + 12345u;
	if (c->dies && (*random >> 16) % c->dies == 0)
		return;
	int rc = sheaf_session_ack(s, items->token, NULL);
	if (rc != 0 && (rc != SHEAF_STALE || c->dies == 0))
		atomic_fetch_add(&c->failures, 1);
	for (size_t i = 0; rc == 0 && c->dies == 0 && i < items->count; i++) {
		size_t n = (size_t)strtoul(items->items[i]->id.ptr, NULL, 10);
		atomic_fetch_add(&c->acked[n], 1);
		atomic_fetch_sub(&c->left, 1);
	}
	/* With short leases a part may have been taken over: only claims of one are counted. */
	if (rc == 0 && c->dies != 0) {
		size_t n = (size_t)strtoul(items->items[0]->id.ptr, NULL, 10);
		atomic_fetch_add(&c->acked[n], 1);
		atomic_fetch_sub(&c->left, 1);
	}
}

static void *claim_many(void *argument)
{
	claimer *me = argument;
	crowd *c = me->crowd;
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_claim_options how = SHEAF_CLAIM_OPTIONS_INIT;
	unsigned random = me->number + 1;
	o.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(&s, c->stores[me->number % 2], &c->key, &o, NULL) != 0) {
		atomic_fetch_add(&c->failures, 1);
		return NULL;
	}
	how.lease_us = c->lease_us;
	how.limit = c->dies ? 1 : 1 + me->number % 3;
	while (atomic_load(&c->left) > 0 && q_now_us() < c->deadline) {
		int acked[WORK];
		sheaf_queue_items *items = NULL;
		for (size_t i = 0; i < WORK; i++)
			acked[i] = atomic_load(&c->acked[i]);
		if (sheaf_session_claim(&items, s, &how, NULL) != 0) {
			atomic_fetch_add(&c->failures, 1);
			break;
		}
		if (items->count)
			work_off(me, s, items, acked, &random);
		else
			q_doze(2000);
		sheaf_queue_items_free(items);
	}
	sheaf_session_close(s);
	return NULL;
}

static crowd *run_crowd(suite *t, int64_t lease_us, unsigned dies)
{
	crowd *c = t_alloc(t, sizeof(*c));
	claimer who[CLAIMERS];
	pthread_t threads[CLAIMERS];
	sheaf_session *s = t_new(t, "s");
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < WORK; i++)
		PUT(s, t_format(t, "%d", i), .content = t_format(t, "item %d", i));
	c->stores[0] = t->store;
	c->stores[1] = suite_twin(t);
	c->key = t_key(t, "s");
	c->lease_us = lease_us;
	c->dies = dies;
	c->deadline = q_now_us() + 3 * PATIENCE_US;
	atomic_store(&c->left, WORK);
	for (unsigned i = 0; i < CLAIMERS; i++) {
		who[i] = (claimer){c, i};
		CHECK(pthread_create(&threads[i], NULL, claim_many, &who[i]) == 0);
	}
	for (unsigned i = 0; i < CLAIMERS; i++)
		pthread_join(threads[i], NULL);
	EQ(atomic_load(&c->failures), 0);
	EQ(atomic_load(&c->after_ack), 0);
	EQ(atomic_load(&c->disorder), 0);
	EQ(atomic_load(&c->left), 0);
	EQ(q_look(t, s).count, 0);
	return c;
}

QUEUE_CASE(queue_sixteen_claimers)
{
	crowd *c = run_crowd(t, NEVER, 0);
	for (int i = 0; i < WORK; i++) {
		EQ(atomic_load(&c->given[i]), 1);
		EQ(atomic_load(&c->acked[i]), 1);
	}
}

QUEUE_CASE(queue_sixteen_claimers_some_of_whom_die)
{
	crowd *c = run_crowd(t, 200000, 4);
	int again = 0;
	for (int i = 0; i < WORK; i++) {
		CHECK(atomic_load(&c->given[i]) >= 1);
		EQ(atomic_load(&c->acked[i]), 1);
		again += atomic_load(&c->given[i]) > 1;
	}
	CHECK(again > 0);
}

typedef struct producer {
	crowd *crowd;
	unsigned number;
	int existed;
	int added;
} producer;

/* Everybody puts the same items in: of each there is one. */
static void *put_same(void *argument)
{
	producer *p = argument;
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(&s, p->crowd->stores[p->number % 2], &p->crowd->key, &o, NULL) != 0)
		return NULL;
	for (int i = 0; i < 12; i++) {
		char id[16];
		sheaf_enqueue_options how = SHEAF_ENQUEUE_OPTIONS_INIT;
		sheaf_enqueued out = SHEAF_ENQUEUED_INIT;
		snprintf(id, sizeof(id), "%d", i);
		how.id = sheaf_str_of(id);
		if (sheaf_session_enqueue(s, sheaf_str_of("same"), &how, &out, NULL) != 0)
			atomic_fetch_add(&p->crowd->failures, 1);
		p->existed += out.existed;
		p->added += !out.existed;
	}
	sheaf_session_close(s);
	return NULL;
}

QUEUE_CASE(queue_sixteen_producers_of_the_same)
{
	crowd *c = t_alloc(t, sizeof(*c));
	producer who[CLAIMERS];
	pthread_t threads[CLAIMERS];
	sheaf_session *s = t_new(t, "s");
	int added = 0, existed = 0;
	memset(c, 0, sizeof(*c));
	c->stores[0] = t->store;
	c->stores[1] = suite_twin(t);
	c->key = t_key(t, "s");
	for (unsigned i = 0; i < CLAIMERS; i++) {
		who[i] = (producer){c, i, 0, 0};
		CHECK(pthread_create(&threads[i], NULL, put_same, &who[i]) == 0);
	}
	for (unsigned i = 0; i < CLAIMERS; i++) {
		pthread_join(threads[i], NULL);
		added += who[i].added;
		existed += who[i].existed;
	}
	EQ(atomic_load(&c->failures), 0);
	EQ(added, 12);
	EQ(existed, 12 * (CLAIMERS - 1));
	EQ(q_look(t, s).count, 12);
}
