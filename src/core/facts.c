/* Facts of one kind, read in order: see facts.h. */
#include "core/facts.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

int facts_begin(facts *f, const char *name, facts_take_fn take, sheaf_error *err)
{
	*f = (facts){.a = arena_new(), .name = name, .take = take};
	return f->a != NULL ? 0 : err_nomem(err);
}

void facts_end(facts *f)
{
	arena_free(f->a);
	mem_free(f->items);
	map_free(&f->ids);
	json_free(f->doc);
}

int facts_add(facts *f, void *item)
{
	if (mem_grow((void **)&f->items, &f->room, f->count + 1, sizeof(*f->items)) != 0)
		return err_nomem(&f->err);
	f->items[f->count++] = item;
	return 0;
}

sheaf_str facts_str(facts *f, const json_val *payload, const char *name, int *ok)
{
	return arena_dup(f->a, json_string(json_get(payload, name)), ok);
}

int64_t facts_time(const record *r)
{
	int64_t us = 0;
	(void)clock_parse(r->timestamp, &us);
	return us;
}

/* The payload of a record: the object its body has under the type's name. */
static int take(facts *f, const record *r, const sheaf_row *row)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_char(&body, '{');
	buf_str(&body, r->body);
	buf_char(&body, '}');
	if (buf_status(&body, &f->err) != 0)
		return f->err.code;
	int rc = json_parse(&f->doc, buf_view(&body), &f->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	const json_val *payload = rc == 0 ? json_get(json_root(f->doc), f->name) : NULL;
	f->err.code = 0;
	/* Foreign files hold what they will. */
	return json_type_of(payload) == JSON_OBJECT ? f->take(f, r, row, payload) : 0;
}

static int scan_row(void *ctx, const sheaf_row *row)
{
	facts *f = ctx;
	_cleanup_(arena_freep) arena *scratch = arena_new();
	record r;
	if (scratch == NULL)
		return err_nomem(&f->err);
	if (row->damaged)
		return 0;
	int rc = read_record(&r, row, scratch, &f->doc, &f->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	f->err.code = 0;
	return rc == 0 ? take(f, &r, row) : 0;
}

int facts_scan(facts *f, sheaf_session *s, const sheaf_head *head, int32_t kind, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KIND_BIT(kind),
	};
	return err_pass(err, &f->err, read_scan(s, head, &scan, scan_row, f, err));
}

typedef struct on_path {
	facts *f;
	int32_t kind;
} on_path;

static int path_row(void *ctx, const sheaf_row *row, const record *r)
{
	on_path *p = ctx;
	return r->kind == p->kind ? take(p->f, r, row) : 0;
}

int facts_path(facts *f, sheaf_session *s, const sheaf_head *head, uint64_t leaf, int32_t kind,
               sheaf_error *err)
{
	on_path p = {f, kind};
	int rc = err_pass(err, &f->err, read_path(s, head, leaf, path_row, NULL, &p, err));
	for (size_t i = 0; rc == 0 && i < f->count / 2; i++) {
		void *other = f->items[i];
		f->items[i] = f->items[f->count - 1 - i];
		f->items[f->count - 1 - i] = other;
	}
	return rc;
}

void *facts_box(facts *f, size_t size, void ***items, sheaf_error *err)
{
	void *box = arena_zalloc(f->a, size);
	*items = arena_alloc(f->a, f->count * sizeof(**items));
	if (box == NULL || *items == NULL) {
		(void)err_nomem(err);
		return NULL;
	}
	if (f->count != 0)
		memcpy(*items, f->items, f->count * sizeof(**items));
	return box;
}
