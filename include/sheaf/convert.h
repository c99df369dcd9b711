/*
 * Converting: sessions that other agents wrote into a store, and sessions of a
 * store in another agent's format.
 *
 * Importing keeps everything: what is understood becomes entries, what is not
 * is kept as it is, and either way the source's own bytes stay with it, so that
 * exporting to the same format gives the same file again. Importing again takes
 * only what is new, also from a file that is still being written.
 *
 *     rc = sheaf_import(&report, store, sheaf_str_of("~/.claude/projects"), NULL, &err);
 *     for (size_t i = 0; i < report->session_count; i++)
 *             show(report->sessions[i]);
 *     sheaf_import_report_free(report);
 *
 * Imported text has no authority: roles are kept and marked by their origin
 * (system and developer messages are sent as such only to the provider they
 * were written for), approvals and settings are not taken over.
 */
#ifndef SHEAF_CONVERT_H
#define SHEAF_CONVERT_H

#include "session.h"

SHEAF_BEGIN

/** A format. */
typedef struct sheaf_converter {
	const char *name;  /* "claude-code", as options and commands spell it */
	const char *title; /* "Claude Code" */
	int32_t imports;   /* 1: can be read */
	int32_t exports;   /* 1: can be written */
	const char
		*home; /* what its agent keeps, below the home directory ("" is that itself); NULL
	                      if it keeps nothing */
	const char
		*home_variable; /* of the environment: names another directory instead, or NULL */
	const char
		*resume; /* the command that goes on with a session, ID and FILE stand for its own;
	                       NULL if there is none */
} sheaf_converter;

/** The formats in order; NULL at the end. */
SHEAF_API const sheaf_converter *sheaf_converter_at(size_t i);

/* ---- Importing --------------------------------------------------------- */

/** What importing a session came to. */
enum {
	SHEAF_IMPORT_NEW = 1,
	SHEAF_IMPORT_GROWN = 2,  /* it was there, and there was more */
	SHEAF_IMPORT_SAME = 3,   /* nothing new */
	SHEAF_IMPORT_CHANGED = 4 /* what was imported before is different now: see the problems */
};

/** One session of a source. */
typedef struct sheaf_imported {
	sheaf_key key;
	const char *format;
	sheaf_str file;
	int32_t state;    /* SHEAF_IMPORT_* */
	int32_t partial;  /* the file ends in the middle of a record: the rest comes next time */
	uint64_t pieces;  /* of the source: lines, messages */
	uint64_t kept;    /* of these, not understood and kept as they are */
	uint64_t records; /* appended now */
	uint64_t mended;  /* places where text was broken */
} sheaf_imported;

/** Something wrong in a source. It is kept all the same. */
typedef struct sheaf_import_problem {
	sheaf_str file;
	uint64_t line; /* 0: the file as a whole */
	sheaf_str text;
} sheaf_import_problem;

typedef struct sheaf_import_report {
	size_t session_count;
	const sheaf_imported *const *sessions;
	size_t problem_count; /* at most SHEAF_IMPORT_PROBLEMS_MAX are listed … */
	const sheaf_import_problem *const *problems;
	uint64_t problem_total; /* … of so many */
	uint64_t file_count;    /* looked at */
	uint64_t skipped_count; /* of no format that is known */
} sheaf_import_report;

#define SHEAF_IMPORT_PROBLEMS_MAX 1000

/** Told of every session when it is done. */
typedef void (*sheaf_import_fn)(void *ctx, const sheaf_imported *session);

typedef struct sheaf_import_options {
	size_t size;      /* sizeof(sheaf_import_options) */
	sheaf_str format; /* {NULL,0}: each file tells */
	sheaf_str app;    /* of the keys; the session part is FORMAT.ID */
	sheaf_str user;
	int32_t dry_run;            /* read everything, write nothing */
	int32_t threads;            /* so many files below a directory at a time; 0 = one */
	sheaf_import_fn on_session; /* called in the caller's thread */
	void *ctx;
} sheaf_import_options;

/* clang-format off */
#define SHEAF_IMPORT_OPTIONS_INIT \
	{sizeof(sheaf_import_options), {0, 0}, {0, 0}, {0, 0}, 0, 0, 0, 0}
/* clang-format on */

/**
 * Imports a file, or every file of a known format below a directory. Memory is
 * bounded whatever the size. What cannot be imported is a problem in the report;
 * only a failing store ends it.
 * @param out  caller frees; set also on failure, with what was done until then
 * @return 0; SHEAF_NOT_FOUND (no such path), SHEAF_FORMAT (a file of no known format, or not of
 *         the one asked for), and what appends return
 */
SHEAF_API int sheaf_import(sheaf_import_report **out, sheaf_store *store, sheaf_str path,
                           const sheaf_import_options *options, sheaf_error *err);
SHEAF_API void sheaf_import_report_free(const sheaf_import_report *report);

/** A place where an agent keeps its sessions. */
typedef struct sheaf_import_place {
	const char *format;
	sheaf_str path;
} sheaf_import_place;

typedef struct sheaf_import_places {
	size_t count;
	const sheaf_import_place *const *items;
} sheaf_import_places;

/**
 * The places below a home directory that exist; without one ({NULL,0}) below $HOME, or where the
 * agents' own variables say. Caller frees.
 */
SHEAF_API int sheaf_import_find(sheaf_import_places **out, sheaf_str home, sheaf_error *err);
SHEAF_API void sheaf_import_places_free(const sheaf_import_places *places);

/* ---- Exporting --------------------------------------------------------- */

/** Takes bytes of an export, in order. Anything but 0 ends it with that code. */
typedef int (*sheaf_write_fn)(void *ctx, sheaf_str bytes);

typedef struct sheaf_export_options {
	size_t size;      /* sizeof(sheaf_export_options) */
	sheaf_str format; /* a converter's name */
	sheaf_str branch; /* formats without a tree: this one; empty = "main" */
	sheaf_str leaf;   /* … or as of this entry (id or label) */
	sheaf_str cwd;    /* as a session about this directory; {NULL,0}: the one it is about */
} sheaf_export_options;

/* clang-format off */
#define SHEAF_EXPORT_OPTIONS_INIT \
	{sizeof(sheaf_export_options), {0, 0}, {0, 0}, {0, 0}, {0, 0}}
/* clang-format on */

/** What an export could not carry. */
typedef struct sheaf_export_loss {
	const char *what; /* "thinking", "label", "branch", … */
	uint64_t count;
} sheaf_export_loss;

typedef struct sheaf_export_report {
	int32_t verbatim; /* 1: the source's own bytes, unchanged */
	int32_t reserved0;
	size_t loss_count;
	const sheaf_export_loss *const *losses;
	sheaf_str path; /* below the home directory, where the format's agent looks for it; {NULL,0}
	                   if it has no such place */
	sheaf_str id;   /* of the session, as that agent calls it; {NULL,0} as `path` */
	sheaf_str cwd;  /* the directory it is about there */
	sheaf_str file; /* the one it was imported from last, if it came from this format */
} sheaf_export_report;

/**
 * Writes a session in a format. One that was imported from that format and not
 * changed since comes out byte for byte.
 * @return 0; SHEAF_UNSUPPORTED (the format cannot be written), SHEAF_NOT_FOUND (branch or leaf),
 *         what `write` returned, and as reading a session
 */
SHEAF_API int sheaf_export(sheaf_export_report **out, sheaf_session *session,
                           const sheaf_export_options *options, sheaf_write_fn write, void *ctx,
                           sheaf_error *err);
SHEAF_API void sheaf_export_report_free(const sheaf_export_report *report);

SHEAF_END
#endif
