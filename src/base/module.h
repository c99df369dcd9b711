/*
 * Modules: shared objects beside the library, loaded when they are first needed.
 *
 * They are looked for in the directory that belongs to the file this code is
 * in, then in the one compiled in; nothing comes from the environment. What is
 * loaded runs as the user, so nobody else may have had a hand in it.
 */
#ifndef BASE_MODULE_H
#define BASE_MODULE_H

#include <stdbool.h>

#include "sheaf/error.h"

typedef struct module {
	void *handle;
	void *symbol;
} module;

/*
 * Loads `name`.so of a directory and finds a symbol in it. `*there` says whether
 * the directory has such a module, whatever is wrong with it. SHEAF_UNSUPPORTED
 * if not, or if it cannot be loaded; SHEAF_DENIED if it cannot be trusted.
 */
int module_load(const char *dir, const char *name, const char *symbol, module *out, bool *there,
                sheaf_error *err);

/* The same in the directories where modules belong. */
int module_find(const char *name, const char *symbol, module *out, bool *there, sheaf_error *err);

void module_unload(module *m);

#endif
