/*
 * Records as they are read: entries (nodes of the tree) and facts (the rest).
 */
#ifndef SHEAF_ENTRY_H
#define SHEAF_ENTRY_H

#include "key.h"
#include "message.h"

SHEAF_BEGIN

/** Kinds of records. Below 32 entries, from 32 on facts; each has a bit in a kind mask. */
enum {
	SHEAF_KIND_OTHER_ENTRY = 0, /* an unknown type with a parent */
	SHEAF_KIND_MESSAGE = 1,
	SHEAF_KIND_MODEL_CHANGE = 2,
	SHEAF_KIND_THINKING_LEVEL = 3,
	SHEAF_KIND_COMPACTION = 4,
	SHEAF_KIND_BRANCH_SUMMARY = 5,
	SHEAF_KIND_CUSTOM = 6,
	SHEAF_KIND_OTHER_FACT = 32, /* an unknown type without a parent */
	SHEAF_KIND_LABEL = 33,
	SHEAF_KIND_SESSION_INFO = 34,
	SHEAF_KIND_LEAF = 35,
	SHEAF_KIND_TURN_END = 36,
	SHEAF_KIND_TODO = 37,
	SHEAF_KIND_PLAN = 38,
	SHEAF_KIND_SUMMARY = 39,
	SHEAF_KIND_RETENTION = 40,
	SHEAF_KIND_LOST = 41,
	SHEAF_KIND_SOURCE = 42, /* a piece of an imported file that gave no record */
	SHEAF_KIND_IMPORT = 43, /* how far a file was imported */
	SHEAF_KIND_SYNC = 44,   /* how far another store's session was taken in (sync.h) */
	SHEAF_KIND_SESSION = 63 /* the header */
};

#define SHEAF_KIND_BIT(kind) ((uint64_t)1 << (kind))
#define SHEAF_KINDS_ALL UINT64_MAX
#define SHEAF_KINDS_ENTRIES ((uint64_t)0xffffffff)

/** "message", "label", …; "entry" and "fact" for the two unknown ones. */
SHEAF_API const char *sheaf_kind_name(int32_t kind);

/**
 * One record, read-only, owned by the result it came in. `line` is the record
 * byte for byte; `body` is the caller's part of it (the members between the
 * envelope and the frame, without braces).
 */
typedef struct sheaf_entry {
	int32_t kind;
	int32_t damaged; /* unreadable: only seq is set */
	uint64_t seq;
	uint64_t parent_seq; /* 0 before the first entry, and for facts */
	sheaf_str type;
	sheaf_str id;
	sheaf_str parent_id; /* {NULL,0} for a root, and for facts */
	sheaf_str timestamp;
	int64_t time_us;
	sheaf_str branch; /* "main" unless recorded otherwise */
	sheaf_str agent;  /* who may see it; "" = everybody */
	sheaf_str body;
	sheaf_str line;
	sheaf_str
		label; /* the latest label on this entry where the call looked it up, else {NULL,0} */
	const sheaf_message_view *message; /* kind MESSAGE, where the call parses */
	/* Payloads, where the call parses; zero for other kinds. */
	sheaf_str text;      /* compaction and branch_summary: summary; label: its text;
	                        session_info: name; thinking_level: the level; custom: custom_type */
	sheaf_str target_id; /* compaction: first_kept_entry_id; branch_summary: from_id;
	                        label: target_id; leaf: entry_id */
	sheaf_str provider;  /* model_change */
	sheaf_str model;
	sheaf_str data; /* custom: data, as bytes */
	sheaf_str turn;
	uint64_t batch_index; /* 0-based */
	uint64_t batch_count; /* 1 for a record alone */
} sheaf_entry;

/** A list of records. One free; nothing in it can be changed through it. */
typedef struct sheaf_records {
	size_t count;
	const sheaf_entry *const *items;
	uint64_t next_seq; /* pages: where the next page starts; 0 at the end */
	uint64_t revision; /* of the session when it was read */
} sheaf_records;

SHEAF_API void sheaf_records_free(const sheaf_records *records);

SHEAF_END
#endif
