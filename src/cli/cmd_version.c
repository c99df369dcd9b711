/* sheaf version: which version of the command and of the library this is. */
#include <stdio.h>
#include <string.h>

#include "print.h"

int cmd_version(cli *c)
{
	char own[32];
	snprintf(own, sizeof(own), "%d.%d.%d", SHEAF_VERSION_MAJOR, SHEAF_VERSION_MINOR,
	         SHEAF_VERSION_PATCH);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_text(&out, "version", own);
		js_text(&out, "library", sheaf_version());
		js_close(&out, '}');
	} else {
		buf_format(&out, "sheaf %s", own);
		if (strcmp(own, sheaf_version()) != 0)
			buf_format(&out, " (libsheaf %s)", sheaf_version());
	}
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}
