/* sheaf export: a session in the format of another agent, or for people. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "find.h"
#include "print.h"

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

static void report_put(const sheaf_export_report *report, const char *file)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "file", file);
	js_bool(&b, "verbatim", report->verbatim != 0);
	js_open(&b, "losses", '{');
	for (size_t i = 0; i < report->loss_count; i++)
		js_u64(&b, report->losses[i]->what, report->losses[i]->count);
	js_close(&b, '}');
	js_str(&b, "place", report->path);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

/* Writes beside FILE and puts it in its place when it is whole. */
static int export_file(cli *c, sheaf_session *session, const sheaf_export_options *how,
                       const char *file, sheaf_export_report **report)
{
	char beside[PATH_MAX];
	int len = snprintf(beside, sizeof(beside), "%s.new", file);
	if (len < 0 || (size_t)len >= sizeof(beside))
		return fail_with(c, SHEAF_LIMIT, NULL, "%s: the name is too long", file);
	target t = {.fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
	if (t.fd < 0)
		return fail_with(c, SHEAF_STORAGE, NULL, "%s: %s", beside, strerror(errno));
	int rc = sheaf_export(report, session, how, target_write, &t, &c->err);
	if (close(t.fd) != 0 && t.code == 0)
		t.code = errno;
	if (rc == 0 && t.code == 0 && rename(beside, file) != 0)
		t.code = errno;
	if (rc == 0 && t.code == 0)
		return 0;
	(void)unlink(beside);
	if (t.code != 0)
		return fail_with(c, SHEAF_STORAGE, NULL, "%s: %s", file, strerror(t.code));
	return fail(c);
}

int cmd_export(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(exportp_free) sheaf_export_report *report = NULL;
	sheaf_export_options how = SHEAF_EXPORT_OPTIONS_INIT;
	const char *file = c->values[OPT_OUTPUT];
	place at;
	if (!given(c, OPT_FORMAT))
		return usage(c, "export needs a --format");
	if (c->json && file == NULL)
		return usage(c, "--json says what was written to a file: it needs -o FILE");
	int rc = open_for_reading(c, c->words[0], &session);
	if (rc == 0)
		rc = find_place(c, session, &at);
	if (rc != 0)
		return rc;
	how.format = sheaf_str_of(c->values[OPT_FORMAT]);
	how.branch = at.branch;
	how.leaf = at.leaf;
	if (file != NULL) {
		rc = export_file(c, session, &how, file, &report);
	} else {
		target t = {.fd = STDOUT_FILENO};
		rc = sheaf_export(&report, session, &how, target_write, &t, &c->err);
		if (rc != 0 && t.code != 0)
			return fail_with(c, SHEAF_STORAGE, NULL, "%s", strerror(t.code));
		if (rc != 0)
			return fail(c);
	}
	if (rc != 0)
		return rc;
	losses_say(c, report);
	if (c->json)
		report_put(report, file);
	return 0;
}
