/* Session files of other agents by the thousand, made from the ones under tests/data/import. */
#ifndef BENCH_GENERATE_H
#define BENCH_GENERATE_H

#include <stddef.h>
#include <stdint.h>

#define GENERATE_KINDS 7 /* agents and generations of their formats */

/*
 * Writes the source of session `number` into `dir`, with its agent's kind of name: a file of the
 * kind number % GENERATE_KINDS that says what the sample says, again and again with other ids, until
 * it has about `messages` messages or, if that is 0, `bytes` bytes.
 * @return its size
 */
uint64_t generate_session(const char *dir, uint64_t number, uint64_t messages, uint64_t bytes);

/* sheaf-bench --generate DIR SESSIONS BYTES: sources of that size each, for other programs. */
int generate_main(const char *dir, const char *sessions, const char *bytes);

#endif
