/*
 * Where a request is marked for the provider's prompt cache.
 *
 * A mark says: remember everything up to here. What stays the same for long
 * stands first and is kept for longer; the last mark moves with the
 * conversation. Marks never change what the model reads.
 */
#include "render/cache.h"

#include "base/json.h"
#include "sheaf/usage.h"

#define MINIMUM_DEFAULT 1024u /* tokens, for a model that is in no table */
#define BYTES_PER_TOKEN 4u
#define BYTES_PER_TOKEN_LEAST 2u /* text never has more tokens than a half of its bytes */

/* One row for each strategy. */
static const struct {
	int32_t cache;
	bool fixed;    /* tools and static system text */
	bool messages; /* the end of the last user message */
} strategies[] = {
	{SHEAF_CACHE_FULL, true, true},
	{SHEAF_CACHE_SYSTEM, true, false},
	{SHEAF_CACHE_MESSAGES, false, true},
	{SHEAF_CACHE_OFF, false, false},
};

void cache_begin(cache_marks *c, rendering *r, const buf *out)
{
	const sheaf_model_row *model = sheaf_models_find(r->o.models, r->o.provider, r->o.model, 0);
	*c = (cache_marks){
		.r = r,
		.out = out,
		.minimum = model != NULL && model->cache_minimum != 0 ? model->cache_minimum
	                                                              : MINIMUM_DEFAULT,
		.left = extra_has(r, "cache_control") ? CACHE_MARKS_MAX - 1 : CACHE_MARKS_MAX};
	for (size_t i = 0; i < COUNT_OF(strategies); i++) {
		if (strategies[i].cache == r->o.cache) {
			c->fixed = strategies[i].fixed;
			c->messages = strategies[i].messages;
		}
	}
	r->mark_count = 0;
}

const char *cache_mark(cache_marks *c, int32_t place)
{
	rendering *r = c->r;
	bool wanted = place == CACHE_MESSAGES ? c->messages : c->fixed;
	size_t bytes = c->out->len;
	if (!wanted || c->left == 0 || bytes / BYTES_PER_TOKEN_LEAST < c->minimum)
		return NULL;
	int32_t ttl = place == CACHE_MESSAGES ? r->o.message_ttl : r->o.static_ttl;
	c->left--;
	r->marks[r->mark_count++] = (sheaf_cache_mark){ttl, place, bytes / BYTES_PER_TOKEN};
	return ttl == 300 ? "\"cache_control\":{\"type\":\"ephemeral\"}"
	                  : "\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}";
}
