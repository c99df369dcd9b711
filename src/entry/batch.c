/* Batches: what may go into one. */
#include "entry/batch.h"

#include "base/err.h"
#include "base/mem.h"

void drafts_free(draft_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		draft_free(list->items[i]);
		mem_free(list->items[i]);
	}
	mem_free(list->items);
	*list = (draft_list){0};
}

int batch_take(struct sheaf_batch *batch, draft *d, sheaf_error *err)
{
	draft_list *list = &batch->drafts;
	if (list->count >= SHEAF_BATCH_RECORDS_MAX)
		return err_set(err, SHEAF_LIMIT, "a batch holds at most %u records",
		               SHEAF_BATCH_RECORDS_MAX);
	if (d->body.len > SHEAF_BATCH_BYTES_MAX - batch->bytes)
		return err_set(err, SHEAF_TOO_LARGE, "a batch holds at most %zu bytes",
		               SHEAF_BATCH_BYTES_MAX);
	if (mem_grow((void **)&list->items, &list->room, list->count + 2, sizeof(*list->items)) !=
	    0)
		return err_nomem(err);
	batch->bytes += d->body.len;
	list->items[list->count++] = d;
	return 0;
}
