/* An export into a file, for the commands that make one. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include <sys/types.h>

#include "cmd.h"

/* Writes beside FILE and puts it in its place when it is whole. 0, or the exit code after a
 * report. */
int export_file(cli *c, sheaf_session *session, const sheaf_export_options *how, const char *file,
                mode_t mode, sheaf_export_report **report);

#endif
