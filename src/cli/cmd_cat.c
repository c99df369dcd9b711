/* sheaf cat: records byte for byte as they are stored. */
#include "find.h"
#include "print.h"

#define PAGE 1000u

/* A terminal gets the same JSON with its controls escaped; a file or pipe gets the bytes. */
static void put_line(const cli *c, buf *out, const sheaf_entry *entry)
{
	if (c->screen.tty || c->json)
		js_line(out, entry->line);
	else
		buf_str(out, entry->line);
	if (entry->line.len == 0 || entry->line.ptr[entry->line.len - 1] != '\n')
		buf_char(out, '\n');
	print_out(out);
}

static int cat_one(cli *c, sheaf_session *session, const char *name)
{
	char id[SHEAF_ID_ROOM];
	_cleanup_(records_freep) sheaf_records *found = NULL;
	/* A fact has an id too, but is no entry that could be found by less than its id. */
	if (sheaf_session_get(&found, session, sheaf_str_of(name), NULL) != 0) {
		int rc = find_entry(c, session, name, id);
		if (rc != 0)
			return rc;
		if (sheaf_session_get(&found, session, sheaf_str_of(id), &c->err) != 0)
			return fail(c);
	}
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < found->count; i++)
		put_line(c, &out, found->items[i]);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int cat_all(cli *c, sheaf_session *session)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	options.limit = PAGE;
	options.raw = 1;
	size_t damaged = 0;
	do {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		if (sheaf_session_records(&page, session, &options, &c->err) != 0)
			return fail(c);
		for (size_t i = 0; i < page->count; i++) {
			if (page->items[i]->damaged)
				damaged++;
			else
				put_line(c, &out, page->items[i]);
		}
		options.from_seq = page->next_seq;
	} while (options.from_seq != 0);
	if (out.status != 0)
		return fail_memory(c);
	if (damaged != 0)
		return fail_with(c, SHEAF_DAMAGED, "`sheaf check` says where",
		                 "%zu records cannot be read and were left out", damaged);
	return 0;
}

int cmd_cat(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = open_for_reading(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	print_page(c);
	return c->word_count > 1 ? cat_one(c, session, c->words[1]) : cat_all(c, session);
}
