/*
 * The sidecar of a log: where each record lies and which ids there are, so that
 * opening a long session reads a few pages instead of all of it.
 *
 * Two files, both derived and deletable at any time:
 *
 *   SESSION.idx   page A | page B | slot 0 | slot 1 | …
 *   SESSION.run   runs of (id hash, record) in hash order, encoded heads and states
 *
 * Pages A and B are written in turn, each with a generation and a checksum: the
 * greater valid one counts, so a write that fails half-way leaves the other.
 * Everything they point to is appended, never changed, and carries checks of
 * its own; after a power cut a page may point to bytes that never arrived,
 * which those checks show. Whatever does not fit makes the whole sidecar
 * invalid: it is rebuilt from the log, never mended.
 *
 * Runs are merged as they grow (a run is at least three times as long as the
 * one after it), so a look-up touches O(log n) pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "store/jsonl.h"

#define PAGE 4096u
#define MAGIC UINT64_C(0x3278646966616873) /* "shafidx2" */
#define SLOTS_AT ((uint64_t)2 * PAGE)
#define RUN_CHUNK 4096u /* entries handled at a time */

typedef struct page {
	uint64_t magic;
	uint64_t generation;
	uint64_t inode;
	uint64_t base;
	uint64_t covered;
	uint64_t log_size;
	uint64_t head_offset;
	uint64_t head_length;
	uint64_t state_offset;
	uint64_t state_length;
	uint64_t state_seq;
	uint64_t run_end;
	uint32_t first_crc;
	uint32_t last_crc;
	uint32_t head_crc;
	uint32_t run_count;
	jindex_run runs[JINDEX_RUNS_MAX];
	uint32_t spare;
	uint32_t crc; /* over all before it */
} page;

_Static_assert(sizeof(page) <= PAGE, "a header page holds all of it");
_Static_assert(sizeof(jslot) == 32, "the sidecar's slot is 32 bytes");

typedef struct run_entry {
	uint64_t hash;
	uint32_t index;
	uint32_t check; /* over the 12 bytes before it */
} run_entry;

_Static_assert(sizeof(run_entry) == 16, "a run's entry is 16 bytes");

static uint16_t slot_check(const jslot *s)
{
	return (uint16_t)(crc32c(0, s, offsetof(jslot, check)) ^ 0x5ea5u);
}

static uint32_t entry_check(const run_entry *e)
{
	return crc32c(0, e, offsetof(run_entry, check)) ^ 0x5eaf5eafu;
}

static uint32_t page_crc(const page *p)
{
	return crc32c(0, p, offsetof(page, crc));
}

static void names(char idx[JSONL_NAME_ROOM], char run[JSONL_NAME_ROOM], const char *name)
{
	snprintf(idx, JSONL_NAME_ROOM, "%s.idx", name);
	snprintf(run, JSONL_NAME_ROOM, "%s.run", name);
}

void jindex_init(jindex *x)
{
	*x = (jindex){.fd = -1, .run_fd = -1};
}

void jindex_close(jindex *x)
{
	if (x->fd >= 0)
		io_close(x->fd);
	if (x->run_fd >= 0)
		io_close(x->run_fd);
	jindex_drop_sieve(x);
	jindex_init(x);
}

static bool page_read(int fd, unsigned which, page *out)
{
	if (io_pread_full(fd, out, sizeof(*out), (off_t)which * PAGE) != (ssize_t)sizeof(*out))
		return false;
	return out->magic == MAGIC && out->crc == page_crc(out) &&
	       out->run_count <= JINDEX_RUNS_MAX;
}

static void page_take(jindex *x, const page *p)
{
	x->generation = p->generation;
	x->inode = p->inode;
	x->base = p->base;
	x->covered = p->covered;
	x->log_size = p->log_size;
	x->first_crc = p->first_crc;
	x->last_crc = p->last_crc;
	x->head_offset = p->head_offset;
	x->head_length = p->head_length;
	x->head_crc = p->head_crc;
	x->state_offset = p->state_offset;
	x->state_length = p->state_length;
	x->state_seq = p->state_seq;
	x->run_end = p->run_end;
	x->run_count = p->run_count;
	memcpy(x->runs, p->runs, sizeof(x->runs));
}

static int page_write(const jindex *x)
{
	page p = {.magic = MAGIC,
	          .generation = x->generation,
	          .inode = x->inode,
	          .base = x->base,
	          .covered = x->covered,
	          .log_size = x->log_size,
	          .head_offset = x->head_offset,
	          .head_length = x->head_length,
	          .state_offset = x->state_offset,
	          .state_length = x->state_length,
	          .state_seq = x->state_seq,
	          .run_end = x->run_end,
	          .first_crc = x->first_crc,
	          .last_crc = x->last_crc,
	          .head_crc = x->head_crc,
	          .run_count = x->run_count};
	memcpy(p.runs, x->runs, sizeof(p.runs));
	p.crc = page_crc(&p);
	return io_pwrite_full(x->fd, &p, sizeof(p), (off_t)(x->generation % 2) * PAGE);
}

void jindex_open(jindex *x, int side_dir, const char *name)
{
	char idx[JSONL_NAME_ROOM], run[JSONL_NAME_ROOM];

	jindex_close(x);
	if (side_dir < 0)
		return;
	names(idx, run, name);
	x->fd = io_open(side_dir, idx, O_RDWR, 0);
	x->run_fd = x->fd < 0 ? -1 : io_open(side_dir, run, O_RDWR, 0);
	if (x->run_fd < 0 || jindex_reread(x))
		jindex_close(x);
}

int jindex_reread(jindex *x)
{
	page a, b;
	if (x->fd < 0)
		return -1;
	bool has_a = page_read(x->fd, 0, &a), has_b = page_read(x->fd, 1, &b);
	if (!has_a && !has_b)
		return -1;
	page_take(x, !has_b || (has_a && a.generation > b.generation) ? &a : &b);
	return 0;
}

static void *read_bytes(const jindex *x, uint64_t offset, uint64_t length)
{
	if (length == 0 || length > ((uint64_t)1 << 24))
		return NULL;
	void *bytes = mem_alloc(length);
	if (bytes && io_pread_full(x->run_fd, bytes, length, (off_t)offset) != (ssize_t)length) {
		mem_free(bytes);
		bytes = NULL;
	}
	return bytes;
}

int jindex_head(const jindex *x, sheaf_head *out)
{
	sheaf_error err;

	if (x->fd < 0)
		return -1;
	_cleanup_(mem_freep) void *head = read_bytes(x, x->head_offset, x->head_length);
	if (!head || crc32c(0, head, x->head_length) != x->head_crc ||
	    sheaf_head_decode(out, head, x->head_length, &err) ||
	    head_state_seq(out) != x->state_seq)
		return -1;
	if (x->state_length == 0)
		return 0;
	_cleanup_(mem_freep) void *state = read_bytes(x, x->state_offset, x->state_length);
	return state && sheaf_head_state_decode(out, state, x->state_length, &err) == 0 ? 0 : -1;
}

int jindex_slots(const jindex *x, uint64_t first, size_t count, jslot *out)
{
	if (x->fd < 0 || first + count > x->covered)
		return -1;
	size_t bytes = count * sizeof(jslot);
	if (io_pread_full(x->fd, out, bytes, (off_t)(SLOTS_AT + first * sizeof(jslot))) !=
	    (ssize_t)bytes)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (out[i].check != slot_check(&out[i]))
			return -1;
	return 0;
}

/* Reads entries [first, first+count) of a run and verifies each. */
static int run_read(const jindex *x, const jindex_run *r, uint64_t first, size_t count,
                    run_entry *out)
{
	size_t bytes = count * sizeof(run_entry);
	if (io_pread_full(x->run_fd, out, bytes, (off_t)(r->offset + first * sizeof(run_entry))) !=
	    (ssize_t)bytes)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (out[i].check != entry_check(&out[i]))
			return -1;
	return 0;
}

#define FIND_STEP 64u

/*
 * The first entry of a run whose hash is not below `hash`. Hashes are spread
 * evenly, so the search begins where the hash ought to be and bisects from
 * there: two or three reads whatever the length.
 */
static int run_lower(const jindex *x, const jindex_run *r, uint64_t hash, uint64_t *out)
{
	run_entry block[FIND_STEP];
	uint64_t low = 0, high = r->count; /* the answer is in [low, high] */
	uint64_t guess = (uint64_t)(((unsigned __int128)hash * r->count) >> 64);

	while (high - low > FIND_STEP) {
		uint64_t at = guess > low + FIND_STEP / 2 ? guess - FIND_STEP / 2 : low;
		if (at + FIND_STEP > high)
			at = high - FIND_STEP;
		if (run_read(x, r, at, FIND_STEP, block))
			return -1;
		if (block[0].hash >= hash)
			high = at;
		else if (block[FIND_STEP - 1].hash < hash)
			low = at + FIND_STEP;
		else {
			low = at;
			high = at + FIND_STEP;
			break;
		}
		/* Gallop away from the guess first, then halve what is left. */
		uint64_t step = 4 * FIND_STEP;
		guess = high == at ? (at > low + step ? at - step : low + (high - low) / 2)
		                   : (low + step < high ? low + step : low + (high - low) / 2);
		if (high - low > 64 * FIND_STEP)
			guess = low + (high - low) / 2;
	}
	size_t count = (size_t)(high - low);
	if (run_read(x, r, low, count, block))
		return -1;
	size_t i = 0;
	while (i < count && block[i].hash < hash)
		i++;
	*out = low + i;
	return 0;
}

/* ---- The sieve ------------------------------------------------------------- */

#define LOOK_UPS_MAX 1000u /* after so many it is worth having */
#define SIEVE_BITS 16u     /* a record: less than one look-up in a hundred is made in vain */

void jindex_drop_sieve(jindex *x)
{
	mem_free(x->sieve);
	x->sieve = NULL;
	x->looked_up = 0;
}

/* Three places for a hash: the word and the bit of one of them. */
static uint64_t *sieve_word(const jindex *x, uint64_t hash, unsigned which, uint64_t *bit)
{
	uint64_t mixed = (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> (which * 17);
	*bit = UINT64_C(1) << (mixed & 63);
	return &x->sieve[(mixed >> 6) & (x->sieve_room - 1)];
}

static void sieve_add(jindex *x, uint64_t hash)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bit;
		*sieve_word(x, hash, i, &bit) |= bit;
	}
}

static bool sieve_passes(const jindex *x, uint64_t hash)
{
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bit;
		if ((*sieve_word(x, hash, i, &bit) & bit) == 0)
			return false;
	}
	return true;
}

/* Room for twice as many records as there are. Without memory there is none, which is no failure. */
static int sieve_make(jindex *x)
{
	_cleanup_(mem_freep) run_entry *chunk = mem_alloc(RUN_CHUNK * sizeof(*chunk));
	uint64_t room = 64;
	while (room * 64 < 2 * SIEVE_BITS * x->covered)
		room *= 2;
	jindex_drop_sieve(x);
	if (!chunk)
		return 0;
	x->sieve = mem_zalloc(room * sizeof(*x->sieve));
	x->sieve_room = room;
	for (uint32_t i = 0; x->sieve && i < x->run_count; i++)
		for (uint64_t at = 0; at < x->runs[i].count;) {
			uint64_t left = x->runs[i].count - at;
			size_t n = left < RUN_CHUNK ? (size_t)left : RUN_CHUNK;
			if (run_read(x, &x->runs[i], at, n, chunk)) {
				jindex_drop_sieve(x);
				return -1;
			}
			for (size_t k = 0; k < n; k++)
				sieve_add(x, chunk[k].hash);
			at += n;
		}
	return 0;
}

/* What was just covered; one that has become too small for it is made anew when it is wanted. */
static void sieve_extend(jindex *x, const jslot *slots, size_t count)
{
	if (x->sieve && x->covered * SIEVE_BITS > x->sieve_room * 64)
		jindex_drop_sieve(x);
	for (size_t i = 0; x->sieve && i < count; i++)
		sieve_add(x, slots[i].hash);
}

int jindex_find(jindex *x, uint64_t hash, int (*fn)(void *ctx, uint64_t index), void *ctx)
{
	if (x->fd < 0)
		return 0;
	if (!x->sieve && ++x->looked_up > LOOK_UPS_MAX && sieve_make(x))
		return -1;
	if (x->sieve && !sieve_passes(x, hash))
		return 0;
	for (uint32_t i = x->run_count; i-- > 0;) {
		const jindex_run *r = &x->runs[i];
		uint64_t at;
		if (r->count == 0)
			continue;
		if (run_lower(x, r, hash, &at))
			return -1;
		for (; at < r->count; at++) {
			run_entry e;
			if (run_read(x, r, at, 1, &e))
				return -1;
			if (e.hash != hash)
				break;
			int rc = fn(ctx, e.index);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- Extending ------------------------------------------------------------ */

static int entry_cmp(const void *a, const void *b)
{
	const run_entry *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* One input of a merge: a run on disk read in chunks, or an array that is all one chunk. */
typedef struct source {
	const jindex *x;
	jindex_run run; /* count 0 for an array */
	uint64_t next;  /* entries of the run read so far */
	run_entry *chunk;
	size_t have, at;
} source;

static int source_peek(source *s, const run_entry **out)
{
	if (s->at == s->have && s->next < s->run.count) {
		size_t n = s->run.count - s->next < RUN_CHUNK ? (size_t)(s->run.count - s->next)
		                                              : RUN_CHUNK;
		if (run_read(s->x, &s->run, s->next, n, s->chunk))
			return -1;
		s->next += n;
		s->have = n;
		s->at = 0;
	}
	*out = s->at < s->have ? &s->chunk[s->at] : NULL;
	return 0;
}

/* Writes two inputs as one run at the end of the run file. */
static int merge(jindex *x, source *a, source *b, jindex_run *out)
{
	_cleanup_(mem_freep) run_entry *to = mem_alloc(RUN_CHUNK * sizeof(run_entry));
	uint64_t end = x->run_end, total = 0;
	size_t filled = 0;

	if (!to)
		return -1;
	for (;;) {
		const run_entry *ea, *eb;
		if (source_peek(a, &ea) || source_peek(b, &eb))
			return -1;
		if ((!ea && !eb) || filled == RUN_CHUNK) {
			if (io_pwrite_full(x->run_fd, to, filled * sizeof(*to), (off_t)end))
				return -1;
			end += filled * sizeof(*to);
			total += filled;
			filled = 0;
			if (!ea && !eb)
				break;
		}
		source *s = ea && (!eb || entry_cmp(ea, eb) <= 0) ? a : b;
		to[filled++] = s->chunk[s->at++];
	}
	*out = (jindex_run){x->run_end, total};
	x->run_end = end;
	return 0;
}

/* Writes the new records' run, taking in as many of the newest runs as are not much longer. */
static int add_run(jindex *x, const jslot *slots, size_t count)
{
	_cleanup_(mem_freep) run_entry *fresh = mem_alloc((count ? count : 1) * sizeof(run_entry));
	_cleanup_(mem_freep) run_entry *in_a = mem_alloc(RUN_CHUNK * sizeof(run_entry));
	_cleanup_(mem_freep) run_entry *in_b = mem_alloc(RUN_CHUNK * sizeof(run_entry));
	jindex_run made;
	size_t n = 0;

	if (!fresh || !in_a || !in_b)
		return -1;
	for (size_t i = 0; i < count; i++) {
		fresh[n] = (run_entry){slots[i].hash, (uint32_t)(x->covered + i), 0};
		fresh[n].check = entry_check(&fresh[n]);
		n++;
	}
	qsort(fresh, n, sizeof(*fresh), entry_cmp);
	source a = {.x = x, .chunk = in_a}, b = {.x = x, .chunk = fresh, .have = n};
	if (x->run_count && x->runs[x->run_count - 1].count <= 3 * n)
		a.run = x->runs[--x->run_count];
	if (merge(x, &a, &b, &made))
		return -1;
	while (x->run_count && (x->runs[x->run_count - 1].count <= 3 * made.count ||
	                        x->run_count == JINDEX_RUNS_MAX)) {
		a = (source){.x = x, .chunk = in_a, .run = x->runs[--x->run_count]};
		b = (source){.x = x, .chunk = in_b, .run = made};
		if (merge(x, &a, &b, &made))
			return -1;
	}
	x->runs[x->run_count++] = made;
	return 0;
}

static int add_slots(jindex *x, const jslot *slots, size_t count)
{
	jslot chunk[256];
	for (size_t done = 0; done < count;) {
		size_t n = count - done < COUNT_OF(chunk) ? count - done : COUNT_OF(chunk);
		for (size_t i = 0; i < n; i++) {
			chunk[i] = slots[done + i];
			chunk[i].check = slot_check(&chunk[i]);
		}
		if (io_pwrite_full(x->fd, chunk, n * sizeof(jslot),
		                   (off_t)(SLOTS_AT + (x->covered + done) * sizeof(jslot))))
			return -1;
		done += n;
	}
	return 0;
}

static int add_head(jindex *x, const sheaf_head *head)
{
	size_t need = sheaf_head_encode(head, NULL, 0);
	_cleanup_(mem_freep) void *bytes = mem_alloc(need ? need : 1);
	if (!bytes)
		return -1;
	sheaf_head_encode(head, bytes, need);
	if (io_pwrite_full(x->run_fd, bytes, need, (off_t)x->run_end))
		return -1;
	x->head_offset = x->run_end;
	x->head_length = need;
	x->head_crc = crc32c(0, bytes, need);
	x->run_end += need;
	return 0;
}

/* Its bytes carry a checksum of their own. */
static int add_state(jindex *x, const sheaf_head *head)
{
	uint64_t seq = head_state_seq(head);
	if (seq == x->state_seq)
		return 0;
	size_t need = sheaf_head_state_encode(head, NULL, 0);
	_cleanup_(mem_freep) void *bytes = mem_alloc(need);
	if (!bytes)
		return -1;
	sheaf_head_state_encode(head, bytes, need);
	if (io_pwrite_full(x->run_fd, bytes, need, (off_t)x->run_end))
		return -1;
	x->state_offset = x->run_end;
	x->state_length = need;
	x->state_seq = seq;
	x->run_end += need;
	return 0;
}

int jindex_extend(jindex *x, int side_dir, const char *name, const jslot *slots, size_t count,
                  const sheaf_head *head, uint64_t log_size, uint32_t last_crc)
{
	jindex next = *x;

	if (side_dir < 0)
		return -1;
	if (next.fd < 0) {
		char idx[JSONL_NAME_ROOM], run[JSONL_NAME_ROOM];
		names(idx, run, name);
		/* What lies there describes another log or is broken: begin anew, do not reuse. */
		io_unlink(side_dir, idx);
		io_unlink(side_dir, run);
		next.fd = io_open(side_dir, idx, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (next.fd < 0)
			return -1;
		next.run_fd = io_open(side_dir, run, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (next.run_fd < 0) {
			io_close(next.fd);
			return -1;
		}
	}
	if (add_slots(&next, slots, count) || add_run(&next, slots, count) ||
	    add_head(&next, head) || add_state(&next, head))
		goto fail;
	next.covered += count;
	next.log_size = log_size;
	next.last_crc = last_crc;
	next.generation++;
	if (page_write(&next))
		goto fail;
	*x = next;
	sieve_extend(x, slots, count);
	return 0;
fail:
	if (x->fd < 0) {
		io_close(next.fd);
		io_close(next.run_fd);
	}
	return -1;
}

void jindex_remove(int side_dir, const char *name)
{
	char idx[JSONL_NAME_ROOM], run[JSONL_NAME_ROOM];
	if (side_dir < 0)
		return;
	names(idx, run, name);
	io_unlink(side_dir, idx);
	io_unlink(side_dir, run);
}
