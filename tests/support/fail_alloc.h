/*
 * An allocator that fails on demand and counts what is alive.
 *
 *     fail_alloc_install();
 *     for (size_t n = 1;; n++) {
 *             fail_alloc_at(n, false);
 *             int rc = the_call();
 *             if (!fail_alloc_hit())
 *                     break;              // every allocation has failed once
 *             assert_int_equal(rc, SHEAF_NOMEM);
 *     }
 *     assert_int_equal(fail_alloc_live(), 0);
 *     fail_alloc_remove();
 *
 * Install it while nothing of the library is allocated. Threads may allocate
 * through it together.
 */
#ifndef SUPPORT_FAIL_ALLOC_H
#define SUPPORT_FAIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void fail_alloc_install(void); /* fails nothing yet; the counts start at 0 */
void fail_alloc_remove(void);  /* malloc again; blocks still alive stay alive */

/* The n-th allocation or growth from now on fails (1: the next), once or from then on. 0: none. */
void fail_alloc_at(size_t n, bool for_ever);

bool fail_alloc_hit(void);     /* has one failed since fail_alloc_at()? */
size_t fail_alloc_count(void); /* allocations and growths asked for since fail_alloc_at() */
size_t fail_alloc_live(void);  /* blocks not freed */

#endif
