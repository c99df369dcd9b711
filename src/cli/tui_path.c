/*
 * The path of a conversation, from its leaf back to the root.
 *
 * Which entries are on it is known only from the leaf: each names the one
 * before it. So their numbers are found backwards, in pages, as far as
 * somebody looked, and the entries themselves are read when they are shown.
 */
#include "base/err.h"
#include "base/mem.h"
#include "tui.h"

#define PAGE_FIRST 64u
#define PAGE_MAX 8192u
#define PAGE_BYTES ((size_t)1 << 20) /* what a page should have, about */

void path_begin(path *p, uint64_t leaf_seq)
{
	path_done(p);
	*p = (path){.next = leaf_seq, .page = PAGE_FIRST};
}

void path_done(path *p)
{
	mem_free(p->seqs);
	p->seqs = NULL;
}

static int add_seq(path *p, const sheaf_entry *entry)
{
	if (mem_grow((void **)&p->seqs, &p->room, p->count + 1, sizeof(*p->seqs)) != 0)
		return SHEAF_NOMEM;
	p->seqs[p->count++] = entry->seq;
	/* What cannot be read does not say what came before it. */
	p->any = entry->damaged;
	p->next = entry->damaged ? entry->seq - 1 : entry->parent_seq;
	return 0;
}

/* Pages of many small records, or of few large ones. */
static void fit_page(path *p, const sheaf_records *page)
{
	size_t bytes = 0;
	for (size_t i = 0; i < page->count; i++)
		bytes += page->items[i]->line.len;
	if (bytes < PAGE_BYTES / 2 && p->page < PAGE_MAX)
		p->page *= 2;
	else if (bytes > PAGE_BYTES && p->page > PAGE_FIRST)
		p->page /= 2;
}

static int read_on(path *p, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *page = NULL;
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	options.backward = 1;
	options.raw = 1;
	options.from_seq = p->next;
	options.limit = p->page;
	options.kinds = SHEAF_KINDS_ENTRIES;
	int rc = sheaf_session_records(&page, session, &options, err);
	if (rc != 0)
		return rc;
	size_t before = p->count;
	for (size_t i = 0; i < page->count && p->next != 0; i++) {
		if (page->items[i]->seq != p->next && !p->any)
			continue;
		if (add_seq(p, page->items[i]) != 0)
			return err_nomem(err);
	}
	if (p->count == before) /* it names one that is not there */
		p->next = 0;
	fit_page(p, page);
	return 0;
}

bool path_has(path *p, sheaf_session *session, size_t i, sheaf_error *err)
{
	while (i >= p->count && p->next != 0) {
		if (read_on(p, session, err) != 0)
			return false;
	}
	return i < p->count;
}

bool path_find(path *p, sheaf_session *session, uint64_t seq, size_t *out, sheaf_error *err)
{
	while (p->next != 0 && p->next >= seq) {
		if (read_on(p, session, err) != 0)
			return false;
	}
	size_t low = 0, high = p->count; /* their numbers fall */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->seqs[middle] > seq)
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return low < p->count && p->seqs[low] == seq;
}

int path_read(const path *p, sheaf_session *session, size_t first, size_t last, path_take_fn take,
              void *ctx, sheaf_error *err)
{
	for (size_t i = first + 1; i > last;) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
		options.from_seq = p->seqs[i - 1];
		options.limit = i - last;
		options.kinds = SHEAF_KINDS_ENTRIES;
		int rc = sheaf_session_records(&page, session, &options, err);
		if (rc != 0)
			return rc;
		size_t before = i;
		/* Between them stand entries of other branches. */
		for (size_t k = 0; k < page->count && i > last; k++) {
			if (page->items[k]->seq == p->seqs[i - 1])
				take(ctx, --i, page->items[k]);
		}
		if (i == before)
			return err_set(err, SHEAF_GONE, "the session has changed; R reads it anew");
	}
	return 0;
}
