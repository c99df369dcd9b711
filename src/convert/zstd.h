/* What reading compressed files and the module for them agree on: it shows `sheaf_zstd_module`. */
#ifndef CONVERT_ZSTD_H
#define CONVERT_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "sheaf/error.h"

#define ZSTD_MODULE "zstd"
#define ZSTD_SYMBOL "sheaf_zstd_module"
#define ZSTD_OPS_VERSION 1 /* of this header: library and module must have the same */

typedef struct unpacker unpacker;

typedef struct zstd_ops {
	size_t size;
	uint32_t version;
	uint32_t reserved0;
	unpacker *(*open)(void); /* NULL when out of memory */
	void (*close)(unpacker *u);
	/*
	 * Takes some of what is packed, gives some of what it was; either may be
	 * nothing. SHEAF_FORMAT for what is not packed that way or needs too much memory.
	 */
	int (*run)(unpacker *u, sheaf_str packed, size_t *taken, char *out, size_t room,
	           size_t *given);
} zstd_ops;

#endif
