/* The shape of a session, as several commands show it. 0 or the exit code after a report. */
#ifndef CLI_SHAPES_H
#define CLI_SHAPES_H

#include "cmd.h"

/* Every entry, with the path of `branch` brought out; `fold`: only what says where it branches. */
int show_tree(cli *c, sheaf_session *session, const char *branch, bool fold);

/* The branches, one a line. */
int show_branches(cli *c, sheaf_session *session);

#endif
