/* What the files of the HTML export share. */
#ifndef CLI_HTML_INSIDE_H
#define CLI_HTML_INSIDE_H

#include "base/json.h"
#include "base/map.h"
#include "html.h"
#include "print.h"

/* ---- Text (html_text.c) --------------------------------------------------- */

/* Text between tags. What a reader could not see, or might be misled by, is spelled out. */
void html_text(buf *out, sheaf_str text);
/* Text in a quoted attribute. */
void html_attr(buf *out, sheaf_str text);
/* At most `max` bytes of a text as one line, with an ellipsis where it was cut. */
void html_line(buf *out, sheaf_str text, size_t max);
/* What a program printed: text with its colours. */
void html_output(buf *out, sheaf_str text);
/* The beginning of that as one line, without colours. */
void html_output_line(buf *out, sheaf_str text, size_t max);
/* JSON with line breaks and indentation. */
void html_json(buf *out, sheaf_str json);
/* A block of code with a button that copies it; the text is put between the two. */
void html_code_begin(buf *out, sheaf_str lang);
void html_code_end(buf *out);

sheaf_str html_trim(sheaf_str text); /* without blank lines around it */
size_t html_lines(sheaf_str text);
void html_number(buf *out, uint64_t number); /* 12,345 */
void html_tokens(buf *out, uint64_t tokens); /* 812, 12.3k, 1.2M */
void html_time(buf *out, int64_t us);        /* a <time> */
void html_date(buf *out, int64_t us);        /* the same with its year */
void html_link(buf *out, uint64_t seq);      /* <a href="#e12">@12</a> */

/* ---- Markdown (html_markdown.c) ------------------------------------------- */

enum {
	MARKDOWN_TEXT = 0,
	MARKDOWN_BREAKS = 1 /* a line break is meant as one */
};
void html_markdown(buf *out, sheaf_str text, int how);

/* ---- Differences (html_diff.c) -------------------------------------------- */

/* Two texts as the lines that went and came. */
void html_diff(buf *out, sheaf_str before, sheaf_str after);
/* A patch: each line by its first character. */
void html_patch(buf *out, sheaf_str patch);
/* Whether a text is a patch of a form that is known. */
bool html_is_patch(sheaf_str text);

/* ---- What is known of every entry (html_index.c) --------------------------- */

enum {
	LOOK_USER,
	LOOK_ASSISTANT,
	LOOK_TOOL,
	LOOK_SYSTEM,
	LOOK_SETTING,
	LOOK_COMPACTION,
	LOOK_SUMMARY,
	LOOK_CUSTOM,
	LOOK_DAMAGED
};

#define NONE UINT32_MAX

typedef struct html_node {
	uint64_t seq;
	uint32_t parent; /* an index, or NONE; always before its children */
	uint32_t first;  /* child */
	uint32_t last;
	uint32_t next;  /* sibling */
	uint32_t heir;  /* the child that goes on where the others are side branches */
	uint32_t shown; /* the entry it is shown in: a tool's answer in its call; else NONE */
	uint8_t look;
	bool on_path;
	bool named;   /* an element of the page has its id */
	bool goes_on; /* the same speaker as before: no new heading */
	sheaf_str id;
	sheaf_str label;
	sheaf_str model;
	sheaf_str preview; /* one line, as HTML */
} html_node;

/* A tool call, found by its id. */
typedef struct html_call {
	uint32_t node;
	uint32_t answer; /* the entry that answers it, or NONE */
	bool again;      /* called or answered more than once: each is shown where it stands */
	sheaf_str name;
	sheaf_str brief;    /* its main argument in one line, as HTML */
	sheaf_str prompt;   /* the beginning of what it tells a sub-agent */
	sheaf_str subagent; /* the session that it began, or {NULL,0} */
} html_call;

typedef struct html_index {
	arena *memory;
	html_node *nodes; /* by seq */
	size_t count;
	size_t room;
	map calls;     /* id → html_call */
	map ids;       /* entry id or turn id → index */
	uint64_t leaf; /* seq of the entry where the path ends; 0: before the first */
	bool others;   /* some entry is not on the path */
} html_index;

typedef struct html_page {
	cli *c;
	sheaf_session *session;
	sheaf_head_view *head;
	sheaf_list *subagents;
	html_index index;
	sheaf_records *records; /* the page of records that is being written */
	buf out;
	sheaf_write_fn write;
	void *ctx;
} html_page;

/* The page's own style and script, and their SHA-256 in hexadecimal. */
extern const unsigned char html_style[], html_script[];
extern const size_t html_style_len, html_script_len;
extern const char html_style_sha256[], html_script_sha256[];

int html_index_read(html_page *p, const place *at);
void html_index_free(html_index *x);
uint32_t html_index_of(const html_index *x, uint64_t seq); /* NONE if there is no such entry */

/* Where reading stands. A page has few records, and fewer where they are large. */
typedef struct html_reader {
	uint64_t from;
	size_t limit;
	bool done;
} html_reader;
/* clang-format off */
#define HTML_READER_INIT {1, 16, false}
/* clang-format on */
/* The next page of these kinds; the caller frees it. 0 or an error code. */
int html_read(html_page *p, html_reader *r, uint64_t kinds, sheaf_records **out);

/* The main argument of a call, in one line. */
void html_brief(buf *out, const sheaf_part *part);

/* Hands on what was written when there is enough of it. 0 or an error code. */
int html_flush(html_page *p, bool all);

/* ---- Parts of the page ---------------------------------------------------- */

void html_entry(html_page *p, const sheaf_entry *entry, uint32_t at); /* html_entry.c … */
/* Attributes that say which entry an element shows; the first one of it has its id. */
void html_where(html_page *p, uint32_t at, bool first);
/* Links to the ways in which the conversation goes on after an entry, if there are several. */
void html_ways(html_page *p, uint32_t at);
const char *html_look(uint8_t look); /* the class of such an entry */
void html_media(buf *out, const sheaf_part *part);
void html_call_put(html_page *p, const sheaf_part *part); /* html_tool.c … */
void html_answer_put(html_page *p, const sheaf_part *part);
void html_command_put(html_page *p, const sheaf_message_view *message);
int html_tree(html_page *p);  /* html_tree.c */
int html_usage(html_page *p); /* html_usage.c */

#endif
