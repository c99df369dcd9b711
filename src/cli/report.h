/* What check and repair found, for people and programs. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "find.h"
#include "print.h"

void report_freep(sheaf_report **report);
/* One line for each problem. */
void report_problems(cli *c, const sheaf_report *report);
/* How much was read, and that nothing or something is wrong. */
void report_summary(cli *c, const sheaf_report *report);
void report_json(const sheaf_report *report);
/* Whether data is lost: a torn end or a kept copy is none. */
bool report_is_bad(const sheaf_report *report);

#endif
