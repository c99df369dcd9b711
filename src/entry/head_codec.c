/*
 * Heads as bytes, for stores that write them down.
 *
 *   magic, version, length of all, then numbers and texts in a fixed order,
 *   then the CRC-32C of everything before it. Little-endian. The state has bytes of
 *   its own (state.c), for it is large and changes seldom.
 */
#include "entry/head_inside.h"

#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define MAGIC UINT32_C(0x64686673) /* "sfhd" */
#define VERSION 3u
#define NO_TEXT UINT32_MAX

/* ---- Writing -------------------------------------------------------------- */

/* Counts always, writes only where there is room for all. */
typedef struct writer {
	unsigned char *out;
	size_t len;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t len)
{
	if (w->out != NULL && len != 0)
		memcpy(w->out + w->len, bytes, len);
	w->len += len;
}

static void put_u32(writer *w, uint32_t value)
{
	unsigned char bytes[4];
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	put_bytes(w, bytes, sizeof(bytes));
}

static void put_u64(writer *w, uint64_t value)
{
	put_u32(w, (uint32_t)value);
	put_u32(w, (uint32_t)(value >> 32));
}

static void put_text(writer *w, sheaf_str text)
{
	put_u32(w, text.ptr != NULL ? (uint32_t)text.len : NO_TEXT);
	if (text.ptr != NULL)
		put_bytes(w, text.ptr, text.len);
}

static void put_shared(writer *w, const shared *s)
{
	put_text(w, s != NULL ? shared_view(s) : str_make(NULL, 0));
}

static void put_counts(writer *w, const counts *n)
{
	put_u64(w, (uint64_t)n->modified_us);
	put_u64(w, n->revision);
	put_u64(w, n->records);
	put_u64(w, n->messages);
	put_u64(w, n->turns);
	put_u64(w, n->last_label);
	put_u64(w, n->last_lost);
	put_u64(w, n->usage.input);
	put_u64(w, n->usage.cache_read);
	put_u64(w, n->usage.cache_write_5m);
	put_u64(w, n->usage.cache_write_1h);
	put_u64(w, n->usage.output);
	put_u64(w, n->usage.reasoning);
	put_u64(w, n->usage_turns.count);
	for (size_t i = 0; i < TURNS_KNOWN; i++)
		put_u64(w, n->usage_turns.known[i]);
	put_u64(w, n->usage_turns.ended);
	for (size_t i = 0; i < TURNS_LOST; i++)
		put_u64(w, n->usage_turns.lost[i]);
	put_u64(w, (uint64_t)n->ttl_us);
	put_u64(w, (uint64_t)n->grace_us);
	put_u32(w, n->pinned);
	put_u64(w, n->state_seq);
	put_u64(w, n->app_seq);
}

static void put_origin(writer *w, const origin *o)
{
	put_u32(w, o->readonly);
	put_u64(w, (uint64_t)o->created_us);
	put_u64(w, o->base);
	put_u64(w, o->at_seq);
	put_text(w, o->at);
	put_text(w, o->kind);
	put_text(w, o->parent_session);
	put_text(w, o->cwd);
	put_text(w, o->source);
	put_u32(w, (uint32_t)o->link_count);
	for (size_t i = 0; i < o->link_count; i++) {
		put_text(w, o->links[i].session);
		put_u64(w, o->links[i].base);
	}
}

static void put_slot(writer *w, const slot *s)
{
	put_shared(w, s->name);
	put_text(w, str_make(s->leaf, s->leaf_len));
	put_u64(w, s->leaf_seq);
}

static void put_head(writer *w, const sheaf_head *h, size_t total)
{
	put_u32(w, MAGIC);
	put_u32(w, VERSION);
	put_u64(w, total);
	put_u32(w, (h->begun ? 1u : 0u) | (h->hidden ? 2u : 0u));
	put_counts(w, &h->n);
	if (h->begun)
		put_origin(w, h->origin);
	put_shared(w, h->name);
	put_shared(w, h->metadata);
	put_shared(w, h->preview);
	put_slot(w, &h->main);
	put_u32(w, (uint32_t)h->more_count);
	for (size_t i = 0; i < h->more_count; i++)
		put_slot(w, &h->more[i]);
}

size_t sheaf_head_encode(const sheaf_head *head, void *out, size_t room)
{
	writer count = {NULL, 0};
	put_head(&count, head, 0);
	size_t total = count.len + sizeof(uint32_t);
	if (out == NULL || total > room)
		return total;
	writer w = {out, 0};
	put_head(&w, head, total);
	put_u32(&w, crc32c(0, out, w.len));
	return total;
}

/* ---- Reading -------------------------------------------------------------- */

typedef struct reader {
	const unsigned char *p;
	size_t left;
	bool ok;
	bool nomem;
} reader;

static const unsigned char *get_bytes(reader *r, size_t len)
{
	if (!r->ok || len > r->left) {
		r->ok = false;
		return NULL;
	}
	const unsigned char *at = r->p;
	r->p += len;
	r->left -= len;
	return at;
}

static uint32_t get_u32(reader *r)
{
	const unsigned char *p = get_bytes(r, 4);
	if (p == NULL)
		return 0;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(reader *r)
{
	uint64_t low = get_u32(r);
	return low | (uint64_t)get_u32(r) << 32;
}

/* A text of at most `max` bytes, as a view. */
static sheaf_str get_text(reader *r, size_t max)
{
	uint32_t len = get_u32(r);
	if (len == NO_TEXT)
		return str_make(NULL, 0);
	if (len > max)
		r->ok = false;
	const unsigned char *p = get_bytes(r, len);
	return str_make((const char *)p, p != NULL ? len : 0);
}

static shared *get_shared(reader *r, size_t max)
{
	sheaf_str text = get_text(r, max);
	if (!r->ok || text.ptr == NULL)
		return NULL;
	shared *s = shared_new(text);
	if (s == NULL) {
		r->nomem = true;
		r->ok = false;
	}
	return s;
}

static void get_counts(reader *r, counts *n)
{
	n->modified_us = (int64_t)get_u64(r);
	n->revision = get_u64(r);
	n->records = get_u64(r);
	n->messages = get_u64(r);
	n->turns = get_u64(r);
	n->last_label = get_u64(r);
	n->last_lost = get_u64(r);
	n->usage.input = get_u64(r);
	n->usage.cache_read = get_u64(r);
	n->usage.cache_write_5m = get_u64(r);
	n->usage.cache_write_1h = get_u64(r);
	n->usage.output = get_u64(r);
	n->usage.reasoning = get_u64(r);
	n->usage_turns.count = get_u64(r);
	if (n->usage_turns.count > TURNS_KNOWN)
		r->ok = false;
	for (size_t i = 0; i < TURNS_KNOWN; i++)
		n->usage_turns.known[i] = get_u64(r);
	n->usage_turns.ended = get_u64(r);
	for (size_t i = 0; i < TURNS_LOST; i++)
		n->usage_turns.lost[i] = get_u64(r);
	n->ttl_us = (int64_t)get_u64(r);
	n->grace_us = (int64_t)get_u64(r);
	n->pinned = get_u32(r) != 0;
	n->state_seq = get_u64(r);
	n->app_seq = get_u64(r);
}

static origin *get_origin(reader *r)
{
	origin like = {.readonly = get_u32(r) != 0};
	header_link links[SHEAF_FORK_LINKS_MAX];
	like.created_us = (int64_t)get_u64(r);
	like.base = get_u64(r);
	like.at_seq = get_u64(r);
	like.at = get_text(r, SHEAF_ID_BYTES_MAX);
	like.kind = get_text(r, SHEAF_RECORD_BYTES_MAX);
	like.parent_session = get_text(r, SHEAF_RECORD_BYTES_MAX);
	like.cwd = get_text(r, SHEAF_RECORD_BYTES_MAX);
	like.source = get_text(r, SHEAF_KEY_PART_BYTES_MAX);
	size_t count = get_u32(r);
	if (count > SHEAF_FORK_LINKS_MAX || like.kind.ptr == NULL)
		r->ok = false;
	for (size_t i = 0; r->ok && i < count; i++) {
		links[i].session = get_text(r, SHEAF_KEY_PART_BYTES_MAX);
		links[i].base = get_u64(r);
		if (links[i].session.ptr == NULL)
			r->ok = false;
	}
	if (!r->ok)
		return NULL;
	origin *o = origin_new(&like, links, count);
	if (o == NULL) {
		r->nomem = true;
		r->ok = false;
	}
	return o;
}

static void get_slot(reader *r, slot *s, bool is_main)
{
	if (is_main)
		r->ok = r->ok && get_u32(r) == NO_TEXT; /* main has no name of its own */
	else
		s->name = get_shared(r, SHEAF_BRANCH_BYTES_MAX);
	sheaf_str leaf = get_text(r, SHEAF_ID_BYTES_MAX);
	uint64_t seq = get_u64(r);
	if (!is_main && s->name == NULL)
		r->ok = false;
	head_slot_set(s, r->ok ? leaf : str_make(NULL, 0), seq);
}

/* Into a zeroed head, which owns whatever was read even if the rest is bad. */
static void get_head(reader *r, sheaf_head *h)
{
	uint32_t flags = get_u32(r);
	h->begun = (flags & 1) != 0;
	h->hidden = (flags & 2) != 0;
	get_counts(r, &h->n);
	if (h->begun)
		h->origin = get_origin(r);
	h->name = get_shared(r, SHEAF_NAME_BYTES_MAX);
	h->metadata = get_shared(r, SHEAF_RECORD_BYTES_MAX);
	h->preview = get_shared(r, SHEAF_NAME_BYTES_MAX);
	get_slot(r, &h->main, true);
	size_t count = get_u32(r);
	if (count >= SHEAF_BRANCHES_MAX)
		r->ok = false;
	if (!r->ok || count == 0)
		return;
	h->more = mem_alloc(count * sizeof(slot));
	if (h->more == NULL) {
		r->nomem = true;
		r->ok = false;
		return;
	}
	h->more_room = count;
	while (r->ok && h->more_count < count)
		get_slot(r, &h->more[h->more_count++], false);
}

/* The frame around it; false for bytes that are no head of this version. */
static bool open_frame(reader *r, const void *bytes, size_t len)
{
	if (bytes == NULL || len < 4 * sizeof(uint32_t) + sizeof(uint32_t))
		return false;
	reader tail = {(const unsigned char *)bytes + len - 4, 4, true, false};
	*r = (reader){bytes, len - 4, true, false};
	return get_u32(r) == MAGIC && get_u32(r) == VERSION && get_u64(r) == len &&
	       get_u32(&tail) == crc32c(0, bytes, len - 4);
}

int sheaf_head_decode(sheaf_head *head, const void *bytes, size_t len, sheaf_error *err)
{
	reader r;
	if (!open_frame(&r, bytes, len))
		return err_set(err, SHEAF_DAMAGED, "the bytes are no head");
	sheaf_head *made = sheaf_head_new();
	if (made == NULL)
		return err_nomem(err);
	get_head(&r, made);
	if (!r.ok || r.left != 0) {
		sheaf_head_free(made);
		return r.nomem ? err_nomem(err)
		               : err_set(err, SHEAF_DAMAGED, "the bytes are no head");
	}
	/* Swapped, so that the old content is freed with the new one's shell. */
	sheaf_head old = *head;
	*head = *made;
	*made = old;
	sheaf_head_free(made);
	return 0;
}
