/*
 * How many tokens a context has: what the provider counted last, and an
 * estimate for what it has not seen yet.
 */
#include "base/err.h"
#include "base/str.h"
#include "core/compaction_inside.h"
#include "entry/members.h"

#define BYTES_PER_TOKEN 4
#define IMAGE_TOKENS 1200
/* A page of a document is some 1,500 tokens, and about 40 KB as a file. */
#define DOCUMENT_BYTES_PER_TOKEN 25

#define WINDOW_DEFAULT 200000
#define THRESHOLD_DEFAULT 80
#define RESERVE_DEFAULT 16384
#define KEEP_DEFAULT 20000
#define OUTPUT_BYTES_DEFAULT 2000

/* ---- The estimate -------------------------------------------------------- */

static uint64_t document_tokens(const sheaf_part *p)
{
	uint64_t decoded = str_is(p->source_type, "base64") ? p->data.len / 4 * 3 : 0;
	uint64_t tokens = decoded / DOCUMENT_BYTES_PER_TOKEN;
	return tokens > IMAGE_TOKENS ? tokens : IMAGE_TOKENS;
}

/* Adds a part by itself: `bytes` of text, or tokens where bytes say nothing. */
static void part_count(const sheaf_part *p, uint64_t *bytes, uint64_t *tokens)
{
	switch (p->kind) {
	case SHEAF_PART_IMAGE:
		*tokens += IMAGE_TOKENS;
		break;
	case SHEAF_PART_DOCUMENT:
		*tokens += document_tokens(p);
		break;
	case SHEAF_PART_THINKING:
		/* Where only the provider can read it, its size is all there is. */
		*bytes += p->text.len != 0 ? p->text.len : p->signature.len;
		break;
	case SHEAF_PART_TOOL_USE:
		*bytes += p->name.len + p->input.len;
		break;
	case SHEAF_PART_OPAQUE:
		*bytes += p->raw.len;
		break;
	case SHEAF_PART_TEXT:
	case SHEAF_PART_TOOL_RESULT:
		*bytes += p->text.len;
		break;
	default:
		*bytes += p->json.len;
		break;
	}
}

uint64_t sheaf_item_tokens(const sheaf_item *item)
{
	uint64_t bytes = 0, tokens = 0;
	if (item == NULL || item->message == NULL)
		return 0;
	const sheaf_message_view *m = item->message;
	if (str_is(m->role, SHEAF_ROLE_BASH) && m->json.ptr != NULL) {
		/* Command and output are members beside the content. */
		sheaf_str members = members_inside(m->json);
		bool hidden = str_is(members_find(members, "excludeFromContext"), "true");
		return hidden ? 0 : (m->json.len + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;
	}
	for (size_t i = 0; i < m->part_count; i++) {
		part_count(m->parts[i], &bytes, &tokens);
		/* Results hold parts, and those hold none. */
		for (size_t k = 0; k < m->parts[i]->part_count; k++)
			part_count(m->parts[i]->parts[k], &bytes, &tokens);
	}
	return tokens + (bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;
}

/* ---- The rules ----------------------------------------------------------- */

/* The window of the model that was given, or else of the one in force. */
static uint64_t window_of(const sheaf_compaction_options *o, const settings *in_force)
{
	const sheaf_str none = {NULL, 0};
	sheaf_str provider = OPTION(o, provider, none), model = OPTION(o, model, none);
	if (model.len == 0) {
		provider = in_force->provider;
		model = in_force->model;
	}
	const sheaf_model_row *row = model.len != 0 ? sheaf_models_find(OPTION(o, models, NULL),
	                                                                provider, model, 0)
	                                            : NULL;
	return row != NULL && row->window != 0 ? row->window : WINDOW_DEFAULT;
}

int rules_make(compaction_rules *out, const sheaf_compaction_options *o, const settings *in_force,
               sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	uint64_t window = OPTION(o, window, 0), keep = OPTION(o, keep_recent, SHEAF_KEEP_DEFAULT);
	uint64_t percent = OPTION(o, threshold_percent, 0), reserve = OPTION(o, reserve, 0);
	size_t bytes_max = OPTION(o, bytes_max, (size_t)0),
	       output = OPTION(o, output_bytes, (size_t)0);
	sheaf_str trigger = OPTION(o, trigger, none);
	if (percent > 100)
		return err_set(err, SHEAF_INVALID, "the threshold is a percentage");
	int rc = text_check(trigger, SHEAF_NAME_BYTES_MAX, "trigger", err);
	if (rc == 0)
		rc = text_check(OPTION(o, instructions, none), SHEAF_BODY_BYTES_MAX, "instructions",
		                err);
	if (rc != 0)
		return rc;
	if (window == 0)
		window = window_of(o, in_force);
	if (reserve == 0)
		reserve = window / 8 < RESERVE_DEFAULT ? window / 8 : RESERVE_DEFAULT;
	if (reserve >= window)
		return err_set(err, SHEAF_INVALID, "the reserve is as large as the window");
	if (keep == SHEAF_KEEP_DEFAULT)
		keep = window / 4 < KEEP_DEFAULT ? window / 4 : KEEP_DEFAULT;
	/* Without overflow for any window. */
	uint64_t per_cent = percent != 0 ? percent : THRESHOLD_DEFAULT;
	uint64_t limit = window / 100 * per_cent + window % 100 * per_cent / 100;
	*out = (compaction_rules){
		.branch = OPTION(o, branch, none),
		.window = window,
		.limit = limit < window - reserve ? limit : window - reserve,
		.reserve = reserve,
		.keep = keep,
		.extra = OPTION(o, extra_tokens, 0),
		.bytes_max = bytes_max != 0 ? bytes_max : SIZE_MAX,
		.output_bytes = output != 0 ? output : OUTPUT_BYTES_DEFAULT,
		.instructions = OPTION(o, instructions, none),
		.trigger = trigger.len != 0 ? trigger : SHEAF_STR("manual"),
		.tokens = OPTION(o, tokens, NULL),
		.tokens_ctx = OPTION(o, tokens_ctx, NULL),
	};
	return 0;
}

uint64_t rules_tokens(const compaction_rules *rules, const sheaf_item *item)
{
	return rules->tokens != NULL ? rules->tokens(rules->tokens_ctx, item)
	                             : sheaf_item_tokens(item);
}

/* ---- How full ------------------------------------------------------------ */

uint64_t reply_tokens(const sheaf_item *item)
{
	const sheaf_message_view *m = item->message;
	const sheaf_usage *u = m->usage;
	if (item->kind != SHEAF_ITEM_MESSAGE || u == NULL || !str_is(m->role, SHEAF_ROLE_ASSISTANT))
		return 0;
	if (str_is(m->stop_reason, "error") || str_is(m->stop_reason, "aborted"))
		return 0;
	return u->input + u->cache_read + u->cache_write_5m + u->cache_write_1h + u->output;
}

int compaction_leaf(const sheaf_head *head, sheaf_str branch, head_branch *out, sheaf_error *err)
{
	if (!head_branch_find(head, branch, out))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such branch");
	return 0;
}

static int need_run(sheaf_fill *out, sheaf_session *session,
                    const sheaf_compaction_options *options, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(outline_free) outline o = {.texts = false};
	head_branch branch;
	int rc = a != NULL ? session_head(session, &head, NULL, err) : err_nomem(err);
	if (rc == 0)
		rc = compaction_leaf(head, OPTION(options, branch, ((sheaf_str){0})), &branch, err);
	if (rc == 0)
		rc = outline_make(&o, session, head, branch.leaf_seq, options, a, err);
	if (rc == 0)
		outline_fill(out, &o);
	return rc;
}

int sheaf_compaction_need(sheaf_fill *out, sheaf_session *session,
                          const sheaf_compaction_options *options, sheaf_error *err)
{
	/* Some failures on the way are answers; the caller's struct is for the last word only. */
	sheaf_error mine = {0};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "a fill needs a session and a place to put it");
	int rc = need_run(out, session, options, &mine);
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}
