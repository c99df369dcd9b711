/*
 * Words every other header uses: visibility, strings, limits, durability.
 *
 * Three lifetimes occur in this library, and each comment names the one it
 * means:
 *   borrowed  - an input; the library copies what it keeps before it returns.
 *   owned by X - a view into X; valid until X is freed.
 *   caller frees - an object with a matching `_free` or `_close`.
 */
#ifndef SHEAF_COMMON_H
#define SHEAF_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SHEAF_BEGIN extern "C" {
#define SHEAF_END }
#else
#define SHEAF_BEGIN
#define SHEAF_END
#endif

#if defined(__GNUC__)
#define SHEAF_API __attribute__((visibility("default")))
#else
#define SHEAF_API
#endif

SHEAF_BEGIN

#define SHEAF_VERSION_MAJOR 0
#define SHEAF_VERSION_MINOR 1
#define SHEAF_VERSION_PATCH 0

/** "0.1.0": the version of the library in use, which may be newer than the header. */
SHEAF_API const char *sheaf_version(void);

/**
 * A string with its length. Not NUL-terminated unless a comment says so.
 * `ptr == NULL` means "not given"; `len == 0` with a pointer means "given, empty".
 */
typedef struct sheaf_str {
	const char *ptr;
	size_t len;
} sheaf_str;

/** A sheaf_str from a string literal. */
#ifdef __cplusplus
#define SHEAF_STR(literal) (sheaf_str{(literal), sizeof(literal) - 1})
#else
#define SHEAF_STR(literal) ((sheaf_str){(literal), sizeof(literal) - 1})
#endif

/** A sheaf_str over a NUL-terminated string; NULL gives "not given". */
SHEAF_API sheaf_str sheaf_str_of(const char *text);

/** 1 if the string's bytes are those of `text`, else 0. "Not given" equals only NULL. */
SHEAF_API int sheaf_str_is(sheaf_str s, const char *text);

/*
 * Limits. Each is enforced on the way in and on the way out, and a test stands
 * on both sides of every one.
 */
#define SHEAF_RECORD_BYTES_MAX ((size_t)16 << 20) /* one record, whole line */
/* What the caller gives of it: envelope and frame have the rest, so that a record fits under
 * whatever parent, number and batch it is stored or copied to. */
#define SHEAF_BODY_BYTES_MAX (SHEAF_RECORD_BYTES_MAX - 1024)
#define SHEAF_BATCH_RECORDS_MAX 4096u
#define SHEAF_BATCH_BYTES_MAX ((size_t)64 << 20)
#define SHEAF_DEPTH_MAX 128u /* nesting of JSON values */
#define SHEAF_ID_BYTES_MAX 128u
#define SHEAF_KEY_PART_BYTES_MAX 200u /* after encoding */
#define SHEAF_NAME_BYTES_MAX 1024u    /* session names and labels */
#define SHEAF_BRANCH_BYTES_MAX 64u
#define SHEAF_BRANCHES_MAX 256u
#define SHEAF_FORK_LINKS_MAX 64u
#define SHEAF_STATE_KEY_BYTES_MAX 256u /* with its prefix */
#define SHEAF_STATE_VALUE_BYTES_MAX ((size_t)64 << 10)
#define SHEAF_STATE_BYTES_MAX ((size_t)1 << 20)      /* keys and values of one scope */
#define SHEAF_QUEUE_ITEM_BYTES_MAX ((size_t)1 << 20) /* content and environment */
#define SHEAF_QUEUE_ITEMS_MAX 1000u
#define SHEAF_QUEUE_MERGE_ITEMS_MAX 100u
#define SHEAF_QUEUE_MERGE_BYTES_MAX ((size_t)100000)
#define SHEAF_TTL_US_MAX (INT64_C(3155760000) * 1000000) /* 100 years; of a grace too */
#define SHEAF_GRACE_US_DEFAULT (INT64_C(7) * 86400 * 1000000)
#define SHEAF_CONTEXT_BYTES_DEFAULT ((size_t)64 << 20)

/** What an acknowledged write survives. Ordered: a greater level survives more. */
enum {
	SHEAF_DURABILITY_DEFAULT = 0, /* the store's best local level */
	SHEAF_DURABILITY_NONE = 1,    /* nothing: memory */
	SHEAF_DURABILITY_PROCESS = 2, /* kill -9 of this process */
	SHEAF_DURABILITY_DISK = 3,    /* power loss */
	SHEAF_DURABILITY_REPLICA = 4  /* loss of the machine */
};

/** "none", "process", "disk", "replica"; "default" for 0; "unknown" for anything else. */
SHEAF_API const char *sheaf_durability_name(int32_t durability);

SHEAF_END
#endif
