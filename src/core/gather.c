/* Building results: rows become entries in one arena. */
#include "core/gather.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

int gather_begin(gather *g, bool parse, sheaf_error *err)
{
	*g = (gather){.a = arena_new(), .parse = parse};
	return g->a != NULL ? 0 : err_nomem(err);
}

void gather_end(gather *g)
{
	arena_free(g->a);
	json_free(g->doc);
	mem_free(g->items);
	g->a = NULL;
	g->doc = NULL;
	g->items = NULL;
}

int gather_look(gather *g, const sheaf_row *row, record *r, bool *readable)
{
	*readable = false;
	if (row->damaged)
		return 0;
	int rc = read_record(r, row, g->a, &g->doc, &g->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	g->err.code = 0;
	*readable = rc == 0;
	return 0;
}

int gather_add(gather *g, const sheaf_row *row, const record *r)
{
	if (mem_grow((void **)&g->items, &g->room, g->count + 1, sizeof(*g->items)) != 0)
		return err_nomem(&g->err);
	sheaf_entry *e = arena_zalloc(g->a, sizeof(*e));
	if (e == NULL)
		return err_nomem(&g->err);
	if (r != NULL) {
		uint64_t parent = record_kind_is_fact(r->kind) ? 0 : row->parent;
		int rc = entry_read(e, r, parent, g->parse, g->a, &g->doc, &g->err);
		if (rc == SHEAF_NOMEM)
			return rc;
		if (rc != 0) {
			/* Its line holds, what is in it does not: as good as unreadable. */
			memset(e, 0, sizeof(*e));
			e->damaged = 1;
			g->err.code = 0;
		}
		g->foreign = g->foreign || r->seq == 0;
	} else {
		e->damaged = 1;
	}
	e->seq = row->seq;
	g->bytes += row->bytes.len;
	g->items[g->count++] = e;
	return 0;
}

int gather_row(void *ctx, const sheaf_row *row)
{
	gather *g = ctx;
	record r;
	bool readable;
	int rc = gather_look(g, row, &r, &readable);
	return rc != 0 ? rc : gather_add(g, row, readable ? &r : NULL);
}

void gather_reverse(gather *g)
{
	for (size_t i = 0, k = g->count; i + 1 < k; i++) {
		sheaf_entry *swap = g->items[i];
		g->items[i] = g->items[--k];
		g->items[k] = swap;
	}
}

/* ---- Labels ------------------------------------------------------------- */

typedef struct loading {
	map *labels;
	arena *a;
} loading;

static int load_label(void *ctx, sheaf_str target, sheaf_str label)
{
	loading *l = ctx;
	int ok = 1;
	sheaf_str key = arena_dup(l->a, target, &ok);
	sheaf_str *value = arena_alloc(l->a, sizeof(*value));
	if (value == NULL || !ok)
		return SHEAF_NOMEM;
	*value = arena_dup(l->a, label, &ok);
	return ok ? map_set_ptr(l->labels, key, value) : SHEAF_NOMEM;
}

int labels_load(map *labels, sheaf_session *s, const sheaf_head *head, arena *a, sheaf_error *err)
{
	loading l = {labels, a};
	return read_labels(s, head, load_label, &l, err);
}

int gather_labels(gather *g, sheaf_session *s, const sheaf_head *head, sheaf_error *err)
{
	_cleanup_(map_free) map labels = MAP_INIT;
	int rc = labels_load(&labels, s, head, g->a, err);
	for (size_t i = 0; rc == 0 && labels.count != 0 && i < g->count; i++) {
		const sheaf_str *label = map_get_ptr(&labels, g->items[i]->id);
		if (label != NULL)
			g->items[i]->label = *label;
	}
	return rc;
}

/* ---- Parents of foreign entries ----------------------------------------- */

typedef struct id_take {
	gather *g;
	sheaf_str id;
} id_take;

static int take_id(void *ctx, const sheaf_row *row)
{
	id_take *t = ctx;
	int ok = 1;
	t->id = arena_dup(t->g->a, row->id, &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

int gather_parents(gather *g, sheaf_session *s, const sheaf_head *head, sheaf_error *err)
{
	for (size_t i = 0; g->foreign && i < g->count; i++) {
		sheaf_entry *e = g->items[i];
		if (e->parent_seq == 0)
			continue;
		if (i > 0 && g->items[i - 1]->seq == e->parent_seq && !g->items[i - 1]->damaged) {
			e->parent_id = g->items[i - 1]->id;
			continue;
		}
		sheaf_error local;
		id_take t = {g, {NULL, 0}};
		int rc = read_row(s, head, e->parent_seq, take_id, &t, &local);
		if (rc == 0 && t.id.len != 0)
			e->parent_id = t.id;
		if (rc != 0 && rc != SHEAF_NOT_FOUND) {
			if (err != NULL)
				*err = local;
			return rc;
		}
	}
	return 0;
}

/* ---- The result --------------------------------------------------------- */

typedef struct records_box {
	sheaf_records records;
	arena *a;
} records_box;

int gather_finish(sheaf_records **out, gather *g, uint64_t revision, uint64_t next_seq,
                  sheaf_error *err)
{
	records_box *box = arena_zalloc(g->a, sizeof(*box));
	const sheaf_entry **items = arena_alloc(g->a, (g->count + 1) * sizeof(*items));
	if (box == NULL || items == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < g->count; i++)
		items[i] = g->items[i];
	items[g->count] = NULL;
	box->records = (sheaf_records){g->count, items, next_seq, revision};
	box->a = g->a;
	g->a = NULL;
	*out = &box->records;
	return 0;
}

void sheaf_records_free(const sheaf_records *records)
{
	if (records != NULL)
		arena_free(((const records_box *)(const void *)records)->a);
}
