/* sheaf man: the manual page, in roff, from the command table. */
#include <ctype.h>
#include <string.h>

#include "print.h"

/* Text as roff takes it: dashes that stay dashes, no line that begins like a request. */
static void put_text(buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char ch = text[i];
		bool begins = i == 0 || text[i - 1] == '\n';
		if (begins && (ch == '.' || ch == '\''))
			buf_lit(out, "\\&");
		if (ch == '-')
			buf_lit(out, "\\-");
		else if (ch == '\\')
			buf_lit(out, "\\e");
		else
			buf_char(out, ch);
	}
}

static void put_upper(buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_char(out, (char)toupper((unsigned char)*text));
}

/* Paragraphs; where lines are laid out by hand they stay as they are. */
static void put_paragraphs(buf *out, const char *text, bool literal)
{
	buf_str(out, literal ? SHEAF_STR(".nf\n") : SHEAF_STR(".PP\n"));
	while (*text != '\0') {
		const char *end = strchrnul(text, '\n');
		if (end == text)
			buf_str(out, literal ? SHEAF_STR("\n") : SHEAF_STR(".PP"));
		put_text(out, text, (size_t)(end - text));
		buf_char(out, '\n');
		text = *end != '\0' ? end + 1 : end;
	}
	if (literal)
		buf_lit(out, ".fi\n");
}

static void put_options(buf *out, const opt *o)
{
	for (; o->name != NULL; o++) {
		buf_lit(out, ".TP\n");
		if (o->letter != 0)
			buf_format(out, "\\fB\\-%c\\fR, ", o->letter);
		buf_lit(out, "\\fB\\-\\-");
		put_text(out, o->name, strlen(o->name));
		buf_lit(out, "\\fR");
		if (o->value != NULL)
			buf_format(out, " \\fI%s\\fR", o->value);
		buf_char(out, '\n');
		put_text(out, o->help, strlen(o->help));
		buf_lit(out, ".\n");
	}
}

static void put_synopsis(buf *out, const command *cmd)
{
	const char *text = cmd->synopsis;
	buf_lit(out, ".nf\n");
	while (*text != '\0') {
		const char *end = strchrnul(text, '\n');
		buf_lit(out, "\\fBsheaf\\fR ");
		put_text(out, text, (size_t)(end - text));
		buf_str(out, cmd->options[0].name != NULL ? SHEAF_STR(" [OPTION...]\n")
		                                          : SHEAF_STR("\n"));
		text = *end != '\0' ? end + 1 : end;
	}
	buf_lit(out, ".fi\n");
}

static void put_command(buf *out, const command *cmd)
{
	buf_lit(out, ".SS sheaf ");
	put_text(out, cmd->name, strlen(cmd->name));
	buf_lit(out, " \\(em ");
	put_text(out, cmd->brief, strlen(cmd->brief));
	buf_char(out, '\n');
	put_synopsis(out, cmd);
	put_paragraphs(out, cmd->about, false);
	put_options(out, cmd->options);
	buf_lit(out, ".PP\nExamples:\n.PP\n.RS 4\n");
	put_paragraphs(out, cmd->examples, true);
	buf_lit(out, ".RE\n");
}

int cmd_man(cli *c)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	buf_format(&out, ".TH SHEAF 1 \"\" \"sheaf %s\" \"User Commands\"\n", sheaf_version());
	buf_lit(&out,
	        ".nh\n.ad l\n.SH NAME\nsheaf \\- keeps the conversations of LLM agents\n"
	        ".SH SYNOPSIS\n\\fBsheaf\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n"
	        ".SH DESCRIPTION\n"
	        "A session is one conversation: an append\\-only log whose entries form a tree.\n"
	        "A branch is a name for a place in that tree; \\fBmain\\fR always exists.\n"
	        "Nothing is ever changed or lost by going back and trying again.\n"
	        ".SH OPTIONS OF EVERY COMMAND\n");
	put_options(&out, global_options);
	buf_lit(&out, ".SH COMMANDS\n");
	for (const command *cmd = commands; cmd->name != NULL; cmd++)
		put_command(&out, cmd);
	for (const topic *t = topics; t->title != NULL; t++) {
		buf_lit(&out, ".SH ");
		put_upper(&out, t->title);
		buf_char(&out, '\n');
		put_paragraphs(&out, t->text, t != topics);
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}
