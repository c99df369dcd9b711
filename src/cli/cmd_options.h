/* The options of every command: one list for each, ended by a row of zeros. */
#ifndef CLI_CMD_OPTIONS_H
#define CLI_CMD_OPTIONS_H

#include "cmd.h"

extern const opt options_none[];
extern const opt options_new[];
extern const opt options_append[];
extern const opt options_import[];
extern const opt options_export[];
extern const opt options_ls[];
extern const opt options_search[];
extern const opt options_tui[];
extern const opt options_show[];
extern const opt options_path[];
extern const opt options_tree[];
extern const opt options_context[];
extern const opt options_usage[];
extern const opt options_compact[];
extern const opt options_chat[];
extern const opt options_watch[];
extern const opt options_branch[];
extern const opt options_queue[];
extern const opt options_todo[];
extern const opt options_plan[];
extern const opt options_fork[];
extern const opt options_copy[];
extern const opt options_sync[];
extern const opt options_migrate[];
extern const opt options_label[];
extern const opt options_retain[];
extern const opt options_pin[];
extern const opt options_expire[];
extern const opt options_state[];
extern const opt options_rm[];

#endif
