/*
 * What every converter shares: the row that describes one, and what it calls
 * while it reads or writes a source.
 *
 * A source is a file; it has pieces: the lines of a log, or values of a JSON
 * document. The framework (import.c) hands out the pieces, keeps the bytes of
 * each with the first record it gives, counts, skips what an earlier import
 * took, and appends in batches. A converter says what a piece means: it names
 * the session and adds records, in the same order with the same ids every time,
 * and never writes anything itself. A piece that gives nothing is kept as a
 * fact `source`.
 */
#ifndef CONVERT_CONVERT_H
#define CONVERT_CONVERT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "convert/source.h"
#include "sheaf/convert.h"

typedef struct import import;
typedef struct export export;

/* A format. Slots that a format has no use for are NULL. */
typedef struct converter {
	sheaf_converter is;
	/* Whether a file is of this format, by its path and the bytes at its beginning. */
	bool (*knows)(sheaf_str path, sheaf_str head);
	int (*begin)(import *im);                 /* sets im->state, in im->arena */
	int (*take)(import *im, sheaf_str piece); /* one line; logs */
	int (*read)(import *im);                  /* all of it; documents */
	int (*end)(import *im);                   /* after the last piece, before the leaf is set */
	void (*done)(import *im); /* frees what im->state holds beside the arena; it may be NULL */
	int (*write)(export *ex);
	int (*place)(export *ex); /* calls export_place() */
	bool tree;                /* it holds all branches */
	bool adds;  /* its documents end with the list of messages: what is new is added to it */
	bool bound; /* its agent goes on only in the directory that the file names */
	const char *places[4];        /* below is.home, where its agent keeps sessions */
	const struct converter *also; /* the same format in files of another make, or NULL */
} converter;

extern const converter convert_claude_code;
extern const converter convert_jsonl;
extern const converter convert_markdown;
extern const converter convert_pi;
extern const converter convert_codex;
extern const converter convert_gemini_cli;
extern const converter convert_opencode;
extern const converter convert_uimessage;
extern const converter convert_chatgpt;
extern const converter convert_dive;

/* A value of JSON text: `v` for what it means, `text` for how it is spelled. */
typedef struct value {
	const json_val *v;
	sheaf_str text; /* {NULL,0}: absent */
} value;

/* ---- Importing ----------------------------------------------------------- */

/* A session of a source. Strings are borrowed during the call. */
typedef struct import_session {
	sheaf_str id; /* the source's; the key is FORMAT.ID */
	sheaf_str name;
	sheaf_str cwd;
	sheaf_str kind;   /* empty = "main" */
	sheaf_str parent; /* the source's id of the session it came from, or {NULL,0} */
	sheaf_str extra;  /* further header members, a JSON object, or {NULL,0} */
	int64_t created_us;
	sheaf_session *fork; /* shares this one's records up to an entry, or NULL */
	sheaf_str fork_at;
} import_session;

/* A record to append. Strings are borrowed during the call. */
typedef struct import_record {
	const char *type;
	sheaf_str body; /* a JSON object: {"message":{…}} */
	sheaf_str id;   /* {NULL,0}: made from the piece's number */
	bool fact;
	bool has_parent;  /* false: hangs on the entry added last */
	sheaf_str parent; /* an entry's id; empty: a new root */
	int64_t time_us;  /* 0: as the record before */
	sheaf_str turn;
	sheaf_str agent;
	bool continues; /* an assistant's message that goes on the one before it */
	bool preamble;  /* the agent's own words in the user's mouth */
	bool built; /* the body is a member without braces that needs no check: a built message */
} import_record;

/*
 * Begins a session, or ends the one at hand and begins the next. Whatever it
 * returns that is not 0 is passed on at once. What is added before the first
 * call is a problem, and lost: a converter that learns the session's id late
 * asks source_head().
 */
int import_open(import *im, const import_session *session);

/*
 * A session of this format that was imported before, by the source's id; the
 * caller closes it. SHEAF_NOT_FOUND if there is none.
 */
int import_peer(import *im, const char *id, sheaf_session **out);

/*
 * Asks for another file to be imported before this one, which is then read anew.
 * What it returns is passed on at once; 0 if it was asked for already.
 */
int import_first(import *im, const char *path);

/* WORD NUMBER TAIL, and .PART if that is not 0: both short. */
sheaf_str id_number(char room[SHEAF_ID_ROOM], const char *word, uint64_t number, const char *tail,
                    uint64_t part);

/* Adds a record for the piece at hand. */
int import_add(import *im, const import_record *record);

/* The same with a message as the body; type and body of `record` are not looked at. */
int import_message(import *im, sheaf_message *message, const import_record *record);

/* A message's JSON, owned by it. One that cannot be kept is a problem, json->ptr is NULL then. */
int import_json(import *im, sheaf_message *message, sheaf_str *json);

/* Where the conversation stands, an entry's id; without it, at the last entry. */
int import_leaf(import *im, sheaf_str id);

/* The latest title of the session. */
int import_name(import *im, sheaf_str name);

/* Something wrong with the piece at hand. It is kept all the same. */
int import_problem(import *im, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Parses a piece, whose text may be broken: mended first, and counted. What is
 * no JSON is a problem, root->v is NULL then. Valid until the next call.
 */
int import_parse(import *im, sheaf_str piece, value *root);

/* ---- Documents ----------------------------------------------------------- */

/*
 * A value of a document as the next piece: everything added until piece_end()
 * belongs to it. `cut`: it goes on in the next piece. A failure, which a
 * converter may take for its own to return, may also be positive.
 */
int piece_begin(import *im, sheaf_str piece, bool cut);
int piece_end(import *im);

/* Text of the source that is in no piece: between two of them, before the first of the session at
 * hand (after import_open()), behind its last. May be called several times in a row. */
int import_between(import *im, sheaf_str text);

/* An import in progress, as far as converters look into it. */
struct import {
	const converter *how;
	sheaf_str file; /* its path */
	source *source;
	uint64_t number;          /* of the piece at hand, from 1 */
	uint64_t line;            /* of the file, where it begins; a log's pieces are lines */
	arena *arena;             /* of the file */
	void *state;              /* the converter's */
	char last[SHEAF_ID_ROOM]; /* the entry added last, "" before the first */
	int64_t time_us;          /* of the record added last */
	char id_tail[16]; /* of ids made from a piece's number; a fork's are not its source's */
	sheaf_error *err;
	struct import_inside *inside;
};

/* ---- Exporting ----------------------------------------------------------- */

/*
 * An export in progress. What came from the same format and is unchanged was
 * written by the framework: a log's converter is asked only for the records
 * after `from_seq`, as is one that adds to a document; others for all of it.
 */
struct export
{
	const converter *how;
	sheaf_session *session;
	const sheaf_head_view *head;
	sheaf_export_options options; /* whole */
	sheaf_str cwd;                /* the directory it is about, or {NULL,0} */
	char id[SHEAF_ID_ROOM];       /* as the format's agent calls the session */
	uint64_t from_seq;            /* records after this; 0 = all */
	arena *arena;
	sheaf_error *err;
	struct export_inside *inside;
};

/* Writes bytes. */
int export_write(export *ex, sheaf_str bytes);

/* The path to the leaf asked for, root first, parsed; owned by the export. */
int export_path(export *ex, const sheaf_records **out);

/* The next records after *seq (0 = from_seq) in the order of the log, parsed; 0 at the end. Valid
 * until the next call. */
int export_records(export *ex, uint64_t *seq, const sheaf_records **out);

/* Something that this format cannot carry; `what` is a literal. */
int export_loss(export *ex, const char *what);

/* What every format without a tree loses: entries and labels that are not on the path. */
int export_path_losses(export *ex);

/* The directory the session is about, or "/". */
sheaf_str export_cwd(const export *ex);

/* Where the format's agent looks for the session ex->id, below a home directory. */
int export_place(export *ex, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The piece a record came from, as it was, if it came from this format; else {NULL,0}. */
int export_raw(export *ex, const sheaf_entry *record, sheaf_str *raw);

#endif
