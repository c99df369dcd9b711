/* sheaf export: a session in the format of another agent, or for people. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "export.h"
#include "find.h"
#include "html.h"
#include "install.h"
#include "model.h"
#include "print.h"

/* Of a session, at most. */
#define CHILDREN_MAX 10000
/* Of a row of forks, each made from the next. */
#define SOURCES_MAX 32

typedef struct target {
	int fd;
	int code; /* errno of what failed, or 0 */
} target;

static void exportp_free(sheaf_export_report **report)
{
	sheaf_export_report_free(*report);
}

static int target_write(void *ctx, sheaf_str bytes)
{
	target *t = ctx;
	while (bytes.len != 0) {
		ssize_t n = write(t->fd, bytes.ptr, bytes.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			t->code = errno;
			return SHEAF_STORAGE;
		}
		bytes.ptr += n;
		bytes.len -= (size_t)n;
	}
	return 0;
}

static void losses_say(const cli *c, const sheaf_export_report *report)
{
	for (size_t i = 0; i < report->loss_count; i++)
		say(c, "left out: %s (%llu)", report->losses[i]->what,
		    (unsigned long long)report->losses[i]->count);
}

/* `report`: NULL for a page, which has everything. `done`: where it was put for its agent, or NULL. */
static void report_put(const sheaf_export_report *report, const char *file, const char *format,
                       const installed *done)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX), line = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "file", file);
	if (report != NULL) {
		js_bool(&b, "verbatim", report->verbatim != 0);
		js_open(&b, "losses", '{');
		for (size_t i = 0; i < report->loss_count; i++)
			js_u64(&b, report->losses[i]->what, report->losses[i]->count);
		js_close(&b, '}');
		js_str(&b, "place", report->path);
	}
	if (done != NULL) {
		install_command(&line, report, format, file);
		js_text(&b, "state", done->same ? "same" : "new");
		js_str(&b, "id", report->id);
		js_str(&b, "command", buf_view(&line));
	}
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

/* A page for people, or a file for another agent. */
static int export_to(cli *c, sheaf_session *session, const sheaf_export_options *how, target *t,
                     sheaf_export_report **report)
{
	place at = {.branch = how->branch, .leaf = how->leaf};
	if (given(c, OPT_HTML))
		return html_export(c, session, &at, target_write, t);
	return sheaf_export(report, session, how, target_write, t, &c->err);
}

int export_file(cli *c, sheaf_session *session, const sheaf_export_options *how, const char *file,
                mode_t mode, sheaf_export_report **report)
{
	char beside[PATH_MAX];
	int len = snprintf(beside, sizeof(beside), "%s.new", file);
	if (len < 0 || (size_t)len >= sizeof(beside))
		return fail_with(c, SHEAF_LIMIT, NULL, "%s: the name is too long", file);
	target t = {.fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)};
	if (t.fd < 0)
		return fail_with(c, SHEAF_STORAGE, NULL, "%s: %s", beside, strerror(errno));
	int rc = export_to(c, session, how, &t, report);
	if (close(t.fd) != 0 && t.code == 0)
		t.code = errno;
	if (rc == 0 && t.code == 0 && rename(beside, file) != 0)
		t.code = errno;
	if (rc == 0 && t.code == 0)
		return 0;
	(void)unlink(beside);
	if (t.code != 0)
		return fail_with(c, SHEAF_STORAGE, NULL, "%s: %s", file, strerror(t.code));
	return c->err.code != 0 ? fail(c) : fail_memory(c);
}

/* ---- Where its agent looks for it -------------------------------------------- */

static void installed_put(const cli *c, const sheaf_export_report *report, const char *format,
                          const installed *done)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX), line = BUF_INIT(SIZE_MAX);
	if (c->json) {
		report_put(report, done->file, format, done);
		return;
	}
	if (!c->quiet)
		buf_format(&b, "%-8s", done->same ? "same" : "new");
	text_safe(&b, sheaf_str_of(done->file), TEXT_ID);
	buf_char(&b, '\n');
	if (!c->quiet) {
		install_command(&line, report, format, done->file);
		text_safe(&b, buf_view(&line), TEXT_ID);
		buf_char(&b, '\n');
	}
	print_out(&b);
}

/* Whether a session came from an agent: FORMAT.ID. */
static bool is_of(sheaf_str session, sheaf_str format)
{
	return session.len > format.len && memcmp(session.ptr, format.ptr, format.len) == 0 &&
	       session.ptr[format.len] == '.';
}

/* A session that another one needs, if it is of the same agent; else *out stays NULL. */
static int install_beside(cli *c, const sheaf_key *key, const sheaf_export_options *how,
                          sheaf_session **out)
{
	_cleanup_(exportp_free) sheaf_export_report *report = NULL;
	sheaf_session_options as = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_export_options all = SHEAF_EXPORT_OPTIONS_INIT;
	installed done;
	all.format = how->format;
	all.cwd = how->cwd;
	as.mode = SHEAF_OPEN_EXISTING;
	as.readonly = 1;
	if (!is_of(key->session, how->format))
		return 0;
	if (sheaf_session_open(out, c->store, key, &as, &c->err) != 0)
		return fail(c);
	return install_session(c, *out, &all, true, &done, &report);
}

/* Sub-agents lie beside their parent. */
static int install_children(cli *c, const sheaf_session_info *parent,
                            const sheaf_export_options *how)
{
	_cleanup_(list_freep) sheaf_list *list = NULL;
	sheaf_list_options which = SHEAF_LIST_OPTIONS_INIT;
	which.app = parent->app;
	which.user = parent->user;
	which.kind = SHEAF_STR("subagent");
	which.parent_session = parent->session;
	which.limit = CHILDREN_MAX;
	if (sheaf_store_list(&list, c->store, &which, &c->err) != 0)
		return fail(c);
	for (size_t i = 0; i < list->count; i++) {
		_cleanup_(session_closep) sheaf_session *child = NULL;
		const sheaf_session_info *info = list->items[i];
		sheaf_key key = {info->app, info->user, info->session};
		int rc = install_beside(c, &key, how, &child);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* A fork's file may have only what is new, and name the one before it; and so on. */
static int install_sources(cli *c, const sheaf_session_info *fork, const sheaf_export_options *how)
{
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	const sheaf_session_info *info = fork;
	for (int i = 0; i < SOURCES_MAX && info->source.len != 0; i++) {
		_cleanup_(session_closep) sheaf_session *source = NULL;
		sheaf_head_view *next = NULL;
		sheaf_key key = {info->app, info->user, info->source};
		int rc = install_beside(c, &key, how, &source);
		if (rc != 0 || source == NULL)
			return rc;
		if (sheaf_session_head(&next, source, &c->err) != 0)
			return fail(c);
		sheaf_head_view_free(head);
		head = next;
		info = head->info;
	}
	return 0;
}

static int install(cli *c, sheaf_session *session, sheaf_export_options *how)
{
	_cleanup_(exportp_free) sheaf_export_report *report = NULL;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	char room[PATH_MAX];
	installed done;
	if (sheaf_session_head(&head, session, &c->err) != 0)
		return fail(c);
	if (given(c, OPT_CWD)) {
		if (realpath(c->values[OPT_CWD], room) == NULL)
			return fail_with(c, SHEAF_NOT_FOUND, NULL, "%s: %s", c->values[OPT_CWD],
			                 strerror(errno));
		how->cwd = sheaf_str_of(room);
	} else if (head->info->cwd.len == 0) {
		how->cwd = working_directory(room);
	}
	int rc = install_session(c, session, how, false, &done, &report);
	if (rc == 0)
		rc = install_children(c, head->info, how);
	if (rc == 0 && is_of(head->info->session, how->format))
		rc = install_sources(c, head->info, how);
	if (rc != 0)
		return rc;
	losses_say(c, report);
	installed_put(c, report, c->values[OPT_FORMAT], &done);
	return 0;
}

static int write_out(cli *c, sheaf_session *session, const sheaf_export_options *how)
{
	_cleanup_(exportp_free) sheaf_export_report *report = NULL;
	const char *file = c->values[OPT_OUTPUT];
	if (file != NULL) {
		int rc = export_file(c, session, how, file, 0666, &report);
		if (rc != 0)
			return rc;
	} else {
		target t = {.fd = STDOUT_FILENO};
		int rc = export_to(c, session, how, &t, &report);
		if (rc != 0 && t.code != 0)
			return fail_with(c, SHEAF_STORAGE, NULL, "%s", strerror(t.code));
		if (rc != 0)
			return c->err.code != 0 ? fail(c) : fail_memory(c);
	}
	if (report != NULL)
		losses_say(c, report);
	if (c->json)
		report_put(report, file, NULL, NULL);
	return 0;
}

int cmd_export(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	sheaf_export_options how = SHEAF_EXPORT_OPTIONS_INIT;
	place at;
	if (given(c, OPT_FORMAT) == given(c, OPT_HTML))
		return usage(c, "export needs a --format, or --html");
	if (given(c, OPT_HTML) && given(c, OPT_INSTALL))
		return usage(c, "--install is for agents: it needs a --format");
	if (given(c, OPT_HTML) && !given(c, OPT_OUTPUT) && c->screen.tty)
		return usage(c, "--html is for a browser: it needs -o FILE, or a pipe");
	if (given(c, OPT_INSTALL) && given(c, OPT_OUTPUT))
		return usage(c, "either -o FILE or --install");
	if (given(c, OPT_CWD) && !given(c, OPT_INSTALL))
		return usage(c, "--cwd says where it is to go on: it needs --install");
	if (c->json && !given(c, OPT_OUTPUT) && !given(c, OPT_INSTALL))
		return usage(c, "--json says what was written to a file: it needs -o FILE");
	int rc = open_for_reading(c, c->words[0], &session);
	if (rc == 0)
		rc = find_place(c, session, &at);
	if (rc == 0 && given(c, OPT_HTML))
		rc = load_models(c);
	if (rc != 0)
		return rc;
	if (given(c, OPT_FORMAT))
		how.format = sheaf_str_of(c->values[OPT_FORMAT]);
	how.branch = at.branch;
	how.leaf = at.leaf;
	return given(c, OPT_INSTALL) ? install(c, session, &how) : write_out(c, session, &how);
}
