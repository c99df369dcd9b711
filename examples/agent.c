/*
 * An agent with a tool and a memory: asks a model, lets it look at the clock, and
 * keeps the conversation. Run again, it goes on where it was, also if it was
 * killed in between.
 *
 *     agent DIRECTORY MODEL TEXT [ADDRESS]
 *
 * The key is in $ANTHROPIC_API_KEY. With an address the model is asked there.
 */
#include <sheaf.h>
#include <stdio.h>
#include <time.h>

static sheaf_error err;

static int failed(const char *what)
{
	fprintf(stderr, "agent: %s: %s\n", what, err.message);
	return 1;
}

/* A tool gets what the model wrote and answers with text, or fails with a reason. */
static int tell_time(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *why)
{
	char text[64];
	time_t now = time(NULL);
	(void)ctx, (void)call, (void)why;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", gmtime(&now));
	return sheaf_tool_answer_text(answer, sheaf_str_of(text));
}

static void show(void *ctx, const sheaf_event *event)
{
	(void)ctx;
	if (event->kind == SHEAF_EVENT_DELTA && event->delta == SHEAF_DELTA_TEXT)
		printf("%.*s", (int)event->text.len, event->text.ptr);
	if (event->kind == SHEAF_EVENT_TOOL_START)
		printf("[%.*s]\n", (int)event->call->name.len, event->call->name.ptr);
	fflush(stdout);
}

static int talk(sheaf_session *session, sheaf_client *client, const char *model, const char *text)
{
	sheaf_agent *agent;
	sheaf_turn *turn = NULL;
	sheaf_system system = {SHEAF_STR("You are brief."), 0, 0};
	sheaf_agent_tool clock = {.run = tell_time};
	sheaf_render_options render = SHEAF_RENDER_OPTIONS_INIT;
	sheaf_agent_options how = SHEAF_AGENT_OPTIONS_INIT;

	clock.tool.name = SHEAF_STR("clock");
	clock.tool.description = SHEAF_STR("Says what time it is");
	render.model = sheaf_str_of(model);
	render.stream = 1;
	render.system = &system;
	render.system_count = 1;
	how.model = sheaf_client_model(client);
	how.session = session;
	how.render = &render;
	how.tools = &clock;
	how.tool_count = 1;
	how.on_event = show;
	if (sheaf_agent_new(&agent, &how, &err) != 0)
		return failed("make an agent");

	/* The input is on disk before the model is asked, and every message as it is complete. */
	int rc = sheaf_agent_run_text(&turn, agent, sheaf_str_of(text), NULL, &err);
	if (rc == 0)
		printf("\n(%s, %llu tokens in, %llu out)\n", sheaf_turn_outcome_name(turn->outcome),
		       (unsigned long long)turn->usage.input,
		       (unsigned long long)turn->usage.output);
	sheaf_turn_free(turn);
	sheaf_agent_free(agent);
	return rc == 0 ? 0 : failed("answer");
}

int main(int argc, char **argv)
{
	sheaf_store *store;
	sheaf_session *session;
	sheaf_client *client;
	sheaf_client_options where = SHEAF_CLIENT_OPTIONS_INIT;
	sheaf_key key = sheaf_key_of("talk");
	char url[512];

	if (argc < 4) {
		printf("usage: agent DIRECTORY MODEL TEXT [ADDRESS]\n");
		return 0;
	}
	snprintf(url, sizeof(url), "jsonl:%s", argv[1]);
	if (sheaf_open(&store, url, NULL, &err) != 0)
		return failed("open the store");
	if (sheaf_session_open(&session, store, &key, NULL, &err) != 0)
		return failed("open the session");
	where.format = SHEAF_FORMAT_ANTHROPIC;
	where.url = sheaf_str_of(argc > 4 ? argv[4] : NULL);
	if (sheaf_client_open(&client, &where, &err) != 0)
		return failed("find the model");
	int status = talk(session, client, argv[2], argv[3]);
	sheaf_client_close(client);
	sheaf_session_close(session);
	sheaf_close(store);
	return status;
}
