/* Help from the command table: the short list, everything, and each command. */
#include <stdio.h>
#include <string.h>

#include "print.h"

#define OPTION_COLUMNS 28u

static void put_title(const cli *c, buf *out, const char *title)
{
	print_styled(&c->screen, out, STYLE_TITLE, sheaf_str_of(title));
	buf_char(out, '\n');
}

/* Each line of `text` behind `lead`. */
static void put_lines(buf *out, const char *lead, const char *text)
{
	while (*text != '\0') {
		const char *end = strchrnul(text, '\n');
		if (end != text)
			buf_format(out, "%s%.*s", lead, (int)(end - text), text);
		buf_char(out, '\n');
		text = *end != '\0' ? end + 1 : end;
	}
}

static void put_command_line(buf *out, const command *cmd)
{
	buf_format(out, "  %-11s %s\n", cmd->name, cmd->brief);
}

static void put_commands(const cli *c, buf *out, bool plumbing)
{
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		if (cmd->plumbing && !plumbing)
			continue;
		if (cmd->group != NULL) {
			buf_char(out, '\n');
			put_title(c, out, cmd->group);
		}
		put_command_line(out, cmd);
	}
}

static void put_options(buf *out, const opt *o)
{
	for (; o->name != NULL; o++) {
		size_t begin = out->len;
		if (o->letter != 0)
			buf_format(out, "  -%c, --%s", o->letter, o->name);
		else
			buf_format(out, "      --%s", o->name);
		if (o->value != NULL)
			buf_format(out, " %s", o->value);
		size_t used = out->len - begin;
		text_spaces(out, used < OPTION_COLUMNS ? OPTION_COLUMNS - used : 2);
		buf_format(out, "%s\n", o->help);
	}
}

static void put_synopsis(buf *out, const command *cmd)
{
	const char *text = cmd->synopsis;
	for (const char *lead = "usage: "; *text != '\0'; lead = "       ") {
		const char *end = strchrnul(text, '\n');
		buf_format(out, "%ssheaf %.*s%s\n", lead, (int)(end - text), text,
		           cmd->options[0].name != NULL ? " [OPTION...]" : "");
		text = *end != '\0' ? end + 1 : end;
	}
}

/* Bare `sheaf`: what it is, where to start, what there is. */
int help_short(cli *c)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	buf_lit(&out, "sheaf keeps the conversations of LLM agents.\n\n"
	              "usage: sheaf COMMAND [ARGUMENT...] [OPTION...]\n\n"
	              "  $ sheaf new demo\n"
	              "  $ echo hello | sheaf append demo --role user\n"
	              "  $ sheaf show demo\n");
	put_commands(c, &out, false);
	buf_lit(&out,
	        "\n`sheaf help COMMAND` says how one is used, `sheaf help` says everything.\n");
	print_out(&out);
	return 0;
}

static int help_all(cli *c)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	buf_lit(&out, "sheaf keeps the conversations of LLM agents.\n\n"
	              "usage: sheaf COMMAND [ARGUMENT...] [OPTION...]\n");
	put_commands(c, &out, true);
	buf_char(&out, '\n');
	put_title(c, &out, "options of every command");
	put_options(&out, global_options);
	for (const topic *t = topics; t->title != NULL; t++) {
		buf_char(&out, '\n');
		put_title(c, &out, t->title);
		put_lines(&out, "  ", t->text);
	}
	print_page(c);
	print_out(&out);
	return 0;
}

int help_command(cli *c, const command *about)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	buf_format(&out, "sheaf %s: %s\n\n", about->name, about->brief);
	put_synopsis(&out, about);
	buf_char(&out, '\n');
	put_lines(&out, "  $ ", about->examples);
	buf_char(&out, '\n');
	put_lines(&out, "", about->about);
	if (about->options[0].name != NULL) {
		buf_char(&out, '\n');
		put_title(c, &out, "options");
		put_options(&out, about->options);
	}
	buf_char(&out, '\n');
	put_title(c, &out, "options of every command");
	put_options(&out, global_options);
	if (about->word == WORD_SESSION) {
		buf_char(&out, '\n');
		put_title(c, &out, topics[0].title);
		put_lines(&out, "  ", topics[0].text);
	}
	print_page(c);
	print_out(&out);
	return 0;
}

int cmd_help(cli *c)
{
	if (c->word_count == 0)
		return help_all(c);
	const command *about = command_find(c->words[0]);
	if (about != NULL)
		return help_command(c, about);
	const command *guess = command_guess(c->words[0]);
	char hint[64] = "run `sheaf help` for the commands there are";
	if (guess != NULL)
		snprintf(hint, sizeof(hint), "did you mean `sheaf help %s`?", guess->name);
	return fail_with(c, SHEAF_INVALID, hint, "'%.60s' is not a sheaf command", c->words[0]);
}
