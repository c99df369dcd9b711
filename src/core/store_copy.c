/* Copying a store: which sessions, in which order, and what becomes of the whole. */
#include "core/store_copy.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- What the caller is told -------------------------------------------- */

void copy_note(const store_copy *c, const sheaf_key *key, int32_t what, int32_t code, uint64_t seq,
               const char *format, ...)
{
	char text[256];
	void (*note)(void *, const sheaf_copy_note *) = OPTION(c->options, note, NULL);
	if (note == NULL)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sheaf_copy_note n = {
		.what = what,
		.code = code,
		.app = key->app,
		.user = key->user,
		.session = key->session,
		.seq = seq,
		.detail = sheaf_str_of(text),
	};
	note(c->options->ctx, &n);
}

int copy_progress(store_copy *c, sheaf_error *err)
{
	int (*progress)(void *, const sheaf_copy_totals *) = OPTION(c->options, progress, NULL);
	if (progress == NULL || progress(c->options->ctx, &c->totals) == 0)
		return 0;
	return err_set(err, SHEAF_CANCELLED, "the copy was broken off");
}

/* ---- Which sessions ------------------------------------------------------ */

static int compare(const copy_item *a, const copy_item *b)
{
	int order = strcmp(a->app, b->app);
	if (order == 0)
		order = strcmp(item_user(a), item_user(b));
	return order != 0 ? order : strcmp(item_session(a), item_session(b));
}

static int compare_items(const void *a, const void *b)
{
	return compare(a, b);
}

static int take(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	store_copy *c = ctx;
	/* What is past its grace is deleted but for the sweep. */
	if (info->expired == SHEAF_EXPIRY_OVER)
		return 0;
	if (mem_grow((void **)&c->items, &c->room, c->count + 1, sizeof(*c->items)) != 0)
		return SHEAF_NOMEM;
	char *text = arena_alloc(c->a, key->app.len + key->user.len + key->session.len + 3);
	if (text == NULL)
		return SHEAF_NOMEM;
	c->items[c->count++] = (copy_item){text, info->records, info->hidden != 0, ITEM_WAITS};
	const sheaf_str parts[] = {key->app, key->user, key->session};
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		memcpy(text, parts[i].ptr, parts[i].len);
		text[parts[i].len] = '\0';
		text += parts[i].len + 1;
	}
	c->totals.sessions++;
	c->totals.records += info->records;
	return 0;
}

int copy_gather(store_copy *c, sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	char app[SHEAF_KEY_PART_ROOM], user[SHEAF_KEY_PART_ROOM];
	int rc = sheaf_key_encode(app, OPTION(c->options, app, none), err);
	if (rc == 0)
		rc = sheaf_key_encode(user, OPTION(c->options, user, none), err);
	if (rc != 0)
		return rc;
	sheaf_list_query query = {.size = sizeof(query), .hidden = 1};
	if (!OPTION(c->options, all_apps, 0)) {
		query.app = sheaf_str_of(app);
		if (!OPTION(c->options, all_users, 0))
			query.user = sheaf_str_of(user);
	}
	rc = store_list(c->from, &query, take, c, err);
	if (rc == SHEAF_UNSUPPORTED)
		err_hint(err, "copy one user after the other, each by app and user");
	if (rc == 0 && c->count != 0)
		qsort(c->items, c->count, sizeof(*c->items), compare_items);
	return rc;
}

/* ---- In which order ------------------------------------------------------ */

static copy_item *find_sibling(store_copy *c, sheaf_str session)
{
	size_t low = c->first, high = c->end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = str_cmp(sheaf_str_of(item_session(&c->items[middle])), session);
		if (order == 0)
			return &c->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int item_key(key_box *box, const copy_item *it, sheaf_error *err)
{
	return key_box_decode(box, sheaf_str_of(it->app), sheaf_str_of(item_user(it)),
	                      sheaf_str_of(item_session(it)), err);
}

/* The links of a session go from the nearest to the farthest; the farthest is needed first. */
static int copy_sources(store_copy *c, const copy_item *it, bool *missing, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	key_box box;
	sheaf_str source;
	uint64_t base;
	if (head == NULL)
		return err_nomem(err);
	int rc = item_key(&box, it, err);
	if (rc == 0)
		rc = store_head(c->from, &box.store, 0, head, NULL, err);
	if (rc != 0) /* copying the session itself says why */
		return rc == SHEAF_NOMEM ? rc : 0;
	size_t count = 0;
	while (sheaf_head_link(head, count, &source, &base))
		count++;
	while (count-- > 0) {
		(void)sheaf_head_link(head, count, &source, &base);
		copy_item *other = find_sibling(c, source);
		if (other != NULL && other->status == ITEM_WAITS) {
			rc = copy_session(c, other, err);
			if (rc != 0)
				return rc;
		}
		*missing = *missing || other == NULL || other->status == ITEM_NOT;
	}
	return 0;
}

static int copy_with_sources(store_copy *c, copy_item *it, sheaf_error *err)
{
	bool missing = false;
	if (it->status != ITEM_WAITS)
		return 0;
	int rc = copy_sources(c, it, &missing, err);
	if (rc != 0)
		return rc;
	if (!missing)
		return copy_session(c, it, err);
	key_box box;
	rc = item_key(&box, it, err);
	if (rc != 0)
		return rc;
	it->status = ITEM_NOT;
	c->totals.done++;
	c->totals.failed++;
	copy_note(c, &box.plain, SHEAF_COPY_FAILED, SHEAF_CONFLICT, 0,
	          "a session that it was forked from could not be copied");
	return copy_progress(c, err);
}

/*
 * Hides at the destination what is hidden at the source, unless it has gone on
 * there. Only now: hiding gives back what no fork reads, so all forks must be
 * there.
 */
static int hide_deleted(store_copy *c, sheaf_error *err)
{
	bool whole = true;
	int rc = 0;
	for (size_t i = c->first; i < c->end; i++)
		whole = whole && c->items[i].status != ITEM_NOT;
	for (size_t i = c->first; i < c->end && rc == 0; i++) {
		key_box box;
		sheaf_remove_request request = {.size = sizeof(request)};
		if (!c->items[i].hidden || c->items[i].status == ITEM_NOT)
			continue;
		rc = item_key(&box, &c->items[i], err);
		if (rc == 0 && whole && c->items[i].status == ITEM_SAME)
			rc = store_remove(c->to, &box.store, &request, NULL, err);
		else if (rc == 0)
			copy_note(c, &box.plain, SHEAF_COPY_LEFT, 0, 0, "%s",
			          whole ? "it is deleted at the source and has gone on here"
			                : "it is deleted, and stays visible here until all that "
			                  "were forked from it are copied");
	}
	return rc;
}

static int copy_owner(store_copy *c, sheaf_error *err)
{
	int rc = 0;
	for (size_t i = c->first; i < c->end && rc == 0; i++)
		rc = copy_with_sources(c, &c->items[i], err);
	return rc != 0 ? rc : hide_deleted(c, err);
}

static bool same_owner(const copy_item *a, const copy_item *b)
{
	return strcmp(a->app, b->app) == 0 && strcmp(item_user(a), item_user(b)) == 0;
}

static int copy_all(store_copy *c, sheaf_error *err)
{
	const char *app = NULL;
	for (c->first = 0; c->first < c->count; c->first = c->end) {
		const copy_item *one = &c->items[c->first];
		for (c->end = c->first + 1; c->end < c->count; c->end++)
			if (!same_owner(one, &c->items[c->end]))
				break;
		int rc = copy_owner(c, err);
		if (rc == 0 && (app == NULL || strcmp(app, one->app) != 0))
			rc = copy_app_state(c, app = one->app, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- The whole ----------------------------------------------------------- */

static int describe(store_copy *c, sheaf_error *err)
{
	sheaf_store_info from = SHEAF_STORE_INFO_INIT, to = SHEAF_STORE_INFO_INIT;
	int rc = sheaf_store_describe(c->from, &from, err);
	if (rc == 0)
		rc = sheaf_store_describe(c->to, &to, err);
	c->states = from.states && to.states;
	c->queues = from.queues && to.queues;
	if (rc == 0 && to.readonly)
		rc = err_set(err, SHEAF_READONLY, "the destination is open for reading only");
	return rc;
}

static int verdict(const store_copy *c, sheaf_error *err)
{
	const sheaf_copy_totals *t = &c->totals;
	if (t->conflicts != 0)
		return err_set(err, SHEAF_CONFLICT,
		               "%llu of %llu sessions differ and were left alone",
		               (unsigned long long)t->conflicts, (unsigned long long)t->sessions);
	if (t->failed != 0)
		return err_set(err, SHEAF_DAMAGED, "%llu of %llu sessions could not be copied",
		               (unsigned long long)t->failed, (unsigned long long)t->sessions);
	return 0;
}

int sheaf_store_copy(sheaf_copy_totals *out, sheaf_store *source, sheaf_store *destination,
                     const sheaf_copy_options *options, sheaf_error *err)
{
	if (source == NULL || destination == NULL || (out != NULL && out->size < sizeof(size_t)))
		return err_set(err, SHEAF_INVALID, "a copy needs a source and a destination");
	store_copy c = {
		.from = source,
		.to = destination,
		.options = options,
		.verify = OPTION(options, verify, 1) != 0,
		.totals = {.size = sizeof(sheaf_copy_totals)},
		.a = arena_new(),
	};
	int rc = c.a != NULL ? describe(&c, err) : err_nomem(err);
	if (rc == 0)
		rc = copy_gather(&c, err);
	if (rc == 0)
		rc = copy_progress(&c, err);
	if (rc == 0)
		rc = copy_all(&c, err);
	if (rc == 0)
		rc = verdict(&c, err);
	if (out != NULL) {
		c.totals.size = out->size;
		memcpy(out, &c.totals, out->size < sizeof(c.totals) ? out->size : sizeof(c.totals));
	}
	arena_free(c.a);
	mem_free(c.items);
	return rc;
}
