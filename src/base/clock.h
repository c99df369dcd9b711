/* Time, through the seam, and its one spelling: 2026-11-14T10:00:00.000000Z. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "sheaf/sys/seams.h"

#define CLOCK_TEXT 27

int64_t clock_now_us(void);       /* since 1970 */
int64_t clock_monotonic_us(void); /* for deadlines */
int64_t clock_boottime_us(void);  /* for leases: goes on while the machine sleeps */
/* Which run of the machine that time belongs to; -1 and errno if it does not say. */
int clock_boot_id(char out[SHEAF_BOOT_ID_ROOM]);
void clock_sleep_us(int64_t us);

/* A condition to wait for so long at most; by the system's clock, whatever the seam says. */
int clock_wait_init(pthread_cond_t *wake); /* 0, or not enough memory */
void clock_wait_us(pthread_cond_t *wake, pthread_mutex_t *held, int64_t us);

/* Years 0000..9999; values outside are clamped. Writes a NUL too. */
void clock_format(char out[CLOCK_TEXT + 1], int64_t us);

/* RFC 3339 with any fraction (cut to microseconds) and Z or an offset. */
bool clock_parse(sheaf_str text, int64_t *out_us);

#endif
