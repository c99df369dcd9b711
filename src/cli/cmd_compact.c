/* sheaf compact: puts a summary in the place of what was said, or takes it back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "find.h"
#include "input.h"
#include "model.h"
#include "opt.h"
#include "print.h"

static void plan_freep(sheaf_cut **plan)
{
	sheaf_cut_free(*plan);
}

static void agent_freep(sheaf_agent **agent)
{
	sheaf_agent_free(*agent);
}

static void turn_freep(sheaf_turn **turn)
{
	sheaf_turn_free(*turn);
}

static void compactions_freep(sheaf_compactions **list)
{
	sheaf_compactions_free(*list);
}

/* ---- Where summaries come from ----------------------------------------- */

static int write_all(int fd, sheaf_str text)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.ptr, text.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text = (sheaf_str){text.ptr + n, text.len - (size_t)n};
	}
	return 0;
}

/* The prompt is a file to the command, so that neither waits for the other. */
static void run_command(const char *line, int prompt, const int ends[2])
{
	if (dup2(prompt, STDIN_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0)
		_exit(127);
	close(ends[0]);
	close(ends[1]);
	execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	_exit(127);
}

static int read_all(int fd, buf *out)
{
	char chunk[65536];
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		buf_add(out, chunk, (size_t)n);
	}
}

static int command_failed(cli *c, const char *what)
{
	return fail_with(c, SHEAF_STORAGE, NULL, "cannot run the command: %s: %s", what,
	                 strerror(errno));
}

static int ask_command(cli *c, const sheaf_cut *plan, buf *summary)
{
	FILE *file = tmpfile();
	int ends[2], status = 0;
	if (file == NULL)
		return command_failed(c, "tmpfile");
	int prompt = fileno(file);
	if (write_all(prompt, plan->prompt) != 0 || lseek(prompt, 0, SEEK_SET) != 0 ||
	    pipe(ends) != 0) {
		int code = command_failed(c, "pipe");
		fclose(file);
		return code;
	}
	pid_t child = fork();
	if (child == 0)
		run_command(c->values[OPT_COMMAND], prompt, ends);
	close(ends[1]);
	int rc = child > 0 ? read_all(ends[0], summary) : -1;
	close(ends[0]);
	fclose(file);
	if (child < 0 || rc != 0)
		return command_failed(c, "read");
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail_with(c, SHEAF_COMPACT, "nothing was changed",
		                 "the command that was to write the summary failed (%d)",
		                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	if (summary->len > 0 && summary->ptr[summary->len - 1] == '\n')
		summary->len--;
	return buf_status(summary, &c->err) != 0 ? fail(c) : 0;
}

static int take_summary(cli *c, buf *summary)
{
	if (strcmp(c->values[OPT_SUMMARY], "-") == 0)
		return input_words(c, c->word_count, summary);
	buf_str(summary, opt_str(c, OPT_SUMMARY));
	return buf_status(summary, &c->err) != 0 ? fail(c) : 0;
}

/* An agent without a session: what it is asked and says is stored nowhere. */
static int ask_model(cli *c, sheaf_session *session, const sheaf_cut *plan, buf *summary)
{
	_cleanup_(model_done) model m = {0};
	_cleanup_(agent_freep) sheaf_agent *agent = NULL;
	_cleanup_(turn_freep) sheaf_turn *turn = NULL;
	int rc = model_open(c, session, opt_str(c, OPT_BRANCH), &m);
	if (rc != 0)
		return rc;
	sheaf_agent_options how = SHEAF_AGENT_OPTIONS_INIT;
	sheaf_render_options request = SHEAF_RENDER_OPTIONS_INIT;
	request.model = m.name;
	request.stream = 1;
	request.cache = SHEAF_CACHE_OFF;
	how.model = sheaf_client_model(m.client);
	how.render = &request;
	how.no_compaction = 1;
	if (sheaf_agent_new(&agent, &how, &c->err) != 0)
		return fail(c);
	if (sheaf_agent_run_text(&turn, agent, plan->prompt, NULL, &c->err) != 0)
		return model_failed(c, &m, "the same command");
	if (turn->stop == SHEAF_STOP_LENGTH || turn->stop == SHEAF_STOP_REFUSAL)
		return fail_with(c, SHEAF_COMPACT, "nothing was changed", "the model %s",
		                 turn->stop == SHEAF_STOP_LENGTH ? "did not come to an end"
		                                                 : "refused to sum it up");
	buf_str(summary, turn->text);
	return buf_status(summary, &c->err) != 0 ? fail(c) : 0;
}

/* The summary of a plan, by whatever means were asked for. */
static int get_summary(cli *c, sheaf_session *session, const sheaf_cut *plan, buf *summary)
{
	if (given(c, OPT_COMMAND))
		return ask_command(c, plan, summary);
	return given(c, OPT_SUMMARY) ? take_summary(c, summary)
	                             : ask_model(c, session, plan, summary);
}

/* ---- How full ---------------------------------------------------------- */

static int show_need(cli *c, sheaf_session *session, const sheaf_compaction_options *options)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_fill fill;
	if (sheaf_compaction_need(&fill, session, options, &c->err) != 0)
		return fail(c);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "session", sheaf_session_key(session).session);
		js_u64(&out, "tokens", fill.tokens);
		js_u64(&out, "counted", fill.counted);
		js_u64(&out, "window", fill.window);
		js_u64(&out, "limit", fill.limit);
		js_u64(&out, "bytes", fill.bytes);
		js_bool(&out, "needed", fill.needed != 0);
		js_bool(&out, "unknown", fill.unknown != 0);
		js_close(&out, '}');
		buf_char(&out, '\n');
	} else {
		text_count(&out, fill.tokens, "token", "tokens");
		buf_format(&out, " of ");
		text_count(&out, fill.window, "", "");
		buf_format(&out, "(%llu %%); compaction is due %s ",
		           (unsigned long long)(fill.tokens * 100 / fill.window),
		           fill.needed ? "now, beyond" : "beyond");
		text_count(&out, fill.limit, "token", "tokens");
		buf_char(&out, '\n');
		if (fill.counted < fill.tokens) {
			text_count(&out, fill.tokens - fill.counted, "token is", "tokens are");
			buf_lit(&out, " estimated\n");
		}
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* ---- Plans ------------------------------------------------------------- */

static void js_plan(buf *out, const sheaf_cut *plan)
{
	js_open(out, NULL, '{');
	js_str(out, "leaf", plan->leaf);
	js_str(out, "first_kept",
	       plan->first_kept.len != 0 ? plan->first_kept : (sheaf_str){NULL, 0});
	js_bool(out, "split", plan->split != 0);
	js_u64(out, "tokens_before", plan->tokens_before);
	js_u64(out, "tokens_kept", plan->tokens_kept);
	js_u64(out, "kept", plan->kept_count);
	js_open(out, "covered", '[');
	for (size_t i = 0; i < plan->covered_count; i++)
		js_str(out, NULL, plan->covered[i]);
	js_close(out, ']');
	js_str(out, "prompt", plan->prompt);
	js_close(out, '}');
	buf_char(out, '\n');
}

/* The plan is for the reader, the prompt is the output: it can be piped into a model. */
static void people_plan(cli *c, buf *out, const sheaf_cut *plan)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	text_count(&line, plan->covered_count, "message", "messages");
	buf_lit(&line, " to be summed up, ");
	text_count(&line, plan->kept_count, "stays", "stay");
	buf_nul(&line);
	if (line.status == 0)
		say(c, "%s%s%s%.*s", line.ptr, plan->split ? ", within a turn" : "",
		    plan->first_kept.len != 0 ? ": from " : "", (int)plan->first_kept.len,
		    plan->first_kept.len != 0 ? plan->first_kept.ptr : "");
	if (c->screen.tty)
		text_safe(out, plan->prompt, TEXT_BLOCK);
	else
		buf_str(out, plan->prompt);
}

static int show_plan(cli *c, const sheaf_cut *plan)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json)
		js_plan(&out, plan);
	else
		people_plan(c, &out, plan);
	if (!c->json)
		print_page(c);
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* ---- Changes ----------------------------------------------------------- */

/* What the record says of itself; 0 where it says nothing. */
static int read_back(cli *c, sheaf_session *session, const sheaf_appended *done, uint64_t *before,
                     uint64_t *after)
{
	_cleanup_(compactions_freep) sheaf_compactions *list = NULL;
	if (sheaf_session_compactions(&list, session, (sheaf_str){NULL, 0}, &c->err) != 0)
		return fail(c);
	for (size_t i = 0; i < list->count; i++) {
		if (str_is(list->items[i]->id, done->id)) {
			*before = list->items[i]->tokens_before;
			*after = list->items[i]->tokens_after;
		}
	}
	return 0;
}

static int report(cli *c, sheaf_session *session, const sheaf_cut *plan, const sheaf_appended *done)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	uint64_t before = 0, after = 0;
	int rc = read_back(c, session, done, &before, &after);
	if (rc != 0)
		return rc;
	if (c->json) {
		js_open(&out, NULL, '{');
		js_appended(&out, done);
		js_str(&out, "first_kept",
		       plan->first_kept.len != 0 ? plan->first_kept : (sheaf_str){NULL, 0});
		js_u64(&out, "covered", plan->covered_count);
		js_u64(&out, "kept", plan->kept_count);
		js_u64(&out, "tokens_before", before);
		js_u64(&out, "tokens_after", after);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
		return out.status != 0 ? fail_memory(c) : 0;
	}
	text_count(&line, after, "token", "tokens");
	buf_lit(&line, " instead of ");
	text_count(&line, before, "", "");
	if (line.len > 0)
		line.len--;
	buf_lit(&line, ", and ");
	text_count(&line, plan->covered_count, "message", "messages");
	buf_lit(&line, " summed up");
	buf_nul(&line);
	if (line.status != 0)
		return fail_memory(c);
	say(c, "%s", line.ptr);
	buf_format(&out, "%s\n", done->id);
	print_out(&out);
	return 0;
}

/* Somebody who sums up what he was shown before must not sum up what he was not. */
static int check_leaf(cli *c, sheaf_session *session, const sheaf_cut *plan)
{
	char leaf[SHEAF_ID_ROOM];
	if (!given(c, OPT_EXPECT_LEAF))
		return 0;
	int rc = find_entry(c, session, c->values[OPT_EXPECT_LEAF], leaf);
	if (rc != 0 || str_is(plan->leaf, leaf))
		return rc;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	if (sheaf_session_head(&head, session, &c->err) != 0)
		return fail(c);
	sheaf_error stale = {.code = SHEAF_STALE, .revision = head->info->revision};
	snprintf(stale.message, sizeof(stale.message), "the branch goes on since %.64s",
	         c->values[OPT_EXPECT_LEAF]);
	snprintf(stale.hint, sizeof(stale.hint), "plan again");
	snprintf(stale.leaf, sizeof(stale.leaf), "%.*s", (int)plan->leaf.len, plan->leaf.ptr);
	c->err = stale;
	return fail(c);
}

static int compact(cli *c, sheaf_session *session, const sheaf_compaction_options *options)
{
	_cleanup_(plan_freep) sheaf_cut *plan = NULL;
	_cleanup_(buf_free) buf summary = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (sheaf_compaction_plan(&plan, session, options, &c->err) != 0)
		return fail(c);
	int rc = check_leaf(c, session, plan);
	if (rc != 0)
		return rc;
	if (given(c, OPT_PLAN))
		return show_plan(c, plan);
	rc = get_summary(c, session, plan, &summary);
	if (rc != 0)
		return rc;
	if (sheaf_compaction_apply(session, plan, buf_view(&summary), &done, &c->err) != 0)
		return fail(c);
	return report(c, session, plan, &done);
}

static int undo(cli *c, sheaf_session *session)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (sheaf_compaction_undo(session, opt_str(c, OPT_BRANCH), &done, &c->err) != 0)
		return fail(c);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_appended(&out, &done);
		js_close(&out, '}');
		buf_char(&out, '\n');
	} else {
		say(c, "undone; undoing this once more brings the summary back");
		buf_format(&out, "%s\n", done.id);
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int read_options(cli *c, sheaf_compaction_options *out)
{
	int rc = load_models(c);
	if (rc != 0)
		return rc;
	out->models = c->models;
	out->branch = opt_str(c, OPT_BRANCH);
	out->instructions = opt_str(c, OPT_INSTRUCTIONS);
	if (given(c, OPT_KEEP))
		rc = opt_u64(c, OPT_KEEP, &out->keep_recent);
	if (rc == 0 && given(c, OPT_WINDOW))
		rc = opt_u64(c, OPT_WINDOW, &out->window);
	return rc;
}

int cmd_compact(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	sheaf_compaction_options options = SHEAF_COMPACTION_OPTIONS_INIT;
	int ways = given(c, OPT_SUMMARY) + given(c, OPT_COMMAND) + given(c, OPT_PLAN) +
	           given(c, OPT_UNDO) + given(c, OPT_NEED) + model_given(c);
	if (ways == 0)
		return usage(c,
		             "where does the summary come from? --model, --command or --summary");
	if (ways > 1)
		return usage(c,
		             "give one of --model, --command, --summary, --plan, --undo, --need");
	int rc = read_options(c, &options);
	if (rc != 0)
		return rc;
	bool reads = given(c, OPT_PLAN) || given(c, OPT_NEED);
	rc = reads ? open_for_reading(c, c->words[0], &session)
	           : open_for_writing(c, c->words[0], &session);
	if (rc == 0 && given(c, OPT_BRANCH))
		rc = find_branch(c, session);
	if (rc != 0)
		return rc;
	if (given(c, OPT_NEED))
		return show_need(c, session, &options);
	return given(c, OPT_UNDO) ? undo(c, session) : compact(c, session, &options);
}
