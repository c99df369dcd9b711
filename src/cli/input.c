/* What comes in: text from the words of a command or from stdin. */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "print.h"

int input_all(cli *c, buf *out)
{
	if (isatty(STDIN_FILENO))
		return usage(c, "nothing to %s: give the text as arguments, or pipe it in",
		             c->command->name);
	char chunk[65536];
	size_t n;
	while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0 && out->status == 0)
		buf_add(out, chunk, n);
	if (ferror(stdin))
		return fail_with(c, SHEAF_STORAGE, NULL, "cannot read the input: %s",
		                 strerror(errno));
	return buf_status(out, &c->err) != 0 ? fail(c) : 0;
}

int input_words(cli *c, int first, buf *out)
{
	if (c->word_count > first &&
	    !(c->word_count == first + 1 && strcmp(c->words[first], "-") == 0)) {
		for (int i = first; i < c->word_count; i++) {
			if (i > first)
				buf_char(out, ' ');
			buf_str(out, sheaf_str_of(c->words[i]));
		}
		return buf_status(out, &c->err) != 0 ? fail(c) : 0;
	}
	int rc = input_all(c, out);
	if (rc == 0 && out->len > 0 && out->ptr[out->len - 1] == '\n')
		out->len--;
	if (rc == 0 && out->len > 0 && out->ptr[out->len - 1] == '\r')
		out->len--;
	return rc;
}
