/* The inside of an export: for export.c and export_same.c only. */
#ifndef CONVERT_EXPORT_INSIDE_H
#define CONVERT_EXPORT_INSIDE_H

#include "convert/convert.h"

/* What an export could not carry and where it goes, as it will be handed out. */
typedef struct export_report {
	sheaf_export_report is; /* first: the caller's pointer is also this struct's */
	arena *arena;
	sheaf_export_loss **losses;
	size_t loss_room;
} export_report;

typedef struct export_inside {
	export_report *report;
	sheaf_write_fn write;
	void *ctx;
	sheaf_records *path;
	sheaf_records *page;
	json_doc *doc;
	buf raw;
} export_inside;

/* The last import of this format that was made to the session itself: what a fork inherits names
 * the session that it was made from. */
typedef struct imported {
	uint64_t seq; /* of its fact; 0: there was none */
	uint64_t pieces;
	bool open_end;
	sheaf_records *facts; /* holds `between` */
	sheaf_str between;    /* the list's inside, or {NULL,0} */
	sheaf_str file;       /* a JSON string, or {NULL,0} */
} imported;

void imported_free(imported *was);
int imported_find(export *ex, imported *was);

/* Notes in the report which file it was. */
int imported_note(export *ex, const imported *was);

/* Whether anything came after it that the source does not know. */
int imported_changed(export *ex, const imported *was, bool *changed);

/* Whether the path asked for goes through where the import ended. */
int imported_passed(export *ex, const imported *was, bool *passed);

/* Writes the pieces as they were; then what is behind the last of them. */
int pieces_write(export *ex, const imported *was);
int tail_write(export *ex, const imported *was);

#endif
