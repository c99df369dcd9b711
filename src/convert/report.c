/* What an import has to report, collected in one arena. */
#include "base/err.h"
#include "base/mem.h"
#include "convert/import_inside.h"

report *report_new(void)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	report *r = a != NULL ? arena_zalloc(a, sizeof(*r)) : NULL;
	if (r == NULL)
		return NULL;
	r->arena = a;
	a = NULL;
	return r;
}

void report_free(report *r)
{
	if (r == NULL)
		return;
	mem_free(r->sessions);
	mem_free(r->problems);
	arena_free(r->arena);
}

int report_problem(report *r, sheaf_str file, uint64_t line, sheaf_str text, sheaf_error *err)
{
	r->is.problem_total++;
	if (r->is.problem_count == SHEAF_IMPORT_PROBLEMS_MAX)
		return 0;
	void *list = r->problems;
	int ok = 1;
	if (mem_grow(&list, &r->problem_room, r->is.problem_count + 1, sizeof(*r->problems)) != 0)
		return err_nomem(err);
	r->problems = list;
	sheaf_import_problem *p = arena_zalloc(r->arena, sizeof(*p));
	if (p == NULL)
		return err_nomem(err);
	p->file = arena_dup(r->arena, file, &ok);
	p->line = line;
	p->text = arena_dup(r->arena, text, &ok);
	if (!ok)
		return err_nomem(err);
	r->problems[r->is.problem_count++] = p;
	r->is.problems = (const sheaf_import_problem *const *)r->problems;
	return 0;
}

int report_session(report *r, const sheaf_imported *session, const sheaf_imported **out,
                   sheaf_error *err)
{
	void *list = r->sessions;
	int ok = 1;
	if (mem_grow(&list, &r->session_room, r->is.session_count + 1, sizeof(*r->sessions)) != 0)
		return err_nomem(err);
	r->sessions = list;
	sheaf_imported *s = arena_alloc(r->arena, sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	*s = *session;
	s->key.app = arena_dup(r->arena, session->key.app, &ok);
	s->key.user = arena_dup(r->arena, session->key.user, &ok);
	s->key.session = arena_dup(r->arena, session->key.session, &ok);
	s->file = arena_dup(r->arena, session->file, &ok);
	if (!ok)
		return err_nomem(err);
	r->sessions[r->is.session_count++] = s;
	r->is.sessions = (const sheaf_imported *const *)r->sessions;
	*out = s;
	return 0;
}

int report_merge(report *r, const report *other, const sheaf_import_options *options,
                 sheaf_error *err)
{
	const sheaf_import_report *from = &other->is;
	const sheaf_imported *said;
	int rc = 0;
	r->is.file_count += from->file_count;
	r->is.skipped_count += from->skipped_count;
	for (size_t i = 0; rc == 0 && i < from->session_count; i++) {
		rc = report_session(r, from->sessions[i], &said, err);
		if (rc == 0 && options->on_session != NULL)
			options->on_session(options->ctx, said);
	}
	for (size_t i = 0; rc == 0 && i < from->problem_count; i++) {
		const sheaf_import_problem *p = from->problems[i];
		rc = report_problem(r, p->file, p->line, p->text, err);
	}
	r->is.problem_total += from->problem_total - from->problem_count;
	return rc;
}

void sheaf_import_report_free(const sheaf_import_report *done)
{
	report_free((report *)(uintptr_t)(const void *)done);
}
