/* sheaf repair: makes a damaged session writable again, keeping the original beside it. */
#include "report.h"

int cmd_repair(cli *c)
{
	_cleanup_(report_freep) sheaf_report *report = NULL;
	sheaf_key key;
	int rc = find_session(c, c->words[0], &key);
	if (rc != 0)
		return rc;
	if (sheaf_store_repair(&report, c->store, &key, &c->err) != 0)
		return fail(c);
	if (c->json) {
		report_json(report);
		return 0;
	}
	report_problems(c, report);
	if (report->count == 0)
		say(c, "%.*s needs no repair", (int)key.session.len, key.session.ptr);
	else
		say(c, "repaired %.*s: every record that could be read is kept",
		    (int)key.session.len, key.session.ptr);
	return 0;
}
