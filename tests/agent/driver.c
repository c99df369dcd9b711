/*
 * An agent as a process of its own, for tests that give it a server, kill it,
 * and look at what is left.
 *
 *   driver FORMAT ADDRESS STORE run TEXT      a turn
 *   driver FORMAT ADDRESS STORE continue      without input
 *   driver FORMAT ADDRESS STORE resume ID TEXT
 *   driver FORMAT ADDRESS STORE path          the path in words
 *   driver FORMAT ADDRESS STORE render        render it and check that
 *   driver FORMAT ADDRESS -     open          make a client; "-" is no address
 *   driver FORMAT FILE    -     check         check a request body
 *
 * Settings come from the environment: STREAM, BACKOFF_MS, KEEP, WINDOW, CANCEL_MS,
 * IDLE_MS, FIRST_MS, ANY_HTTP, HEADER, REPLY_MAX. Tools: echo, slow (a minute), ask (suspends). Every event is a line.
 */
#include <pthread.h>
#include <sheaf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARG(s) (int)(s).len, (s).ptr

static const sheaf_str none = {NULL, 0};

static long setting(const char *name, long otherwise)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0' ? strtol(value, NULL, 10) : otherwise;
}

static int failed(int rc, const sheaf_error *err)
{
	printf("error %s %s\n", sheaf_code_name(rc), err->message);
	return 1;
}

/* ---- Tools --------------------------------------------------------------- */

static int echo(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)ctx, (void)err;
	return sheaf_tool_answer_text(answer, call->input);
}

static int slow(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)ctx, (void)err;
	for (int i = 0; i < 6000 && !sheaf_cancel_is_set(call->cancel); i++)
		(void)nanosleep(&(struct timespec){0, 10000000}, NULL);
	(void)sheaf_tool_answer_text(answer, SHEAF_STR("late"));
	return sheaf_cancel_is_set(call->cancel) ? SHEAF_CANCELLED : 0;
}

static int ask(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)ctx, (void)call, (void)answer, (void)err;
	return SHEAF_TOOL_SUSPEND;
}

static const sheaf_agent_tool tools[] = {
	{{SHEAF_STR("echo"), SHEAF_STR("Says it again"), {NULL, 0}}, echo, NULL},
	{{SHEAF_STR("slow"), SHEAF_STR("Takes its time"), {NULL, 0}}, slow, NULL},
	{{SHEAF_STR("ask"), SHEAF_STR("Asks a person"), {NULL, 0}}, ask, NULL},
};

/* ---- Watching ------------------------------------------------------------ */

static pthread_t presser;
static int pressing;
static long pressed_ms;

static long now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *press(void *ctx)
{
	long ms = setting("CANCEL_MS", 0);
	(void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	pressed_ms = now_ms();
	sheaf_cancel_set(ctx, 1);
	return NULL;
}

/* Cancelling begins to be on its way when something is going on. */
static void begin_to_press(sheaf_cancel *cancel, int32_t kind)
{
	if ((kind == SHEAF_EVENT_DELTA || kind == SHEAF_EVENT_TOOL_START) && !pressing &&
	    setting("CANCEL_MS", 0) > 0)
		pressing = pthread_create(&presser, NULL, press, cancel) == 0;
}

static void on_event(void *ctx, const sheaf_event *event)
{
	begin_to_press(ctx, event->kind);
	switch (event->kind) {
	case SHEAF_EVENT_DELTA:
		printf("delta %.*s\n", ARG(event->text));
		break;
	case SHEAF_EVENT_MESSAGE_END:
		printf("message %.*s\n", ARG(event->entry->message->role));
		break;
	case SHEAF_EVENT_TOOL_START:
		printf("tool %.*s\n", ARG(event->call->name));
		break;
	case SHEAF_EVENT_RETRY:
		printf("retry %ld %.*s\n", (long)(event->wait_us / 1000), ARG(event->text));
		break;
	case SHEAF_EVENT_COMPACTION_START:
		printf("compacting %.*s\n", ARG(event->text));
		break;
	case SHEAF_EVENT_COMPACTION_END:
		printf("compacted %d %.*s\n", (int)event->code, ARG(event->text));
		break;
	case SHEAF_EVENT_INTERRUPTED:
		printf("interrupted\n");
		break;
	default:
		break;
	}
	fflush(stdout);
}

/* ---- Commands ------------------------------------------------------------ */

static int show_turn(int rc, const sheaf_turn *turn, const sheaf_error *err)
{
	if (turn != NULL) {
		printf("turn %s steps=%u retries=%u compacted=%u input=%llu output=%llu\n",
		       sheaf_turn_outcome_name(turn->outcome), turn->steps, turn->retries,
		       turn->compacted, (unsigned long long)turn->usage.input,
		       (unsigned long long)turn->usage.output);
		for (size_t i = 0; i < turn->pending_count; i++)
			printf("pending %.*s\n", ARG(turn->pending[i].id));
		printf("text %s\n", turn->text.ptr);
	}
	return rc != 0 ? failed(rc, err) : 0;
}

static int run_agent(sheaf_agent *agent, sheaf_cancel *cancel, int argc, char **argv,
                     sheaf_error *err)
{
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	sheaf_turn *turn = NULL;
	how.cancel = cancel;
	int rc;
	if (strcmp(argv[4], "resume") == 0 && argc == 7) {
		sheaf_resume answer = {sheaf_str_of(argv[5]), sheaf_str_of(argv[6]), 0, 0};
		rc = sheaf_agent_resume(&turn, agent, &answer, 1, &how, err);
	} else if (argc == 6) {
		rc = sheaf_agent_run_text(&turn, agent, sheaf_str_of(argv[5]), &how, err);
	} else {
		rc = sheaf_agent_run(&turn, agent, NULL, 0, &how, err);
	}
	long ended_ms = now_ms();
	if (pressing) {
		(void)pthread_join(presser, NULL);
		printf("late %ld\n", ended_ms - pressed_ms);
	}
	int status = show_turn(rc, turn, err);
	sheaf_turn_free(turn);
	return status;
}

static int open_client(sheaf_client **out, int32_t format, const char *address)
{
	sheaf_error err = {0};
	sheaf_client_options where = SHEAF_CLIENT_OPTIONS_INIT;
	sheaf_str header = sheaf_str_of(getenv("HEADER"));
	where.format = format;
	where.url = sheaf_str_of(strcmp(address, "-") != 0 ? address : NULL);
	where.any_http = setting("ANY_HTTP", 0) != 0;
	where.headers = &header;
	where.header_count = header.ptr != NULL;
	where.idle_us = setting("IDLE_MS", 0) * 1000;
	where.first_byte_us = setting("FIRST_MS", 0) * 1000;
	where.reply_bytes_max = (size_t)setting("REPLY_MAX", 0);
	int rc = sheaf_client_open(out, &where, &err);
	return rc != 0 ? failed(rc, &err) : 0;
}

static int with_agent(sheaf_session *session, int32_t format, int argc, char **argv)
{
	sheaf_error err = {0};
	sheaf_client *client = NULL;
	sheaf_agent *agent = NULL;
	sheaf_cancel *cancel = sheaf_cancel_new();
	sheaf_agent_options how = SHEAF_AGENT_OPTIONS_INIT;
	sheaf_render_options render = SHEAF_RENDER_OPTIONS_INIT;
	sheaf_compaction_options compaction = SHEAF_COMPACTION_OPTIONS_INIT;
	sheaf_system system = {SHEAF_STR("You are tested."), 0, 0};
	if (open_client(&client, format, argv[2]) != 0)
		return 1;
	render.model = SHEAF_STR("test-model");
	render.stream = setting("STREAM", 1) != 0;
	render.system = &system;
	render.system_count = 1;
	compaction.window = (uint64_t)setting("WINDOW", 0);
	if (getenv("KEEP") != NULL)
		compaction.keep_recent = (uint64_t)setting("KEEP", 0);
	how.model = sheaf_client_model(client);
	how.session = session;
	how.render = &render;
	how.compaction = &compaction;
	how.tools = tools;
	how.tool_count = sizeof(tools) / sizeof(tools[0]);
	how.on_event = on_event;
	how.event_ctx = cancel;
	how.backoff_us = setting("BACKOFF_MS", 5) * 1000;
	int rc = sheaf_agent_new(&agent, &how, &err);
	int status = rc == 0 ? run_agent(agent, cancel, argc, argv, &err) : failed(rc, &err);
	sheaf_agent_free(agent);
	sheaf_cancel_free(cancel);
	sheaf_client_close(client);
	return status;
}

static int show_path(sheaf_session *session)
{
	sheaf_error err = {0};
	sheaf_records *path = NULL;
	int rc = sheaf_session_path(&path, session, none, none, 0, &err);
	if (rc != 0)
		return failed(rc, &err);
	for (size_t i = 0; i < path->count; i++) {
		const sheaf_message_view *m = path->items[i]->message;
		if (m == NULL) {
			printf("%.*s\n", ARG(path->items[i]->type));
			continue;
		}
		printf("%.*s", ARG(m->role));
		for (size_t p = 0; p < m->part_count; p++) {
			const sheaf_part *part = m->parts[p];
			if (part->kind == SHEAF_PART_TOOL_USE)
				printf(" %.*s(%.*s)", ARG(part->name), ARG(part->input));
			else
				printf(" %.*s", ARG(part->text));
		}
		printf("\n");
	}
	sheaf_records_free(path);
	return 0;
}

static int check(int32_t format, sheaf_str body)
{
	sheaf_error err = {0};
	sheaf_violations *broken = NULL;
	int rc = sheaf_request_check(&broken, format, body, &err);
	if (rc != 0)
		return failed(rc, &err);
	for (size_t i = 0; i < broken->count; i++)
		printf("broken %.*s: %.*s\n", ARG(broken->items[i]->where),
		       ARG(broken->items[i]->text));
	int status = broken->count != 0;
	sheaf_violations_free(broken);
	return status;
}

static int check_file(int32_t format, const char *path)
{
	static char text[1 << 20];
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return 2;
	size_t len = fread(text, 1, sizeof(text), file);
	(void)fclose(file);
	return check(format, (sheaf_str){text, len});
}

/* A rendering keeps the rules once somebody has asked something. */
static int render_all(sheaf_session *session, int32_t format)
{
	sheaf_error err = {0};
	sheaf_context *context = NULL;
	sheaf_request *request = NULL;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = format;
	how.model = SHEAF_STR("test-model");
	int rc = sheaf_session_append_text(session, SHEAF_ROLE_USER, SHEAF_STR("And now?"), NULL,
	                                   &err);
	if (rc == 0)
		rc = sheaf_session_context(&context, session, NULL, &err);
	if (rc == 0)
		rc = sheaf_render(&request, context, &how, &err);
	int status = rc == 0 ? check(format, request->body) : failed(rc, &err);
	sheaf_request_free(request);
	sheaf_context_free(context);
	return status;
}

int main(int argc, char **argv)
{
	sheaf_error err = {0};
	sheaf_store *store = NULL;
	sheaf_session *session = NULL;
	if (argc < 5)
		return 2;
	int32_t format = sheaf_format_named(sheaf_str_of(argv[1]));
	if (strcmp(argv[4], "check") == 0)
		return check_file(format, argv[2]);
	if (strcmp(argv[4], "open") == 0) {
		sheaf_client *client = NULL;
		int status = open_client(&client, format, argv[2]);
		sheaf_client_close(client);
		return status;
	}
	sheaf_key key = sheaf_key_of("s");
	int rc = sheaf_open(&store, argv[3], NULL, &err);
	if (rc == 0)
		rc = sheaf_session_open(&session, store, &key, NULL, &err);
	if (rc != 0)
		return failed(rc, &err);
	int status;
	if (strcmp(argv[4], "path") == 0)
		status = show_path(session);
	else if (strcmp(argv[4], "render") == 0)
		status = render_all(session, format);
	else
		status = with_agent(session, format, argc, argv);
	sheaf_session_close(session);
	sheaf_close(store);
	return status;
}
