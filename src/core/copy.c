/* Copies: a whole session as it is, a foreign one taken in, one path as a session of its own. */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/transfer.h"
#include "entry/members.h"

/* A copy under way. */
typedef struct copying {
	transfer t; /* first: the fills get this */
	sheaf_session *from;
	sheaf_head *head;
	arena *a; /* lives as long as the copy */
	header hd;
	key_box key;
	map ids;          /* foreign: id → new number, to tell doubles */
	sheaf_str *names; /* foreign: the id of record i + 1 */
	size_t name_count;
	size_t name_room;
	uint64_t *path; /* export: the numbers of the entries, root first */
	size_t path_count;
	size_t path_room;
	size_t path_at;
	sheaf_str parent_id; /* export: the entry before */
	uint64_t parent;
	draft_list labels;
	map on_path;
} copying;

static void copying_end(copying *c)
{
	transfer_end(&c->t);
	sheaf_head_free(c->head);
	arena_free(c->a);
	map_free(&c->ids);
	map_free(&c->on_path);
	mem_free(c->names);
	mem_free(c->path);
	drafts_free(&c->labels);
}

/* Reads the source's header and rewrites it for the new key. */
static int copying_begin(copying *c, sheaf_session *from, const sheaf_key *key,
                         transfer_fill_fn fill, sheaf_error *err)
{
	c->from = from;
	c->a = arena_new();
	if (c->a == NULL)
		return err_nomem(err);
	int rc = session_key_make(&c->key, key, err);
	if (rc == 0)
		rc = session_head(from, &c->head, NULL, err);
	if (rc == 0)
		rc = session_header(from, &c->hd, c->a, err);
	if (rc != 0)
		return rc;
	if (c->hd.ours && c->hd.version > HEADER_VERSION)
		return err_set(err, SHEAF_FORMAT, "the session was written by a newer version");
	header hd = c->hd;
	hd.ours = true;
	hd.version = HEADER_VERSION;
	hd.id = c->key.plain.session;
	hd.app = c->key.plain.app;
	hd.user = c->key.plain.user;
	header_unlink(&hd);
	/* A foreign header may have a time that is none; ours may not. */
	int64_t time_us;
	if (!clock_parse(hd.timestamp, &time_us))
		hd.timestamp = (sheaf_str){NULL, 0};
	return transfer_begin(&c->t, from, c->head, &hd, fill, err);
}

/* The handle on what was made. */
static int copying_open(copying *c, sheaf_session **out, sheaf_store *store, sheaf_error *err)
{
	sheaf_head *head = c->t.after;
	c->t.after = NULL;
	return session_made(out, store, &c->key, head, err);
}

/* ---- Foreign files ------------------------------------------------------ */

/* Remembers the id of the next record; a double gets a new one. */
static int foreign_id(copying *c, record *r, sheaf_error *err)
{
	uint64_t known;
	int ok = 1;
	char fresh[SHEAF_ID_ROOM];
	if (map_get(&c->ids, r->id, &known)) {
		int rc = sheaf_id_new(fresh, err);
		if (rc != 0)
			return rc;
		r->id = sheaf_str_of(fresh);
	}
	if (mem_grow((void **)&c->names, &c->name_room, c->name_count + 1, sizeof(*c->names)) != 0)
		return err_nomem(err);
	sheaf_str kept = arena_dup(c->a, r->id, &ok);
	if (!ok || map_set(&c->ids, kept, c->name_count + 1) != 0)
		return err_nomem(err);
	c->names[c->name_count++] = kept;
	r->id = kept;
	return 0;
}

/* A leaf of ours says its entry's number too; a foreign one gets it. */
static int foreign_leaf(copying *c, record *r, sheaf_error *err)
{
	int ok = 1, rc = json_parse(&c->t.doc, members_find(r->body, "leaf"), err);
	if (rc != 0)
		return rc;
	const json_val *leaf = json_root(c->t.doc), *entry = json_get(leaf, "entry_id");
	sheaf_str branch = json_string(json_get(leaf, "branch")), id = json_string(entry);
	uint64_t seq = 0;
	if (id.len != 0 && !map_get(&c->ids, id, &seq))
		id = (sheaf_str){NULL, 0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (entry != NULL || str_is(branch, "main") || branch.len == 0)
		body_leaf(&body, branch.len != 0 ? branch : SHEAF_STR("main"), id, seq);
	else
		body_leaf_gone(&body, branch);
	rc = buf_status(&body, err);
	if (rc == 0)
		r->body = arena_dup(c->t.a, buf_view(&body), &ok);
	return rc == 0 && !ok ? err_nomem(err) : rc;
}

static int foreign_row(void *ctx, const sheaf_row *row)
{
	copying *c = ctx;
	transfer *t = &c->t;
	record r;
	if (row->seq > t->upto || transfer_full(t, row->bytes.len + RECORD_FRAME_BYTES_MAX))
		return 1;
	if (row->damaged)
		return err_set(&t->err, SHEAF_DAMAGED, "line %llu cannot be read",
		               (unsigned long long)row->seq + 1);
	int rc = read_record(&r, row, t->a, &t->doc, &t->err);
	if (rc == 0)
		rc = foreign_id(c, &r, &t->err);
	if (rc == 0 && r.kind == SHEAF_KIND_LEAF)
		rc = foreign_leaf(c, &r, &t->err);
	if (rc != 0)
		return rc;
	/* Ours or not, it gets a new frame. */
	r.seq = 0;
	sheaf_str parent_id = {NULL, 0};
	bool fact = record_kind_is_fact(r.kind);
	if (!fact && row->parent != 0 && row->parent < c->name_count)
		parent_id = c->names[row->parent - 1];
	uint64_t parent = parent_id.ptr != NULL ? row->parent : 0;
	rc = transfer_restamp(t, &r, parent_id, parent, 0, 1, &t->err);
	t->next = row->seq + 1;
	return rc;
}

static int foreign_fill(transfer *t, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = t->next,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	uint64_t before = t->next;
	int rc = err_pass(err, &t->err, read_scan(t->from, t->head, &scan, foreign_row, t, err));
	t->ended = t->next > t->upto;
	if (rc == 0 && !t->ended && t->next == before)
		rc = err_set(err, SHEAF_DAMAGED, "record %llu is missing",
		             (unsigned long long)t->next);
	return rc;
}

int sheaf_session_copy(sheaf_session **out, sheaf_session *source, sheaf_store *store,
                       const sheaf_key *key, sheaf_error *err)
{
	if (out == NULL || source == NULL || store == NULL || key == NULL)
		return err_set(err, SHEAF_INVALID, "a copy needs a source, a store and a key");
	_cleanup_(mem_freep) copying *c = mem_zalloc(sizeof(*c));
	if (c == NULL)
		return err_nomem(err);
	int rc = copying_begin(c, source, key, transfer_fill_raw, err);
	if (rc == 0 && c->hd.ours) {
		/* What is inherited brings other branches; the copy is to be as its source. */
		transfer_goal goal = transfer_goal_of(c->head);
		rc = transfer_store(&c->t, store, &c->key, NULL, head_base(c->head) ? &goal : NULL,
		                    (sheaf_str){NULL, 0}, 0, err);
	} else if (rc == 0) {
		c->t.fill = foreign_fill;
		rc = transfer_store(&c->t, store, &c->key, NULL, NULL, (sheaf_str){NULL, 0}, 0,
		                    err);
	}
	if (rc == 0)
		rc = copying_open(c, out, store, err);
	copying_end(c);
	return rc;
}

/* ---- One path ----------------------------------------------------------- */

static int path_note(void *ctx, const sheaf_row *row, const record *r)
{
	copying *c = ctx;
	int ok = 1;
	if (mem_grow((void **)&c->path, &c->path_room, c->path_count + 1, sizeof(*c->path)) != 0)
		return SHEAF_NOMEM;
	c->path[c->path_count++] = row->seq;
	sheaf_str id = arena_dup(c->a, r->id, &ok);
	return ok ? map_set(&c->on_path, id, row->seq) : SHEAF_NOMEM;
}

/* Labels come newest first and are written in the order they were set. */
static int path_label(void *ctx, sheaf_str target, sheaf_str label)
{
	copying *c = ctx;
	uint64_t seq;
	if (!map_get(&c->on_path, target, &seq))
		return 0;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	body_label(&body, target, label);
	int rc = buf_status(&body, NULL);
	return rc != 0 ? rc : drafts_add(&c->labels, "label", buf_view(&body), NULL, NULL);
}

static int path_load(copying *c, sheaf_str leaf, sheaf_error *err)
{
	char id[SHEAF_ID_ROOM];
	head_branch main;
	uint64_t seq;
	int rc = 0;
	if (leaf.len != 0)
		rc = read_resolve(c->from, c->head, leaf, id, &seq, err);
	else
		seq = head_branch_find(c->head, SHEAF_STR("main"), &main) ? main.leaf_seq : 0;
	if (rc == 0)
		rc = read_path(c->from, c->head, seq, path_note, NULL, c, err);
	if (rc == 0)
		rc = read_labels(c->from, c->head, path_label, c, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0, k = c->path_count; i + 1 < k; i++) {
		uint64_t swap = c->path[i];
		c->path[i] = c->path[--k];
		c->path[k] = swap;
	}
	for (size_t i = 0, k = c->labels.count; i + 1 < k; i++) {
		draft *swap = c->labels.items[i];
		c->labels.items[i] = c->labels.items[--k];
		c->labels.items[k] = swap;
	}
	return 0;
}

static int path_row(void *ctx, const sheaf_row *row)
{
	copying *c = ctx;
	transfer *t = &c->t;
	record r;
	int ok = 1, rc = read_record(&r, row, t->a, &t->doc, &t->err);
	if (rc != 0)
		return rc;
	/* A linear session has one branch. */
	r.branch = (sheaf_str){NULL, 0};
	rc = transfer_restamp(t, &r, c->parent_id, c->parent, 0, 1, &t->err);
	if (rc != 0)
		return rc;
	c->parent = t->rows[t->count - 1].seq;
	c->parent_id = arena_dup(c->a, r.id, &ok);
	return ok ? 0 : err_nomem(&t->err);
}

static int path_fill(transfer *t, sheaf_error *err)
{
	copying *c = (copying *)(void *)t;
	while (c->path_at < c->path_count && !transfer_full(t, SHEAF_RECORD_BYTES_MAX)) {
		int rc = read_row(t->from, t->head, c->path[c->path_at], path_row, c, err);
		if (rc != 0)
			return err_pass(err, &t->err, rc);
		c->path_at++;
	}
	t->ended = c->path_at == c->path_count;
	return 0;
}

int sheaf_session_export_path(sheaf_session **out, sheaf_session *source, sheaf_str leaf,
                              sheaf_store *store, const sheaf_key *key, sheaf_error *err)
{
	if (out == NULL || source == NULL || store == NULL || key == NULL)
		return err_set(err, SHEAF_INVALID, "an export needs a source, a store and a key");
	_cleanup_(mem_freep) copying *c = mem_zalloc(sizeof(*c));
	if (c == NULL)
		return err_nomem(err);
	int rc = copying_begin(c, source, key, path_fill, err);
	if (rc == 0)
		rc = path_load(c, leaf, err);
	if (rc == 0) {
		sheaf_session_info info;
		sheaf_head_info(c->head, &info);
		/* Where the path ends is known by its number in the new log. */
		transfer_goal goal = {
			.leaf_seq = c->path_count,
			.name = info.name,
			.metadata = head_metadata(c->head),
		};
		rc = transfer_store(&c->t, store, &c->key, &c->labels, &goal, (sheaf_str){NULL, 0},
		                    0, err);
	}
	if (rc == 0)
		rc = copying_open(c, out, store, err);
	copying_end(c);
	return rc;
}
