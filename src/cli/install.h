/* Putting a session where another agent looks for it. */
#ifndef CLI_INSTALL_H
#define CLI_INSTALL_H

#include <limits.h>

#include "base/buf.h"
#include "cmd.h"

typedef struct installed {
	char file[PATH_MAX];
	bool same; /* it was there already, with the same content */
} installed;

/*
 * Exports below the agent's own directory, in a place that nothing else has: a
 * file with other content is never touched. Directories that are missing are
 * made. `beside`: another session only needs it, and whatever is there will do.
 * 0, or the exit code after a report.
 */
int install_session(cli *c, sheaf_session *session, const sheaf_export_options *how, bool beside,
                    installed *done, sheaf_export_report **report);

/* The command that goes on with it there, for a shell. */
void install_command(buf *out, const sheaf_export_report *report, const char *format,
                     const char *file);

#endif
