/*
 * A record and its line: scanning what we wrote, writing what will be stored.
 *
 *   {"type":"message","id":"…","parent_id":null,"timestamp":"…"[,"branch":"…"],
 *    BODY,
 *    ["parent_seq":7,]"seq":8[,"batch":[i,n]],"crc":"9f2b11c0"}
 *
 * A fact has no parent_id. parent_seq is there only if the parent is inherited,
 * so that a fork's log can be read without its source.
 *
 * The envelope has a fixed order, so a line of ours is read by looking, not by
 * parsing; only payloads go through JSON. docs/format.md is the normative text.
 */
#ifndef ENTRY_RECORD_H
#define ENTRY_RECORD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "sheaf/entry.h"

/* What envelope, frame and line break take at most; see SHEAF_BODY_BYTES_MAX. */
#define RECORD_FRAME_BYTES_MAX (SHEAF_RECORD_BYTES_MAX - SHEAF_BODY_BYTES_MAX)

/* A line looked at. Everything is a view into the line. */
typedef struct record {
	int32_t kind;
	sheaf_str line; /* without the line break */
	sheaf_str type;
	sheaf_str id;
	sheaf_str parent_id; /* ptr NULL: null or absent */
	sheaf_str timestamp;
	sheaf_str branch;    /* ptr NULL: main */
	sheaf_str body;      /* between envelope and frame, without the commas around it */
	bool has_parent;     /* the member is there, be it null */
	uint64_t parent_seq; /* of an inherited parent, else 0 */
	uint64_t seq;        /* 0 in foreign lines */
	uint64_t batch_index;
	uint64_t batch_count; /* 1 for a record alone */
} record;

/* Whether the line ends in a valid crc over all that precedes it. */
bool record_crc_ok(sheaf_str line);

/* True if the line ends in a crc member at all, right or wrong. */
bool record_has_crc(sheaf_str line);

/*
 * Reads a verified line of ours (record_crc_ok). SHEAF_DAMAGED if it is not
 * shaped like one. The ids in it are escaped only if they hold a quote, a
 * backslash or a control; then they are unescaped into `scratch` (may be NULL:
 * such a line is then refused; SHEAF_NOMEM).
 */
int record_scan(record *out, sheaf_str line, arena *scratch);

/*
 * Reads a line of a file that is not ours: plain session files in their nested and flat forms.
 * Strings that need it are unescaped into `a`; flat payloads are nested into
 * `a` so that `body` always has our shape. SHEAF_FORMAT if it is no such line.
 */
int record_scan_foreign(record *out, sheaf_str line, arena *a, json_doc **doc, sheaf_error *err);

int32_t record_kind(sheaf_str type, bool has_parent);
bool record_kind_is_fact(int32_t kind);

/* What a caller wants stored: everything of a record but seq, batch and crc. */
typedef struct draft {
	int32_t kind;
	sheaf_str type; /* owned by the draft or static */
	char id[SHEAF_ID_ROOM];
	size_t id_len;
	bool id_fresh;   /* made here and never sent: the store need not look it up */
	bool has_parent; /* parent_id was given */
	char parent_id[SHEAF_ID_ROOM];
	size_t parent_len;               /* 0 with has_parent: a root */
	uint64_t parent_seq;             /* of a given parent, once resolved */
	char parent_name[SHEAF_ID_ROOM]; /* a given parent that is no id: perhaps a label */
	size_t parent_name_len;
	char branch[SHEAF_BRANCH_BYTES_MAX + 1];
	size_t branch_len; /* 0: main */
	char timestamp[CLOCK_TEXT + 1];
	int64_t time_us;
	buf body;        /* members without braces */
	size_t delta_at; /* its state_delta; no length: it has none */
	size_t delta_len;
	buf temp; /* the temp: keys of what was given as state_delta, members without braces */
} draft;

static inline sheaf_str draft_id(const draft *d)
{
	return (sheaf_str){d->id, d->id_len};
}

static inline sheaf_str draft_delta(const draft *d)
{
	return d->delta_len != 0 ? (sheaf_str){d->body.ptr + d->delta_at, d->delta_len}
	                         : (sheaf_str){NULL, 0};
}

/*
 * Fills a draft from type, body (a JSON object's text, or members already
 * checked with `checked`) and the caller's options: validates ids, branch,
 * type, reserved names, limits, payload of the known kinds (a message has a
 * known role, a label a target, a compaction a summary …); adds turn, author,
 * agent, invocation_id, extra and state_delta to the body, without temp: keys;
 * makes the id and the timestamp.
 * With `checked` the body is trusted JSON members without braces.
 */
struct sheaf_entry_options;
int draft_init(draft *d, sheaf_str type, sheaf_str body, bool checked,
               const struct sheaf_entry_options *options, sheaf_error *err);

/* Whether a record may have that time: the years 0001 to 9999. */
bool draft_may_be_time(int64_t time_us);
void draft_free(draft *d);

/*
 * Lets changes of state ride on a draft until draft_unride(): `delta` is an
 * object's checked text, what the draft itself changes goes before it. `before`
 * keeps the body meanwhile. SHEAF_TOO_LARGE, SHEAF_NOMEM: nothing happened.
 */
int draft_ride(draft *d, sheaf_str delta, buf *before, sheaf_error *err);
void draft_unride(draft *d, buf *before);

/*
 * Appends the record's line and a line break to `out`. `parent_id` {NULL,0}
 * writes null. `inherited_parent_seq` is the parent's seq if that lies at or
 * below the fork's base, else 0.
 */
void record_write(buf *out, const draft *d, sheaf_str parent_id, uint64_t inherited_parent_seq,
                  uint64_t seq, uint64_t batch_index, uint64_t batch_count);

/*
 * The same content under a new number, for copies that renumber. A foreign
 * record's body is checked as a draft's JSON is (SHEAF_INVALID, SHEAF_LIMIT,
 * SHEAF_TOO_LARGE); a timestamp of it that is none becomes 1970.
 */
int record_renumber(buf *out, const record *r, sheaf_str parent_id, uint64_t inherited_parent_seq,
                    uint64_t seq, uint64_t batch_index, uint64_t batch_count, sheaf_error *err);

/* A `lost` record that stands in for one that cannot be read. */
int record_write_lost(buf *out, uint64_t seq, sheaf_error *err);

/* Ends a line begun in `out` at `start`: adds ,"crc":"…"} and the line break. */
void record_seal(buf *out, size_t start);

/*
 * Fills a public entry from a scanned line; strings are copied into `a`. With
 * `parse`, payloads too (message, text, target_id, …). `doc` is scratch.
 */
int entry_read(sheaf_entry *out, const record *r, uint64_t parent_seq, bool parse, arena *a,
               json_doc **doc, sheaf_error *err);

/* The same for a look while the line is there: strings are views into it or into `doc`, until that
 * parses again, and the time is left out. Always parses. */
int entry_look(sheaf_entry *out, const record *r, uint64_t parent_seq, arena *a, json_doc **doc,
               sheaf_error *err);

/* Whether what the caller gives is what is stored: type, body, branch, a given parent. */
bool record_same(const record *stored, const draft *wanted);
bool record_same_but_parent(const record *stored, const draft *wanted);
bool record_same_parent(const record *stored, const draft *wanted);

#endif
