/* Putting a session where another agent looks for it: written aside, then linked into its place. */
#include "install.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/str.h"
#include "export.h"
#include "print.h"

/* So many projects of one name. */
#define PROJECTS_MAX 1000

static const sheaf_converter *converter_of(sheaf_str format)
{
	const sheaf_converter *found;
	for (size_t i = 0; (found = sheaf_converter_at(i)) != NULL; i++) {
		if (str_is(format, found->name))
			return found;
	}
	return NULL;
}

static int fail_file(cli *c, const char *file)
{
	return fail_with(c, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, NULL, "%s: %s", file,
	                 strerror(errno));
}

/* Makes the directories of a file, for nobody else to look into. */
static int parents_make(cli *c, const char *file)
{
	char path[PATH_MAX];
	str_copy_cut(path, sizeof(path), sheaf_str_of(file));
	for (char *p = path + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return fail_file(c, path);
		*p = '/';
	}
	return 0;
}

/* ---- Where ----------------------------------------------------------------- */

/* The directory that the agent's paths begin with. */
static int home_find(cli *c, const sheaf_converter *to, char out[PATH_MAX])
{
	const char *own = to->home_variable != NULL ? getenv(to->home_variable) : NULL;
	const char *home = getenv("HOME");
	int len;
	if (own != NULL && own[0] != '\0')
		len = snprintf(out, PATH_MAX, "%s", own);
	else if (home == NULL || home[0] == '\0')
		return fail_with(c, SHEAF_NOT_FOUND, "write it into a file with -o instead",
		                 "$HOME is not set");
	else
		len = snprintf(out, PATH_MAX, "%s/%s", home, to->home);
	if (len < 0 || len >= PATH_MAX)
		return fail_with(c, SHEAF_LIMIT, NULL, "the path is too long");
	while (len > 1 && out[len - 1] == '/')
		out[--len] = '\0';
	return 0;
}

/* Whether a project's directory of Gemini CLI says that it is of `cwd`; *free: it is nobody's. */
static bool project_is(const char *dir, sheaf_str cwd, bool *nobodys)
{
	char path[PATH_MAX], owner[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/.project_root", dir);
	*nobodys = false;
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	_cleanup_(io_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		*nobodys = access(dir, F_OK) != 0;
		return false;
	}
	ssize_t n = read(fd, owner, sizeof(owner));
	while (n > 0 && (owner[n - 1] == '\n' || owner[n - 1] == ' '))
		n--;
	return n > 0 && str_eq(str_make(owner, (size_t)n), cwd);
}

/* The project that has this directory already. */
static bool project_find(const char *tmp, sheaf_str cwd, char out[PATH_MAX])
{
	bool found = false, nobodys;
	DIR *all = opendir(tmp);
	const struct dirent *d;
	while (all != NULL && !found && (d = readdir(all)) != NULL) {
		int len = snprintf(out, PATH_MAX, "%s/%s", tmp, d->d_name);
		found = d->d_name[0] != '.' && len > 0 && len < PATH_MAX &&
		        project_is(out, cwd, &nobodys);
	}
	if (all != NULL)
		closedir(all);
	return found;
}

/* Gemini CLI names a directory after a project and notes in it whose it is: `path` is
 * HOME/.gemini/tmp/NAME/chats/FILE, and NAME may be another project's. */
static int project_claim(cli *c, const sheaf_export_report *report, char path[PATH_MAX])
{
	static const char below[] = "/.gemini/tmp/";
	char tmp[PATH_MAX], dir[PATH_MAX], rest[PATH_MAX];
	char *name = strstr(path, below), *chats = name != NULL ? strstr(name, "/chats/") : NULL;
	bool nobodys = false;
	if (chats == NULL)
		return 0;
	str_copy_cut(rest, sizeof(rest), sheaf_str_of(chats));
	name += sizeof(below) - 1;
	str_copy_cut(tmp, sizeof(tmp), str_make(path, (size_t)(name - path - 1)));
	str_copy_cut(dir, sizeof(dir), str_make(path, (size_t)(chats - path)));
	bool own = project_find(tmp, report->cwd, dir);
	for (unsigned i = 0; !own && !nobodys && i < PROJECTS_MAX; i++) {
		int len = i == 0 ? snprintf(dir, sizeof(dir), "%.*s", (int)(chats - path), path)
		                 : snprintf(dir, sizeof(dir), "%.*s-%u", (int)(chats - path), path,
		                            i);
		if (len < 0 || (size_t)len >= sizeof(dir))
			break;
		own = project_is(dir, report->cwd, &nobodys);
	}
	int len = snprintf(path, PATH_MAX, "%s/.project_root", dir);
	if ((!own && !nobodys) || len < 0 || len >= PATH_MAX)
		return fail_with(c, SHEAF_LIMIT, NULL, "%s: too many projects of one name", tmp);
	if (nobodys) {
		int rc = parents_make(c, path);
		_cleanup_(io_closep) int fd =
			rc == 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
		if (rc != 0)
			return rc;
		if (fd < 0 || io_write_full(fd, report->cwd.ptr, report->cwd.len) != 0)
			return fail_file(c, path);
	}
	len = snprintf(path, PATH_MAX, "%s%s", dir, rest);
	return len > 0 && len < PATH_MAX ? 0 : fail_with(c, SHEAF_LIMIT, NULL, "%s", tmp);
}

/* Whether it lies where its agent put it, which may name files by the hour of another zone: below
 * the first directory of the place it would have, HOME/FIRST/. */
static bool is_in_place(const sheaf_export_report *report, const char *home, sheaf_str below)
{
	const char *end = memchr(below.ptr + 1, '/', below.len - 1);
	size_t len = strlen(home), first = end != NULL ? (size_t)(end - below.ptr) + 1 : below.len;
	char path[PATH_MAX];
	str_copy_cut(path, sizeof(path), report->file);
	return report->file.len > len + first && report->file.len < sizeof(path) &&
	       memcmp(path, home, len) == 0 && memcmp(path + len, below.ptr, first) == 0 &&
	       access(path, F_OK) == 0;
}

static int place_find(cli *c, const sheaf_converter *to, const sheaf_export_report *report,
                      const char *home, char out[PATH_MAX])
{
	char place[PATH_MAX];
	size_t skip = strlen(to->home);
	int len = snprintf(place, sizeof(place), "%s%.*s", skip == 0 ? "/" : "",
	                   (int)(report->path.len - skip), report->path.ptr + skip);
	if (len < 0 || (size_t)len >= sizeof(place))
		return fail_with(c, SHEAF_LIMIT, NULL, "the path is too long");
	/* What an agent has to take in first lies nowhere yet. */
	if (!given(c, OPT_CWD) && strstr(to->resume, "FILE") == NULL &&
	    is_in_place(report, home, sheaf_str_of(place))) {
		str_copy_cut(out, PATH_MAX, report->file);
		return 0;
	}
	len = snprintf(out, PATH_MAX, "%s%s", home, place);
	if (len < 0 || len >= PATH_MAX)
		return fail_with(c, SHEAF_LIMIT, NULL, "the path is too long");
	return str_is(sheaf_str_of(to->name), "gemini-cli") ? project_claim(c, report, out) : 0;
}

/* ---- The file ---------------------------------------------------------------- */

/* Whether two files are equal; -1 with errno. */
static int files_equal(const char *a, const char *b)
{
	char left[16384], right[16384];
	_cleanup_(io_closep) int one = open(a, O_RDONLY | O_CLOEXEC);
	_cleanup_(io_closep) int other = open(b, O_RDONLY | O_CLOEXEC);
	if (one < 0 || other < 0)
		return -1;
	for (off_t at = 0;; at += (off_t)sizeof(left)) {
		ssize_t n = io_pread_full(one, left, sizeof(left), at);
		ssize_t m = io_pread_full(other, right, sizeof(right), at);
		if (n < 0 || m < 0)
			return -1;
		if (n != m || memcmp(left, right, (size_t)n) != 0)
			return 0;
		if ((size_t)n < sizeof(left))
			return 1;
	}
}

static int file_link(cli *c, const char *aside, bool beside, installed *done)
{
	int rc = parents_make(c, done->file);
	if (rc != 0)
		return rc;
	if (link(aside, done->file) == 0)
		return 0;
	if (errno != EEXIST)
		return fail_file(c, done->file);
	int equal = files_equal(aside, done->file);
	if (equal < 0)
		return fail_file(c, done->file);
	done->same = equal == 1;
	if (done->same || beside)
		return 0;
	return fail_with(c, SHEAF_CONFLICT,
	                 "import it first if its agent went on; a fork gets a place of its own: "
	                 "sheaf fork SESSION, then export that",
	                 "%s is there with other content and was left as it is", done->file);
}

int install_session(cli *c, sheaf_session *session, const sheaf_export_options *how, bool beside,
                    installed *done, sheaf_export_report **report)
{
	const sheaf_converter *to = converter_of(how->format);
	char home[PATH_MAX], aside[PATH_MAX];
	*done = (installed){0};
	if (to == NULL || to->resume == NULL)
		return usage(c, "no agent looks for files of that format");
	int rc = home_find(c, to, home);
	if (rc != 0)
		return rc;
	int len = snprintf(aside, sizeof(aside), "%s/.sheaf-%ld", home, (long)getpid());
	if (len < 0 || (size_t)len >= sizeof(aside))
		return fail_with(c, SHEAF_LIMIT, NULL, "the path is too long");
	rc = parents_make(c, aside);
	if (rc == 0)
		rc = export_file(c, session, how, aside, 0600, report);
	if (rc != 0)
		return rc;
	rc = place_find(c, to, *report, home, done->file);
	if (rc == 0)
		rc = file_link(c, aside, beside, done);
	(void)unlink(aside);
	return rc;
}

/* ---- The command ------------------------------------------------------------- */

/* A word of a command line, in quotes where a shell would see more in it. */
static void word_put(buf *out, sheaf_str word)
{
	bool plain = word.len != 0;
	for (size_t i = 0; i < word.len; i++) {
		char ch = word.ptr[i];
		plain = plain && ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
		                  (ch >= '0' && ch <= '9') || strchr("/._-+@%,:", ch) != NULL);
	}
	if (plain) {
		buf_str(out, word);
		return;
	}
	buf_char(out, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.ptr[i] == '\'')
			buf_lit(out, "'\\''");
		else
			buf_char(out, word.ptr[i]);
	}
	buf_char(out, '\'');
}

void install_command(buf *out, const sheaf_export_report *report, const char *format,
                     const char *file)
{
	const sheaf_converter *to = converter_of(sheaf_str_of(format));
	buf_lit(out, "cd ");
	word_put(out, report->cwd);
	buf_lit(out, " && ");
	for (const char *p = to->resume; *p != '\0';) {
		if (strncmp(p, "FILE", 4) == 0) {
			word_put(out, sheaf_str_of(file));
			p += 4;
		} else if (strncmp(p, "ID", 2) == 0) {
			word_put(out, report->id);
			p += 2;
		} else {
			buf_char(out, *p++);
		}
	}
}
