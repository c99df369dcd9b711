/*
 * Usage: what models take and cost, and what sessions have used.
 *
 * A table of models says how large a window is, what caches ask for and what a
 * million tokens cost, by date. A dated one is built in
 * (data/models-2026-11-15.json); a file of the same form can be laid over it.
 *
 *     const sheaf_model_row *m = sheaf_models_find(NULL, sheaf_str_of("anthropic"),
 *                                              sheaf_str_of("claude-sonnet-4-5"), 0);
 *     uint64_t window = m != NULL && m->window != 0 ? m->window : 200000;
 *
 * The library reads no environment: which file to lay over it is the caller's
 * to say (the command takes $SHEAF_MODELS).
 */
#ifndef SHEAF_USAGE_H
#define SHEAF_USAGE_H

#include "session.h"

SHEAF_BEGIN

/* ---- Money ------------------------------------------------------------- */

/** Billionths of a US dollar. */
typedef int64_t sheaf_money;

/** Not known: no price is listed. Never added to anything, never shown as 0. */
#define SHEAF_MONEY_UNKNOWN INT64_MIN

/** Room for any amount as text, with its NUL. */
#define SHEAF_MONEY_ROOM 32

/**
 * Reads a decimal number of dollars exactly: "3", "0.075", "-1.25".
 * @return 0; SHEAF_INVALID: no such number, more than nine decimals, or too large
 */
SHEAF_API int sheaf_money_parse(sheaf_money *out, sheaf_str text);

/** Writes an amount for people: "$12.35", below a dollar "$0.0034", "unknown". Halves are rounded
 * away from 0; what is not 0 but rounds to it is "<$0.0001". Returns the length. */
SHEAF_API size_t sheaf_money_format(char out[SHEAF_MONEY_ROOM], sheaf_money amount);

/** Writes an amount for programs, every digit of it: "12.345", "0.0000025", "null". Returns the
 * length. */
SHEAF_API size_t sheaf_money_exact(char out[SHEAF_MONEY_ROOM], sheaf_money amount);

/* ---- Models ------------------------------------------------------------ */

/** What a million tokens cost. SHEAF_MONEY_UNKNOWN where none is listed. */
typedef struct sheaf_prices {
	sheaf_money input;
	sheaf_money cache_read;
	sheaf_money cache_write_5m;
	sheaf_money cache_write_1h;
	sheaf_money output;
} sheaf_prices;

/** A row of the table: what holds for a model from a day on. Owned by the table. */
typedef struct sheaf_model_row {
	sheaf_str provider;
	sheaf_str model;        /* a name; with "*" at its end, the beginning of one */
	int64_t from_us;        /* the beginning of that day, UTC */
	uint64_t window;        /* tokens of input and output together; 0 = not known */
	uint64_t max_output;    /* tokens of one reply; 0 = not known */
	uint64_t cache_minimum; /* a shorter prefix is not cached; 0 = not known */
	sheaf_prices prices;
	uint64_t tier_over; /* a request with more input than this costs `tier`; 0 = no tier */
	sheaf_prices tier;
} sheaf_model_row;

/** A table of models. Immutable, so threads may share it. */
typedef struct sheaf_models sheaf_models;

/** Reads a table from JSON text; docs/usage.md has its form. Caller frees.
 * @return 0; SHEAF_FORMAT with the model it is about; SHEAF_NOMEM */
SHEAF_API int sheaf_models_read(sheaf_models **out, sheaf_str json, sheaf_error *err);

/** The same from a file. @return also SHEAF_NOT_FOUND, SHEAF_TOO_LARGE, SHEAF_STORAGE */
SHEAF_API int sheaf_models_load(sheaf_models **out, const char *path, sheaf_error *err);
SHEAF_API void sheaf_models_free(sheaf_models *models);

/**
 * The row that holds for a model at a time, or NULL. A row fits the name it
 * has, the same name with a date or "latest" after it (claude-opus-4-5-20251101,
 * gpt-5-2025-08-07), or what begins with it if it ends in "*"; the longest name
 * that fits decides. Of several dates the latest not after `time_us`, else the
 * first.
 * @param models    laid over the built-in table, which is asked when no row of it
 *                  fits; NULL = the built-in table alone
 * @param provider  empty = any
 * @param time_us   0 = the newest row
 */
SHEAF_API const sheaf_model_row *sheaf_models_find(const sheaf_models *models, sheaf_str provider,
                                                   sheaf_str model, int64_t time_us);

SHEAF_END
#endif
