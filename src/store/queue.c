/* A queue in memory: see queue.h. At most SHEAF_QUEUE_ITEMS_MAX items, so a walk is short. */
#include "store/queue.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

static void item_unref(queue_item *item)
{
	if (atomic_fetch_sub(&item->refs, 1) == 1)
		mem_free(item);
}

void queue_free(queue *q)
{
	for (size_t i = 0; i < q->count; i++)
		item_unref(q->items[i]);
	mem_free(q->items);
	*q = (queue){NULL, 0, 0};
}

queue_item *queue_find(const queue *q, sheaf_str id)
{
	for (size_t i = 0; i < q->count; i++)
		if (str_eq(q->items[i]->id, id))
			return q->items[i];
	return NULL;
}

static bool same_given(sheaf_str a, sheaf_str b)
{
	return (a.ptr == NULL) == (b.ptr == NULL) && str_eq(a, b);
}

int queue_check(const queue *q, const sheaf_queue_row *row, sheaf_error *err)
{
	const queue_item *known = queue_find(q, row->id);
	if (known != NULL) {
		if (known->priority == row->priority && str_eq(known->content, row->content) &&
		    same_given(known->environment, row->environment))
			return 1;
		return err_set(err, SHEAF_CONFLICT,
		               "the queue has an item with this id and other content");
	}
	if (q->count >= SHEAF_QUEUE_ITEMS_MAX)
		return err_set(err, SHEAF_LIMIT, "the queue is full: %u items wait",
		               SHEAF_QUEUE_ITEMS_MAX);
	return 0;
}

static sheaf_str put_text(char **at, sheaf_str s)
{
	if (s.ptr == NULL)
		return (sheaf_str){NULL, 0};
	sheaf_str copy = {*at, s.len};
	if (s.len != 0)
		memcpy(*at, s.ptr, s.len);
	(*at)[s.len] = '\0';
	*at += s.len + 1;
	return copy;
}

int queue_add(queue *q, const sheaf_queue_row *row, queue_item **out)
{
	if (mem_grow((void **)&q->items, &q->room, q->count + 1, sizeof(*q->items)) != 0)
		return SHEAF_NOMEM;
	queue_item *item = mem_alloc(sizeof(*item) + row->id.len + row->content.len +
	                             row->environment.len + 3);
	if (item == NULL)
		return SHEAF_NOMEM;
	memset(item, 0, sizeof(*item));
	char *at = item->text;
	atomic_init(&item->refs, 1);
	item->id = put_text(&at, row->id);
	item->content = put_text(&at, row->content);
	item->environment = put_text(&at, row->environment);
	item->priority = row->priority;
	item->claims = row->claims;
	item->enqueued_us = row->enqueued_us;

	size_t place = q->count;
	while (place != 0 && q->items[place - 1]->priority < item->priority)
		place--;
	memmove(q->items + place + 1, q->items + place, (q->count - place) * sizeof(*q->items));
	q->items[place] = item;
	q->count++;
	*out = item;
	return 0;
}

void queue_remove(queue *q, queue_item *item)
{
	size_t place = 0;
	while (place < q->count && q->items[place] != item)
		place++;
	if (place == q->count)
		return;
	q->count--;
	memmove(q->items + place, q->items + place + 1, (q->count - place) * sizeof(*q->items));
	item_unref(item);
}

size_t queue_pick(const queue *q, const sheaf_claim *claim, int64_t now_us, queue_item **out)
{
	size_t n = 0, bytes = 0;
	for (size_t i = 0; i < q->count && n < claim->limit; i++) {
		queue_item *item = q->items[i];
		if (item->until_us > now_us)
			continue;
		/* Nothing is passed over to fill the room that is left: order comes first. */
		size_t more = item->content.len + (n != 0);
		if (n != 0 && (bytes > claim->bytes || more > claim->bytes - bytes))
			break;
		bytes += more;
		out[n++] = item;
	}
	return n;
}

void queue_mark(queue_item *item, sheaf_str token, int64_t until_us)
{
	str_copy_cut(item->token, sizeof(item->token), token);
	item->until_us = until_us;
	if (item->claims < INT32_MAX)
		item->claims++;
}

int64_t queue_lease_end(int64_t now_us, int64_t lease_us)
{
	return lease_us > INT64_MAX - now_us ? INT64_MAX : now_us + lease_us;
}

size_t queue_carrying(const queue *q, sheaf_str token)
{
	size_t n = 0;
	for (size_t i = 0; i < q->count; i++)
		n += str_is(token, q->items[i]->token);
	return n;
}

uint64_t queue_ack(queue *q, sheaf_str token)
{
	uint64_t bytes = 0;
	size_t kept = 0;
	for (size_t i = 0; i < q->count; i++) {
		queue_item *item = q->items[i];
		if (str_is(token, item->token)) {
			bytes += item->bytes;
			item_unref(item);
		} else {
			q->items[kept++] = item;
		}
	}
	q->count = kept;
	return bytes;
}

int queue_stale(sheaf_error *err)
{
	return err_set(err, SHEAF_STALE,
	               "nothing is claimed under this token: it was acknowledged, or claimed anew");
}

int queue_busy(sheaf_error *err)
{
	return err_set(err, SHEAF_BUSY, "somebody is working on the item");
}

/* Copies ----------------------------------------------------------------------------- */

void queue_copies_refresh(queue_copies *c)
{
	int64_t now_us = clock_now_us(), boot_us = clock_boottime_us();
	for (size_t i = 0; i < c->count; i++) {
		const queue_item *item = c->rows[i].item;
		sheaf_queue_row *row = &c->rows[i].row;
		bool claimed = item->until_us > boot_us;
		row->claims = item->claims;
		row->claimed_until_us = claimed ? now_us + (item->until_us - boot_us) : 0;
	}
}

int queue_copies_take(queue_copies *c, queue_item *const *items, size_t count, sheaf_error *err)
{
	c->rows = mem_zalloc(count * sizeof(*c->rows));
	if (c->rows == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		queue_item *item = items[i];
		sheaf_queue_row *row = &c->rows[i].row;
		atomic_fetch_add(&item->refs, 1);
		c->rows[i].item = item;
		row->id = item->id;
		row->content = item->content;
		row->environment = item->environment;
		row->priority = item->priority;
		row->enqueued_us = item->enqueued_us;
	}
	c->count = count;
	queue_copies_refresh(c);
	return 0;
}

int queue_copies_give(const queue_copies *c, sheaf_queue_fn fn, void *ctx)
{
	int rc = 0;
	for (size_t i = 0; i < c->count && rc == 0; i++)
		rc = fn(ctx, &c->rows[i].row);
	return rc < 0 ? rc : 0;
}

void queue_copies_free(queue_copies *c)
{
	for (size_t i = 0; i < c->count; i++)
		item_unref(c->rows[i].item);
	mem_free(c->rows);
	*c = (queue_copies){NULL, 0};
}
