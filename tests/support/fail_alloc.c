/* The allocator of fail_alloc.h, over malloc. */
#include "fail_alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sheaf/sys/seams.h"

static atomic_size_t asked, failed, live, fail_at;
static atomic_bool fail_for_ever;

static bool fails_now(void)
{
	size_t n = atomic_fetch_add(&asked, 1) + 1, at = atomic_load(&fail_at);
	bool fails = at != 0 && (n == at || (n > at && atomic_load(&fail_for_ever)));
	if (fails)
		atomic_fetch_add(&failed, 1);
	return fails;
}

static void *fail_alloc_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	void *ptr = fails_now() ? NULL : malloc(bytes);
	if (ptr != NULL)
		atomic_fetch_add(&live, 1);
	return ptr;
}

static void *fail_alloc_resize(void *ctx, void *ptr, size_t bytes)
{
	if (ptr == NULL)
		return fail_alloc_alloc(ctx, bytes);
	return fails_now() ? NULL : realloc(ptr, bytes);
}

static void fail_alloc_release(void *ctx, void *ptr)
{
	(void)ctx;
	if (ptr != NULL)
		atomic_fetch_sub(&live, 1);
	free(ptr);
}

void fail_alloc_install(void)
{
	static const sheaf_allocator table = {sizeof(table), fail_alloc_alloc, fail_alloc_resize,
	                                      fail_alloc_release, NULL};
	fail_alloc_at(0, false);
	atomic_store(&live, 0);
	sheaf_set_allocator(&table);
}

void fail_alloc_remove(void)
{
	sheaf_set_allocator(NULL);
}

void fail_alloc_at(size_t n, bool for_ever)
{
	atomic_store(&asked, 0);
	atomic_store(&failed, 0);
	atomic_store(&fail_for_ever, for_ever);
	atomic_store(&fail_at, n);
}

bool fail_alloc_hit(void)
{
	return atomic_load(&failed) != 0;
}

size_t fail_alloc_count(void)
{
	return atomic_load(&asked);
}

size_t fail_alloc_live(void)
{
	return atomic_load(&live);
}
