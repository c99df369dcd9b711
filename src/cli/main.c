/* sheaf: reads the command line, runs the command, ends the output. */
#include <signal.h>

#include "opt.h"
#include "print.h"

static int run(cli *c)
{
	if (given(c, OPT_VERSION))
		return cmd_version(c);
	if (given(c, OPT_HELP))
		return c->command != NULL ? help_command(c, c->command) : help_short(c);
	if (c->command == NULL)
		return help_short(c);
	return c->command->run(c);
}

int main(int argc, char **argv)
{
	/* Whoever started us may ignore it; a closed pipe ends us all the same. */
	signal(SIGPIPE, SIG_DFL);
	text_init();
	cli c = {0};
	c.memory = arena_new();
	if (c.memory == NULL)
		return fail_memory(&c);
	print_init(&c); /* for mistakes on the command line */
	int rc = opt_parse(&c, argc, argv);
	if (rc == 0) {
		print_init(&c);
		rc = run(&c);
	}
	sheaf_close(c.store);
	sheaf_models_free(c.models);
	int ended = print_end(&c);
	arena_free(c.memory);
	return rc != 0 ? rc : ended;
}
