/* Between the parts of the Claude Code converter. */
#ifndef CONVERT_CLAUDE_CODE_H
#define CONVERT_CLAUDE_CODE_H

#include "convert/convert.h"
#include "convert/parts.h"
#include "convert/window.h"

/*
 * One reply of the model is several lines with the same message id, one for each
 * block; its tool calls are answered by lines that hang on the line of their
 * call, so that the next line hangs on one answer and passes the others by. Here
 * the lines of a reply, the answers to its calls and what was attached to them
 * are a group, in the order of the file; whoever hangs on one of them hangs on
 * the last.
 */
typedef struct cc_state {
	window group_of; /* a line's uuid -> its group, a message id */
	window group_of_call;
	window tail_of;  /* a group -> its last entry */
	window stands;   /* a line's uuid -> the entry to hang on instead, "" for none */
	window usage_of; /* a group -> the usage that was counted */
	int64_t own_us;  /* a fork: what is older was copied; else 0 */
	bool is_agent;
	bool named;               /* by the user */
	char last[SHEAF_ID_ROOM]; /* the last line of the tree */
	char leaf[SHEAF_ID_ROOM]; /* what the file says is the leaf; "" since a line came after */
	/* the boundary that waits for its summary */
	char boundary[SHEAF_ID_ROOM];
	char boundary_parent[SHEAF_ID_ROOM];
	buf boundary_body; /* members of the compaction but for the summary */
} cc_state;

/* The session of the file: its id, what it belongs to, and whether it was copied. Opens it. */
int cc_open(import *im);

/* Adds one message of a line with role user or assistant. */
int cc_message_add(import *im, value line, import_record *record);

/* What was attached, and what the program itself noted. */
int cc_attachment_add(import *im, value line, import_record *record);
int cc_note_add(import *im, value line, import_record *record);

/* claude_code_write.c */
int cc_write(export *ex);
int cc_place(export *ex);

#endif
