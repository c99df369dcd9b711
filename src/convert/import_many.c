/*
 * Files imported several at a time and reported in their order: each has a
 * report of its own until those before it are done. Sessions are claimed, so
 * that no two of them write to one.
 */
#include <pthread.h>

#include "base/err.h"
#include "base/mem.h"
#include "convert/import_inside.h"

#define THREADS_MAX 16
#define FILES_MAX 256 /* are begun before the first is reported */

/* ---- Claims ---------------------------------------------------------------- */

struct claims {
	pthread_mutex_t lock;
	pthread_cond_t left;
	const char *held[THREADS_MAX]; /* NULL: nothing; a thread holds one at most */
	bool begun[FILES_MAX];         /* files that have had one, or are done */
	size_t next;                   /* the first that has not */
};

/* Where the session is held, or where nothing is. */
static const char **claim_find(struct claims *c, const char *session)
{
	for (size_t i = 0; i < THREADS_MAX; i++) {
		const char *held = c->held[i];
		if (session == NULL ? held == NULL : held != NULL && strcmp(held, session) == 0)
			return &c->held[i];
	}
	return NULL;
}

static void claim_begun(struct claims *c, size_t turn)
{
	c->begun[turn] = true;
	while (c->next < FILES_MAX && c->begun[c->next])
		c->next++;
	pthread_cond_broadcast(&c->left);
}

void claim_take(const report *r, const char *session)
{
	struct claims *c = r->claims;
	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	while (c->next < r->turn || claim_find(c, session) != NULL)
		pthread_cond_wait(&c->left, &c->lock);
	*claim_find(c, NULL) = session;
	claim_begun(c, r->turn);
	pthread_mutex_unlock(&c->lock);
}

void claim_leave(const report *r, const char *session)
{
	struct claims *c = r->claims;
	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	*claim_find(c, session) = NULL;
	pthread_cond_broadcast(&c->left);
	pthread_mutex_unlock(&c->lock);
}

/* A file that needed none must not be waited for. */
static void claim_none(struct claims *c, size_t turn)
{
	pthread_mutex_lock(&c->lock);
	claim_begun(c, turn);
	pthread_mutex_unlock(&c->lock);
}

/* ---- Files ----------------------------------------------------------------- */

typedef struct job {
	char *path;
	report *report;
	sheaf_error err;
	int rc;
} job;

struct many {
	report *report;
	sheaf_store *store;
	const sheaf_import_options *options;
	sheaf_import_options each; /* without the callback: it is told in order */
	struct claims claims;
	size_t threads;
	pthread_mutex_t lock;
	size_t next; /* the job that nobody has begun */
	bool failed;
	job jobs[FILES_MAX];
	size_t count;
};

int many_new(many **out, report *r, sheaf_store *store, const sheaf_import_options *options,
             sheaf_error *err)
{
	many *m = mem_zalloc(sizeof(*m));
	if (m == NULL)
		return err_nomem(err);
	m->report = r;
	m->store = store;
	m->options = options;
	m->each = *options;
	m->each.on_session = NULL;
	m->threads = options->threads > THREADS_MAX ? THREADS_MAX : (size_t)options->threads;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->claims.lock, NULL);
	pthread_cond_init(&m->claims.left, NULL);
	*out = m;
	return 0;
}

static void jobs_clear(many *m)
{
	for (size_t i = 0; i < m->count; i++) {
		mem_free(m->jobs[i].path);
		report_free(m->jobs[i].report);
		m->jobs[i] = (job){.path = NULL};
	}
	m->count = 0;
}

void many_free(many *m)
{
	if (m == NULL)
		return;
	jobs_clear(m);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->claims.lock);
	pthread_cond_destroy(&m->claims.left);
	mem_free(m);
}

/* The next file, or NULL when there is none or nothing more is to be begun. */
static job *job_next(many *m, const job *done)
{
	pthread_mutex_lock(&m->lock);
	m->failed = m->failed || (done != NULL && done->rc != 0);
	job *j = !m->failed && m->next < m->count ? &m->jobs[m->next++] : NULL;
	pthread_mutex_unlock(&m->lock);
	return j;
}

static void *work(void *ctx)
{
	many *m = ctx;
	for (job *j = NULL; (j = job_next(m, j)) != NULL;) {
		size_t turn = (size_t)(j - m->jobs);
		j->report = report_new();
		if (j->report == NULL) {
			j->rc = err_nomem(&j->err);
		} else {
			j->report->only = m->report->only;
			j->report->claims = &m->claims;
			j->report->turn = turn;
			j->rc = file_below(j->report, m->store, &m->each, j->path, &j->err);
		}
		claim_none(&m->claims, turn);
	}
	return NULL;
}

/* All files that wait. If one fails those after it may not have been begun. */
static int run(many *m, sheaf_error *err)
{
	pthread_t threads[THREADS_MAX];
	size_t begun = 0;
	int rc = 0;
	m->next = m->claims.next = 0;
	memset(m->claims.begun, 0, sizeof(m->claims.begun));
	while (begun + 1 < m->threads && begun + 1 < m->count &&
	       pthread_create(&threads[begun], NULL, work, m) == 0)
		begun++;
	work(m);
	for (size_t i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; rc == 0 && i < m->count; i++) {
		const job *j = &m->jobs[i];
		if (j->report != NULL)
			rc = report_merge(m->report, j->report, m->options, err);
		if (rc == 0 && j->rc != 0) {
			rc = j->rc;
			*err = j->err;
		}
	}
	jobs_clear(m);
	return rc;
}

int many_add(many *m, const char *path, sheaf_error *err)
{
	if (m->threads <= 1)
		return file_below(m->report, m->store, m->options, path, err);
	char *copy = mem_dup(path, strlen(path));
	if (copy == NULL)
		return err_nomem(err);
	m->jobs[m->count++].path = copy;
	return m->count < FILES_MAX ? 0 : run(m, err);
}

int many_end(many *m, sheaf_error *err)
{
	return m->count != 0 ? run(m, err) : 0;
}
