/* What a store says, as text that can be compared; and helpers for files. */
#include "play.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Text that grows ------------------------------------------------------------------ */

typedef struct words {
	char *text;
	size_t len, room;
} words;

static void put(words *w, const char *bytes, size_t len)
{
	if (w->len + len + 1 > w->room) {
		w->room = (w->len + len + 1) * 2 + 256;
		w->text = realloc(w->text, w->room);
		if (w->text == NULL)
			abort();
	}
	memcpy(w->text + w->len, bytes, len);
	w->len += len;
	w->text[w->len] = 0;
}

__attribute__((format(printf, 2, 3))) static void putf(words *w, const char *format, ...)
{
	char line[600];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put(w, line, len < (int)sizeof(line) ? (size_t)len : sizeof(line) - 1);
}

/* Whether a UUID as the library writes it stands here. */
static bool is_uuid(const char *at, size_t left)
{
	if (left < 36)
		return false;
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		bool hex = (at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f');
		if (dash ? at[i] != '-' : !hex)
			return false;
	}
	return true;
}

static void put_line(words *w, sheaf_str line, bool masked)
{
	static const char crc[] = "\"crc\":\"";
	if (!masked) {
		put(w, line.ptr, line.len);
		put(w, "\n", 1);
		return;
	}
	for (size_t i = 0; i < line.len;) {
		if (is_uuid(line.ptr + i, line.len - i)) {
			put(w, "*", 1);
			i += 36;
		} else if (line.len - i >= sizeof(crc) - 1 + 8 &&
		           memcmp(line.ptr + i, crc, sizeof(crc) - 1) == 0) {
			put(w, "*", 1);
			i += sizeof(crc) - 1 + 8;
		} else {
			put(w, line.ptr + i++, 1);
		}
	}
	put(w, "\n", 1);
}

char *text_masked(const char *text)
{
	words w = {NULL, 0, 0};
	put_line(&w, sheaf_str_of(text ? text : ""), true);
	return w.text;
}

/* ---- Sessions ------------------------------------------------------------------------- */

static void key_from(sheaf_key *key, char parts[3][64], const char *name)
{
	if (sscanf(name, "%63[^/]/%63[^/]/%63s", parts[0], parts[1], parts[2]) != 3) {
		parts[0][0] = parts[1][0] = 0;
		snprintf(parts[2], 64, "%s", name);
	}
	*key = (sheaf_key){sheaf_str_of(parts[0]), sheaf_str_of(parts[1]), sheaf_str_of(parts[2])};
}

static int put_records(words *w, sheaf_session *s, bool masked)
{
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *r = NULL;
	sheaf_error err;

	options.limit = 100000;
	options.raw = 1;
	int rc = sheaf_session_records(&r, s, &options, &err);
	for (size_t i = 0; rc == 0 && i < r->count; i++) {
		if (r->items[i]->damaged)
			putf(w, "(damaged %llu)\n", (unsigned long long)r->items[i]->seq);
		else
			put_line(w, r->items[i]->line, masked);
	}
	sheaf_records_free(r);
	return rc;
}

static int put_head(words *w, sheaf_session *s, bool masked)
{
	sheaf_head_view *h = NULL;
	sheaf_error err;
	int rc = sheaf_session_head(&h, s, &err);
	if (rc)
		return rc;
	putf(w, "  name %.*s, revision %llu%s%s\n", (int)h->info->name.len,
	     h->info->name.ptr ? h->info->name.ptr : "", (unsigned long long)h->info->revision,
	     h->damaged ? ", damaged" : "", h->readonly && !masked ? "" : "");
	for (size_t i = 0; i < h->branch_count; i++) {
		const sheaf_branch_info *b = h->branches[i];
		putf(w, "  branch %.*s at %llu\n", (int)b->name.len, b->name.ptr,
		     (unsigned long long)b->leaf_seq);
	}
	sheaf_head_view_free(h);
	return 0;
}

/* What waits. A queue that cannot be read is as damaged as a log. */
static void put_queue(words *w, sheaf_session *s)
{
	sheaf_error err = {0};
	int rc;
	char *text = queue_text(s, &rc, &err);
	if (rc)
		putf(w, "  queue: %s, damaged\n", sheaf_code_name(rc));
	else
		put(w, text, strlen(text));
	free(text);
}

/* What the session sees of state; nothing if there is none. */
static int put_state(words *w, sheaf_session *s)
{
	sheaf_state *state = NULL;
	sheaf_error err;
	int rc = sheaf_session_state_all(&state, s, &err);
	for (size_t i = 0; rc == 0 && i < state->count; i++) {
		const sheaf_state_value *v = state->items[i];
		putf(w, "  state %.*s = %.*s\n", (int)v->key.len, v->key.ptr, (int)v->value.len,
		     v->value.ptr);
	}
	sheaf_state_free(state);
	return rc;
}

char *session_text(sheaf_store *store, const char *dir, const char *name, bool masked)
{
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	sheaf_error err = {0};
	sheaf_key key;
	char parts[3][64], path[400];
	words w = {NULL, 0, 0};

	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = 1;
	key_from(&key, parts, name);
	putf(&w, "%s:", name);
	int rc = sheaf_session_open(&s, store, &key, &options, &err);
	if (rc == SHEAF_NOT_FOUND) {
		snprintf(path, sizeof(path), "%s/%s.jsonl", dir ? dir : "", name);
		putf(&w, " %s\n", dir && access(path, F_OK) == 0 ? "hidden" : "absent");
		return w.text;
	}
	put(&w, "\n", 1);
	if (rc == 0)
		rc = put_head(&w, s, masked);
	if (rc == 0)
		put_queue(&w, s);
	if (rc == 0)
		rc = put_state(&w, s);
	if (rc == 0)
		rc = put_records(&w, s, masked);
	if (rc)
		putf(&w, " cannot be read: %s, %s\n", sheaf_code_name(rc), err.message);
	sheaf_session_close(s);
	return w.text;
}

char *store_text(sheaf_store *store, const char *dir, const cast *who, bool masked)
{
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	sheaf_store *own = NULL;
	sheaf_error err;
	char url[300];
	words w = {NULL, 0, 0};

	put(&w, "", 0);
	if (store == NULL) {
		options.readonly = 1;
		snprintf(url, sizeof(url), "jsonl:%s", dir);
		int rc = sheaf_open(&own, url, &options, &err);
		if (rc) {
			putf(&w, "no store: %s\n", sheaf_code_name(rc));
			return w.text;
		}
	}
	for (size_t i = 0; i < who->count; i++) {
		char *text = session_text(store ? store : own, dir, who->names[i], masked);
		put(&w, text, strlen(text));
		free(text);
	}
	sheaf_close(own);
	return w.text;
}

char *list_text(sheaf_store *store, int *rc, sheaf_error *err)
{
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	sheaf_list *list = NULL;
	words w = {NULL, 0, 0};

	options.all_apps = 1;
	*rc = sheaf_store_list(&list, store, &options, err);
	if (*rc)
		return NULL;
	put(&w, "", 0);
	for (size_t i = 0; i < list->count; i++) {
		const sheaf_session_info *x = list->items[i];
		putf(&w, "%.*s/%.*s/%.*s %.*s r%llu m%llu %s%s\n", (int)x->app.len, x->app.ptr,
		     (int)x->user.len, x->user.ptr, (int)x->session.len, x->session.ptr,
		     (int)x->name.len, x->name.ptr ? x->name.ptr : "",
		     (unsigned long long)x->revision, (unsigned long long)x->messages,
		     x->damaged ? "damaged" : "", x->hidden ? "hidden" : "");
	}
	sheaf_list_free(list);
	return w.text;
}

int check_count(sheaf_store *store, unsigned mask, char *why, size_t room)
{
	sheaf_report *r = NULL;
	sheaf_error err = {0};
	int count = 0;

	why[0] = 0;
	if (sheaf_store_check(&r, store, NULL, &err)) {
		snprintf(why, room, "check failed: %s %s", sheaf_code_name(err.code), err.message);
		return -1;
	}
	for (size_t i = 0; i < r->count; i++) {
		const sheaf_problem *p = r->problems[i];
		if (!(mask & (1u << p->what)))
			continue;
		/* Of the state: whoever sets the next value moves it away. */
		if (p->what == SHEAF_PROBLEM_TORN && p->session.len == 0)
			continue;
		if (count++ == 0)
			snprintf(why, room, "problem %d in %.*s, seq %llu, offset %llu: %.*s",
			         (int)p->what, (int)p->session.len, p->session.ptr,
			         (unsigned long long)p->seq, (unsigned long long)p->offset,
			         (int)p->detail.len, p->detail.ptr);
	}
	sheaf_report_free(r);
	return count;
}

/* ---- Files ------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)what;
	(void)at;
	remove(path);
	return 0;
}

void tree_remove(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

size_t open_descriptors(void)
{
	size_t n = 0;
	DIR *d = opendir("/proc/self/fd");
	if (d == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* nftw() has no context. */
static const char *sought;
static bool sought_in_names;
static char found_in[400];

static int look_into(const char *path, const struct stat *st, int what, struct FTW *at)
{
	if (what != FTW_F)
		return 0;
	bool hit = false;
	if (sought_in_names) {
		hit = strncmp(path + at->base, sought, strlen(sought)) == 0;
	} else {
		size_t size = (size_t)st->st_size;
		char *bytes = malloc(size + 1);
		int fd = open(path, O_RDONLY);
		if (bytes != NULL && fd >= 0 && read(fd, bytes, size) == (ssize_t)size)
			hit = memmem(bytes, size, sought, strlen(sought)) != NULL;
		if (fd >= 0)
			close(fd);
		free(bytes);
	}
	if (hit)
		snprintf(found_in, sizeof(found_in), "%s", path);
	return hit;
}

static bool look(const char *dir, const char *text, bool names, char *where, size_t room)
{
	sought = text;
	sought_in_names = names;
	bool hit = nftw(dir, look_into, 16, FTW_PHYS) == 1;
	snprintf(where, room, "%s", hit ? found_in : "");
	return hit;
}

bool tree_holds(const char *dir, const char *text, char *where, size_t room)
{
	return look(dir, text, false, where, room);
}

bool tree_names(const char *dir, const char *beginning, char *where, size_t room)
{
	return look(dir, beginning, true, where, room);
}

void scratch_dir(char out[256], const char *what)
{
	static unsigned made;
	const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	snprintf(out, 256, "%s/sheaf-%s-%d-%u", place ? place : "/tmp", what, (int)getpid(),
	         made++);
	tree_remove(out);
	if (mkdir(out, 0700))
		abort();
}

double test_scale(void)
{
	const char *text = getenv("SHEAF_TEST_SCALE");
	double scale = text ? atof(text) : 1;
	return scale > 0 ? scale : 1;
}
