/*
 * The tour: one conversation from its first message to its first compaction.
 *
 *     quickstart [DIRECTORY]
 *
 * Without a directory a fresh one is made. Run twice on the same directory, it
 * continues the session of the first run.
 */
#include <sheaf.h>
#include <stdio.h>
#include <stdlib.h>

static sheaf_error err;

/* Ends the program when a call has failed. */
static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "quickstart: %s: %s (%s)\n", what, err.message, sheaf_code_name(rc));
	exit(1);
}

/* The directory given, or a fresh one. */
static const char *directory(int argc, char **argv)
{
	static char fresh[256];
	const char *tmp = getenv("TMPDIR");

	if (argc > 1)
		return argv[1];
	snprintf(fresh, sizeof(fresh), "%s/sheaf-quickstart.XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(fresh) == NULL) {
		perror(fresh);
		exit(1);
	}
	return fresh;
}

/* Appends a message of one text. The result has its id, by which later calls name it. */
static sheaf_appended say(sheaf_session *s, const char *role, const char *text)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	must(sheaf_session_append_text(s, role, sheaf_str_of(text), &done, &err), "append");
	return done;
}

static sheaf_context *get_context(sheaf_session *s)
{
	sheaf_context *context;
	must(sheaf_session_context(&context, s, NULL, &err), "build a context");
	return context;
}

int main(int argc, char **argv)
{
	const sheaf_str nobody = {NULL, 0}, main_branch = {NULL, 0};
	sheaf_store *store;
	sheaf_session *s;
	char url[512];

	/* 1. Continue the newest session, or begin one. */
	snprintf(url, sizeof(url), "jsonl:%s", directory(argc, argv));
	printf("Sessions are in %s\n", url);
	must(sheaf_open(&store, url, NULL, &err), "open the store");
	int rc = sheaf_session_open_recent(&s, store, nobody, nobody, &err);
	if (rc == SHEAF_NOT_FOUND) {
		sheaf_key fresh = sheaf_key_of(""); /* an empty id: a new one is made */
		rc = sheaf_session_open(&s, store, &fresh, NULL, &err);
	}
	must(rc, "open a session");

	/* 2. A message of the user. */
	sheaf_appended greeting = say(s, SHEAF_ROLE_USER, "Hello, Agent!");

	/* 3. The context: what a model must see. */
	sheaf_context *history = get_context(s);
	printf("Context has %zu messages\n", history->count);
	sheaf_context_free(history);

	/* 4. The reply. */
	say(s, SHEAF_ROLE_ASSISTANT, "Hello! How can I help?");

	/* 5. Back to the user's message, and on in another way. The reply stays in the log. */
	sheaf_str greeting_id = sheaf_str_of(greeting.id);
	must(sheaf_session_branch(s, main_branch, greeting_id, NULL, NULL, &err), "branch");
	sheaf_appended joke = say(s, SHEAF_ROLE_USER, "Actually, tell me a joke.");

	/* 6. From now on a label can stand for the id. */
	sheaf_str label = SHEAF_STR("first-greeting");
	must(sheaf_session_label(s, greeting_id, label, NULL, NULL, &err), "label");

	/* 7. All before the joke gives way to a summary. Nothing is deleted. */
	sheaf_str summary = SHEAF_STR("User greeted and then asked for a joke.");
	sheaf_str first_kept = sheaf_str_of(joke.id);
	must(sheaf_session_append_compaction(s, summary, first_kept, 1500, NULL, NULL, NULL, &err),
	     "compact");

	/* 8. What a model sees now: the summary, then what was kept. */
	history = get_context(s);
	for (size_t i = 0; i < history->count; i++) {
		const sheaf_item *item = history->items[i];
		if (item->kind == SHEAF_ITEM_COMPACTION_SUMMARY)
			puts("Compaction summary included");
		else if (item->entry->seq == joke.seq)
			puts("Recent message included");
	}
	sheaf_context_free(history);
	sheaf_session_close(s);
	sheaf_close(store);
	return 0;
}
