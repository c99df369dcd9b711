/*
 * A kernel's session: an id, adding a message, reading all messages, clearing.
 * Safe to use from many threads, as the kernel loop does.
 */
#include <sheaf.h>
#include <stdio.h>
#include <stdlib.h>

/* A sheaf_str as printf's %.*s takes it. */
#define TEXT(s) (int)(s).len, (s).ptr

typedef struct tool_call {
	const char *id, *name, *arguments;
} tool_call;

typedef struct message {
	const char *role, *content;
	const char *tool_call_id; /* role tool: the call it answers */
	const tool_call *tool_calls;
	size_t tool_call_count;
	int64_t time_us; /* the caller's: a session stores messages, it does not make them */
} message;

static sheaf_error err;
static const sheaf_str none = {NULL, 0};

/* ---- The four calls ------------------------------------------------------- */

static const char *id(const sheaf_session *s)
{
	return sheaf_session_id(s);
}

static int add_message(sheaf_session *s, const message *m)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_message *built = sheaf_message_new(m->role);

	/* The builder remembers its first failure, and the append reports it. */
	if (m->tool_call_id != NULL)
		sheaf_message_tool_result(built, sheaf_str_of(m->tool_call_id), none,
		                          sheaf_str_of(m->content), -1);
	else if (m->content != NULL)
		sheaf_message_text(built, sheaf_str_of(m->content));
	for (size_t i = 0; i < m->tool_call_count; i++)
		sheaf_message_tool_use(built, sheaf_str_of(m->tool_calls[i].id),
		                       sheaf_str_of(m->tool_calls[i].name),
		                       sheaf_str_of(m->tool_calls[i].arguments));
	entry.time_us = m->time_us;
	int rc = sheaf_session_append_message(s, built, &entry, NULL, NULL, &err);
	sheaf_message_free(built);
	return rc;
}

/* A copy: what is added later does not appear in it, and changing it changes nothing. */
static int messages(sheaf_session *s, sheaf_records **out)
{
	return sheaf_session_path(out, s, none, none, 0, &err);
}

/* The next message is a first message again. */
static int clear(sheaf_session *s)
{
	return sheaf_session_clear(s, &err);
}

/* ---- The kernel at work ---------------------------------------------------- */

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "kernel_session: %s: %s (%s)\n", what, err.message, sheaf_code_name(rc));
	exit(1);
}

static void print_part(const sheaf_part *part)
{
	if (part->kind == SHEAF_PART_TEXT)
		printf(" %.*s", TEXT(part->text));
	else if (part->kind == SHEAF_PART_TOOL_USE)
		printf(" calls %.*s%.*s as %.*s", TEXT(part->name), TEXT(part->input),
		       TEXT(part->id));
	else if (part->kind == SHEAF_PART_TOOL_RESULT)
		printf(" answers %.*s: %.*s", TEXT(part->tool_use_id), TEXT(part->text));
}

static void print_messages(sheaf_session *s)
{
	sheaf_records *all;
	must(messages(s, &all), "read the messages");
	printf("%zu messages\n", all->count);
	for (size_t i = 0; i < all->count; i++) {
		const sheaf_message_view *m = all->items[i]->message;
		printf("  %.*s:", TEXT(m->role));
		for (size_t k = 0; k < m->part_count; k++)
			print_part(m->parts[k]);
		printf("\n");
	}
	sheaf_records_free(all);
}

int main(void)
{
	const tool_call call = {"call_1", "read_file", "{\"path\":\"main.go\"}"};
	const message turn[] = {
		{.role = SHEAF_ROLE_SYSTEM, .content = "You are a kernel."},
		{.role = SHEAF_ROLE_USER, .content = "Read main.go", .time_us = 1700000001000000},
		{.role = SHEAF_ROLE_ASSISTANT, .tool_calls = &call, .tool_call_count = 1},
		{.role = SHEAF_ROLE_TOOL, .tool_call_id = "call_1", .content = "package main"},
	};
	sheaf_key fresh = sheaf_key_of(""); /* a new UUIDv7 */
	sheaf_store *store;
	sheaf_session *s;

	must(sheaf_open(&store, "memory:", NULL, &err), "open a store");
	must(sheaf_session_open(&s, store, &fresh, NULL, &err), "make a session");
	printf("session %s\n", id(s));
	for (size_t i = 0; i < sizeof(turn) / sizeof(turn[0]); i++)
		must(add_message(s, &turn[i]), "add a message");
	print_messages(s);
	must(clear(s), "clear");
	print_messages(s);
	must(add_message(s, &turn[1]), "add a message after clearing");
	print_messages(s);
	sheaf_session_close(s);
	sheaf_close(store);
	return 0;
}
