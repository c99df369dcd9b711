/*
 * A session manager: sessions are files in a directory, entries form a tree,
 * and every call of its API is a few lines here.
 *
 *     session_manager [DIRECTORY]
 */
#include <sheaf.h>
#include <stdio.h>
#include <stdlib.h>

/* A sheaf_str as printf's %.*s takes it. */
#define TEXT(s) (int)(s).len, (s).ptr

/* An open session and the store it came from. */
typedef struct manager {
	sheaf_store *store;
	sheaf_session *session;
} manager;

static sheaf_error err;
static const sheaf_str none = {NULL, 0};

static int open_store(sheaf_store **store, const char *path)
{
	char url[1024];
	snprintf(url, sizeof(url), "jsonl:%s", path);
	return sheaf_open(store, url, NULL, &err);
}

/* ---- Lifecycle ----------------------------------------------------------- */

static int sm_new(manager *m, const char *dir, const char *parent_session)
{
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_key fresh = sheaf_key_of("");
	options.parent_session = sheaf_str_of(parent_session);
	int rc = open_store(&m->store, dir);
	return rc ? rc : sheaf_session_open(&m->session, m->store, &fresh, &options, &err);
}

/* A file is a store of one session. It may be another program's: then it can only be read. */
static int sm_load(manager *m, const char *path)
{
	int rc = open_store(&m->store, path);
	return rc ? rc : sheaf_session_open_recent(&m->session, m->store, none, none, &err);
}

static int sm_continue_recent(manager *m, const char *dir)
{
	return sm_load(m, dir); /* the newest of many instead of the only one */
}

/* Between two stores a fork is a copy; within one, sheaf_session_fork() shares the history. */
static int sm_fork_from(manager *m, const char *source_path, const char *target_dir)
{
	sheaf_key fresh = sheaf_key_of("");
	manager source = {NULL, NULL};
	int rc = sm_load(&source, source_path);
	if (rc == 0)
		rc = open_store(&m->store, target_dir);
	if (rc == 0)
		rc = sheaf_session_copy(&m->session, source.session, m->store, &fresh, &err);
	sheaf_session_close(source.session);
	sheaf_close(source.store);
	return rc;
}

static void sm_close(manager *m)
{
	sheaf_session_close(m->session);
	sheaf_close(m->store);
	*m = (manager){NULL, NULL};
}

/* ---- Appending ----------------------------------------------------------- */

static int sm_append(manager *m, const char *type, const char *body, sheaf_appended *out)
{
	return sheaf_session_append_json(m->session, sheaf_str_of(type), sheaf_str_of(body), NULL,
	                                 NULL, out, &err);
}

static int sm_append_message(manager *m, const char *role, const char *text, sheaf_appended *out)
{
	return sheaf_session_append_text(m->session, role, sheaf_str_of(text), out, &err);
}

static int sm_append_thinking_level_change(manager *m, const char *level, sheaf_appended *out)
{
	return sheaf_session_append_thinking_level(m->session, sheaf_str_of(level), NULL, NULL, out,
	                                           &err);
}

static int sm_append_model_change(manager *m, const char *provider, const char *model,
                                  sheaf_appended *out)
{
	return sheaf_session_append_model_change(m->session, sheaf_str_of(provider),
	                                         sheaf_str_of(model), NULL, NULL, out, &err);
}

/* Refused with SHEAF_COMPACT where it would part a tool call from its answer. */
static int sm_append_compaction(manager *m, const char *summary, const char *first_kept,
                                uint64_t tokens, sheaf_appended *out)
{
	return sheaf_session_append_compaction(m->session, sheaf_str_of(summary),
	                                       sheaf_str_of(first_kept), tokens, NULL, NULL, out,
	                                       &err);
}

static int sm_append_session_info(manager *m, const char *name, sheaf_appended *out)
{
	return sheaf_session_rename(m->session, sheaf_str_of(name), none, NULL, out, &err);
}

static int sm_append_custom_entry(manager *m, const char *type, const char *data,
                                  sheaf_appended *out)
{
	return sheaf_session_append_custom(m->session, sheaf_str_of(type), sheaf_str_of(data), NULL,
	                                   NULL, out, &err);
}

static int sm_set_label(manager *m, const char *target, const char *label, sheaf_appended *out)
{
	return sheaf_session_label(m->session, sheaf_str_of(target), sheaf_str_of(label), NULL, out,
	                           &err);
}

/* ---- Branching ----------------------------------------------------------- */

static int sm_branch(manager *m, const char *entry)
{
	return sheaf_session_branch(m->session, none, sheaf_str_of(entry), NULL, NULL, &err);
}

static int sm_branch_with_summary(manager *m, const char *from, const char *summary,
                                  sheaf_appended *out)
{
	return sheaf_session_branch_with_summary(m->session, none, sheaf_str_of(from),
	                                         sheaf_str_of(summary), NULL, out, &err);
}

/* One path as a session of its own; writes its id. */
static int sm_create_branched_session(manager *m, const char *leaf, char id[SHEAF_ID_ROOM])
{
	sheaf_key fresh = sheaf_key_of("");
	sheaf_session *linear;
	int rc = sheaf_session_export_path(&linear, m->session, sheaf_str_of(leaf), m->store,
	                                   &fresh, &err);
	if (rc != 0)
		return rc;
	snprintf(id, SHEAF_ID_ROOM, "%s", sheaf_session_id(linear));
	sheaf_session_close(linear);
	return 0;
}

/* ---- Reading ------------------------------------------------------------- */

static int sm_get_context(manager *m, sheaf_context **out)
{
	return sheaf_session_context(out, m->session, NULL, &err);
}

static int sm_get_tree(manager *m, sheaf_tree **out)
{
	return sheaf_session_tree(out, m->session, &err);
}

static int sm_list(manager *m, sheaf_list **out)
{
	return sheaf_store_list(out, m->store, NULL, &err);
}

/* ---- The manager at work -------------------------------------------------- */

static void must(int rc, const char *what)
{
	if (rc != 0) {
		fprintf(stderr, "session_manager: %s: %s (%s)\n", what, err.message,
		        sheaf_code_name(rc));
		exit(1);
	}
	printf("%s\n", what);
}

/* The directory given, or a fresh one. */
static const char *directory(int argc, char **argv)
{
	static char fresh[256];
	const char *tmp = getenv("TMPDIR");

	if (argc > 1)
		return argv[1];
	snprintf(fresh, sizeof(fresh), "%s/sheaf-manager.XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(fresh) == NULL) {
		perror(fresh);
		exit(1);
	}
	return fresh;
}

/* Every way to append, on one path. Gives the ids of the question and of the last message. */
static void write_session(manager *m, sheaf_appended *question, sheaf_appended *last)
{
	must(sm_append_session_info(m, "Reading main.go", NULL), "AppendSessionInfo");
	must(sm_append_model_change(m, "anthropic", "claude", NULL), "AppendModelChange");
	must(sm_append_thinking_level_change(m, "high", NULL), "AppendThinkingLevelChange");
	must(sm_append_message(m, SHEAF_ROLE_USER, "Read main.go", question), "AppendMessage");
	must(sm_append(m, "message",
	               "{\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\","
	               "\"tool_use\":{\"id\":\"call_abc\",\"name\":\"read_file\","
	               "\"input\":{\"path\":\"main.go\"}}}]}}",
	               NULL),
	     "Append, a tool call");
	must(sm_append(m, "message",
	               "{\"message\":{\"role\":\"tool\",\"content\":[{\"type\":\"tool_result\","
	               "\"tool_result\":{\"tool_use_id\":\"call_abc\","
	               "\"content\":\"package main...\"}}]}}",
	               NULL),
	     "Append, its answer");
	must(sm_append_custom_entry(m, "editor", "{\"cursor\":42}", NULL), "AppendCustomEntry");
	must(sm_append_message(m, SHEAF_ROLE_ASSISTANT, "It is empty.", last), "AppendMessage");
	must(sm_set_label(m, question->id, "question", NULL), "SetLabel");
}

static void print_tree(const sheaf_tree *tree)
{
	char text[40];
	for (size_t i = 0; i < tree->node_count; i++) {
		const sheaf_node *node = tree->nodes[i];
		const sheaf_entry *entry = node->entry;
		sheaf_message_view_text(entry->message, text, sizeof(text));
		printf("  %c %*s%s %s %.*s\n", node->on_path ? '*' : ' ', (int)node->depth, "",
		       sheaf_kind_name(entry->kind), text, TEXT(entry->label));
	}
}

static void read_session(manager *m)
{
	sheaf_context *context;
	sheaf_tree *tree;
	sheaf_list *list;

	must(sm_get_context(m, &context), "GetContext");
	for (size_t i = 0; i < context->count; i++)
		printf("  %.*s\n", TEXT(context->items[i]->message->role));
	sheaf_context_free(context);

	must(sm_get_tree(m, &tree), "GetTree");
	print_tree(tree);
	sheaf_tree_free(tree);

	must(sm_list(m, &list), "List");
	for (size_t i = 0; i < list->count; i++)
		printf("  %.*s: %llu messages\n", TEXT(list->items[i]->name),
		       (unsigned long long)list->items[i]->messages);
	sheaf_list_free(list);
}

int main(int argc, char **argv)
{
	sheaf_appended question = SHEAF_APPENDED_INIT, last = SHEAF_APPENDED_INIT;
	const char *dir = directory(argc, argv);
	char linear[SHEAF_ID_ROOM], path[1024];
	manager m = {NULL, NULL};

	must(sm_new(&m, dir, "an-older-session"), "New");
	write_session(&m, &question, &last);
	must(sm_branch(&m, "question"), "Branch, to an entry named by its label");
	must(sm_append_message(&m, SHEAF_ROLE_USER, "Or util.go?", NULL), "AppendMessage");
	must(sm_branch_with_summary(&m, last.id, "Asked for util.go, too.", NULL),
	     "BranchWithSummary");
	must(sm_append_compaction(&m, "main.go was read.", last.id, 1500, NULL),
	     "AppendCompaction");
	must(sm_create_branched_session(&m, last.id, linear), "CreateBranchedSession");
	read_session(&m);
	sm_close(&m);

	must(sm_continue_recent(&m, dir), "ContinueRecent");
	sm_close(&m);
	snprintf(path, sizeof(path), "%s/%s.jsonl", dir, linear);
	must(sm_load(&m, path), "Load");
	sm_close(&m);
	must(sm_fork_from(&m, path, dir), "ForkFrom");
	sm_close(&m);
	return 0;
}
