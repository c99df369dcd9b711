/* What comes in: text from the words of a command or from stdin. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "base/buf.h"
#include "cmd.h"

/* All of stdin, which must not be a terminal. 0 or the exit code after a report. */
int input_all(cli *c, buf *out);

/*
 * The words from number `first` on with blanks between them. Without any, or
 * with a lone "-", stdin without its last line break, as $(…) in a shell.
 */
int input_words(cli *c, int first, buf *out);

#endif
