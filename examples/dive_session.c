/*
 * An agent library's session and store: turns saved whole with what they cost,
 * titles, forks, and compaction by a function of the caller's.
 *
 *     dive_session [DIRECTORY]
 */
#include <sheaf.h>
#include <stdio.h>
#include <stdlib.h>

/* A sheaf_str as printf's %.*s takes it. */
#define TEXT(s) (int)(s).len, (s).ptr

static sheaf_error err;
static const sheaf_str none = {NULL, 0};

/* ---- Session ------------------------------------------------------------- */

static const char *session_id(const sheaf_session *s)
{
	return sheaf_session_id(s);
}

/* The history to put in front of the next input: a snapshot, nothing a caller can change. */
static int session_messages(sheaf_session *s, sheaf_context **out)
{
	return sheaf_session_context(out, s, NULL, &err);
}

/* All of a turn is stored, or nothing; SHEAF_STALE if another handle saved one meanwhile. */
static int session_save_turn(sheaf_session *s, sheaf_message *const *messages, size_t count,
                             const sheaf_usage *usage)
{
	sheaf_batch *turn = sheaf_batch_new();
	int rc = turn ? 0 : SHEAF_NOMEM;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = sheaf_batch_message(turn, messages[i], NULL, &err);
	if (rc == 0)
		rc = sheaf_session_append_turn(s, turn, none, none, usage, NULL, NULL, &err);
	sheaf_batch_free(turn);
	return rc;
}

static int session_set_title(sheaf_session *s, const char *title)
{
	return sheaf_session_rename(s, sheaf_str_of(title), none, NULL, NULL, &err);
}

/* Title, how many turns, what they cost: known without reading the history. */
static int session_head(sheaf_session *s, sheaf_head_view **out)
{
	return sheaf_session_head(out, s, &err);
}

/* The new session reads the old one's history where it is: this costs the same at any length. */
static int session_fork(sheaf_session *s, const char *new_id, sheaf_session **out)
{
	sheaf_key key = sheaf_key_of(new_id);
	return sheaf_session_fork(out, s, none, &key, NULL, &err);
}

/* Writes what a history comes down to: a JSON array of messages. */
typedef void (*summarizer)(const sheaf_context *history, FILE *messages);

/* From here on the history is what the summarizer made of it. The originals stay in the log. */
static int session_compact(sheaf_session *s, summarizer summarize)
{
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	sheaf_context *history;
	char *body = NULL;
	size_t length;

	int rc = session_messages(s, &history);
	if (rc != 0)
		return rc;
	FILE *out = open_memstream(&body, &length);
	if (out != NULL) {
		fputs("{\"compaction\":{\"summary\":\"\",\"replacement\":", out);
		summarize(history, out);
		fputs("}}", out);
		fclose(out);
	}
	how.expect = SHEAF_EXPECT_LEAF; /* what is said meanwhile must not be summarised unread */
	how.leaf = history->leaf;
	rc = sheaf_session_append_json(s, SHEAF_STR("compaction"), sheaf_str_of(body), NULL, &how,
	                               NULL, &err);
	free(body);
	sheaf_context_free(history);
	return rc;
}

/* ---- Store --------------------------------------------------------------- */

/* What is there, or a new one. Either way every turn is stored as it is saved. */
static int store_open(sheaf_store *store, const char *id, sheaf_session **out)
{
	sheaf_key key = sheaf_key_of(id);
	return sheaf_session_open(out, store, &key, NULL, &err);
}

/* A session of one store, kept in another. */
static int store_put(sheaf_store *store, sheaf_session *s)
{
	sheaf_key key = sheaf_session_key(s);
	sheaf_session *copy;
	int rc = sheaf_session_copy(&copy, s, store, &key, &err);
	if (rc == 0)
		sheaf_session_close(copy);
	return rc;
}

static int store_list(sheaf_store *store, sheaf_list **out)
{
	return sheaf_store_list(out, store, NULL, &err);
}

static int store_delete(sheaf_store *store, const char *id)
{
	sheaf_key key = sheaf_key_of(id);
	return sheaf_store_delete(NULL, store, &key, NULL, &err);
}

/* ---- An agent at work ----------------------------------------------------- */

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "dive_session: %s: %s (%s)\n", what, err.message, sheaf_code_name(rc));
	exit(1);
}

/* Where an agent would call a model. */
static void take_turn(sheaf_session *s, const char *input, const char *reply)
{
	const sheaf_usage usage = {.input = 100, .cache_read = 900, .output = 20};
	sheaf_message *messages[] = {sheaf_message_new(SHEAF_ROLE_USER),
	                             sheaf_message_new(SHEAF_ROLE_ASSISTANT)};
	sheaf_message_text(messages[0], sheaf_str_of(input));
	sheaf_message_text(messages[1], sheaf_str_of(reply));
	must(session_save_turn(s, messages, 2, &usage), "save a turn");
	sheaf_message_free(messages[0]);
	sheaf_message_free(messages[1]);
}

/* Where an agent would ask a model for a summary. */
static void count_messages(const sheaf_context *history, FILE *messages)
{
	fprintf(messages,
	        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	        "{\"content\":\"(%zu earlier messages)\"}}]}]",
	        history->count);
}

static void print_session(sheaf_session *s)
{
	sheaf_head_view *head;
	sheaf_context *history;
	char text[80];

	must(session_head(s, &head), "read the head");
	printf("%s \"%.*s\": %llu turns, %llu tokens in, %llu out\n", session_id(s),
	       TEXT(head->info->name), (unsigned long long)head->info->turns,
	       (unsigned long long)(head->info->usage.input + head->info->usage.cache_read),
	       (unsigned long long)head->info->usage.output);
	sheaf_head_view_free(head);

	must(session_messages(s, &history), "read the messages");
	for (size_t i = 0; i < history->count; i++) {
		const sheaf_message_view *message = history->items[i]->message;
		sheaf_message_view_text(message, text, sizeof(text));
		printf("  %.*s: %s\n", TEXT(message->role), text);
	}
	sheaf_context_free(history);
}

static void print_list(sheaf_store *store)
{
	sheaf_list *list;
	must(store_list(store, &list), "list");
	printf("%zu session(s) in the store\n", list->count);
	sheaf_list_free(list);
}

/* The directory given, or a fresh one. */
static const char *directory(int argc, char **argv)
{
	static char fresh[256];
	const char *tmp = getenv("TMPDIR");

	if (argc > 1)
		return argv[1];
	snprintf(fresh, sizeof(fresh), "%s/sheaf-dive.XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(fresh) == NULL) {
		perror(fresh);
		exit(1);
	}
	return fresh;
}

int main(int argc, char **argv)
{
	sheaf_store *memory, *files;
	sheaf_session *original, *forked;
	char url[1024];

	/* In memory while it may be thrown away … */
	must(sheaf_open(&memory, "memory:", NULL, &err), "open a store in memory");
	must(store_open(memory, "my-session", &original), "open a session");
	take_turn(original, "Hello", "Hi! What shall we build?");
	take_turn(original, "A parser", "I will write one.");
	must(session_set_title(original, "A parser"), "set the title");
	must(session_fork(original, "new-branch", &forked), "fork");
	take_turn(forked, "Make it fast", "I will measure first.");
	print_session(original);
	print_session(forked);
	must(session_compact(forked, count_messages), "compact");
	print_session(forked);

	/* … and in files when it must not be lost. */
	snprintf(url, sizeof(url), "jsonl:%s", directory(argc, argv));
	must(sheaf_open(&files, url, NULL, &err), "open a store in files");
	must(store_delete(files, "new-branch"), "delete what an earlier run left");
	must(store_put(files, forked), "put");
	print_list(files);
	must(store_delete(files, "new-branch"), "delete");
	print_list(files);

	sheaf_session_close(forked);
	sheaf_session_close(original);
	sheaf_close(files);
	sheaf_close(memory);
	return 0;
}
