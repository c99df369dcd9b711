/* The `retention` fact: {"ttl": seconds or null, "grace": seconds, "pin": true or false}. */
#ifndef ENTRY_RETENTION_H
#define ENTRY_RETENTION_H

#include <stdbool.h>

#include "base/buf.h"
#include "sheaf/error.h"

/* What one fact says; a member it does not name stays as it was. */
typedef struct retention_fact {
	bool has_ttl;
	bool has_grace;
	bool has_pin;
	bool pin;
	int64_t ttl_us; /* 0: does not expire */
	int64_t grace_us;
} retention_fact;

/* Reads the inside of a payload. SHEAF_INVALID, SHEAF_LIMIT. */
int retention_read(retention_fact *out, sheaf_str inside, sheaf_error *err);

/* Writes a body, the payload under its name. */
void retention_write(buf *out, const retention_fact *r);

#endif
