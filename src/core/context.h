/*
 * What building a context and checking a compaction have in common: reading a
 * compaction's payload, finding the first entry it keeps, and the settings.
 */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include "core/read.h"

/* The settings in force. {NULL,0}: not known (yet). */
typedef struct settings {
	sheaf_str provider;
	sheaf_str model;
	sheaf_str thinking_level;
} settings;

/* Takes what is not known yet from an older entry: go from the leaf to the root. */
void settings_take(settings *s, const sheaf_entry *older);
void settings_fill(settings *s, const settings *older);

/* A compaction's payload beyond what sheaf_entry holds. */
typedef struct compaction_info {
	sheaf_str first_kept;  /* len 0: there is none */
	bool replaces;         /* `replacement`: messages that stand for all before it */
	bool chooses;          /* `kept_ids`: single entries are kept */
	sheaf_str replacement; /* the array's bytes, without brackets; owned by the entry */
	const sheaf_str *kept_ids;
	size_t kept_count;
	settings settings; /* recorded with it */
} compaction_info;

/* Strings are in `a` or in the entry. `doc` is scratch. SHEAF_DAMAGED, SHEAF_NOMEM. */
int compaction_read(compaction_info *out, const sheaf_entry *entry, arena *a, json_doc **doc,
                    sheaf_error *err);

/* Whether it keeps nothing that lies before it in the log. */
static inline bool compaction_ends_walk(const compaction_info *c)
{
	return c->replaces || (c->chooses ? c->kept_count == 0 : c->first_kept.len == 0);
}

/*
 * The next message of a replacement; start with *at = 0. 1 while there is one,
 * 0 at the end, or a negative code: SHEAF_DAMAGED for what is no message.
 */
int replacement_next(const compaction_info *c, size_t *at, const sheaf_message_view **out, arena *a,
                     json_doc **doc, sheaf_error *err);

/*
 * Where the id of a first kept entry lies. Entries on the path with at least
 * this seq are kept. A fact's id stands for the next entry after it. `found` is
 * false for an id that is not in the log before `before`; whether an entry is on
 * the path shows on the way.
 */
typedef struct kept_place {
	bool found;
	bool fact;
	uint64_t seq;
} kept_place;

int kept_locate(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t before,
                kept_place *out, sheaf_error *err);

/* The kind of the record with this seq; SHEAF_KIND_OTHER_FACT for one that cannot be read. */
int row_kind(sheaf_session *s, const sheaf_head *head, uint64_t seq, int32_t *kind,
             sheaf_error *err);

/* ---- One by one ---------------------------------------------------------- */

/*
 * Shows what a context is made of, as it was recorded, entry by entry from the
 * leaf on, whatever its size: an entry lives only while it is shown.
 */
typedef struct context_scan {
	/* `item` is NULL for an entry that gives none; `kept`: it lies before the compaction. */
	int (*take)(void *ctx, const sheaf_entry *entry, const sheaf_item *item, bool kept,
	            sheaf_error *err);
	/* What was shown with a smaller number than this is no part of it after all. */
	void (*forget)(void *ctx, uint64_t seq);
	void *ctx;
	settings settings; /* in force at the leaf, as far as is known by now */
	/* after it all */
	const sheaf_entry *compaction; /* the one that decides, or NULL */
	compaction_info info;
	const sheaf_item *const *given; /* by it: summary, replacement */
	size_t given_count;
} context_scan;

/* From the entry leaf_seq (0: before the first), as if the compaction without_seq (0: none) were
 * not there. What is found is in `a`. As sheaf_session_context(), but never SHEAF_TOO_LARGE. */
int context_scan_run(context_scan *scan, sheaf_session *session, const sheaf_head *head,
                     uint64_t leaf_seq, uint64_t without_seq, arena *a, sheaf_error *err);

/* ---- Items --------------------------------------------------------------- */

/* The item an entry gives, or NULL. `doc` is scratch. SHEAF_DAMAGED, SHEAF_NOMEM. */
int item_of_entry(const sheaf_item **out, const sheaf_entry *entry, arena *a, json_doc **doc,
                  sheaf_error *err);

/* An item of one text; NULL when out of memory. */
const sheaf_item *item_of_text(int32_t kind, sheaf_str role, sheaf_str text,
                               const sheaf_entry *entry, arena *a);

/* An item over a message; NULL when out of memory. */
const sheaf_item *item_of_message(const sheaf_message_view *message, const sheaf_entry *entry,
                                  arena *a);

/* Replies' items as one: for agents that write a reply down piece by piece. NULL as above. */
const sheaf_item *item_joined(const sheaf_item *const *items, size_t count, arena *a);

/* Whether a record may give an item or a setting: a look at its bytes, before it is parsed. */
bool item_possible(const sheaf_row *row, const record *r);

/* The rolling hash over items: of everything a reader of the item sees. Never 0. */
#define ITEM_HASH_START UINT64_C(0x5348454146303031)
uint64_t item_hash(uint64_t before, const sheaf_item *item);

#endif
