/* The model of the disk: what is durable, what is pending, and images of what a crash leaves. */
#include "replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u

typedef struct content {
	char *bytes;
	size_t len;
} content;

typedef struct entry {
	char name[CUT_NAME_ROOM];
	int node;
} entry;

/* A change of a directory: a name goes, a name comes, or both at once. */
typedef struct change {
	char gone[CUT_NAME_ROOM], come[CUT_NAME_ROOM];
	int node;
	int64_t mtime_ns;
	uint64_t when; /* for cuts through the whole disk */
} change;

typedef struct node {
	bool is_dir;
	/* a file: versions[0] is synced, the last is the present one */
	content *versions;
	size_t version_count, version_room;
	mode_t *modes; /* the same way, as of the last fsync */
	size_t mode_count, mode_room;
	int64_t *ages;
	size_t age_count, age_room;
	/* a directory */
	entry *entries;
	size_t entry_count, entry_room;
	change *pending;
	size_t pending_count, pending_room;
	int64_t mtime_ns; /* of the entries */
	int made;         /* while an image is made: its place in it, or -1 */
} node;

struct disk {
	node *nodes;
	size_t count, room;
	uint64_t when;
};

uint64_t cut_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t pick(uint64_t *random, size_t count)
{
	return (size_t)(cut_random(random) % count);
}

static void *grown(void *items, size_t *room, size_t count, size_t each)
{
	if (count <= *room)
		return items;
	*room = count * 2 + 4;
	items = realloc(items, *room * each);
	if (items == NULL)
		abort();
	return items;
}

static void name_set(char to[CUT_NAME_ROOM], const char *from)
{
	memcpy(to, from, CUT_NAME_ROOM);
}

/* ---- Changes ---- */

static node *node_at(disk *d, int number)
{
	size_t at = (size_t)number;
	d->nodes = grown(d->nodes, &d->room, at + 1, sizeof(*d->nodes));
	while (d->count <= at)
		d->nodes[d->count++] = (node){.is_dir = false};
	return &d->nodes[at];
}

static void version_add(node *n, content c)
{
	n->versions = grown(n->versions, &n->version_room, n->version_count + 1, sizeof(content));
	n->versions[n->version_count++] = c;
}

static content content_copy(const char *bytes, size_t len, size_t room)
{
	content c = {calloc(1, room + 1), room};
	if (c.bytes == NULL)
		abort();
	memcpy(c.bytes, bytes, len < room ? len : room);
	return c;
}

static void file_write_op(node *n, const op *o)
{
	const content *last = &n->versions[n->version_count - 1];
	size_t end = (size_t)o->at + o->len;
	content c = content_copy(last->bytes, last->len, end > last->len ? end : last->len);
	memcpy(c.bytes + o->at, o->bytes, o->len);
	version_add(n, c);
}

static void file_truncate_op(node *n, const op *o)
{
	const content *last = &n->versions[n->version_count - 1];
	version_add(n, content_copy(last->bytes, last->len, (size_t)o->at));
}

static void file_synced(node *n)
{
	for (size_t i = 0; i + 1 < n->version_count; i++)
		free(n->versions[i].bytes);
	n->versions[0] = n->versions[n->version_count - 1];
	n->version_count = 1;
}

static void age_add(node *n, int64_t mtime_ns)
{
	n->ages = grown(n->ages, &n->age_room, n->age_count + 1, sizeof(*n->ages));
	n->ages[n->age_count++] = mtime_ns;
}

static void mode_add(node *n, mode_t mode)
{
	n->modes = grown(n->modes, &n->mode_room, n->mode_count + 1, sizeof(*n->modes));
	n->modes[n->mode_count++] = mode;
}

static void entry_remove(entry *entries, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(entries[i].name, name) == 0) {
			entries[i] = entries[--*count];
			return;
		}
}

/* `entries` has room for one more. */
static void change_apply(entry *entries, size_t *count, const change *c)
{
	if (c->gone[0])
		entry_remove(entries, count, c->gone);
	if (c->come[0] == 0)
		return;
	entry_remove(entries, count, c->come);
	name_set(entries[*count].name, c->come);
	entries[(*count)++].node = c->node;
}

static void directory_synced(node *n)
{
	for (size_t i = 0; i < n->pending_count; i++) {
		n->entries = grown(n->entries, &n->entry_room, n->entry_count + 1, sizeof(entry));
		change_apply(n->entries, &n->entry_count, &n->pending[i]);
		n->mtime_ns = n->pending[i].mtime_ns;
	}
	n->pending_count = 0;
}

static void change_add(disk *d, int dir, const char *gone, const char *come, const op *o)
{
	node *n = node_at(d, dir);
	change c = {.node = o->node, .mtime_ns = o->mtime_ns, .when = d->when};
	if (gone)
		name_set(c.gone, gone);
	if (come)
		name_set(c.come, come);
	n->pending = grown(n->pending, &n->pending_room, n->pending_count + 1, sizeof(change));
	n->pending[n->pending_count++] = c;
}

static void node_make(disk *d, const op *o)
{
	node *n = node_at(d, o->node);
	n->is_dir = o->is_dir;
	n->mtime_ns = o->mtime_ns;
	version_add(n, content_copy("", 0, 0));
	mode_add(n, o->mode);
	age_add(n, o->mtime_ns);
	change_add(d, o->dir, NULL, o->name, o);
}

static void fsynced(node *n)
{
	if (n->is_dir) {
		directory_synced(n);
		return;
	}
	file_synced(n);
	n->modes[0] = n->modes[n->mode_count - 1];
	n->ages[0] = n->ages[n->age_count - 1];
	n->mode_count = n->age_count = 1;
}

void cut_disk_apply(disk *d, const op *o)
{
	node *n = node_at(d, o->node);

	d->when++;
	switch (o->kind) {
	case OP_WRITE:
		file_write_op(n, o);
		age_add(n, o->mtime_ns);
		break;
	case OP_TRUNCATE:
		file_truncate_op(n, o);
		age_add(n, o->mtime_ns);
		break;
	case OP_CHMOD:
		mode_add(n, o->mode);
		break;
	case OP_SYNC:
		file_synced(n);
		break;
	case OP_FSYNC:
		fsynced(n);
		break;
	case OP_MAKE:
		node_make(d, o);
		break;
	case OP_LINK:
		change_add(d, o->dir, NULL, o->name, o);
		break;
	case OP_REMOVE:
		change_add(d, o->dir, o->name, NULL, o);
		break;
	case OP_MOVE:
		if (o->dir == o->to_dir) {
			change_add(d, o->dir, o->name, o->to, o);
		} else {
			change_add(d, o->to_dir, NULL, o->to, o);
			change_add(d, o->dir, o->name, NULL, o);
		}
		break;
	case OP_SPOIL:
		version_add(n, content_copy(o->bytes, o->len, o->len));
		age_add(n, o->mtime_ns);
		fsynced(n);
		break;
	case OP_ACK:
		break;
	}
}

disk *cut_disk_new(void)
{
	disk *d = calloc(1, sizeof(*d));
	if (d == NULL)
		abort();
	node *above = node_at(d, 0);
	above->is_dir = true;
	mode_add(above, 0700);
	return d;
}

void cut_disk_free(disk *d)
{
	for (size_t i = 0; i < d->count; i++) {
		node *n = &d->nodes[i];
		for (size_t k = 0; k < n->version_count; k++)
			free(n->versions[k].bytes);
		free(n->versions);
		free(n->modes);
		free(n->ages);
		free(n->entries);
		free(n->pending);
	}
	free(d->nodes);
	free(d);
}

/* ---- Images ---- */

/* How an image is chosen: as a whole, or piece by piece. */
enum {
	ALL_OLD,
	ALL_NEW,
	EACH,
	STYLES
};

typedef struct maker {
	disk *d;
	image *img;
	uint64_t *random;
	size_t files, directories; /* styles; EACH also draws for every one */
	bool cut;                  /* directories: all at the same moment */
	uint64_t cut_at;
} maker;

static char *content_room(image *img, size_t len)
{
	if (img->content_len + len > img->content_room)
		abort(); /* the nodes point into it */
	char *at = img->content + img->content_len;
	img->content_len += len;
	return at;
}

/* Each sector of any version, and any of the sizes. */
static void file_mixed(maker *m, const node *n, image_node *out)
{
	size_t len = n->versions[pick(m->random, n->version_count)].len;
	char *bytes = content_room(m->img, len);

	memset(bytes, 0, len);
	for (size_t at = 0; at < len; at += SECTOR) {
		const content *v = &n->versions[pick(m->random, n->version_count)];
		size_t end = at + SECTOR < len ? at + SECTOR : len;
		if (end > v->len)
			end = v->len;
		if (end > at)
			memcpy(bytes + at, v->bytes + at, end - at);
	}
	out->bytes = bytes;
	out->len = len;
}

static void file_make(maker *m, const node *n, image_node *out)
{
	size_t how = m->files == EACH ? pick(m->random, 5) : m->files;
	const content *v = &n->versions[n->version_count - 1];

	out->mode = n->modes[m->files == ALL_OLD   ? 0
	                     : m->files == ALL_NEW ? n->mode_count - 1
	                                           : pick(m->random, n->mode_count)];
	out->mtime_ns = n->ages[m->files == ALL_OLD   ? 0
	                        : m->files == ALL_NEW ? n->age_count - 1
	                                              : pick(m->random, n->age_count)];
	if (how > 2 && n->version_count > 1) {
		file_mixed(m, n, out);
		return;
	}
	if (how == ALL_OLD)
		v = &n->versions[0];
	else if (how == EACH)
		v = &n->versions[pick(m->random, n->version_count)];
	out->len = v->len;
	char *bytes = content_room(m->img, v->len);
	memcpy(bytes, v->bytes, v->len);
	out->bytes = bytes;
}

static size_t changes_done(maker *m, const node *n)
{
	size_t done = 0;
	if (m->cut) {
		while (done < n->pending_count && n->pending[done].when <= m->cut_at)
			done++;
		return done;
	}
	if (m->directories == ALL_OLD)
		return 0;
	return m->directories == ALL_NEW ? n->pending_count : pick(m->random, n->pending_count + 1);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static void node_put(maker *m, int number, const char *path);

static void directory_make(maker *m, const node *n, image_node *out)
{
	size_t done = changes_done(m, n), count = n->entry_count;
	entry *entries = calloc(count + done + 1, sizeof(entry));
	char path[400], above[400];

	if (entries == NULL)
		abort();
	if (count)
		memcpy(entries, n->entries, count * sizeof(entry));
	for (size_t i = 0; i < done; i++)
		change_apply(entries, &count, &n->pending[i]);
	qsort(entries, count, sizeof(entry), by_name);
	out->mode = n->modes[0];
	out->mtime_ns = done ? n->pending[done - 1].mtime_ns : n->mtime_ns;
	memcpy(above, out->path, sizeof(above));
	for (size_t i = 0; i < count; i++) { /* `out` may move */
		int len = snprintf(path, sizeof(path), "%s/%s", above, entries[i].name);
		if (len < 0 || (size_t)len >= sizeof(path))
			abort();
		node_put(m, entries[i].node, path);
	}
	free(entries);
}

static void node_put(maker *m, int number, const char *path)
{
	image *img = m->img;
	node *n = &m->d->nodes[number];

	img->nodes = grown(img->nodes, &img->room, img->count + 1, sizeof(*img->nodes));
	image_node *out = &img->nodes[img->count];
	*out = (image_node){.node = number, .is_dir = n->is_dir, .same_as = n->made};
	snprintf(out->path, sizeof(out->path), "%s", path);
	img->count++;
	if (n->made >= 0) {
		const image_node *first = &img->nodes[n->made];
		out->mode = first->mode;
		out->mtime_ns = first->mtime_ns;
		return;
	}
	n->made = (int)img->count - 1;
	if (n->is_dir)
		directory_make(m, n, out);
	else
		file_make(m, n, out);
}

static void hash_add(uint64_t hash[2], const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t a = hash[0], b = hash[1], word;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&word, at, 8);
		a = (a ^ word) * UINT64_C(0x9fb21c651e98df25);
		a ^= a >> 29;
		b = (b + word) * UINT64_C(0xd6e8feb86659fd93);
		b ^= b >> 32;
	}
	word = len;
	memcpy((unsigned char *)&word + 1, at, len);
	a = (a ^ word) * UINT64_C(0x9fb21c651e98df25);
	b = (b + word) * UINT64_C(0xd6e8feb86659fd93);
	hash[0] = a ^ (a >> 31);
	hash[1] = b ^ (b >> 29);
}

static void image_hash(image *img)
{
	img->hash[0] = 1;
	img->hash[1] = 2;
	for (size_t i = 0; i < img->count; i++) {
		const image_node *n = &img->nodes[i];
		uint64_t facts[4] = {n->mode, (uint64_t)n->mtime_ns, (uint64_t)n->node, n->len};
		hash_add(img->hash, n->path, strlen(n->path));
		hash_add(img->hash, facts, sizeof(facts));
		if (n->len)
			hash_add(img->hash, n->bytes, n->len);
	}
}

void cut_disk_image(disk *d, image *out, uint64_t *random)
{
	maker m = {.d = d, .img = out, .random = random};
	size_t most = 0;

	m.files = pick(random, 8);
	m.files = m.files > EACH ? EACH : m.files;
	m.directories = pick(random, 4);
	m.cut = m.directories == STYLES;
	m.cut_at = m.cut ? pick(random, (size_t)d->when + 1) : 0;
	for (size_t i = 0; i < d->count; i++) {
		size_t largest = 0;
		d->nodes[i].made = -1;
		for (size_t k = 0; k < d->nodes[i].version_count; k++)
			if (d->nodes[i].versions[k].len > largest)
				largest = d->nodes[i].versions[k].len;
		most += largest;
	}
	out->count = out->content_len = 0;
	out->content = grown(out->content, &out->content_room, most + 1, 1);
	node_put(&m, 0, "");
	image_hash(out);
}

void cut_image_free(image *img)
{
	free(img->nodes);
	free(img->content);
}
