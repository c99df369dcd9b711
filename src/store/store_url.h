/* URLs, the table of schemes, and modules; private to src/store. */
#ifndef STORE_STORE_URL_H
#define STORE_STORE_URL_H

#include <stdbool.h>

#include "sheaf/sys/store.h"

#define STORE_URL_OPTIONS_MAX 16u
#define STORE_SCHEMES_MAX 16u /* the built-in ones and loaded modules included */

typedef struct store_url_pair {
	const char *name;
	sheaf_str value; /* percent-decoded, NUL-terminated */
} store_url_pair;

typedef struct store_url {
	char *text;       /* the URL, cut into NUL-terminated pieces */
	char *path;       /* the rest, where it is not a piece of `text` */
	sheaf_str scheme; /* these two are NUL-terminated */
	sheaf_str rest;
	size_t count;
	store_url_pair options[STORE_URL_OPTIONS_MAX];
} store_url;

/*
 * Takes a URL apart: "scheme:rest?name=value&name=value". The rest is taken as
 * it is, so that a path may hold a '%'; "~/" at the start of a jsonl path
 * becomes $HOME. NULL stands for $SHEAF_STORE, else jsonl:$XDG_DATA_HOME/sheaf,
 * else jsonl:$HOME/.local/share/sheaf. Messages never hold the URL: it may
 * carry a password. SHEAF_INVALID, SHEAF_NOMEM; `u` needs no free on failure.
 */
int store_url_parse(store_url *u, const char *url, sheaf_error *err);
void store_url_free(store_url *u); /* for _cleanup_ too */

/* The value of an option, {NULL,0} if absent. `url` is a store_url: stores get it as void. */
sheaf_str store_url_option(const void *url, const char *name);

/*
 * Refuses an option that neither every store has nor `names` (space-separated,
 * may be NULL) lists, and reads those that every store has: readonly becomes 1
 * if the URL says so, durability the greater of the two asked for.
 */
int store_url_settle(const store_url *u, const char *names, sheaf_store_options *options,
                     sheaf_error *err);

bool store_scheme_ok(sheaf_str scheme); /* [a-z][a-z0-9+]{1,15} */

/* The table for a scheme: registered, or a module's. SHEAF_UNSUPPORTED if there is none. */
int store_scheme_find(sheaf_str scheme, const sheaf_store_ops **out, sheaf_error *err);

/*
 * Loads `dir`/SCHEME.so and gives its table. Neither the directory nor the file
 * may be writable by others than root and the user, nor belong to anybody else:
 * SHEAF_DENIED. Without such a file SHEAF_UNSUPPORTED.
 */
int store_module_load(const char *dir, sheaf_str scheme, const sheaf_store_ops **out,
                      sheaf_error *err);

#endif
