/* The inside of an import: for what reads files and sessions, not for what a format means. */
#ifndef CONVERT_IMPORT_INSIDE_H
#define CONVERT_IMPORT_INSIDE_H

#include "convert/convert.h"

#define BATCH_RECORDS 1000

/* What take() and its like may return besides 0 and a failure: not the converter's business. */
enum {
	IMPORT_CHANGED = 1, /* the file is not what was imported before */
	IMPORT_SAME = 2,    /* nothing happened to it since */
	IMPORT_FIRST = 3    /* another file is to be imported before it */
};

/* What was found wrong and what was done, as it will be handed out. */
typedef struct report {
	sheaf_import_report is; /* first: the caller's pointer is also this struct's */
	arena *arena;
	sheaf_imported **sessions;
	size_t session_room;
	sheaf_import_problem **problems;
	size_t problem_room;
	sheaf_str only;        /* below a directory: files of this format; empty = of any */
	struct claims *claims; /* of those that import at the same time; NULL: nobody else does */
	size_t turn;           /* of the file at hand, among those */
	bool beside;           /* its id is that of another file, which is still there */
} report;

report *report_new(void); /* NULL when out of memory */
void report_free(report *r);
int report_problem(report *r, sheaf_str file, uint64_t line, sheaf_str text, sheaf_error *err);
/* Copies the session. */
int report_session(report *r, const sheaf_imported *session, const sheaf_imported **out,
                   sheaf_error *err);

/* Makes what another one says its own, in its order, and tells `on_session`. */
int report_merge(report *r, const report *other, const sheaf_import_options *options,
                 sheaf_error *err);

/*
 * Sessions that are being imported: two files of one session, or one that
 * another needs, are taken one after the other. A file's first one waits until
 * all files before it have theirs, so that of two with one id the first is first.
 */
void claim_take(const report *r, const char *session);
void claim_leave(const report *r, const char *session);

/* Files that are imported together, several at a time. */
typedef struct many many;
int many_new(many **out, report *r, sheaf_store *store, const sheaf_import_options *options,
             sheaf_error *err);
int many_add(many *m, const char *path, sheaf_error *err); /* now or later, in order */
int many_end(many *m, sheaf_error *err);                   /* all that were added */
void many_free(many *m);

/* Whether there is something at a path that can be read. */
bool is_there(const char *path);

/* A file below a directory: what is of no format is passed over, and what fails is a problem. */
int file_below(report *r, sheaf_store *store, const sheaf_import_options *options, const char *path,
               sheaf_error *err);

/* How far an import came. */
typedef struct progress {
	uint64_t pieces;
	uint64_t records;
	uint64_t bytes;
	int64_t mtime_ns;
	uint32_t crc;
	uint32_t between; /* the crc of the text between pieces */
	bool open_end;    /* the last line had no line break */
} progress;

/* The text between pieces. */
typedef struct gaps {
	buf now;             /* since the last piece */
	buf last;            /* the one before … */
	uint64_t last_count; /* … and how often in a row; 0: none yet */
	buf list;
} gaps;

/* Where a record that waits for its batch came from. */
typedef struct waiting {
	bool first; /* it carries the piece */
	uint64_t number;
	uint64_t line;
} waiting;

typedef struct import_inside {
	sheaf_store *store;
	sheaf_import_options options; /* whole */
	report *report;
	sheaf_str file;     /* its path as it is recorded: as text */
	int32_t durability; /* of all but the last append of a session, which is the store's */
	unsigned version;   /* 1, or which of the files of one id that differ */
	bool elsewhere;     /* the session came from another file, which is still there */
	bool beside;        /* so did the version before */
	char *first;        /* the file asked for, PATH_BYTES_MAX; NULL: none may be */
	/* the session at hand */
	sheaf_session *session; /* NULL in a dry run of a new one */
	char session_id[SHEAF_ID_ROOM];
	bool claimed;
	bool existed;
	progress done;     /* by earlier imports */
	progress past[32]; /* each of the latest of these, the last first */
	size_t past_count;
	char leaf[SHEAF_ID_ROOM];
	char added[SHEAF_ID_ROOM]; /* the entry added last, wherever the converter went since */
	buf name;
	bool named;
	gaps gaps; /* documents */
	uint64_t pieces, kept, records, mended, emitted;
	uint32_t crc, between;
	/* the piece at hand */
	sheaf_str piece;
	bool piece_cut;
	bool piece_chunk; /* what is being added is not the end of it */
	uint64_t piece_records;
	bool piece_parsed; /* `doc` is the piece as it is */
	/* scratch */
	json_doc *doc;
	buf mended_text;
	buf origin; /* what every record's origin begins with: {"format":…,"file":…,"line": */
	sheaf_batch *batch;             /* of what waits; NULL: nothing does */
	waiting waiting[BATCH_RECORDS]; /* one for each of its drafts */
	uint64_t file_bytes;
	int64_t file_mtime_ns;
	bool partial;
} import_inside;

int import_flush(import *im);

void gaps_free(gaps *g);
void gaps_reset(gaps *g);
void gaps_end_one(gaps *g); /* a piece begins */
/* The list, or {NULL,0} if it is too long to be kept. Ends the last gap. */
int gaps_list(import *im, sheaf_str *out);

/* Digits as a number, and the member of that name as one. */
uint64_t number_read(sheaf_str text);
uint64_t members_number(sheaf_str members, const char *name);

/* Bytes in hexadecimal digits. */
void hex_write(buf *out, sheaf_str bytes);

/* Opens the session of an import and finds out how far earlier ones came. */
int session_begin(import *im, const import_session *session);
/* Whether the file has the size and time it had when it was imported. */
bool is_as_imported(const import *im);
/* Appends what waits, the leaf and the name if they moved, and how far this import came. */
int session_end(import *im);
/* Leaves it without that: it is not the one that was imported before. */
void session_drop(import *im);

/* One file. SHEAF_FORMAT when no converter knows it. */
int import_file(report *r, sheaf_store *store, const sheaf_import_options *options, sheaf_str path,
                sheaf_error *err);

#define PATH_BYTES_MAX 4096

const converter *converter_at(size_t i); /* NULL at the end */
const converter *converter_named(sheaf_str name);

#endif
