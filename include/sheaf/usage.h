/*
 * Usage: what models take and cost, and what sessions have used.
 *
 *     sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
 *     how.by = SHEAF_USAGE_BY_MODEL;
 *     rc = sheaf_session_usage(&report, session, &how, &err);
 *     for (size_t i = 0; i < report->count; i++)
 *             show(report->rows[i]->key, report->rows[i]->own.cost);
 *     sheaf_usage_report_free(report);
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
	uint64_t window;        /* tokens a request may fill: of the whole context, or of the
	                           input where that is bounded apart; 0 = not known */
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

/* ---- What usage costs --------------------------------------------------- */

/** What a reply costs. All are SHEAF_MONEY_UNKNOWN if a price that is needed is not listed. */
typedef struct sheaf_cost {
	sheaf_money cost;
	sheaf_money saved_gross; /* what cache reads would have cost more as input */
	sheaf_money saved_net;   /* less what cache writes cost more than input */
} sheaf_cost;

/**
 * What one request and its reply cost. The prices of the tier hold if its input,
 * cached or not, is more than tier_over. Reasoning is part of the output. Rounded
 * once, to a billionth of a dollar.
 * @param model  NULL = not known
 */
SHEAF_API sheaf_cost sheaf_usage_cost(const sheaf_usage *usage, const sheaf_model_row *model);

/** What the cache saved, where only the price of a million input tokens is known, by the usual
 * factors: reads 0.1, writes 1.25 (5 minutes) and 2 (1 hour). `cost` is that of the input. */
SHEAF_API sheaf_cost sheaf_usage_savings(const sheaf_usage *usage, sheaf_money input);

/** cache_read / (input + cache_read + writes), 0 to 1; 0 without input. */
SHEAF_API double sheaf_usage_hit_rate(const sheaf_usage *usage);

/** cache_read / (cache_read + writes), 0 to 1; 0 without either. */
SHEAF_API double sheaf_usage_efficiency(const sheaf_usage *usage);

/** 0.9 * cache_read, rounded: the tokens that were not paid for. */
SHEAF_API uint64_t sheaf_usage_tokens_saved(const sheaf_usage *usage);

/* ---- Reports ------------------------------------------------------------ */

/** The usage of many replies. Tokens and money stop at the greatest number there is. */
typedef struct sheaf_usage_sum {
	uint64_t replies;  /* records whose usage counted */
	uint64_t unpriced; /* of these, without a known price: they are not in the money */
	sheaf_usage tokens;
	sheaf_money cost;
	sheaf_money saved_gross;
	sheaf_money saved_net;
} sheaf_usage_sum;

/** Adds one sum to another. */
SHEAF_API void sheaf_usage_sum_add(sheaf_usage_sum *to, const sheaf_usage_sum *more);

enum {
	SHEAF_USAGE_BY_NONE = 0, /* no rows, only the totals */
	SHEAF_USAGE_BY_TURN = 1, /* in the order of the log; not for a store */
	SHEAF_USAGE_BY_MODEL = 2,
	SHEAF_USAGE_BY_DAY = 3,     /* UTC */
	SHEAF_USAGE_BY_SESSION = 4, /* in the order of the list */
	SHEAF_USAGE_BY_PROJECT = 5  /* the directory of the session, the newest first */
};

typedef struct sheaf_usage_options {
	size_t size; /* sizeof(sheaf_usage_options) */
	int32_t by;
	int32_t reserved0;
	const sheaf_models *models; /* laid over the built-in table, or NULL */
	int64_t after_us;           /* only records with a timestamp at or after; 0 = any */
	int64_t before_us;          /* only records before; 0 = any */
} sheaf_usage_options;

/* clang-format off */
#define SHEAF_USAGE_OPTIONS_INIT {sizeof(sheaf_usage_options), 0, 0, NULL, 0, 0}
/* clang-format on */

typedef struct sheaf_usage_row {
	sheaf_str key;      /* the turn's id, or the entry's for a reply outside a turn; the model
	                       ("" = not said); "2026-11-15"; the session; the directory ("" = none) */
	sheaf_str provider; /* by model */
	sheaf_str app;      /* by session */
	sheaf_str user;
	sheaf_str name;
	int64_t first_us; /* timestamps of the first and last record in it */
	int64_t last_us;
	sheaf_usage_sum own;
	sheaf_usage_sum inherited; /* of a fork: stored, and counted, in another session */
} sheaf_usage_row;

/** A report. Read-only; one free. */
typedef struct sheaf_usage_report {
	sheaf_usage_sum own; /* of one session whole, the tokens are those of its head */
	sheaf_usage_sum inherited;
	size_t count;
	const sheaf_usage_row *const *rows;
	uint64_t sessions;   /* looked at */
	uint64_t unreadable; /* records, or whole sessions, that could not be read */
} sheaf_usage_report;

/**
 * What a session has used, all branches. Usage is that of messages; a turn_end's
 * counts only for a turn whose messages have none. Each record is priced by its
 * message's provider and model (else those of the newest model_change before it)
 * and its timestamp. Reads every message once, a page at a time; what is kept
 * grows with the rows only. Caller frees.
 * @param options  may be NULL: the totals
 * @return 0; SHEAF_INVALID, and as sheaf_session_records()
 */
SHEAF_API int sheaf_session_usage(sheaf_usage_report **out, sheaf_session *session,
                                  const sheaf_usage_options *options, sheaf_error *err);

/**
 * What the sessions of a list have used. What a fork inherits is left out: it is
 * counted in the session that stores it, so nothing is counted twice.
 * @param which  as sheaf_store_list(), but all pages; NULL = app "" and user ""
 * @return 0; SHEAF_INVALID, and as sheaf_store_list()
 */
SHEAF_API int sheaf_store_usage(sheaf_usage_report **out, sheaf_store *store,
                                const sheaf_list_options *which, const sheaf_usage_options *options,
                                sheaf_error *err);
SHEAF_API void sheaf_usage_report_free(const sheaf_usage_report *report);

SHEAF_END
#endif
