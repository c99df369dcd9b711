/* sheaf completion: completion scripts for bash, zsh and fish, from the command table. */
#include <stdio.h>
#include <string.h>

#include "print.h"

static void put_names(buf *out, const opt *o)
{
	for (; o->name != NULL; o++) {
		buf_format(out, " --%s", o->name);
		if (o->letter != 0)
			buf_format(out, " -%c", o->letter);
	}
}

/* ---- bash -------------------------------------------------------------- */

/* Of the command with this name; "*": of all of them. Where anything goes it may be a file, but not
 * a session, as the command's words are. */
static void put_bash_choices(buf *out, const char *command_name, const opt *o)
{
	for (; o->name != NULL; o++) {
		if (o->value == NULL)
			continue;
		buf_format(out, "\t%s.--%s", command_name, o->name);
		if (o->letter != 0)
			buf_format(out, "|%s.-%c", command_name, o->letter);
		if (o->choices != NULL)
			buf_format(out, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
			           o->choices);
		else
			buf_lit(out, ") COMPREPLY=(); return ;;\n");
	}
}

static void put_bash(buf *out)
{
	buf_lit(out,
	        "# bash completion for sheaf\n"
	        "_sheaf() {\n"
	        "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i\n"
	        "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	        "\t\tcase ${COMP_WORDS[i]} in\n"
	        "\t\t-S|--store|--app|--user|--color) ((i++)) ;;\n"
	        "\t\t-*) ;;\n"
	        "\t\t*) cmd=${COMP_WORDS[i]}; break ;;\n"
	        "\t\tesac\n"
	        "\tdone\n"
	        "\tcase $cmd.$prev in\n");
	put_bash_choices(out, "*", global_options);
	for (const command *cmd = commands; cmd->name != NULL; cmd++)
		put_bash_choices(out, cmd->name, cmd->options);
	buf_lit(out, "\tesac\n\tlocal global='");
	put_names(out, global_options);
	buf_lit(out, "'\n\tcase $cmd in\n\t'') COMPREPLY=($(compgen -W \"");
	for (const command *cmd = commands; cmd->name != NULL; cmd++)
		buf_format(out, "%s ", cmd->name);
	buf_lit(out, "$global\" -- \"$cur\")) ;;\n");
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		buf_format(out, "\t%s)\n\t\tif [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"",
		           cmd->name);
		put_names(out, cmd->options);
		buf_lit(out, " $global\" -- \"$cur\"))\n");
		if (cmd->word == WORD_SESSION)
			buf_lit(out,
			        "\t\telse COMPREPLY=($(compgen -W \"$(sheaf ls --quiet --limit 1000 "
			        "2>/dev/null)\" -- \"$cur\"))\n");
		if (cmd->word == WORD_COMMAND) {
			buf_lit(out, "\t\telse COMPREPLY=($(compgen -W \"");
			for (const command *other = commands; other->name != NULL; other++)
				buf_format(out, "%s ", other->name);
			buf_lit(out, "\" -- \"$cur\"))\n");
		}
		if (cmd->word == WORD_SHELL)
			buf_lit(out,
			        "\t\telse COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\"))\n");
		buf_lit(out, "\t\tfi ;;\n");
	}
	buf_lit(out, "\tesac\n}\ncomplete -o default -F _sheaf sheaf\n");
}

/* ---- zsh --------------------------------------------------------------- */

/* In single quotes, with what _arguments treats specially escaped. */
static void put_zsh_text(buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			buf_lit(out, "'\\''");
		else if (strchr("[]:\\", *text) != NULL)
			buf_format(out, "\\%c", *text);
		else
			buf_char(out, *text);
	}
}

static void put_zsh_option(buf *out, const opt *o)
{
	buf_lit(out, " \\\n\t\t");
	if (o->letter != 0)
		buf_format(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
		           o->value != NULL ? "+" : "", o->name, o->value != NULL ? "=" : "");
	else
		buf_format(out, "'--%s%s[", o->name, o->value != NULL ? "=" : "");
	put_zsh_text(out, o->help);
	buf_char(out, ']');
	if (o->choices != NULL)
		buf_format(out, ":%s:(%s)", o->value, o->choices);
	else if (o->value != NULL)
		buf_format(out, ":%s:", o->value);
	buf_char(out, '\'');
}

static void put_zsh(buf *out)
{
	buf_lit(out, "#compdef sheaf\n"
	             "_sheaf_sessions() {\n"
	             "\tlocal -a ids\n"
	             "\tids=(${(f)\"$(sheaf ls --quiet --limit 1000 2>/dev/null)\"})\n"
	             "\tcompadd -a ids\n"
	             "}\n"
	             "_sheaf() {\n"
	             "\tlocal -a cmds\n"
	             "\tlocal curcontext=$curcontext state line\n"
	             "\tcmds=(\n");
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		buf_format(out, "\t\t'%s:", cmd->name);
		put_zsh_text(out, cmd->brief);
		buf_lit(out, "'\n");
	}
	buf_lit(out, "\t)\n\t_arguments -C");
	for (const opt *o = global_options; o->name != NULL; o++)
		put_zsh_option(out, o);
	buf_lit(out, " \\\n\t\t'1:command:->command' '*::argument:->rest'\n"
	             "\tcase $state in\n"
	             "\tcommand) _describe command cmds ;;\n"
	             "\trest)\n\t\tcase $words[1] in\n");
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		buf_format(out, "\t\t%s) _arguments", cmd->name);
		for (const opt *o = cmd->options; o->name != NULL; o++)
			put_zsh_option(out, o);
		for (const opt *o = global_options; o->name != NULL; o++)
			put_zsh_option(out, o);
		if (cmd->word == WORD_SESSION)
			buf_lit(out, " '1:session:_sheaf_sessions' '*: :'");
		else if (cmd->word == WORD_COMMAND)
			buf_lit(out, " '1:command:{_describe command cmds}'");
		else if (cmd->word == WORD_SHELL)
			buf_lit(out, " '1:shell:(bash zsh fish)'");
		buf_lit(out, " ;;\n");
	}
	buf_lit(out,
	        "\t\tesac ;;\n\tesac\n}\n"
	        "if [ \"$funcstack[1]\" = _sheaf ]; then _sheaf \"$@\"; else compdef _sheaf sheaf; fi\n");
}

/* ---- fish -------------------------------------------------------------- */

static void put_fish_text(buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			buf_char(out, '\\');
		buf_char(out, *text);
	}
	buf_char(out, '\'');
}

static void put_fish_options(buf *out, const opt *o, const char *when)
{
	for (; o->name != NULL; o++) {
		buf_format(out, "complete -c sheaf %s -l %s", when, o->name);
		if (o->letter != 0)
			buf_format(out, " -s %c", o->letter);
		if (o->value != NULL)
			buf_lit(out, " -x");
		if (o->choices != NULL)
			buf_format(out, " -a '%s'", o->choices);
		buf_lit(out, " -d ");
		put_fish_text(out, o->help);
		buf_char(out, '\n');
	}
}

static void put_fish(buf *out)
{
	buf_lit(out, "# fish completion for sheaf\ncomplete -c sheaf -f\n");
	put_fish_options(out, global_options, "");
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		char when[64];
		snprintf(when, sizeof(when), "-n '__fish_seen_subcommand_from %s'", cmd->name);
		buf_format(out, "complete -c sheaf -n __fish_use_subcommand -a %s -d ", cmd->name);
		put_fish_text(out, cmd->brief);
		buf_char(out, '\n');
		put_fish_options(out, cmd->options, when);
		if (cmd->word == WORD_SESSION)
			buf_format(
				out,
				"complete -c sheaf %s -a '(sheaf ls --quiet --limit 1000 2>/dev/null)'\n",
				when);
		if (cmd->word == WORD_SHELL)
			buf_format(out, "complete -c sheaf %s -a 'bash zsh fish'\n", when);
		if (cmd->word == WORD_COMMAND) {
			buf_format(out, "complete -c sheaf %s -a '", when);
			for (const command *other = commands; other->name != NULL; other++)
				buf_format(out, "%s ", other->name);
			buf_lit(out, "'\n");
		}
	}
}

int cmd_completion(cli *c)
{
	static const struct {
		const char *shell;
		void (*put)(buf *out);
	} shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < COUNT_OF(shells); i++) {
		if (strcmp(shells[i].shell, c->words[0]) != 0)
			continue;
		shells[i].put(&out);
		print_out(&out);
		return out.status != 0 ? fail_memory(c) : 0;
	}
	return usage(c, "completion is there for bash, zsh and fish, not '%.40s'", c->words[0]);
}
