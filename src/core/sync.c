/* Pulling from another store: which sessions, in which order, and what becomes of the whole. */
#include "core/sync.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

int sync_progress(store_sync *c, sheaf_error *err)
{
	int (*progress)(void *, const sheaf_sync_totals *) = OPTION(c->options, progress, NULL);
	if (progress == NULL || progress(c->options->ctx, &c->totals) == 0)
		return 0;
	return err_set(err, SHEAF_CANCELLED, "the pull was broken off");
}

/* ---- What the source is called ------------------------------------------------------ */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/* Up to the first such character, or all. */
static sheaf_str before(sheaf_str s, char c)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == c)
			return str_make(s.ptr, i);
	}
	return s;
}

static sheaf_str from(sheaf_str s, size_t at)
{
	return str_make(s.ptr + at, s.len - at);
}

/* After the last such character, or all. */
static sheaf_str after_last(sheaf_str s, char c)
{
	for (size_t i = s.len; i > 0; i--) {
		if (s.ptr[i - 1] == c)
			return from(s, i);
	}
	return s;
}

static sheaf_str host_of(sheaf_str authority)
{
	sheaf_str host = after_last(authority, '@'); /* before it there may be a password */
	return host.len != 0 && host.ptr[0] == '[' ? before(from(host, 1), ']') : before(host, ':');
}

sheaf_str sync_name_of(sheaf_str url)
{
	sheaf_str scheme = before(url, ':');
	if (scheme.len == url.len)
		return url;
	sheaf_str rest = from(url, scheme.len + 1);
	if (!str_is(scheme, "jsonl") && str_starts(rest, "//")) {
		sheaf_str authority = before(from(rest, 2), '/'), host = host_of(authority);
		if (host.len != 0)
			return host;
		rest = from(rest, 2 + authority.len);
	}
	while (rest.len != 0 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	sheaf_str name = after_last(rest, '/');
	while (name.len != 0 && name.ptr[0] == '.')
		name = from(name, 1);
	return name.len != 0 ? name : scheme;
}

static int take_name(store_sync *c, sheaf_error *err)
{
	sheaf_str name = OPTION(c->options, source, ((sheaf_str){NULL, 0}));
	if (name.len > SHEAF_SYNC_NAME_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "the name of a source has at most %u bytes",
		               SHEAF_SYNC_NAME_BYTES_MAX);
	for (size_t i = 0; i < name.len; i++) {
		if (!is_name_char(name.ptr[i]))
			return err_set(err, SHEAF_INVALID,
			               "the name of a source has letters, digits, '.', '_', '-'");
	}
	if (name.len != 0) {
		str_copy_cut(c->source, sizeof(c->source), name);
		return 0;
	}
	str_copy_cut(c->source, sizeof(c->source),
	             sync_name_of(sheaf_str_of(store_place(c->there))));
	for (char *p = c->source; *p != '\0'; p++) {
		if (!is_name_char(*p))
			*p = '-';
	}
	return 0;
}

/* ---- Which sessions ------------------------------------------------------------------ */

static int compare(const sync_item *a, const sync_item *b)
{
	const char *x = a->app, *y = b->app;
	int order = strcmp(x, y);
	for (int i = 0; i < 2 && order == 0; i++)
		order = strcmp(x = sync_next(x), y = sync_next(y));
	return order;
}

static int compare_items(const void *a, const void *b)
{
	return compare(a, b);
}

/* What a list says of a session that tells one log from another. */
static uint64_t digest(const sheaf_session_info *info)
{
	const uint64_t numbers[] = {
		info->revision,
		info->base,
		info->records,
		info->messages,
		info->turns,
		(uint64_t)info->created_us,
		(uint64_t)info->modified_us,
		info->usage.input,
		info->usage.output,
		info->usage.cache_read,
		str_hash(info->name),
		str_hash(info->preview),
	};
	return str_hash(str_make((const char *)numbers, sizeof(numbers)));
}

static sheaf_str key_text(buf *out, const sheaf_store_key *key)
{
	buf_reset(out);
	buf_str(out, key->app);
	buf_char(out, '/');
	buf_str(out, key->user);
	buf_char(out, '/');
	buf_str(out, key->session);
	return buf_view(out);
}

typedef struct gathering {
	store_sync *c;
	map here; /* app/user/session → digest */
	buf text;
	bool with_parents;
} gathering;

static int take_here(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	gathering *g = ctx;
	int ok = 1;
	/* What needs a closer look is not in the map. */
	if (info->hidden || info->readonly || info->damaged || info->expired != 0)
		return 0;
	sheaf_str text = key_text(&g->text, key);
	if (g->text.status != 0)
		return SHEAF_NOMEM;
	text = arena_dup(g->c->a, text, &ok);
	return ok ? map_set(&g->here, text, digest(info)) : SHEAF_NOMEM;
}

static int take_there(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	gathering *g = ctx;
	store_sync *c = g->c;
	char parent[SHEAF_KEY_PART_ROOM] = "";
	uint64_t known;
	if (info->expired == SHEAF_EXPIRY_OVER || info->hidden)
		return 0;
	if (g->with_parents && info->parent_session.len != 0 &&
	    sheaf_key_encode(parent, info->parent_session, NULL) != 0)
		parent[0] = '\0';
	if (mem_grow((void **)&c->items, &c->room, c->count + 1, sizeof(*c->items)) != 0)
		return SHEAF_NOMEM;
	const sheaf_str parts[] = {key->app, key->user, key->session, sheaf_str_of(parent)};
	size_t bytes = 0;
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		bytes += parts[i].len + 1;
	char *text = arena_alloc(c->a, bytes);
	sheaf_str name = key_text(&g->text, key);
	if (text == NULL || g->text.status != 0)
		return SHEAF_NOMEM;
	c->items[c->count++] = (sync_item){
		.app = text,
		.chosen = !g->with_parents,
		.same = info->expired == 0 && map_get(&g->here, name, &known) &&
	                known == digest(info),
	};
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		memcpy(text, parts[i].ptr, parts[i].len);
		text[parts[i].len] = '\0';
		text += parts[i].len + 1;
	}
	return 0;
}

static sync_item *find_item(store_sync *c, const char *app, const char *user, const char *session)
{
	size_t low = 0, high = c->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *part = c->items[middle].app;
		int order = strcmp(part, app);
		if (order == 0)
			order = strcmp(part = sync_next(part), user);
		if (order == 0)
			order = strcmp(sync_next(part), session);
		if (order == 0)
			return &c->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

sync_item *sync_sibling(store_sync *c, const sync_item *of, sheaf_str session)
{
	char name[SHEAF_KEY_PART_ROOM];
	str_copy_cut(name, sizeof(name), session);
	return find_item(c, of->app, sync_next(of->app), name);
}

/* Those that were named, and the sub-agents of what is chosen. */
static int choose(store_sync *c, const char *app, const char *user, sheaf_error *err)
{
	char session[SHEAF_KEY_PART_ROOM];
	for (size_t i = 0; i < c->options->session_count; i++) {
		int rc = sheaf_key_encode(session, c->options->sessions[i], err);
		if (rc != 0)
			return rc;
		sync_item *it = find_item(c, app, user, session);
		if (it == NULL)
			return err_set(err, SHEAF_NOT_FOUND, "the source has no session '%.*s'",
			               (int)(c->options->sessions[i].len < 60
			                             ? c->options->sessions[i].len
			                             : 60),
			               c->options->sessions[i].ptr);
		it->chosen = 1;
	}
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < c->count; i++) {
			sync_item *it = &c->items[i];
			const char *parent = sync_next(sync_next(sync_next(it->app)));
			if (it->chosen || parent[0] == '\0')
				continue;
			const sync_item *of = find_item(c, it->app, sync_next(it->app), parent);
			if (of != NULL && of->chosen)
				it->chosen = more = true;
		}
	}
	return 0;
}

int sync_gather(store_sync *c, sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	char app[SHEAF_KEY_PART_ROOM], user[SHEAF_KEY_PART_ROOM];
	int rc = sheaf_key_encode(app, OPTION(c->options, app, none), err);
	if (rc == 0)
		rc = sheaf_key_encode(user, OPTION(c->options, user, none), err);
	if (rc != 0)
		return rc;
	gathering g = {
		.c = c,
		.text = BUF_INIT(SIZE_MAX),
		.with_parents = OPTION(c->options, sessions, NULL) != NULL,
	};
	sheaf_list_query query = {.size = sizeof(query)};
	bool all_apps = OPTION(c->options, all_apps, 0) && !g.with_parents;
	bool all_users = OPTION(c->options, all_users, 0) && !g.with_parents;
	if (!all_apps)
		query.app = sheaf_str_of(app);
	if (!all_apps && !all_users)
		query.user = sheaf_str_of(user);
	rc = store_list(c->here, &query, take_here, &g, err);
	if (rc == 0)
		rc = store_list(c->there, &query, take_there, &g, err);
	if (rc == SHEAF_UNSUPPORTED)
		err_hint(err, "pull one user after the other, each by app and user");
	if (rc == 0 && c->count != 0)
		qsort(c->items, c->count, sizeof(*c->items), compare_items);
	if (rc == 0 && g.with_parents)
		rc = choose(c, app, user, err);
	map_free(&g.here);
	buf_free(&g.text);
	return rc;
}

/* ---- In which order ---------------------------------------------------------------------- */

/* What a fork reads goes before it, the farthest first, so that it can stay a fork. */
static int pull_sources(store_sync *c, const sync_item *it, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	key_box key;
	sheaf_str source;
	uint64_t base;
	size_t links = 0;
	const char *user = sync_next(it->app);
	if (head == NULL)
		return err_nomem(err);
	int rc = key_box_decode(&key, sheaf_str_of(it->app), sheaf_str_of(user),
	                        sheaf_str_of(sync_next(user)), err);
	if (rc == 0)
		rc = store_head(c->there, &key.store, 0, head, NULL, err);
	if (rc != 0) /* pulling the session itself says why */
		return rc == SHEAF_NOMEM ? rc : 0;
	while (sheaf_head_link(head, links, &source, &base))
		links++;
	while (links-- > 0) {
		(void)sheaf_head_link(head, links, &source, &base);
		sync_item *other = sync_sibling(c, it, source);
		if (other == NULL || !other->chosen || other->same || other->status != SYNC_WAITS)
			continue;
		rc = sync_session(c, other, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int pull_all(store_sync *c, sheaf_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < c->count; i++) {
		const sync_item *it = &c->items[i];
		c->totals.sessions += it->chosen;
		if (it->chosen && it->same) {
			c->totals.same++;
			c->totals.done++;
		}
	}
	for (size_t i = 0; i < c->count && rc == 0; i++) {
		sync_item *it = &c->items[i];
		if (!it->chosen || it->same || it->status != SYNC_WAITS)
			continue;
		rc = pull_sources(c, it, err);
		if (rc == 0 && it->status == SYNC_WAITS)
			rc = sync_session(c, it, err);
	}
	return rc;
}

/* ---- The whole ------------------------------------------------------------------------------ */

static int verdict(const store_sync *c, sheaf_error *err)
{
	const sheaf_sync_totals *t = &c->totals;
	if (t->conflicts != 0)
		return err_set(err, SHEAF_CONFLICT,
		               "%llu of %llu sessions are in conflict and were left alone",
		               (unsigned long long)t->conflicts, (unsigned long long)t->sessions);
	if (t->failed != 0)
		return err_set(err, c->first_code, "%llu of %llu sessions failed: %s",
		               (unsigned long long)t->failed, (unsigned long long)t->sessions,
		               c->first_message);
	return 0;
}

int sheaf_store_pull(sheaf_sync_totals *out, sheaf_store *store, sheaf_store *source,
                     const sheaf_sync_options *options, sheaf_error *err)
{
	if (store == NULL || source == NULL || (out != NULL && out->size < sizeof(size_t)))
		return err_set(err, SHEAF_INVALID, "a pull needs a store and a source");
	store_sync c = {
		.here = store,
		.there = source,
		.options = options,
		.dry_run = OPTION(options, dry_run, 0) != 0,
		.totals = {.size = sizeof(sheaf_sync_totals)},
		.a = arena_new(),
	};
	int rc = c.a != NULL ? take_name(&c, err) : err_nomem(err);
	if (rc == 0 && store_readonly(store) && !c.dry_run)
		rc = err_set(err, SHEAF_READONLY, "the store is open for reading only");
	if (rc == 0)
		rc = sync_gather(&c, err);
	if (rc == 0)
		rc = pull_all(&c, err);
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
