/* Listing sessions in pages; a cursor says where the next page begins. */
#include <stdio.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/list.h"

#define PAGE_DEFAULT 50u
#define PAGE_MAX 10000u

/* "1:MODIFIED:OWNER:SESSION:CRC"; encoded keys hold no colon. */
#define CURSOR_ROOM (4 * SHEAF_KEY_PART_ROOM)

typedef struct list_box {
	sheaf_list list;
	arena *a;
} list_box;

/* ---- Building a list ---------------------------------------------------- */

int listing_begin(listing *l, sheaf_error *err)
{
	*l = (listing){.a = arena_new()};
	return l->a != NULL ? 0 : err_nomem(err);
}

void listing_end(listing *l)
{
	arena_free(l->a);
	mem_free(l->items);
	l->a = NULL;
	l->items = NULL;
}

int listing_add(listing *l, const sheaf_store_key *key, const sheaf_session_info *info)
{
	if (mem_grow((void **)&l->items, &l->room, l->count + 1, sizeof(*l->items)) != 0)
		return SHEAF_NOMEM;
	sheaf_session_info *copy = arena_zalloc(l->a, sizeof(*copy));
	if (copy == NULL)
		return SHEAF_NOMEM;
	int rc = info_copy(copy, key, info, l->a, NULL);
	if (rc == 0)
		l->items[l->count++] = copy;
	return rc;
}

int listing_finish(sheaf_list **out, listing *l, const char *cursor, sheaf_error *err)
{
	int ok = 1;
	list_box *box = arena_zalloc(l->a, sizeof(*box));
	const sheaf_session_info **items = arena_alloc(l->a, (l->count + 1) * sizeof(*items));
	if (box == NULL || items == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < l->count; i++)
		items[i] = l->items[i];
	items[l->count] = NULL;
	box->list.count = l->count;
	box->list.items = items;
	box->list.cursor = arena_dup(l->a, sheaf_str_of(cursor), &ok);
	if (!ok)
		return err_nomem(err);
	box->a = l->a;
	l->a = NULL;
	*out = &box->list;
	return 0;
}

void sheaf_list_free(const sheaf_list *list)
{
	if (list != NULL)
		arena_free(((const list_box *)(const void *)list)->a);
}

/* ---- Cursors ------------------------------------------------------------ */

static uint32_t cursor_check(const char *text, size_t len)
{
	/* Not zero at the start, so that a cursor is not mistaken for anybody else's checksum. */
	return crc32c(UINT32_C(0x5eaf), text, len);
}

static void cursor_write(char out[CURSOR_ROOM], int64_t modified_us, const sheaf_store_key *key)
{
	int n = snprintf(out, CURSOR_ROOM, "1:%lld:%s:%s", (long long)modified_us, key->owner.ptr,
	                 key->session.ptr);
	size_t len = n > 0 && n < CURSOR_ROOM - 16 ? (size_t)n : 0;
	(void)snprintf(out + len, CURSOR_ROOM - len, ":%08x", cursor_check(out, len));
}

typedef struct cursor {
	char text[CURSOR_ROOM];
	int64_t modified_us;
	sheaf_str owner;
	sheaf_str session;
} cursor;

/* A whole number of microseconds, nothing before and nothing after it. */
static bool read_time(const char *text, int64_t *out)
{
	bool negative = *text == '-';
	uint64_t value = 0;
	text += negative;
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || value > (uint64_t)INT64_MAX / 10 - 1)
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	*out = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

/* Takes a cursor apart, in a copy whose colons become NULs. */
static int cursor_read(cursor *c, sheaf_str given, sheaf_error *err)
{
	int bad = SHEAF_INVALID;
	char sum[16];
	if (given.len < 12 || given.len >= sizeof(c->text))
		return err_set(err, bad, "this is no cursor of a list");
	memcpy(c->text, given.ptr, given.len);
	c->text[given.len] = '\0';
	size_t body = given.len - 9;
	(void)snprintf(sum, sizeof(sum), ":%08x", cursor_check(c->text, body));
	if (memcmp(c->text + body, sum, 9) != 0 || memcmp(c->text, "1:", 2) != 0)
		return err_set(err, bad, "this is no cursor of a list");
	c->text[body] = '\0';
	char *owner = strchr(c->text + 2, ':'), *session = owner ? strchr(owner + 1, ':') : NULL;
	if (session == NULL)
		return err_set(err, bad, "this is no cursor of a list");
	*owner++ = '\0';
	*session++ = '\0';
	if (!read_time(c->text + 2, &c->modified_us))
		return err_set(err, bad, "this is no cursor of a list");
	c->owner = sheaf_str_of(owner);
	c->session = sheaf_str_of(session);
	return 0;
}

/* ---- Pages -------------------------------------------------------------- */

typedef struct page {
	listing l;
	sheaf_str name;
	sheaf_str cwd;
	int32_t cwd_below;
	sheaf_str kind;
	sheaf_str parent_session;
	sheaf_str agent;
	int64_t after_us;
	int64_t before_us;
	size_t limit;
	int32_t expired;          /* the most that is wanted */
	char cursor[CURSOR_ROOM]; /* of the last one taken */
	bool more;
} page;

static bool page_matches(sheaf_str wanted, sheaf_str is)
{
	return wanted.ptr == NULL || str_eq(wanted, is);
}

static bool begins(sheaf_str text, sheaf_str beginning)
{
	return text.len >= beginning.len && memcmp(text.ptr, beginning.ptr, beginning.len) == 0;
}

static bool cwd_matches(const page *p, sheaf_str cwd)
{
	if (p->cwd.ptr == NULL || str_eq(p->cwd, cwd))
		return true;
	/* "/a" has "/a/b" below it and not "/ab"; "/" has everything. */
	return p->cwd_below && p->cwd.len != 0 && cwd.len > p->cwd.len && begins(cwd, p->cwd) &&
	       (p->cwd.ptr[p->cwd.len - 1] == '/' || cwd.ptr[p->cwd.len] == '/');
}

/* What was imported has an id that begins with its agent's name and a dot. */
static bool agent_matches(const page *p, sheaf_str session)
{
	return p->agent.ptr == NULL || (session.len > p->agent.len && begins(session, p->agent) &&
	                                session.ptr[p->agent.len] == '.');
}

static int page_take(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	page *p = ctx;
	/* Newest first: once they are too old, all are. */
	if (p->after_us != 0 && info->modified_us < p->after_us)
		return 1;
	if (info->hidden || info->expired > p->expired ||
	    (p->before_us != 0 && info->modified_us >= p->before_us) ||
	    !page_matches(p->name, info->name) || !cwd_matches(p, info->cwd) ||
	    !page_matches(p->kind, info->kind) || !agent_matches(p, key->session) ||
	    !page_matches(p->parent_session, info->parent_session))
		return 0;
	if (p->l.count == p->limit) {
		p->more = true;
		return 1;
	}
	int rc = listing_add(&p->l, key, info);
	if (rc == 0 && p->l.count == p->limit)
		cursor_write(p->cursor, info->modified_us, key);
	return rc;
}

static int page_options(page *p, const sheaf_list_options *o, sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	p->name = OPTION(o, name, none);
	p->cwd = OPTION(o, cwd, none);
	p->cwd_below = OPTION(o, cwd_below, 0);
	p->agent = OPTION(o, agent, none);
	p->kind = OPTION(o, kind, none);
	p->parent_session = OPTION(o, parent_session, none);
	p->after_us = OPTION(o, after_us, 0);
	p->before_us = OPTION(o, before_us, 0);
	p->expired = OPTION(o, expired, 0) ? SHEAF_EXPIRY_GRACE : SHEAF_EXPIRY_NONE;
	p->limit = OPTION(o, limit, 0);
	if (p->limit == 0)
		p->limit = PAGE_DEFAULT;
	if (p->limit > PAGE_MAX)
		return err_set(err, SHEAF_LIMIT, "a list has at most %u sessions", PAGE_MAX);
	return 0;
}

int sheaf_store_list(sheaf_list **out, sheaf_store *store, const sheaf_list_options *options,
                     sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	char app[SHEAF_KEY_PART_ROOM], user[SHEAF_KEY_PART_ROOM];
	cursor start;
	page p = {.more = false};
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	int rc = page_options(&p, options, err);
	if (rc == 0)
		rc = sheaf_key_encode(app, OPTION(options, app, none), err);
	if (rc == 0)
		rc = sheaf_key_encode(user, OPTION(options, user, none), err);
	if (rc != 0)
		return rc;
	sheaf_list_query query = {.size = sizeof(query), .filter = options};
	bool all_apps = OPTION(options, all_apps, 0) != 0;
	if (!all_apps)
		query.app = sheaf_str_of(app);
	if (!all_apps && !OPTION(options, all_users, 0))
		query.user = sheaf_str_of(user);
	sheaf_str given = OPTION(options, cursor, none);
	if (rc == 0 && given.len != 0)
		rc = cursor_read(&start, given, err);
	if (rc == 0 && given.len != 0) {
		query.has_after = 1;
		query.after_modified_us = start.modified_us;
		query.after_owner = start.owner;
		query.after_session = start.session;
	}
	if (rc == 0)
		rc = listing_begin(&p.l, err);
	if (rc == 0)
		rc = store_list(store, &query, page_take, &p, err);
	if (rc == 0)
		rc = listing_finish(out, &p.l, p.more ? p.cursor : NULL, err);
	listing_end(&p.l);
	return rc;
}
