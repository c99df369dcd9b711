/* Allocation through the caller's table, or malloc if there is none. */
#include "mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sheaf/error.h"
#include "sheaf/sys/seams.h"

static void *system_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return malloc(bytes);
}

static void *system_resize(void *ctx, void *ptr, size_t bytes)
{
	(void)ctx;
	return realloc(ptr, bytes);
}

static void system_release(void *ctx, void *ptr)
{
	(void)ctx;
	free(ptr);
}

/* clang-format off */
#define SYSTEM_ALLOCATOR \
	{sizeof(sheaf_allocator), system_alloc, system_resize, system_release, NULL}
/* clang-format on */

static const sheaf_allocator system_allocator = SYSTEM_ALLOCATOR;
static sheaf_allocator current = SYSTEM_ALLOCATOR;

/* Half a table would mix two heaps, so an incomplete one counts as none. */
void sheaf_set_allocator(const sheaf_allocator *allocator)
{
	if (allocator != NULL && allocator->size >= sizeof(sheaf_allocator) &&
	    allocator->alloc != NULL && allocator->resize != NULL && allocator->release != NULL)
		current = *allocator;
	else
		current = system_allocator;
}

void *mem_alloc(size_t bytes)
{
	return current.alloc(current.ctx, bytes != 0 ? bytes : 1);
}

void *mem_zalloc(size_t bytes)
{
	void *ptr = mem_alloc(bytes);
	if (ptr != NULL)
		memset(ptr, 0, bytes);
	return ptr;
}

void *mem_resize(void *ptr, size_t bytes)
{
	return current.resize(current.ctx, ptr, bytes != 0 ? bytes : 1);
}

void mem_free(void *ptr)
{
	if (ptr != NULL)
		current.release(current.ctx, ptr);
}

char *mem_dup(const void *ptr, size_t len)
{
	if (len == SIZE_MAX)
		return NULL;
	char *copy = mem_alloc(len + 1);
	if (copy == NULL)
		return NULL;
	if (len != 0)
		memcpy(copy, ptr, len);
	copy[len] = '\0';
	return copy;
}

int mem_grow(void **array, size_t *room, size_t need, size_t element)
{
	if (need <= *room)
		return 0;
	size_t most = element != 0 ? SIZE_MAX / element : SIZE_MAX;
	if (need > most)
		return SHEAF_NOMEM;
	size_t wanted = *room + *room / 2;
	if (wanted < 8)
		wanted = 8;
	if (wanted < need || wanted > most)
		wanted = need;
	void *grown = mem_resize(*array, wanted * element);
	if (grown == NULL)
		return SHEAF_NOMEM;
	*array = grown;
	*room = wanted;
	return 0;
}

/* By memcpy, since the variable may be a pointer of any type. */
void mem_freep(void *pointer_to_pointer)
{
	void *ptr;
	memcpy(&ptr, pointer_to_pointer, sizeof(ptr));
	mem_free(ptr);
	ptr = NULL;
	memcpy(pointer_to_pointer, &ptr, sizeof(ptr));
}
