/* Reading the command line: global options, the command, its options and words, in any order. */
#include "opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "print.h"

static const opt *find_in(const opt *list, const char *name, size_t len, char letter)
{
	for (; list != NULL && list->name != NULL; list++) {
		bool hit = name != NULL
		                   ? strlen(list->name) == len && memcmp(list->name, name, len) == 0
		                   : list->letter != 0 && list->letter == letter;
		if (hit)
			return list;
	}
	return NULL;
}

/* A command's own options come first: they may give a letter another meaning. */
static const opt *find_option(const cli *c, const char *name, size_t len, char letter)
{
	const opt *found = NULL;
	if (c->command != NULL)
		found = find_in(c->command->options, name, len, letter);
	return found != NULL ? found : find_in(global_options, name, len, letter);
}

static bool allowed(const opt *o, const char *value)
{
	if (o->choices == NULL)
		return true;
	size_t len = strlen(value);
	for (const char *at = o->choices; *at != '\0';) {
		size_t word = strcspn(at, " ");
		if (word == len && memcmp(at, value, len) == 0)
			return true;
		at += word;
		at += strspn(at, " ");
	}
	return false;
}

static int set(cli *c, const opt *o, const char *value)
{
	if (!allowed(o, value))
		return usage(c, "--%s takes one of: %s (not '%s')", o->name, o->choices, value);
	c->values[o->id] = value;
	return 0;
}

static int take_long(cli *c, const char *text, char **next, int *used)
{
	size_t len = strcspn(text, "=");
	const char *value = text[len] == '=' ? text + len + 1 : NULL;
	const opt *o = find_option(c, text, len, 0);
	if (o == NULL)
		return usage(c, "unknown option --%.*s", (int)(len < 60 ? len : 60), text);
	if (o->value == NULL) {
		if (value != NULL)
			return usage(c, "--%s takes no value", o->name);
		return set(c, o, "");
	}
	if (value == NULL) {
		value = *next;
		*used = 1;
	}
	if (value == NULL)
		return usage(c, "--%s needs a value: %s", o->name, o->value);
	return set(c, o, value);
}

/* -xyz: switches, of which the last may take a value (-n5 or -n 5). */
static int take_short(cli *c, const char *text, char **next, int *used)
{
	for (; *text != '\0'; text++) {
		const opt *o = find_option(c, NULL, 0, *text);
		if (o == NULL)
			return usage(c, "unknown option -%c", *text);
		if (o->value == NULL) {
			int rc = set(c, o, "");
			if (rc != 0)
				return rc;
			continue;
		}
		const char *value = text[1] != '\0' ? text + 1 : *next;
		*used = text[1] == '\0';
		if (value == NULL)
			return usage(c, "-%c needs a value: %s", *text, o->value);
		return set(c, o, value);
	}
	return 0;
}

static int take_command(cli *c, const char *name)
{
	c->command = command_find(name);
	if (c->command != NULL)
		return 0;
	const command *guess = command_guess(name);
	char hint[64] = "run `sheaf help` for the commands there are";
	if (guess != NULL)
		snprintf(hint, sizeof(hint), "did you mean `sheaf %s`?", guess->name);
	return fail_with(c, SHEAF_INVALID, hint, "'%.60s' is not a sheaf command", name);
}

static int check_words(cli *c)
{
	const command *cmd = c->command;
	if (cmd == NULL || given(c, OPT_HELP))
		return 0;
	if (c->word_count < cmd->words_min)
		return usage(c, "%s needs %s", cmd->name,
		             c->word_count == 0 && cmd->word == WORD_SESSION ? "a session"
		                                                             : "more arguments");
	if (cmd->words_max >= 0 && c->word_count > cmd->words_max)
		return usage(c, "'%.60s' is one argument too many", c->words[cmd->words_max]);
	return 0;
}

int opt_parse(cli *c, int argc, char **argv)
{
	/* Known before the rest, so that a mistake is reported the way it was asked for. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		c->json = c->json || strcmp(argv[i], "--json") == 0;
	c->words = arena_zalloc(c->memory, ((size_t)argc + 1) * sizeof(*c->words));
	if (c->words == NULL)
		return fail_memory(c);

	bool options = true;
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		int rc = 0, used = 0;
		if (options && strcmp(arg, "--") == 0)
			options = false;
		else if (options && arg[0] == '-' && arg[1] == '-')
			rc = take_long(c, arg + 2, argv + i + 1, &used);
		else if (options && arg[0] == '-' && arg[1] != '\0')
			rc = take_short(c, arg + 1, argv + i + 1, &used);
		else if (c->command == NULL)
			rc = take_command(c, arg);
		else
			c->words[c->word_count++] = arg;
		if (rc != 0)
			return rc;
		i += used;
	}
	c->quiet = given(c, OPT_QUIET);
	c->app = opt_str(c, OPT_APP);
	c->user = opt_str(c, OPT_USER);
	return check_words(c);
}

sheaf_str opt_str(const cli *c, opt_id id)
{
	return sheaf_str_of(c->values[id]);
}

static const char *name_of(const cli *c, opt_id id)
{
	for (const opt *o = c->command->options; o->name != NULL; o++) {
		if (o->id == id)
			return o->name;
	}
	return "option";
}

int opt_u64(cli *c, opt_id id, uint64_t *out)
{
	const char *text = c->values[id];
	if (text == NULL)
		return 0;
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0)
		return usage(c, "--%s takes a number, not '%.40s'", name_of(c, id), text);
	*out = value;
	return 0;
}

int opt_durability(cli *c, int32_t *out)
{
	const char *text = c->values[OPT_DURABILITY];
	for (int32_t level = SHEAF_DURABILITY_NONE;
	     text != NULL && level <= SHEAF_DURABILITY_REPLICA; level++) {
		if (strcmp(text, sheaf_durability_name(level)) == 0) {
			*out = level;
			return 0;
		}
	}
	return 0;
}

/* 90m, 12h, 3d, 2w. */
static bool parse_span(const char *text, int64_t *out_us)
{
	static const struct {
		char letter;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || errno != 0 || value > 1000000 || end[0] == '\0' ||
	    end[1] != '\0')
		return false;
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		if (units[i].letter == end[0]) {
			*out_us = value * units[i].seconds * 1000000;
			return true;
		}
	}
	return false;
}

/* That long ago. */
static bool parse_age(const char *text, int64_t now_us, int64_t *out_us)
{
	int64_t span_us;
	if (!parse_span(text, &span_us))
		return false;
	*out_us = now_us - span_us;
	return true;
}

int opt_span(cli *c, opt_id id, const char *none, int64_t *out_us)
{
	const char *text = c->values[id];
	if (text == NULL)
		return 0;
	if (none != NULL && strcmp(text, none) == 0)
		*out_us = -1;
	else if (!parse_span(text, out_us) || *out_us == 0)
		return usage(c, "--%s takes a span such as 90s, 12h or 30d%s%s", name_of(c, id),
		             none != NULL ? ", or " : "", none != NULL ? none : "");
	return 0;
}

int opt_time(cli *c, opt_id id, int64_t *out_us)
{
	const char *text = c->values[id];
	if (text == NULL)
		return 0;
	char day[32];
	if (strlen(text) == 10) { /* a date alone is its beginning */
		snprintf(day, sizeof(day), "%sT00:00:00Z", text);
		text = day;
	}
	if (clock_parse(sheaf_str_of(text), out_us) || parse_age(text, c->screen.now_us, out_us))
		return 0;
	return usage(c,
	             "--%s takes a time such as 2026-11-14, 2026-11-14T10:00:00Z, 90m, 12h or 3d",
	             name_of(c, id));
}
