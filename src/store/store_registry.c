/* Knows which table serves which scheme: built in, registered, or loaded from a module. */
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/module.h"
#include "base/str.h"
#include "store/store.h"
#include "store/store_url.h"

#define MODULE_SYMBOL "sheaf_store_module"

/*
 * Filled from the front and never emptied, so a slot that is set stays as it
 * is. No mutex: another thread may hold one at the moment of a fork(), and the
 * child must be able to open its own store.
 */
static _Atomic(const sheaf_store_ops *) schemes[STORE_SCHEMES_MAX] = {
	&store_memory_ops,
	&store_jsonl_ops,
};

static const sheaf_store_ops *registered(sheaf_str scheme)
{
	for (size_t i = 0; i < STORE_SCHEMES_MAX; i++) {
		const sheaf_store_ops *ops = atomic_load(&schemes[i]);
		if (ops == NULL)
			return NULL;
		if (str_is(scheme, ops->scheme))
			return ops;
	}
	return NULL;
}

/* Takes the first free slot. Whoever else adds the same scheme meets it there. */
static int add(const sheaf_store_ops *ops, sheaf_error *err)
{
	for (size_t i = 0; i < STORE_SCHEMES_MAX; i++) {
		const sheaf_store_ops *there = NULL;
		if (atomic_compare_exchange_strong(&schemes[i], &there, ops))
			return 0;
		if (strcmp(there->scheme, ops->scheme) == 0)
			return err_set(err, SHEAF_EXISTS, "the scheme %s is taken", ops->scheme);
	}
	return err_set(err, SHEAF_LIMIT, "at most %u schemes can be known", STORE_SCHEMES_MAX);
}

int sheaf_store_register(const sheaf_store_ops *ops, sheaf_error *err)
{
	/* `check` is the first slot that a table may be too old to have. */
	if (ops == NULL || ops->size < offsetof(sheaf_store_ops, check))
		return err_set(err, SHEAF_INVALID, "the store's table is too small");
	if (!store_scheme_ok(sheaf_str_of(ops->scheme)))
		return err_set(err, SHEAF_INVALID, "a scheme is spelled [a-z][a-z0-9+]{1,15}");
	const char *missing = NULL;
#define REQUIRE(slot)                                                                              \
	if (ops->slot == NULL && missing == NULL)                                                  \
		missing = #slot;
	REQUIRE(open)
	REQUIRE(close)
	REQUIRE(describe)
	REQUIRE(head)
	REQUIRE(append)
	REQUIRE(scan)
	REQUIRE(find)
	REQUIRE(header)
	REQUIRE(list)
	REQUIRE(remove)
	REQUIRE(replace)
#undef REQUIRE
	if (missing != NULL)
		return err_set(err, SHEAF_INVALID, "the table of %s lacks the slot %s", ops->scheme,
		               missing);
	return add(ops, err);
}

/* Modules -------------------------------------------------------------------- */

/* Registers what a module shows. */
static int take(module *m, sheaf_str scheme, const sheaf_store_ops **out, sheaf_error *err)
{
	const sheaf_store_ops *ops = m->symbol;
	int rc = 0;
	if (ops->scheme == NULL || !str_is(scheme, ops->scheme))
		rc = err_set(err, SHEAF_UNSUPPORTED, "the module %s is a store for another scheme",
		             scheme.ptr);
	else
		rc = sheaf_store_register(ops, err);
	/*
	 * Taken means that another thread was faster, or that the module has registered itself.
	 * Either way it stays loaded: the table that is known may live in it.
	 */
	if (rc == 0 || rc == SHEAF_EXISTS) {
		*out = registered(scheme);
		return 0;
	}
	module_unload(m);
	return rc;
}

static int load_from(const char *dir, sheaf_str scheme, const sheaf_store_ops **out,
                     sheaf_error *err)
{
	module m;
	bool there;
	int rc = dir != NULL ? module_load(dir, scheme.ptr, MODULE_SYMBOL, &m, &there, err)
	                     : module_find(scheme.ptr, MODULE_SYMBOL, &m, &there, err);
	if (rc == 0)
		return take(&m, scheme, out, err);
	if (there)
		return rc;
	return err_set(err, SHEAF_UNSUPPORTED, "no store is known for the scheme %s", scheme.ptr);
}

int store_module_load(const char *dir, sheaf_str scheme, const sheaf_store_ops **out,
                      sheaf_error *err)
{
	return load_from(dir, scheme, out, err);
}

int store_scheme_find(sheaf_str scheme, const sheaf_store_ops **out, sheaf_error *err)
{
	*out = registered(scheme);
	return *out != NULL ? 0 : load_from(NULL, scheme, out, err);
}
