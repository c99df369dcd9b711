/*
 * Who reads a session: the forks that must not lose what they inherit when it is
 * deleted. The catalogue only saves looking into files it knows; which files
 * there are the directory says.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "store/jsonl_catalogue.h"

/* Whether the file's header says that the session is a fork; 1 also when it cannot be read. */
static int header_forks(jowner *o, const char *session, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(json_freep) json_doc *doc = NULL;
	char file[JSONL_NAME_ROOM];
	jline line;
	header h;

	if (!a)
		return err_nomem(err);
	snprintf(file, sizeof(file), "%s.jsonl", session);
	_cleanup_(io_closep) int fd = io_open(o->dir, file, O_RDONLY, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : 1;
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(fd, 0, SHEAF_RECORD_BYTES_MAX);
	if (jlines_next(&lines, &line) != 1 || !line.text.ptr)
		return 1;
	int rc = header_read(&h, line.text, a, &doc, err);
	return rc == SHEAF_NOMEM ? rc : rc != 0 || h.link_count != 0;
}

/* Whether the session of a row may be a fork. The row alone can say so only of the file it knew. */
static int row_forks(jowner *o, const jrow *row, const char *session, sheaf_error *err)
{
	char file[JSONL_NAME_ROOM];
	io_stat st;

	if (row->h.links || row->h.head_length == 0)
		return 1;
	snprintf(file, sizeof(file), "%s.jsonl", session);
	if (io_stat_at(o->dir, file, &st) == 0 && jrow_fits(&row->h, &st))
		return 0;
	return header_forks(o, session, err);
}

/* Calls fn if the session of a row reads `session`. */
static int if_reads(jowner *o, const jrow *row, const char *session,
                    int (*fn)(void *ctx, const char *name, const sheaf_head *head), void *ctx,
                    sheaf_error *err)
{
	jlisted l = {.head = NULL};
	sheaf_str link;
	uint64_t base;
	bool reads = false;

	snprintf(l.session, sizeof(l.session), "%.*s", (int)row->name.len, row->name.ptr);
	int rc = row_forks(o, row, l.session, err);
	if (rc <= 0)
		return rc;
	l.head = sheaf_head_new();
	if (!l.head)
		return err_nomem(err);
	/* Whether it is hidden or gone only its file can say. */
	rc = jlisted_read(o, &l, err);
	if (rc == 0 && l.denied)
		rc = err_sys(err, SHEAF_DENIED, EACCES, "cannot tell whether %s reads it",
		             l.session);
	for (size_t k = 0; rc == 0 && sheaf_head_link(l.head, k, &link, &base); k++)
		reads = reads || str_is(link, session);
	if (reads && !sheaf_head_hidden(l.head))
		rc = fn(ctx, l.session, l.head);
	sheaf_head_free(l.head);
	return rc > 0 ? 0 : rc;
}

typedef struct search {
	jowner *o;
	const char *session;
	int (*fn)(void *ctx, const char *name, const sheaf_head *head);
	void *ctx;
	sheaf_error *err;
	jrow **rows;
	size_t count;
	map known; /* names that have a row */
} search;

/* A file that the catalogue does not know, be it that somebody copied it here just now. */
static int look_at_name(void *ctx, const char *name, unsigned char type)
{
	search *x = ctx;
	size_t len = strlen(name);
	uint64_t value;
	(void)type;

	if (name[0] == '.' || len < 7 || strcmp(name + len - 6, ".jsonl") != 0 ||
	    len - 6 >= SHEAF_KEY_PART_ROOM)
		return 0;
	jrow row = {.name = {name, len - 6}};
	if (map_get(&x->known, row.name, &value) || str_is(row.name, x->session))
		return 0;
	return if_reads(x->o, &row, x->session, x->fn, x->ctx, x->err);
}

static int take_rows(search *x)
{
	jcatalogue *c = x->o->catalogue;
	int rc, bad = 0;

	pthread_mutex_lock(&c->mutex);
	rc = jcatalogue_load(c, x->o, x->err);
	if (rc == 0)
		bad = jcatalogue_rows(c, &x->rows, &x->count);
	if (bad && c->broken) {
		rc = jcatalogue_reconcile(c, x->o, x->err);
		bad = rc == 0 ? jcatalogue_rows(c, &x->rows, &x->count) : 0;
	}
	if (bad)
		rc = c->broken ? err_sys(x->err, SHEAF_STORAGE, EIO, "cannot read the catalogue")
		               : err_nomem(x->err);
	pthread_mutex_unlock(&c->mutex);
	return rc;
}

int jcatalogue_readers(jowner *o, const char *session,
                       int (*fn)(void *ctx, const char *name, const sheaf_head *head), void *ctx,
                       sheaf_error *err)
{
	search x = {.o = o, .session = session, .fn = fn, .ctx = ctx, .err = err};
	int rc = take_rows(&x);

	for (size_t i = 0; rc == 0 && i < x.count; i++) {
		if (map_set(&x.known, x.rows[i]->name, 1))
			rc = err_nomem(err);
		else if (!str_is(x.rows[i]->name, session))
			rc = if_reads(o, x.rows[i], session, fn, ctx, err);
	}
	if (rc == 0) {
		rc = io_each_name(o->dir, look_at_name, &x);
		if (rc == -1)
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot read the directory");
	}
	map_free(&x.known);
	jrows_free(x.rows, x.count);
	return rc;
}
