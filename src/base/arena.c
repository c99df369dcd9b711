/* Many small allocations out of few chunks, freed together. */
#include "arena.h"

#include <string.h>

#include "mem.h"

#define ALIGN 16u
#define CHUNK_FIRST 2048u
#define CHUNK_MAX ((size_t)1 << 20)

typedef struct chunk {
	struct chunk *next;
} chunk;

struct arena {
	chunk *chunks;
	char *at; /* free space of the newest shared chunk */
	size_t left;
	chunk *shared; /* that chunk, NULL while the arena's own block has room */
	size_t shared_room;
	size_t chunk_next; /* size of the next shared chunk */
	size_t bytes;
};

static char *align_up(char *p)
{
	return p + (-(uintptr_t)p & (ALIGN - 1));
}

#ifdef SHEAF_ARENA_DEBUG

#define HOME_ROOM 0u

#else

/* The arena's own block has some room behind it: small results need one malloc. */
#define HOME_ROOM 960u

#endif

arena *arena_new(void)
{
	arena *a = mem_alloc(sizeof(*a) + HOME_ROOM);
	if (a == NULL)
		return NULL;
	*a = (arena){.at = (char *)(a + 1), .left = HOME_ROOM, .chunk_next = CHUNK_FIRST};
	return a;
}

void arena_free(arena *a)
{
	if (a == NULL)
		return;
	for (chunk *c = a->chunks, *next; c != NULL; c = next) {
		next = c->next;
		mem_free(c);
	}
	mem_free(a);
}

void arena_freep(arena **a)
{
	arena_free(*a);
	*a = NULL;
}

void arena_clear(arena *a)
{
	for (chunk *c = a->chunks, *next; c != NULL; c = next) {
		next = c->next;
		if (c != a->shared)
			mem_free(c);
	}
	a->chunks = a->shared;
	if (a->shared != NULL)
		a->shared->next = NULL;
	a->at = a->shared != NULL ? align_up((char *)(a->shared + 1)) : (char *)(a + 1);
	a->left = a->shared != NULL ? a->shared_room : HOME_ROOM;
	a->bytes = 0;
}

/* A chunk with `bytes` of aligned room; its start is returned. */
static char *chunk_add(arena *a, size_t bytes)
{
	if (bytes > SIZE_MAX - sizeof(chunk) - ALIGN)
		return NULL;
	/* The caller's allocator need not align to 16; room for that is asked for. */
	chunk *c = mem_alloc(sizeof(chunk) + ALIGN - 1 + bytes);
	if (c == NULL)
		return NULL;
	c->next = a->chunks;
	a->chunks = c;
	return align_up((char *)(c + 1));
}

static void *alloc_slow(arena *a, size_t bytes)
{
#ifndef SHEAF_ARENA_DEBUG
	/* A piece that would waste most of a chunk gets its own, and the shared one goes on. */
	if (bytes <= a->chunk_next / 4) {
		char *start = chunk_add(a, a->chunk_next);
		if (start == NULL)
			return NULL;
		a->at = start + bytes;
		a->left = a->chunk_next - bytes;
		a->shared = a->chunks;
		a->shared_room = a->chunk_next;
		if (a->chunk_next < CHUNK_MAX)
			a->chunk_next *= 2;
		return start;
	}
#endif
	return chunk_add(a, bytes);
}

void *arena_alloc(arena *a, size_t bytes)
{
	char *p = align_up(a->at);
	size_t skip = (size_t)(p - a->at);
	if (skip <= a->left && bytes <= a->left - skip && a->left != 0) {
		a->at = p + bytes;
		a->left -= skip + bytes;
	} else {
		p = alloc_slow(a, bytes);
		if (p == NULL)
			return NULL;
	}
	a->bytes += bytes;
	return p;
}

void *arena_zalloc(arena *a, size_t bytes)
{
	void *p = arena_alloc(a, bytes);
	if (p != NULL)
		memset(p, 0, bytes);
	return p;
}

size_t arena_bytes(const arena *a)
{
	return a->bytes;
}

sheaf_str arena_dup(arena *a, sheaf_str s, int *ok)
{
	if (s.ptr == NULL)
		return (sheaf_str){NULL, 0};
	char *copy = s.len < SIZE_MAX ? arena_alloc(a, s.len + 1) : NULL;
	if (copy == NULL) {
		*ok = 0;
		return (sheaf_str){NULL, 0};
	}
	memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return (sheaf_str){copy, s.len};
}
