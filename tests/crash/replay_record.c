/* Plays a scenario once and notes every operation on files: the recording of replay.h. */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fault_io.h"
#include "support/files.h"

#define SETUP_FROM 40u
#define AGE_BEGINS INT64_C(1690000000000000000) /* before the clock of fault_io.h, */
#define AGE_RACES INT64_C(1750000000000000000)  /* or after it: what changed, changed just now */
#define TICK_NS INT64_C(4000000)

static void *grown(void *items, size_t *room, size_t count, size_t each)
{
	if (count <= *room)
		return items;
	*room = count * 2 + 16;
	items = realloc(items, *room * each);
	if (items == NULL)
		abort();
	return items;
}

static int64_t age_now(const recording *r)
{
	int64_t begins = r->ops_per_tick > 1 ? AGE_RACES : AGE_BEGINS;
	return begins + (int64_t)((r->op_count + 1) / r->ops_per_tick) * TICK_NS;
}

/* ---- Nodes ---- */

static int node_of(const recording *r, ino_t real)
{
	for (size_t i = r->node_count; i-- > 0;)
		if (r->nodes[i].real == real)
			return (int)i;
	return -1;
}

static int node_of_fd(const recording *r, int fd)
{
	struct stat st;
	return fstat(fd, &st) ? -1 : node_of(r, st.st_ino);
}

static int node_add(recording *r, ino_t real)
{
	r->nodes = grown(r->nodes, &r->node_room, r->node_count + 1, sizeof(*r->nodes));
	r->nodes[r->node_count] = (recorded_node){real, age_now(r)};
	return (int)r->node_count++;
}

/* The node of the directory a path lies in, and its last part. -1: none of ours. */
static int split(const recording *r, int dir, const char *path, char name[CUT_NAME_ROOM])
{
	const char *slash = strrchr(path, '/');
	char above[400];
	struct stat st;

	snprintf(name, CUT_NAME_ROOM, "%s", slash ? slash + 1 : path);
	if (slash == NULL)
		return node_of_fd(r, dir);
	snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	return fstatat(dir, above, &st, 0) ? -1 : node_of(r, st.st_ino);
}

/* ---- Operations ---- */

static op *note(recording *r, op o)
{
	r->ops = grown(r->ops, &r->op_room, r->op_count + 1, sizeof(*r->ops));
	o.mtime_ns = age_now(r);
	if (o.bytes != NULL) {
		char *copy = malloc(o.len + 1);
		if (copy == NULL)
			abort();
		memcpy(copy, o.bytes, o.len);
		o.bytes = copy;
	}
	o.step = r->op_count ? r->ops[r->op_count - 1].step : 0;
	r->ops[r->op_count] = o;
	if (o.kind == OP_WRITE || o.kind == OP_TRUNCATE)
		r->nodes[o.node].mtime_ns = o.mtime_ns;
	if (o.kind == OP_MAKE || o.kind == OP_LINK || o.kind == OP_REMOVE || o.kind == OP_MOVE)
		r->nodes[o.dir].mtime_ns = o.mtime_ns;
	if (o.kind == OP_MAKE)
		r->nodes[o.node].mtime_ns = o.mtime_ns;
	if (o.kind == OP_MOVE)
		r->nodes[o.to_dir].mtime_ns = o.mtime_ns;
	return &r->ops[r->op_count++];
}

static void note_open(recording *r, const fault_op *f)
{
	op o = {.kind = OP_MAKE};
	struct stat st;

	if (!(f->flags & (O_CREAT | O_TRUNC)) || fstat((int)f->result, &st))
		return;
	o.node = node_of(r, st.st_ino);
	if (o.node >= 0) {
		if (f->flags & O_TRUNC)
			note(r, (op){.kind = OP_TRUNCATE, .node = o.node});
		return;
	}
	o.dir = split(r, f->fd, f->path, o.name);
	if (o.dir < 0)
		return;
	o.node = node_add(r, st.st_ino);
	o.mode = st.st_mode & 07777;
	note(r, o);
}

static void note_name(recording *r, const fault_op *f)
{
	op o = {.kind = f->slot == FAULT_mkdir    ? OP_MAKE
	                : f->slot == FAULT_unlink ? OP_REMOVE
	                : f->slot == FAULT_link   ? OP_LINK
	                                          : OP_MOVE};
	struct stat st;

	o.dir = split(r, f->fd, f->path, o.name);
	if (f->to != NULL)
		o.to_dir = split(r, f->to_dir, f->to, o.to);
	if (o.dir < 0 || o.to_dir < 0)
		return;
	if (o.kind == OP_MAKE) {
		if (fstatat(f->fd, f->path, &st, AT_SYMLINK_NOFOLLOW))
			abort();
		o.node = node_add(r, st.st_ino);
		o.mode = st.st_mode & 07777;
		o.is_dir = true;
	} else if (o.kind != OP_REMOVE) {
		if (fstatat(f->to_dir, f->to, &st, AT_SYMLINK_NOFOLLOW))
			abort();
		o.node = node_of(r, st.st_ino);
	}
	if (o.kind == OP_LINK) { /* a name in one directory, like that of a new node */
		o.dir = o.to_dir;
		memcpy(o.name, o.to, sizeof(o.name));
	}
	note(r, o);
}

static void note_file(recording *r, const fault_op *f)
{
	op o = {.node = node_of_fd(r, f->fd)};

	if (o.node < 0)
		return;
	switch (f->slot) {
	case FAULT_write:
	case FAULT_pwrite:
		o.kind = OP_WRITE;
		o.bytes = (char *)(uintptr_t)f->bytes;
		o.len = (size_t)f->result;
		o.at = (uint64_t)(f->slot == FAULT_pwrite
		                          ? f->at
		                          : lseek(f->fd, 0, SEEK_CUR) - (off_t)f->result);
		break;
	case FAULT_ftruncate:
		o.kind = OP_TRUNCATE;
		o.at = (uint64_t)f->at;
		break;
	case FAULT_fchmod:
		o.kind = OP_CHMOD;
		o.mode = f->mode;
		break;
	default:
		o.kind = f->slot == FAULT_fsync ? OP_FSYNC : OP_SYNC;
		break;
	}
	note(r, o);
}

static void watch(void *ctx, const fault_op *f)
{
	recording *r = ctx;

	if (f->result < 0)
		return;
	switch (f->slot) {
	case FAULT_open_beneath:
	case FAULT_open_root:
		note_open(r, f);
		break;
	case FAULT_mkdir:
	case FAULT_link:
	case FAULT_unlink:
	case FAULT_rename:
		note_name(r, f);
		break;
	case FAULT_write:
	case FAULT_pwrite:
	case FAULT_ftruncate:
	case FAULT_fchmod:
	case FAULT_fsync:
	case FAULT_fdatasync:
		note_file(r, f);
		break;
	default:
		break;
	}
}

static void map_stat(void *ctx, struct statx *st)
{
	const recording *r = ctx;
	int node = node_of(r, st->stx_ino);

	if (node < 0)
		return;
	st->stx_ino = CUT_INODES_FROM + (unsigned)node;
	st->stx_mtime.tv_sec = r->nodes[node].mtime_ns / 1000000000;
	st->stx_mtime.tv_nsec = (unsigned)(r->nodes[node].mtime_ns % 1000000000);
}

/* ---- Steps ---- */

/* What the test itself did to a file is there for good. */
static void note_spoiled(recording *r, const step *s)
{
	op o = {.kind = OP_SPOIL};
	char file[200], path[500];
	struct stat st;

	step_file(s, file, sizeof(file));
	snprintf(path, sizeof(path), "%s/" CUT_STORE "/%s", r->dir, file);
	if (stat(path, &st))
		abort();
	o.node = node_of(r, st.st_ino);
	o.bytes = file_read(path, &o.len);
	char *read = o.bytes;
	note(r, o);
	free(read);
}

static void take_texts(recording *r, unsigned after)
{
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	sheaf_store *store = NULL;
	sheaf_error err;
	char dir[300], url[320];

	snprintf(dir, sizeof(dir), "%s/" CUT_STORE, r->dir);
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	options.readonly = 1;
	fault_io_pause(true);
	if (sheaf_open(&store, url, &options, &err))
		abort();
	for (size_t i = 0; i < r->who.count; i++)
		r->texts[after][i] = session_text(store, dir, r->who.names[i], false);
	sheaf_close(store);
	fault_io_pause(false);
}

static bool makes_durable(const step *s)
{
	return !step_reads(s) && s->durability != SHEAF_DURABILITY_PROCESS &&
	       s->kind != STEP_OPEN && s->kind != STEP_CLOSE && s->kind != STEP_REOPEN;
}

/* What the acknowledgement of a step says about each session. */
static void take_floors(recording *r, unsigned at)
{
	const step *s = &r->steps[at];

	for (size_t i = 0; i < r->who.count; i++) {
		const char *name = r->who.names[i];
		bool named = (s->session && strcmp(s->session, name) == 0 && s->kind != STEP_COPY &&
		              s->kind != STEP_EXPORT) ||
		             (s->other && strcmp(s->other, name) == 0);
		bool changed = strcmp(r->texts[at][i], r->texts[at + 1][i]) != 0;
		r->floor[at + 1][i] = makes_durable(s) && (named || changed) ? at + 1
		                                                             : r->floor[at][i];
	}
}

static void copy_steps(recording *r, const scenario *sc, unsigned round)
{
	uint64_t random = round * UINT64_C(0x9e3779b97f4a7c15) + 7;

	for (unsigned part = 0; part < 2; part++) {
		const step *from = part ? sc->steps : sc->setup;
		for (unsigned i = 0; from[i].kind != STEP_END; i++) {
			if (r->count == CUT_STEPS)
				abort();
			r->at[r->count] = part ? i : SETUP_FROM + i;
			r->steps[r->count] = from[i];
			if (round && from[i].bytes)
				r->steps[r->count].bytes = 20 +
				                           (unsigned)(cut_random(&random) % 680);
			r->count++;
		}
	}
}

static void play(recording *r)
{
	player p = {.dir = ""};
	sheaf_error err = {0};
	char store[300];

	snprintf(store, sizeof(store), "%s/" CUT_STORE, r->dir);
	int rc = player_open(&p, store, &err);
	if (rc == 0)
		take_texts(r, 0);
	for (unsigned i = 0; rc == 0 && i < r->count; i++) {
		const step *s = &r->steps[i];
		rc = player_do(&p, s, r->at[i], false, &err);
		if (rc)
			break;
		if (step_damages(s) || step_tears(s))
			note_spoiled(r, s);
		note(r, (op){.kind = OP_ACK})->step++;
		take_texts(r, i + 1);
		take_floors(r, i);
	}
	if (rc) {
		fprintf(stderr, "%s cannot be recorded: %s: %s\n", r->name, sheaf_code_name(rc),
		        err.message);
		abort();
	}
	player_free(&p);
}

recording *cut_record(const scenario *sc, unsigned round, int forget)
{
	recording *r = calloc(1, sizeof(*r));
	struct stat st;

	if (r == NULL)
		abort();
	r->name = sc->name;
	r->ops_per_tick = round % 3 == 0 ? 1 : round % 3 == 1 ? 50 : 7;
	cast_of(&r->who, sc);
	copy_steps(r, sc, round);
	scratch_dir(r->dir, "record");
	if (stat(r->dir, &st))
		abort();
	node_add(r, st.st_ino);
	fault_io_install();
	fault_io_seed(round + 1);
	fault_io_forget(forget);
	fault_io_watch(watch, r);
	fault_io_map_stat(map_stat, r);
	play(r);
	fault_io_remove();
	tree_remove(r->dir);
	return r;
}

void cut_recording_free(recording *r)
{
	for (size_t i = 0; i < r->op_count; i++)
		free(r->ops[i].bytes);
	for (unsigned i = 0; i <= r->count; i++)
		for (size_t k = 0; k < r->who.count; k++)
			free(r->texts[i][k]);
	free(r->ops);
	free(r->nodes);
	free(r);
}
