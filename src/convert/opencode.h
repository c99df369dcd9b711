/* What the two forms of an OpenCode session share: its export and its storage folder. */
#ifndef CONVERT_OPENCODE_H
#define CONVERT_OPENCODE_H

#include "convert/convert.h"

/* Stands where a message must name its model and nobody knows it. */
#define OPENCODE_NO_MODEL "unknown"

/* Begins the session that a session's `info` names. */
int opencode_open(import *im, sheaf_str info);

/* A message as the export has it: {"info":{…},"parts":[…]}. The piece at hand. */
int opencode_message(import *im, sheaf_str key, value message);

/* The storage folder: the file of a session below session/, its messages and parts beside. */
bool opencode_is_storage(sheaf_str path);
int opencode_storage_read(import *im);

/* As `opencode import` takes it. */
int opencode_write(export *ex);
/* Sets ex->id, too, where the session has none of OpenCode's kind. */
int opencode_place(export *ex);

#endif
