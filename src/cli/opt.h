/* Reading the command line against the command table. */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include "cmd.h"

/*
 * Fills `c->command`, `c->values`, `c->words` and the switches that hold
 * everywhere. Options and words may be mixed; "--" ends the options.
 * Returns 0, or the exit code after the mistake was reported.
 */
int opt_parse(cli *c, int argc, char **argv);

/* The value as a number or a durability; 0, or the exit code after a report. */
int opt_u64(cli *c, opt_id id, uint64_t *out);
int opt_durability(cli *c, int32_t *out);
/* A moment: RFC 3339, YYYY-MM-DD, or an age such as 90m, 12h, 3d, 2w. */
int opt_time(cli *c, opt_id id, int64_t *out_us);

/* How long: 90s, 15m, 12h, 30d, 2w; -1 for the word `none` (NULL: no such word). */
int opt_span(cli *c, opt_id id, const char *none, int64_t *out_us);

/* The value as a string; {NULL,0} if it was not given. */
sheaf_str opt_str(const cli *c, opt_id id);

#endif
