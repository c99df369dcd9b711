/* sheaf check: reads every byte of a session or of the store and says what is wrong. */
#include "report.h"

int cmd_check(cli *c)
{
	_cleanup_(report_freep) sheaf_report *report = NULL;
	sheaf_key key;
	int rc = open_store(c);
	if (rc == 0 && c->word_count > 0)
		rc = find_session(c, c->words[0], &key);
	if (rc != 0)
		return rc;
	if (sheaf_store_check(&report, c->store, c->word_count > 0 ? &key : NULL, &c->err) != 0)
		return fail(c);
	if (c->json) {
		report_json(report);
	} else {
		report_problems(c, report);
		report_summary(c, report);
	}
	return report_is_bad(report) ? sheaf_code_exit(SHEAF_DAMAGED, NULL) : 0;
}
