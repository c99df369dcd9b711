/*
 * Sources to import: what a sample holds, again and again. Whatever names
 * something gets another name with every repetition (and the session's own with
 * every session), and what began the conversation goes on with the one before.
 */
#include "generate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kind {
	const char *path;    /* below the samples */
	const char *session; /* the id it has in there */
	const char *parent;  /* a beginning: what is null in it … */
	const char *id;      /* … and the member that names a line; NULL: lines hang on nothing */
	const char *once;    /* lines with this are not repeated */
	unsigned messages;   /* in one repetition */
	const char *before;  /* the session's id in a file's name … */
	const char *after;
} kind;

static const kind kinds[GENERATE_KINDS] = {
	{"claude-code/2.1.197/projects/-home-user-project/"
         "11111111-1111-4111-8111-111111111111.jsonl",
         "11111111-1111-4111-8111-111111111111", "\"parentUuid\":null", "\"uuid\":\"", NULL, 59, "",
         ".jsonl"},
	{"codex/0.135.0/sessions/2026/11/14/"
         "rollout-2026-11-14T23-06-05-01a1dc4f-9557-7792-a2b4-583aecbc89a6.jsonl",
         "01a1dc4f-9557-7792-a2b4-583aecbc89a6", NULL, NULL, "\"session_meta\"", 43,
         "rollout-2026-11-14T23-06-05-", ".jsonl"},
	{"pi/0.73.1/sessions/--home-user-project--/"
         "2026-11-14T22-58-25-886Z_01a1dc48-91dd-754a-b727-3d8f61e55eff.jsonl",
         "01a1dc48-91dd-754a-b727-3d8f61e55eff", "\"parentId\":null", "\"id\":\"",
         "\"type\":\"session\"", 23, "2026-11-14T22-58-25-886Z_", ".jsonl"},
	{"gemini-cli/0.61.0/before-compress/session-2026-11-14T23-02-caefd898.jsonl",
         "caefd898-195c-44aa-a02f-2f8e07b71f6b", NULL, NULL, "essages\":[", 22,
         "session-2026-11-14T23-02-", ".jsonl"},
	{"codex/0.166.0/sessions/2026/11/14/"
         "rollout-2026-11-14T22-59-50-01a1dc49-dd38-7103-bd23-2ca2f89caecb.jsonl",
         "01a1dc49-dd38-7103-bd23-2ca2f89caecb", NULL, NULL, "\"session_meta\"", 43,
         "rollout-2026-11-14T22-59-50-", ".jsonl"},
	{"claude-code/2.0.60/projects/-home-user-project/"
         "22222222-2222-4222-8222-222222222222.jsonl",
         "22222222-2222-4222-8222-222222222222", "\"parentUuid\":null", "\"uuid\":\"", NULL, 41, "",
         ".jsonl"},
	{"opencode/1.18.33/export_main.json", "ses_e23b5fa6cffeFJNzLxh0hGmYnD", NULL, NULL, NULL,
         18, "", ".json"},
};

typedef struct text {
	char *ptr;
	size_t len, room;
} text;

static void add(text *t, const char *bytes, size_t len)
{
	if (t->len + len + 1 > t->room) {
		t->room = (t->len + len + 1) * 2;
		t->ptr = realloc(t->ptr, t->room);
		if (t->ptr == NULL)
			exit(1);
	}
	memcpy(t->ptr + t->len, bytes, len);
	t->len += len;
	t->ptr[t->len] = '\0';
}

static void die(const char *path)
{
	perror(path);
	exit(1);
}

/* The sample of a kind, read once. */
static const text *sample(size_t which)
{
	static text samples[GENERATE_KINDS];
	char path[512], chunk[4096];
	text *t = &samples[which];
	if (t->ptr != NULL)
		return t;
	snprintf(path, sizeof(path), "%s/%s", SHEAF_BENCH_SAMPLES, kinds[which].path);
	FILE *f = fopen(path, "r");
	if (f == NULL)
		die(path);
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) != 0;)
		add(t, chunk, n);
	fclose(f);
	return t;
}

/* ---- Names ----------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + 1;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Other digits for the last `count` of a name, different for different names. */
static void vary(char *end, size_t count, uint64_t by)
{
	static const char hex[] = "0123456789abcdef";
	static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (size_t i = 1; i <= count; i++, by >>= 4) {
		const char *at = memchr(hex, end[-(ptrdiff_t)i], 16);
		if (at != NULL)
			end[-(ptrdiff_t)i] = hex[(size_t)(at - hex) ^ (by & 15)];
		else if ((at = memchr(all, end[-(ptrdiff_t)i], sizeof(all) - 1)) != NULL)
			end[-(ptrdiff_t)i] = all[16 + ((size_t)(at - all) - 16 + (by & 15)) % 46];
	}
}

static size_t name_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '-' || p[n] == '_')
		n++;
	return n;
}

static bool is_uuid(const char *p, size_t len)
{
	return len >= 36 && p[len - 13] == '-' && p[len - 18] == '-' && p[len - 23] == '-' &&
	       p[len - 28] == '-';
}

static bool is_short_hex(const char *p, size_t len)
{
	return len == 8 && p[-1] == '"' && p[8] == '"' && strspn(p, "0123456789abcdef") >= 8;
}

/* Eight digits are too few to be drawn at random: which of the sample's, and in which repetition. */
static void number_short(char *p, uint64_t rounds)
{
	static char known[128][8];
	static uint64_t count;
	static const char hex[] = "0123456789abcdef";
	uint64_t i = 0;
	while (i < count && memcmp(known[i], p, 8) != 0)
		i++;
	if (i == count && count < 128)
		memcpy(known[count++], p, 8);
	i += rounds * 128;
	for (size_t k = 8; k-- > 0; i >>= 4)
		p[k] = hex[i & 15];
}

static bool is_opencode(const char *p, size_t len)
{
	return len == 30 && (memcmp(p, "msg_", 4) == 0 || memcmp(p, "prt_", 4) == 0);
}

/* Gives the names in [from, t->len) others. */
static void rename_all(text *t, size_t from, const char *session, const char *own, uint64_t by,
                       uint64_t rounds)
{
	size_t session_len = strlen(session);
	for (char *p = t->ptr + from, *end = t->ptr + t->len; p < end;) {
		size_t n = name_length(p);
		char *stub;
		if (n == session_len && memcmp(p, session, n) == 0)
			memcpy(p, own, n);
		else if (is_uuid(p, n))
			vary(p + n, 12, by);
		else if (is_short_hex(p, n))
			number_short(p, rounds);
		else if (is_opencode(p, n))
			vary(p + n, 10, by);
		else if (n > 12 && (stub = memmem(p, n, "StubStubStub", 12)) != NULL)
			vary(stub + 12, 12, by);
		p += n != 0 ? n : 1;
	}
}

/* ---- Lines ------------------------------------------------------------------ */

static const char *find(const char *line, size_t len, const char *what)
{
	return what != NULL ? memmem(line, len, what, strlen(what)) : NULL;
}

/* A line with its number, if it has one, and hung on what came before. */
static void line_add(text *out, const kind *k, const char *line, size_t len, uint64_t *ordinal,
                     const char *last)
{
	const char *at = find(line, len, "\"ordinal\":"), *root = find(line, len, k->parent);
	char other[80] = "";
	size_t before = len, skip = 0;
	if (root != NULL && last[0] != '\0' && find(line, len, "logicalParent") == NULL) {
		skip = strlen("null");
		before = (size_t)(root - line) + strlen(k->parent) - skip;
		snprintf(other, sizeof(other), "\"%s\"", last);
	} else if (at != NULL) {
		before = (size_t)(at - line) + strlen("\"ordinal\":");
		skip = strspn(line + before, "0123456789");
		snprintf(other, sizeof(other), "%llu", (unsigned long long)(*ordinal)++);
	}
	add(out, line, before);
	add(out, other, strlen(other));
	add(out, line + before + skip, len - before - skip);
}

/* The id of the last line that has one. */
static void last_take(char last[64], const kind *k, const char *line, size_t len)
{
	const char *at = find(line, len, k->id);
	if (at == NULL || find(line, len, "\"isSidechain\":true") != NULL)
		return;
	at += strlen(k->id);
	snprintf(last, 64, "%.*s", (int)name_length(at), at);
}

typedef struct making {
	const kind *k;
	const text *from;
	text line, out;
	uint64_t number, rounds, ordinal;
	char own[64];  /* the session's id */
	char last[64]; /* the id that the next beginning hangs on */
} making;

static void lines_add(making *m)
{
	const char *p = m->from->ptr, *end = p + m->from->len;
	uint64_t by = mix(m->number + 1, m->rounds + 1);
	char before[64];
	memcpy(before, m->last, sizeof(before));
	for (const char *next; p < end; p = next) {
		next = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
		if (m->rounds != 0 && find(p, (size_t)(next - p), m->k->once) != NULL)
			continue;
		m->line.len = 0;
		add(&m->line, p, (size_t)(next - p));
		rename_all(&m->line, 0, m->k->session, m->own, by, m->rounds);
		line_add(&m->out, m->k, m->line.ptr, m->line.len, &m->ordinal, before);
		last_take(m->last, m->k, m->line.ptr, m->line.len);
	}
}

/* A document: its list of messages, repeated. */
static void list_add(making *m, bool last)
{
	static const char opens[] = "\"messages\": [\n", closes[] = "\n  ]\n}";
	const char *list = strstr(m->from->ptr, opens) + sizeof(opens) - 1;
	const char *end = strstr(list, closes);
	size_t start = m->out.len;
	if (m->rounds == 0)
		add(&m->out, m->from->ptr, (size_t)(list - m->from->ptr));
	else
		add(&m->out, ",\n", 2);
	add(&m->out, list, (size_t)(end - list));
	if (last)
		add(&m->out, end, strlen(end));
	rename_all(&m->out, start, m->k->session, m->own, mix(m->number + 1, m->rounds + 1),
	           m->rounds);
}

uint64_t generate_session(const char *dir, uint64_t number, uint64_t messages, uint64_t bytes)
{
	size_t which = number % GENERATE_KINDS;
	making m = {.k = &kinds[which], .from = sample(which), .number = number};
	char path[600];
	uint64_t rounds = (messages + m.k->messages / 2) / m.k->messages, total = 0;
	bool lines = which != GENERATE_KINDS - 1, last = false;
	snprintf(m.own, sizeof(m.own), "%s", m.k->session);
	vary(m.own + strlen(m.own), 12, mix(number, 0));
	snprintf(path, sizeof(path), "%s/%s%s%s", dir, m.k->before, m.own, m.k->after);
	FILE *f = fopen(path, "w");
	if (f == NULL)
		die(path);
	for (; !last; m.rounds++) {
		last = messages != 0 ? m.rounds + 1 >= rounds : total + m.out.len >= bytes;
		m.out.len = 0;
		if (lines)
			lines_add(&m);
		else
			list_add(&m, last);
		if (fwrite(m.out.ptr, 1, m.out.len, f) != m.out.len)
			die(path);
		total += m.out.len;
	}
	if (fclose(f) != 0)
		die(path);
	free(m.line.ptr);
	free(m.out.ptr);
	return total;
}

int generate_main(const char *dir, const char *sessions, const char *bytes)
{
	uint64_t count = strtoull(sessions, NULL, 10), each = strtoull(bytes, NULL, 10);
	for (uint64_t i = 0; i < count; i++)
		generate_session(dir, i, 0, each);
	return 0;
}
