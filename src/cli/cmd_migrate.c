/* sheaf migrate: creates or upgrades the tables of a store that has a schema. */
#include "find.h"
#include "opt.h"
#include "print.h"

static int print_line(void *ctx, sheaf_str line)
{
	buf *out = ctx;
	buf_str(out, line);
	buf_char(out, '\n');
	return out->status;
}

int cmd_migrate(cli *c)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	const char *url = c->word_count > 0 ? c->words[0] : c->values[OPT_STORE];
	int rc = sheaf_store_migrate(url, given(c, OPT_PRINT), print_line, &out, &c->err);
	if (rc != 0)
		return fail(c);
	print_out(&out);
	return 0;
}
