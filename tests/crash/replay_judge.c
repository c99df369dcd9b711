/* Puts an image on a real directory, opens it with the library, and compares with the promise. */
#include "replay.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fault_io.h"
#include "support/files.h"

#define AFTERWARDS INT64_C(500000000000000) /* the clock of recovery, past every file's age */
#define CANARY "canary-"

typedef struct trial {
	const recording *r;
	unsigned acked; /* steps */
	const image *img;
	char dir[300]; /* of the store */
	char url[320];
	sheaf_store *store;
	char *texts[PLAY_SESSIONS];
	struct {
		ino_t real;
		int node;
	} inodes[64];
	size_t inode_count;
	char why[700];
	bool bad;
} trial;

__attribute__((format(printf, 2, 3))) static void object(trial *t, const char *format, ...)
{
	va_list args;
	if (t->bad)
		return;
	t->bad = true;
	va_start(args, format);
	vsnprintf(t->why, sizeof(t->why), format, args);
	va_end(args);
}

/* ---- The image ---- */

static void age(const char *path, const image_node *n)
{
	struct timespec times[2] = {{n->mtime_ns / 1000000000, n->mtime_ns % 1000000000},
	                            {n->mtime_ns / 1000000000, n->mtime_ns % 1000000000}};
	if (utimensat(AT_FDCWD, path, times, 0))
		abort();
}

static void put_file(const image *img, const image_node *n, const char *dir, const char *path)
{
	char other[800];

	if (n->same_as >= 0) {
		snprintf(other, sizeof(other), "%s%s", dir, img->nodes[n->same_as].path);
		if (link(other, path))
			abort();
		return;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, n->bytes, n->len) != (ssize_t)n->len || fchmod(fd, n->mode))
		abort();
	close(fd);
}

static void put_image(trial *t, const char *dir)
{
	char path[800];
	struct stat st;

	for (size_t i = 1; i < t->img->count; i++) {
		const image_node *n = &t->img->nodes[i];
		snprintf(path, sizeof(path), "%s%s", dir, n->path);
		if (!n->is_dir)
			put_file(t->img, n, dir, path);
		else if (mkdir(path, n->mode))
			abort();
	}
	for (size_t i = t->img->count; i-- > 0;) {
		const image_node *n = &t->img->nodes[i];
		snprintf(path, sizeof(path), "%s%s", dir, n->path);
		if (i)
			age(path, n);
		if (stat(path, &st) || t->inode_count == sizeof(t->inodes) / sizeof(t->inodes[0]))
			abort();
		t->inodes[t->inode_count].real = st.st_ino;
		t->inodes[t->inode_count++].node = n->node;
	}
}

/* Inodes have the numbers they had, and new ones others. */
static void map_stat(void *ctx, struct statx *st)
{
	const trial *t = ctx;
	for (size_t i = 0; i < t->inode_count; i++)
		if (t->inodes[i].real == st->stx_ino) {
			st->stx_ino = CUT_INODES_FROM + (unsigned)t->inodes[i].node;
			return;
		}
	st->stx_ino += UINT64_C(1) << 40;
}

/* ---- What may be there ---- */

static unsigned newest_state(const trial *t)
{
	return t->acked < t->r->count ? t->acked + 1 : t->acked;
}

/* A purge that was cut short may have got as far as a delete. */
static bool half_purged(const trial *t, size_t who, const char *text)
{
	const step *now = t->acked < t->r->count ? &t->r->steps[t->acked] : NULL;
	return now && now->kind == STEP_PURGE && strcmp(now->session, t->r->who.names[who]) == 0 &&
	       strstr(text, ": hidden\n");
}

static bool text_legal(const trial *t, size_t who, const char *text)
{
	for (unsigned i = t->r->floor[t->acked][who]; i <= newest_state(t); i++)
		if (strcmp(t->r->texts[i][who], text) == 0)
			return true;
	return half_purged(t, who, text);
}

static bool canary_legal(const trial *t, const char *canary)
{
	for (size_t who = 0; who < t->r->who.count; who++)
		for (unsigned i = t->r->floor[t->acked][who]; i <= newest_state(t); i++)
			if (strstr(t->r->texts[i][who], canary))
				return true;
	return false;
}

static bool lives(const char *text)
{
	return strstr(text, ": absent\n") == NULL && strstr(text, ": hidden\n") == NULL;
}

/* What was taken out of a queue stays in its file for a while, but not longer than its session. */
static bool queue_canary_legal(const trial *t, const char *path, const char *canary)
{
	if (strstr(path, "/.queue/") == NULL)
		return false;
	for (size_t who = 0; who < t->r->who.count; who++)
		for (unsigned i = newest_state(t) + 1; i-- > 0;) {
			const char *text = t->r->texts[i][who];
			if (strstr(text, canary))
				return true;
			if (i <= t->r->floor[t->acked][who] && !lives(text))
				break;
		}
	return false;
}

/* What was deleted is nowhere: every canary in a file is one that may be there. (What a damage
 * took out of sight stays where it is, and then in the copy a repair keeps.) */
static void judge_canaries(trial *t)
{
	for (unsigned i = 0; i < t->r->count; i++)
		if (step_damages(&t->r->steps[i]))
			return;
	for (size_t i = 0; i < t->img->count && !t->bad; i++) {
		const image_node *n = &t->img->nodes[i];
		const char *at = n->bytes, *end = n->bytes ? n->bytes + n->len : NULL;
		while (at &&
		       (at = memmem(at, (size_t)(end - at), CANARY, sizeof(CANARY) - 1)) != NULL) {
			char canary[64];
			size_t len = 0;
			while (at + len < end && len < sizeof(canary) - 1 && at[len] > ' ' &&
			       at[len] != '"')
				len++;
			memcpy(canary, at, len);
			canary[len] = 0;
			at += len;
			/* One that a sector's end cut off says nothing. */
			if (at == end || *at != ' ')
				continue;
			if (!canary_legal(t, canary) && !queue_canary_legal(t, n->path, canary))
				object(t, "%s holds %s, which was deleted", n->path, canary);
		}
	}
}

static bool damaged(const char *text)
{
	return strstr(text, ", damaged") != NULL;
}

/* The records of a session's text, after its head. */
static const char *records_of(const char *text)
{
	const char *at = strchr(text, '\n');
	at = at ? at + 1 : text;
	while (strncmp(at, "  ", 2) == 0 && strchr(at, '\n'))
		at = strchr(at, '\n') + 1;
	return at;
}

/* ---- Judging ---- */

static bool open_store(trial *t, bool readonly, const char *when)
{
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	sheaf_error err = {0};
	int rc;

	options.readonly = readonly;
	rc = sheaf_open(&t->store, t->url, &options, &err);
	if (rc)
		object(t, "the store cannot be opened %s: %s, %s", when, sheaf_code_name(rc),
		       err.message);
	return rc == 0;
}

static void close_store(trial *t)
{
	sheaf_close(t->store);
	t->store = NULL;
}

/* A fresh reader, who writes nothing. */
static void judge_first_sight(trial *t)
{
	if (access(t->dir, F_OK)) {
		/* The store's directory was never acknowledged. */
		for (size_t i = 0; i < t->r->who.count; i++) {
			char absent[100];
			snprintf(absent, sizeof(absent), "%s: absent\n", t->r->who.names[i]);
			t->texts[i] = strdup(absent);
		}
	} else if (open_store(t, true, "for reading")) {
		for (size_t i = 0; i < t->r->who.count; i++)
			t->texts[i] = session_text(t->store, t->dir, t->r->who.names[i], false);
		close_store(t);
	}
	for (size_t i = 0; i < t->r->who.count && !t->bad; i++)
		if (!text_legal(t, i, t->texts[i]))
			object(t, "a session is in no legal state: %.560s", t->texts[i]);
}

static void judge_same(trial *t, const char *when)
{
	for (size_t i = 0; i < t->r->who.count && !t->bad; i++) {
		char *text = session_text(t->store, t->dir, t->r->who.names[i], false);
		if (strcmp(text, t->texts[i]) != 0)
			object(t, "a session is not the same %s: %.250s\nwas: %.250s", when, text,
			       t->texts[i]);
		free(text);
	}
}

/* Whether a list shows a session as its head does. */
static bool listed_right(const char *list, const char *name, const char *text)
{
	const char *slash = strchr(name, '/') ? "" : "//";
	const char *revision = strstr(text, ", revision ");
	char begins[200], said[40];

	int len = snprintf(begins, sizeof(begins), "%s%s ", slash, name);
	for (const char *at = list; *at; at = strchr(at, '\n') + 1) {
		if (strncmp(at, begins, (size_t)len) != 0)
			continue;
		const char *end = strchr(at, '\n');
		snprintf(said, sizeof(said), " r%llu ",
		         revision ? strtoull(revision + 11, NULL, 10) : 0);
		const char *found = strstr(at, said);
		return found != NULL && found < end;
	}
	return false;
}

static void judge_list(trial *t, const char *when)
{
	sheaf_error err = {0};
	size_t living = 0, lines = 0;
	int rc;

	if (t->bad)
		return;
	char *list = list_text(t->store, &rc, &err);
	if (rc) {
		object(t, "no list %s: %s, %s", when, sheaf_code_name(rc), err.message);
		return;
	}
	for (const char *at = list; *at; at = strchr(at, '\n') + 1)
		lines++;
	for (size_t i = 0; i < t->r->who.count; i++) {
		if (!lives(t->texts[i]))
			continue;
		living++;
		if (!listed_right(list, t->r->who.names[i], t->texts[i]))
			object(t, "%s is not listed as it is %s:\n%.400s", t->r->who.names[i], when,
			       list);
	}
	if (lines != living)
		object(t, "%zu sessions live, %zu are listed %s:\n%.400s", living, lines, when,
		       list);
	free(list);
}

/* Damage is part of a scenario from the step that does it to the repair. */
static void judge_check(trial *t, bool torn_too, const char *when)
{
	unsigned mask = 1u << SHEAF_PROBLEM_DAMAGE | 1u << SHEAF_PROBLEM_FORK |
	                1u << SHEAF_PROBLEM_FOREIGN | (torn_too ? 1u << SHEAF_PROBLEM_TORN : 0);
	char why[400];

	for (size_t i = 0; i < t->r->who.count && !t->bad; i++)
		if (damaged(t->texts[i]))
			return;
	if (!t->bad && check_count(t->store, mask, why, sizeof(why)))
		object(t, "check %s: %s", when, why);
}

static sheaf_session *open_session(trial *t, size_t who, const char *when)
{
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	sheaf_error err = {0};
	char app[64] = "", user[64] = "", session[64];

	if (sscanf(t->r->who.names[who], "%63[^/]/%63[^/]/%63s", app, user, session) != 3) {
		app[0] = user[0] = 0;
		snprintf(session, sizeof(session), "%s", t->r->who.names[who]);
	}
	sheaf_key key = {sheaf_str_of(app), sheaf_str_of(user), sheaf_str_of(session)};
	options.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, t->store, &key, &options, &err);
	if (rc)
		object(t, "%s cannot be opened %s: %s, %s", session, when, sheaf_code_name(rc),
		       err.message);
	return rc ? NULL : s;
}

static bool has_queues(const recording *r)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->steps[i].kind == STEP_PUT)
			return true;
	return false;
}

/* A queue takes one more item, and keeps what is there. */
static int judge_queue(trial *t, sheaf_session *s, size_t who, sheaf_error *err)
{
	sheaf_enqueue_options options = SHEAF_ENQUEUE_OPTIONS_INIT;
	int rc, again;
	char *before = queue_text(s, &rc, err);
	options.priority = -100;
	if (rc == 0)
		rc = sheaf_session_enqueue(s, SHEAF_STR("it goes on"), &options, NULL, err);
	char *after = queue_text(s, &again, err);
	if (rc == 0 && again == 0 &&
	    (strncmp(before, after, strlen(before)) != 0 || strcmp(before, after) == 0))
		object(t, "the queue of %s lost something: %.300s\nwas: %.300s",
		       t->r->who.names[who], after, before);
	free(before);
	free(after);
	return rc ? rc : again;
}

/* Each living session takes one more message, after what is there. */
static void judge_append(trial *t, size_t who)
{
	sheaf_session *s = open_session(t, who, "for writing");
	sheaf_error err = {0};

	if (s == NULL)
		return;
	int rc = sheaf_session_append_text(s, SHEAF_ROLE_USER, SHEAF_STR("life goes on"), NULL,
	                                   &err);
	if (rc == 0 && has_queues(t->r))
		rc = judge_queue(t, s, who, &err);
	sheaf_session_close(s);
	if (rc) {
		object(t, "%s takes no message: %s, %s", t->r->who.names[who], sheaf_code_name(rc),
		       err.message);
		return;
	}
	char *text = session_text(t->store, t->dir, t->r->who.names[who], false);
	const char *before = records_of(t->texts[who]), *after = records_of(text);
	size_t len = strlen(before);
	if (strncmp(before, after, len) != 0 || strstr(after + len, "life goes on") == NULL ||
	    strchr(after + len, '\n') != after + strlen(after) - 1)
		object(t, "the message does not follow what was there: %.560s", text);
	free(t->texts[who]);
	t->texts[who] = text;
}

/* Whether a kept file of the session is the end of what its log was, from `from` at the latest. */
static bool kept_has(const char *kept, const char *session, const char *log, size_t len,
                     size_t from)
{
	char path[800];
	struct dirent *e;
	bool found = false;
	DIR *d = opendir(kept);

	while (d && !found && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, session, strlen(session)) != 0 ||
		    !strstr(e->d_name, ".torn-"))
			continue;
		size_t n;
		snprintf(path, sizeof(path), "%.500s/%s", kept, e->d_name);
		char *bytes = file_read(path, &n);
		found = n >= len - from && n <= len && memcmp(bytes, log + len - n, n) == 0;
		free(bytes);
	}
	if (d)
		closedir(d);
	return found;
}

/* Every byte a log had is still in it, or kept. */
static void judge_kept(trial *t, size_t who)
{
	const char *name = t->r->who.names[who], *slash = strrchr(name, '/');
	char path[700], kept[700];
	size_t len, same = 0;

	snprintf(path, sizeof(path), "/" CUT_STORE "/%s.jsonl", name);
	const image_node *n = NULL;
	for (size_t i = 0; i < t->img->count; i++)
		if (strcmp(t->img->nodes[i].path, path) == 0)
			n = &t->img->nodes[i];
	if (n && n->same_as >= 0)
		n = &t->img->nodes[n->same_as];
	snprintf(path, sizeof(path), "%s/%s.jsonl", t->dir, name);
	char *log = file_read(path, &len);
	while (n && same < len && same < n->len && log[same] == n->bytes[same])
		same++;
	free(log);
	snprintf(kept, sizeof(kept), "%s/%.*s.kept", t->dir, slash ? (int)(slash - name) + 1 : 0,
	         name);
	if (n && same < n->len && !kept_has(kept, slash ? slash + 1 : name, n->bytes, n->len, same))
		object(t, "%zu bytes of %s were not kept", n->len - same, name);
}

static void judge_all(trial *t)
{
	judge_canaries(t);
	judge_first_sight(t);
	if (t->bad || !open_store(t, false, "for writing"))
		return;
	judge_list(t, "at first");
	judge_same(t, "for a writer");
	judge_check(t, false, "at first");
	for (size_t i = 0; i < t->r->who.count && !t->bad; i++)
		if (lives(t->texts[i]) && !damaged(t->texts[i]))
			sheaf_session_close(open_session(t, i, "to recover"));
	close_store(t);
	if (t->bad || !open_store(t, false, "again"))
		return;
	judge_same(t, "after recovery");
	for (size_t i = 0; i < t->r->who.count && !t->bad; i++)
		if (lives(t->texts[i]) && !damaged(t->texts[i])) {
			judge_append(t, i);
			if (!t->bad)
				judge_kept(t, i);
		}
	judge_list(t, "after appends");
	close_store(t);
	if (t->bad || !open_store(t, false, "at the end"))
		return;
	judge_list(t, "at the end");
	judge_same(t, "at the end");
	judge_check(t, true, "at the end");
	close_store(t);
}

const char *cut_judge(const recording *r, unsigned acked, const image *img, const char *dir)
{
	static trial t;

	memset(&t, 0, sizeof(t));
	t.r = r;
	t.acked = acked;
	t.img = img;
	snprintf(t.dir, sizeof(t.dir), "%s/" CUT_STORE, dir);
	snprintf(t.url, sizeof(t.url), "jsonl:%s", t.dir);
	put_image(&t, dir);
	fault_io_install();
	fault_io_clock(AFTERWARDS);
	fault_io_seed(99);
	fault_io_map_stat(map_stat, &t);
	judge_all(&t);
	if (t.store)
		close_store(&t);
	fault_io_remove();
	for (size_t i = 0; i < PLAY_SESSIONS; i++)
		free(t.texts[i]);
	return t.bad ? t.why : NULL;
}
