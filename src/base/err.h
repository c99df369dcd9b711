/* Filling a sheaf_error at the place of failure. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "cleanup.h"
#include "sheaf/error.h"

/*
 * Each returns `code`, so that a failure is one line:
 *     return err_set(err, SHEAF_INVALID, "a label needs a target");
 * `err` may be NULL. The outcome is FAILED unless err_unknown() follows.
 */
int err_set(sheaf_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with errno's text added and sys_errno filled; `code` is usually SHEAF_STORAGE. */
int err_sys(sheaf_error *err, int code, int sys_errno, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* SHEAF_NOMEM, the one failure that needs no words. */
int err_nomem(sheaf_error *err);

/* Adds advice to an error already set. */
void err_hint(sheaf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Marks the outcome of the write as unknown. Returns the code, for chaining. */
int err_unknown(sheaf_error *err, int code);

/* Another code and text for what has failed; the outcome stays. */
int err_rename(sheaf_error *err, int code, const char *text);

#endif
