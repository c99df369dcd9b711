/*
 * Errors: one table of codes, and the struct that says what happened.
 *
 * Every call that can fail returns 0 or one of the negative codes below and
 * takes, as its last argument, an optional `sheaf_error *`. The struct belongs
 * to the caller, is filled only on failure, and is exactly 512 bytes for ever.
 * Nothing is kept per thread, nothing is logged.
 *
 * Comments name the codes a caller may want to act on. Any call that reaches a
 * store may besides answer SHEAF_STORAGE (the medium), SHEAF_NOMEM,
 * SHEAF_FORKED (the handle crossed fork()), SHEAF_DENIED (permissions),
 * SHEAF_BUSY (a lock not had in time), SHEAF_DAMAGED and SHEAF_FORMAT (what is
 * stored cannot be read), and SHEAF_LIMIT or SHEAF_INVALID for what it was given.
 */
#ifndef SHEAF_ERROR_H
#define SHEAF_ERROR_H

#include "common.h"

SHEAF_BEGIN

/*
 * X(name, number, exit code of the command, HTTP status, text)
 * This one list makes the constants, their names, the command's exit codes,
 * the server's statuses and the bindings' exceptions. Numbers never change.
 */
#define SHEAF_CODE_MAP(X)                                                                          \
	X(INVALID, -1, 2, 400, "the request is malformed")                                         \
	X(LIMIT, -2, 1, 400, "a limit of the format was exceeded")                                 \
	X(TOO_LARGE, -3, 1, 413, "the result or the request is too large")                         \
	X(NOT_FOUND, -4, 1, 404, "not found")                                                      \
	X(EXISTS, -5, 3, 409, "exists already")                                                    \
	X(CONFLICT, -6, 3, 409, "the same id is stored with other content")                        \
	X(STALE, -7, 3, 409, "somebody else wrote first")                                          \
	X(EXPIRED, -8, 1, 410, "the session has expired")                                          \
	X(GONE, -9, 1, 410, "the session was deleted meanwhile")                                   \
	X(DENIED, -10, 4, 403, "not permitted")                                                    \
	X(READONLY, -11, 1, 403, "opened for reading only")                                        \
	X(BUSY, -12, 1, 503, "locked by somebody else")                                            \
	X(CANCELLED, -13, 1, 499, "cancelled by the caller")                                       \
	X(TIMEOUT, -14, 1, 504, "the deadline passed")                                             \
	X(STORAGE, -15, 1, 500, "the storage failed")                                              \
	X(DAMAGED, -16, 5, 500, "stored data is damaged")                                          \
	X(FORMAT, -17, 1, 422, "not a format this version understands")                            \
	X(UNSUPPORTED, -18, 1, 501, "this store cannot do that")                                   \
	X(WRONG_SHARD, -19, 1, 421, "the owner lives on another shard")                            \
	X(COMPACT, -20, 1, 409, "the compaction would break the conversation")                     \
	X(CONTEXT, -21, 1, 422, "no valid context can be built")                                   \
	X(FORKED, -22, 1, 500, "the handle crossed fork(); open it again in the child")            \
	X(NOMEM, -23, 1, 507, "out of memory")                                                     \
	X(MODEL, -24, 1, 502, "the model cannot be reached, or refuses")

enum {
	SHEAF_OK = 0,
#define SHEAF_CODE_ENUM(name, number, exit_code, http, text) SHEAF_##name = number,
	SHEAF_CODE_MAP(SHEAF_CODE_ENUM)
#undef SHEAF_CODE_ENUM
	SHEAF_CODE_LAST = -24
};

/** What a failed write left behind. */
enum {
	SHEAF_FAILED = 0, /* certainly not stored */
	SHEAF_UNKNOWN = 1 /* perhaps stored: repeat with the same ids */
};

/**
 * Details of a failure. Zero it or not; it is overwritten whole on failure and
 * left alone on success. Strings are NUL-terminated and never hold content of
 * a conversation.
 */
typedef struct sheaf_error {
	int32_t code;      /* the returned code */
	int32_t outcome;   /* SHEAF_FAILED or SHEAF_UNKNOWN */
	int32_t sys_errno; /* errno of the system call that failed, or 0 */
	int32_t reserved0;
	uint64_t revision; /* STALE: the session's present revision */
	char leaf[136];    /* STALE: the branch's present leaf id, "" before the first entry */
	char message[208]; /* what went wrong, one line */
	char hint[128];    /* what to do about it, or "" */
	char reserved[16];
} sheaf_error;

/** "NOT_FOUND" for SHEAF_NOT_FOUND, "OK" for 0, "?" for a number not in the table. */
SHEAF_API const char *sheaf_code_name(int code);

/** The table's one-line text for a code. */
SHEAF_API const char *sheaf_code_text(int code);

/** The command's exit code: outcome UNKNOWN is 6 whatever the code. `err` may be NULL. */
SHEAF_API int sheaf_code_exit(int code, const sheaf_error *err);

/** The HTTP status for a code; 200 for 0. */
SHEAF_API int sheaf_code_http(int code);

SHEAF_END
#endif
