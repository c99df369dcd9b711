/* Heads: making, copying and asking. */
#include "entry/head_inside.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/key.h"

/* ---- What heads share ----------------------------------------------------- */

shared *shared_new(sheaf_str text)
{
	shared *s = mem_alloc(sizeof(*s) + text.len + 1);
	if (s == NULL)
		return NULL;
	atomic_init(&s->refs, 1);
	s->len = text.len;
	if (text.len != 0)
		memcpy(s->text, text.ptr, text.len);
	s->text[text.len] = '\0';
	return s;
}

shared *shared_ref(shared *s)
{
	if (s != NULL)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void shared_unref(shared *s)
{
	if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		mem_free(s);
}

static sheaf_str put_text(char **at, sheaf_str text)
{
	if (text.ptr == NULL)
		return text;
	char *copy = *at;
	if (text.len != 0)
		memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	*at += text.len + 1;
	return str_make(copy, text.len);
}

origin *origin_new(const origin *like, const header_link *links, size_t count)
{
	size_t bytes = like->at.len + like->kind.len + like->parent_session.len + like->cwd.len +
	               like->source.len + 5;
	for (size_t i = 0; i < count; i++)
		bytes += links[i].session.len + 1;
	origin *o = mem_alloc(sizeof(*o) + count * sizeof(o->links[0]) + bytes);
	if (o == NULL)
		return NULL;
	char *at = (char *)&o->links[count];
	memcpy(o, like, sizeof(*o));
	atomic_init(&o->refs, 1);
	o->link_count = count;
	o->at = put_text(&at, like->at);
	o->kind = put_text(&at, like->kind);
	o->parent_session = put_text(&at, like->parent_session);
	o->cwd = put_text(&at, like->cwd);
	o->source = put_text(&at, like->source);
	for (size_t i = 0; i < count; i++)
		o->links[i] = (header_link){put_text(&at, links[i].session), links[i].base};
	return o;
}

void origin_unref(origin *o)
{
	if (o != NULL && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		mem_free(o);
}

/* ---- Making and copying --------------------------------------------------- */

sheaf_head *sheaf_head_new(void)
{
	return mem_zalloc(sizeof(sheaf_head));
}

void head_clear(sheaf_head *h)
{
	for (size_t i = 0; i < h->more_count; i++)
		shared_unref(h->more[i].name);
	shared_unref(h->name);
	shared_unref(h->metadata);
	shared_unref(h->preview);
	state_unref(h->state);
	origin_unref(h->origin);
	slot *more = h->more;
	size_t room = h->more_room;
	memset(h, 0, sizeof(*h));
	h->more = more;
	h->more_room = room;
}

void sheaf_head_free(sheaf_head *head)
{
	if (head == NULL)
		return;
	head_clear(head);
	mem_free(head->more);
	mem_free(head);
}

/* From one append to the next hardly a text changes: then not even a count does. */
static void share(shared **to, shared *from)
{
	if (*to == from)
		return;
	shared_unref(*to);
	*to = shared_ref(from);
}

static void slot_copy(slot *to, const slot *from)
{
	share(&to->name, from->name);
	to->leaf_seq = from->leaf_seq;
	to->leaf_len = from->leaf_len;
	memcpy(to->leaf, from->leaf, from->leaf_len + 1);
}

static void copy_branches(sheaf_head *to, const sheaf_head *from)
{
	slot_copy(&to->main, &from->main);
	while (to->more_count > from->more_count)
		shared_unref(to->more[--to->more_count].name);
	while (to->more_count < from->more_count)
		to->more[to->more_count++].name = NULL;
	for (size_t i = 0; i < from->more_count; i++)
		slot_copy(&to->more[i], &from->more[i]);
}

static int make_room(sheaf_head *h, size_t count, sheaf_error *err)
{
	void *more = h->more;
	if (count > h->more_room && mem_grow(&more, &h->more_room, count, sizeof(slot)) != 0)
		return err_nomem(err);
	h->more = more;
	return 0;
}

int sheaf_head_copy(sheaf_head *to, const sheaf_head *from, sheaf_error *err)
{
	if (to == from)
		return 0;
	int rc = make_room(to, from->more_count, err);
	if (rc != 0)
		return rc;
	to->begun = from->begun;
	to->hidden = from->hidden;
	to->n = from->n;
	share(&to->name, from->name);
	share(&to->metadata, from->metadata);
	share(&to->preview, from->preview);
	if (to->state != from->state) {
		state_unref(to->state);
		to->state = state_ref(from->state);
	}
	if (to->origin != from->origin) {
		origin_unref(to->origin);
		to->origin = from->origin;
		if (to->origin != NULL)
			atomic_fetch_add_explicit(&to->origin->refs, 1, memory_order_relaxed);
	}
	copy_branches(to, from);
	return 0;
}

int head_begin(sheaf_head *h, const header *hd, sheaf_error *err)
{
	char plain[SHEAF_KEY_PART_ROOM];
	size_t plain_len;
	origin like = {
		.readonly = !hd->ours || hd->version > HEADER_VERSION,
		.created_us = hd->time_us,
		.base = hd->base,
		.at_seq = hd->at_seq,
		.at = hd->at,
		.kind = hd->kind.len != 0 ? hd->kind : SHEAF_STR("main"),
		.parent_session = hd->parent_session,
		.cwd = hd->cwd,
	};
	if (hd->at.len > SHEAF_ID_BYTES_MAX || hd->link_count > SHEAF_FORK_LINKS_MAX)
		return err_set(err, SHEAF_DAMAGED, "the header is not shaped like one");
	if (hd->source.ptr != NULL)
		like.source = sheaf_key_decode(plain, &plain_len, hd->source, NULL) == 0
		                      ? str_make(plain, plain_len)
		                      : hd->source;
	origin *o = origin_new(&like, hd->links, hd->link_count);
	if (o == NULL)
		return err_nomem(err);
	head_clear(h);
	h->begun = true;
	h->hidden = hd->hidden;
	h->origin = o;
	h->n.revision = hd->base;
	h->n.modified_us = hd->time_us;
	h->n.last_label = hd->label_seq;
	h->n.grace_us = SHEAF_GRACE_US_DEFAULT;
	head_slot_set(&h->main, hd->at, hd->at_seq);
	return 0;
}

/* ---- Branches ------------------------------------------------------------- */

slot *head_slot_find(sheaf_head *h, sheaf_str name)
{
	if (name.len == 0 || str_is(name, "main"))
		return &h->main;
	for (size_t i = 0; i < h->more_count; i++) {
		if (str_eq(shared_view(h->more[i].name), name))
			return &h->more[i];
	}
	return NULL;
}

int head_slot(sheaf_head *h, sheaf_str name, slot **out, sheaf_error *err)
{
	*out = head_slot_find(h, name);
	if (*out != NULL)
		return 0;
	if (h->more_count + 1 >= SHEAF_BRANCHES_MAX)
		return err_set(err, SHEAF_LIMIT, "a session has at most %u branches",
		               SHEAF_BRANCHES_MAX);
	int rc = make_room(h, h->more_count + 1, err);
	if (rc != 0)
		return rc;
	shared *kept = shared_new(name);
	if (kept == NULL)
		return err_nomem(err);
	slot *made = &h->more[h->more_count++];
	made->name = kept;
	head_slot_set(made, str_make("", 0), 0);
	*out = made;
	return 0;
}

void head_slot_remove(sheaf_head *h, slot *s)
{
	assert(s != &h->main);
	size_t i = (size_t)(s - h->more);
	shared_unref(s->name);
	memmove(s, s + 1, (h->more_count - i - 1) * sizeof(*s));
	h->more_count--;
}

void head_slot_set(slot *s, sheaf_str leaf, uint64_t seq)
{
	assert(leaf.len <= SHEAF_ID_BYTES_MAX);
	if (leaf.len != 0)
		memcpy(s->leaf, leaf.ptr, leaf.len);
	s->leaf[leaf.len] = '\0';
	s->leaf_len = leaf.len;
	s->leaf_seq = seq;
}

static void branch_fill(const slot *s, head_branch *out)
{
	out->name = s->name != NULL ? shared_view(s->name) : SHEAF_STR("main");
	out->leaf = str_make(s->leaf, s->leaf_len);
	out->leaf_seq = s->leaf_seq;
}

size_t head_branch_count(const sheaf_head *h)
{
	return 1 + h->more_count;
}

void head_branch_at(const sheaf_head *h, size_t i, head_branch *out)
{
	assert(i <= h->more_count);
	branch_fill(i == 0 ? &h->main : &h->more[i - 1], out);
}

bool head_branch_find(const sheaf_head *h, sheaf_str name, head_branch *out)
{
	/* Looking changes nothing; the slot is only read. */
	const slot *s = head_slot_find((sheaf_head *)(uintptr_t)h, name);
	if (s == NULL)
		return false;
	branch_fill(s, out);
	return true;
}

/* ---- Asking --------------------------------------------------------------- */

uint64_t head_base(const sheaf_head *h)
{
	return h->origin != NULL ? h->origin->base : 0;
}

uint64_t head_last_label(const sheaf_head *h)
{
	return h->n.last_label;
}

sheaf_str head_metadata(const sheaf_head *h)
{
	return h->metadata != NULL ? shared_view(h->metadata) : str_make(NULL, 0);
}

state_set *head_state(const sheaf_head *h)
{
	return h->state;
}

uint64_t head_state_seq(const sheaf_head *h)
{
	return h->n.state_seq;
}

uint64_t head_app_seq(const sheaf_head *h)
{
	return h->n.app_seq;
}

int sheaf_head_state_changed(const sheaf_head *a, const sheaf_head *b)
{
	return a->state != b->state;
}

size_t sheaf_head_state_encode(const sheaf_head *head, void *out, size_t room)
{
	return state_encode(head->state, out, room);
}

int sheaf_head_state_decode(sheaf_head *head, const void *bytes, size_t len, sheaf_error *err)
{
	state_set *state;
	int rc = state_decode(&state, bytes, len, err);
	if (rc != 0)
		return rc;
	state_unref(head->state);
	head->state = state;
	return 0;
}

uint64_t sheaf_head_revision(const sheaf_head *head)
{
	return head->n.revision;
}

int sheaf_head_hidden(const sheaf_head *head)
{
	return head->hidden;
}

void sheaf_head_hide(sheaf_head *head)
{
	head->hidden = true;
}

int sheaf_head_link(const sheaf_head *head, size_t i, sheaf_str *session, uint64_t *base)
{
	if (head->origin == NULL || i >= head->origin->link_count)
		return 0;
	*session = head->origin->links[i].session;
	*base = head->origin->links[i].base;
	return 1;
}

static sheaf_str or_empty(sheaf_str s)
{
	return s.ptr != NULL ? s : SHEAF_STR("");
}

void sheaf_head_info(const sheaf_head *head, sheaf_session_info *out)
{
	static const origin nothing = {.kind = {"main", 4}};
	const origin *o = head->origin != NULL ? head->origin : &nothing;
	memset(out, 0, sizeof(*out));
	out->name = shared_view(head->name);
	out->kind = o->kind;
	out->parent_session = or_empty(o->parent_session);
	out->cwd = or_empty(o->cwd);
	out->preview = shared_view(head->preview);
	out->created_us = o->created_us;
	out->modified_us = head->n.modified_us;
	out->revision = head->n.revision;
	out->records = head->n.records;
	out->messages = head->n.messages;
	out->turns = head->n.turns;
	out->usage = head->n.usage;
	out->hidden = head->hidden;
	out->readonly = o->readonly;
	out->base = o->base;
	out->source = o->source;
	out->ttl_us = head->n.ttl_us;
	out->grace_us = head->n.grace_us;
	out->pinned = head->n.pinned;
}

static int expired(const sheaf_session_info *info, int64_t stored_us, int64_t now_us)
{
	if (info->ttl_us == 0 || info->pinned)
		return SHEAF_EXPIRY_NONE;
	if (stored_us >= now_us)
		return SHEAF_EXPIRY_NONE;
	uint64_t age_us = (uint64_t)now_us - (uint64_t)stored_us, ttl_us = (uint64_t)info->ttl_us;
	if (age_us < ttl_us)
		return SHEAF_EXPIRY_NONE;
	return age_us - ttl_us < (uint64_t)info->grace_us ? SHEAF_EXPIRY_GRACE : SHEAF_EXPIRY_OVER;
}

int sheaf_head_expired(const sheaf_head *head, int64_t stored_us, int64_t now_us)
{
	sheaf_session_info info = {
		.ttl_us = head->n.ttl_us,
		.grace_us = head->n.grace_us,
		.pinned = head->n.pinned,
	};
	return expired(&info, stored_us, now_us);
}

void sheaf_info_clock(sheaf_session_info *info, int64_t stored_us, int64_t now_us)
{
	info->stored_us = stored_us;
	info->expired = expired(info, stored_us, now_us);
}
