/*
 * Input that waits in a queue. An item's id becomes its entry's, so that one
 * whose worker died between storing and acknowledging is not stored twice.
 */
#include "agent/agent.h"

#include "base/err.h"
#include "base/mem.h"

void inputs_free(inputs *in)
{
	for (size_t i = 0; i < in->count; i++)
		if (in->items[i].owned)
			sheaf_message_free(in->items[i].message);
	arena_free(in->arena);
	*in = (inputs){0};
}

/* How many items come first that may be taken now. */
static int count_waiting(run *r, bool steering, size_t *count, sheaf_error *err)
{
	sheaf_queue_items *all = NULL;
	*count = 0;
	int rc = sheaf_session_pending(&all, r->queue, err);
	if (rc == SHEAF_UNSUPPORTED)
		return 0; /* a store without queues: nothing ever waits */
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < all->count && *count < SHEAF_QUEUE_MERGE_ITEMS_MAX; i++)
		*count += all->items[i]->claimed_until_us == 0 &&
		          (!steering || all->items[i]->priority >= SHEAF_PRIORITY_STEER);
	sheaf_queue_items_free(all);
	return 0;
}

static bool stored_before(run *r, sheaf_str id)
{
	sheaf_records *stored = NULL;
	if (sheaf_session_get(&stored, r->session, id, NULL) != 0)
		return false;
	bool same = stored->items[0]->kind == SHEAF_KIND_MESSAGE &&
	            str_eq(stored->items[0]->id, id);
	sheaf_records_free(stored);
	return same;
}

static int copy_item(inputs *in, const sheaf_queue_item *item, sheaf_error *err)
{
	input *to = &in->items[in->count];
	int ok = 1;
	*to = (input){.id = arena_dup(in->arena, item->id, &ok), .owned = true};
	if (item->environment.ptr != NULL) {
		_cleanup_(buf_free) buf extra = BUF_INIT(SHEAF_BODY_BYTES_MAX);
		buf_lit(&extra, "{\"environment\":");
		buf_str(&extra, item->environment);
		buf_char(&extra, '}');
		if (buf_status(&extra, err) != 0)
			return extra.status;
		to->extra = arena_dup(in->arena, buf_view(&extra), &ok);
	}
	to->message = ok ? sheaf_message_new(SHEAF_ROLE_USER) : NULL;
	if (to->message == NULL)
		return err_nomem(err);
	in->count++;
	(void)sheaf_message_text(to->message, item->content);
	return 0;
}

int input_take(run *r, bool steering, inputs *out, sheaf_error *err)
{
	sheaf_claim_options how = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_items *claimed = NULL;
	*out = (inputs){0};
	int rc = count_waiting(r, steering, &how.limit, err);
	if (rc != 0 || how.limit == 0)
		return rc;
	rc = sheaf_session_claim(&claimed, r->queue, &how, err);
	if (rc != 0)
		return rc;
	out->arena = arena_new();
	out->items = out->arena != NULL
	                     ? arena_zalloc(out->arena, (claimed->count + 1) * sizeof(*out->items))
	                     : NULL;
	int ok = out->items != NULL;
	for (size_t i = 0; ok && rc == 0 && i < claimed->count; i++)
		if (!stored_before(r, claimed->items[i]->id))
			rc = copy_item(out, claimed->items[i], err);
	if (ok && claimed->token.ptr != NULL)
		out->token = arena_dup(out->arena, claimed->token, &ok);
	sheaf_queue_items_free(claimed);
	if (!ok)
		rc = err_nomem(err);
	if (rc == 0 && out->count == 0 && out->token.ptr != NULL)
		rc = input_done(r, out, err);
	if (rc != 0)
		inputs_free(out);
	return rc;
}

int input_done(run *r, const inputs *in, sheaf_error *err)
{
	int rc = sheaf_session_ack(r->queue, in->token, err);
	/* Somebody else took it over after the lease: its id keeps it from being stored again. */
	return rc == SHEAF_STALE ? 0 : rc;
}
