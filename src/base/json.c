/*
 * Reading JSON through yyjson, whose only includer this is. What is said about
 * JSON without parsing it stands in json_text.c.
 */
#include "json.h"

#include <yyjson.h>

#include "err.h"
#include "mem.h"
#include "scan.h"

/* Documents. */

/* Larger texts use the heap and give it back with the next parse. */
#define POOL_MAX ((size_t)1 << 20)
#define POOL_MIN 4096u

struct json_doc {
	yyjson_val *root;
	yyjson_doc *heap; /* a document outside the pool, or NULL */
	char *pool;       /* a document in here needs no freeing of its own */
	size_t room;
};

static void *yy_malloc(UNUSED void *ctx, size_t bytes)
{
	return mem_alloc(bytes);
}

static void *yy_realloc(UNUSED void *ctx, void *ptr, UNUSED size_t before, size_t bytes)
{
	return mem_resize(ptr, bytes);
}

static void yy_free(UNUSED void *ctx, void *ptr)
{
	mem_free(ptr);
}

static void doc_clear(json_doc *doc)
{
	yyjson_doc_free(doc->heap);
	doc->heap = NULL;
	doc->root = NULL;
}

/* Nothing in the pool is worth keeping, so growing is a new one. */
static int pool_fit(json_doc *doc, size_t need)
{
	if (need <= doc->room)
		return 0;
	size_t room = doc->room * 2 < POOL_MAX ? doc->room * 2 : POOL_MAX;
	if (room < POOL_MIN)
		room = POOL_MIN;
	if (room < need)
		room = need;
	char *pool = mem_alloc(room);
	if (pool == NULL)
		return SHEAF_NOMEM;
	mem_free(doc->pool);
	doc->pool = pool;
	doc->room = room;
	return 0;
}

/* `used`: NULL, or what follows the first value is not looked at, and this is where it ends. */
static int doc_fill(json_doc *doc, sheaf_str text, size_t *used, sheaf_error *err)
{
	if (text.ptr == NULL)
		text = (sheaf_str){"", 0};
	yyjson_read_flag flags = YYJSON_READ_NUMBER_AS_RAW;
	if (used != NULL)
		flags |= YYJSON_READ_STOP_WHEN_DONE;
	yyjson_alc alc = {yy_malloc, yy_realloc, yy_free, NULL};
	size_t need = yyjson_read_max_memory_usage(text.len, flags);
	bool pooled = need != 0 && need <= POOL_MAX;
	if (pooled) {
		if (pool_fit(doc, need) != 0)
			return err_nomem(err);
		(void)yyjson_alc_pool_init(&alc, doc->pool, doc->room);
	}
	yyjson_read_err why = {0};
	/* Without the in-situ flag the text is not written to. */
	char *bytes = (char *)(uintptr_t)text.ptr;
	yyjson_doc *parsed = yyjson_read_opts(bytes, text.len, flags, &alc, &why);
	if (parsed == NULL) {
		if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
			return err_nomem(err);
		return err_set(err, SHEAF_FORMAT, "not JSON: %s at byte %zu", why.msg, why.pos);
	}
	doc->heap = pooled ? NULL : parsed;
	doc->root = yyjson_doc_get_root(parsed);
	if (used != NULL)
		*used = yyjson_doc_get_read_size(parsed);
	return 0;
}

static int doc_parse(json_doc **doc, sheaf_str text, size_t *used, sheaf_error *err)
{
	if (*doc != NULL) {
		doc_clear(*doc);
		return doc_fill(*doc, text, used, err);
	}
	json_doc *made = mem_zalloc(sizeof(*made));
	if (made == NULL)
		return err_nomem(err);
	int rc = doc_fill(made, text, used, err);
	if (rc != 0)
		json_free(made);
	else
		*doc = made;
	return rc;
}

int json_parse(json_doc **doc, sheaf_str text, sheaf_error *err)
{
	return doc_parse(doc, text, NULL, err);
}

int json_parse_first(json_doc **doc, sheaf_str text, size_t *used, sheaf_error *err)
{
	return doc_parse(doc, text, used, err);
}

void json_free(json_doc *doc)
{
	if (doc == NULL)
		return;
	doc_clear(doc);
	mem_free(doc->pool);
	mem_free(doc);
}

void json_freep(json_doc **doc)
{
	json_free(*doc);
	*doc = NULL;
}

/* Values. A json_val is a yyjson_val under another name. */

static yyjson_val *inner(const json_val *v)
{
	return (yyjson_val *)(uintptr_t)v;
}

static const json_val *outer(const yyjson_val *v)
{
	return (const json_val *)(const void *)v;
}

const json_val *json_root(const json_doc *doc)
{
	return doc != NULL ? outer(doc->root) : NULL;
}

json_type json_type_of(const json_val *v)
{
	switch (yyjson_get_type(inner(v))) {
	case YYJSON_TYPE_NULL:
		return JSON_NULL;
	case YYJSON_TYPE_BOOL:
		return JSON_BOOL;
	case YYJSON_TYPE_RAW:
		return JSON_NUMBER;
	case YYJSON_TYPE_STR:
		return JSON_STRING;
	case YYJSON_TYPE_ARR:
		return JSON_ARRAY;
	case YYJSON_TYPE_OBJ:
		return JSON_OBJECT;
	default:
		return JSON_NONE;
	}
}

const json_val *json_get(const json_val *object, const char *name)
{
	return outer(yyjson_obj_get(inner(object), name));
}

/* The parser works in a copy of the text, where a string begins where it did there. */
size_t json_name_offset(const json_val *object, const json_val *value)
{
	yyjson_val *first = inner(object) + 1, *key = inner(value) - 1;
	return (size_t)(unsafe_yyjson_get_str(key) - unsafe_yyjson_get_str(first));
}

sheaf_str json_string(const json_val *v)
{
	yyjson_val *val = inner(v);
	if (!yyjson_is_str(val))
		return (sheaf_str){NULL, 0};
	return (sheaf_str){unsafe_yyjson_get_str(val), unsafe_yyjson_get_len(val)};
}

sheaf_str json_number(const json_val *v)
{
	yyjson_val *val = inner(v);
	if (!yyjson_is_raw(val))
		return (sheaf_str){NULL, 0};
	return (sheaf_str){unsafe_yyjson_get_raw(val), unsafe_yyjson_get_len(val)};
}

/* Digits only: 1.0 and 1e0 are whole too, but nothing of ours writes them. */
bool json_u64(const json_val *v, uint64_t *out)
{
	sheaf_str text = json_number(v);
	uint64_t value = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(text.ptr[i] - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (text.len == 0)
		return false;
	*out = value;
	return true;
}

bool json_bool(const json_val *v)
{
	return yyjson_is_true(inner(v));
}

bool json_is_bool(const json_val *v)
{
	return yyjson_is_bool(inner(v));
}

size_t json_count(const json_val *v)
{
	yyjson_val *val = inner(v);
	return yyjson_is_ctn(val) ? unsafe_yyjson_get_len(val) : 0;
}

json_iter json_each(const json_val *v)
{
	yyjson_val *val = inner(v);
	json_iter it = {NULL, NULL, NULL, json_count(v), yyjson_is_obj(val)};
	if (it.left != 0)
		it.at = unsafe_yyjson_get_first(val);
	return it;
}

bool json_next(json_iter *it)
{
	if (it->left == 0)
		return false;
	it->left--;
	yyjson_val *val = (yyjson_val *)(uintptr_t)it->at;
	it->key = NULL;
	if (it->object)
		it->key = outer(val++);
	it->value = outer(val);
	/* Behind the last one there is nothing to point at. */
	it->at = it->left != 0 ? unsafe_yyjson_get_next(val) : NULL;
	return true;
}

/* Checking what was parsed. */

#define KEYS_MAX 64u /* of an object: comparing more of them with each other takes too long */

static bool same_string(yyjson_val *a, yyjson_val *b)
{
	size_t len = unsafe_yyjson_get_len(a);
	return len == unsafe_yyjson_get_len(b) &&
	       memcmp(unsafe_yyjson_get_str(a), unsafe_yyjson_get_str(b), len) == 0;
}

/* One of 64 for a key; different ones for most keys of an object. */
static unsigned key_bucket(yyjson_val *key)
{
	size_t len = unsafe_yyjson_get_len(key);
	const unsigned char *p = (const unsigned char *)unsafe_yyjson_get_str(key);
	if (len == 0)
		return 0;
	return (unsigned)((len * 5 + p[0] * 7u + p[len / 2] * 13u + p[len - 1] * 29u) % 64);
}

/* Whether the names of an object's members are all different; false also for too many. */
static bool keys_differ(yyjson_val *object)
{
	size_t count = unsafe_yyjson_get_len(object);
	uint64_t seen = 0;
	if (count > KEYS_MAX)
		return false;
	yyjson_val *first = object + 1, *key = first;
	for (size_t i = 0; i < count; i++) {
		uint64_t bit = UINT64_C(1) << key_bucket(key);
		yyjson_val *other = first;
		for (size_t k = 0; (seen & bit) != 0 && k < i; k++) {
			if (same_string(other, key))
				return false;
			other = unsafe_yyjson_get_next(other + 1);
		}
		seen |= bit;
		key = unsafe_yyjson_get_next(key + 1);
	}
	return true;
}

bool json_doc_passes(const json_doc *doc, sheaf_str text, size_t depth)
{
	yyjson_val *ends[SHEAF_DEPTH_MAX], *end = unsafe_yyjson_get_next(doc->root);
	size_t open = 0;
	/* In a string they did not parse: these would stand between tokens. */
	if (depth > SHEAF_DEPTH_MAX || scan_has_control(text.ptr, text.ptr + text.len))
		return false;
	for (yyjson_val *v = doc->root; v < end; v++) {
		while (open != 0 && v >= ends[open - 1])
			open--;
		if (!unsafe_yyjson_is_ctn(v))
			continue;
		if (open == depth ||
		    (unsafe_yyjson_get_type(v) == YYJSON_TYPE_OBJ && !keys_differ(v)))
			return false;
		ends[open++] = unsafe_yyjson_get_next(v);
	}
	return true;
}
