/*
 * Locals that clean up after themselves, so that an early return cannot leak.
 *
 *     _cleanup_(buf_free) buf b = BUF_INIT(LIMIT);
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#define _cleanup_(fn) __attribute__((cleanup(fn)))

#define UNUSED __attribute__((unused))
#define MUST_USE __attribute__((warn_unused_result))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
