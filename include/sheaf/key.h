/*
 * Keys: which session of which user of which app.
 *
 * `app` is the isolation boundary (the tenant); `user` owns sessions. All three
 * are bytes chosen by the caller. A lone session id is {"", "", id}.
 */
#ifndef SHEAF_KEY_H
#define SHEAF_KEY_H

#include "error.h"

SHEAF_BEGIN

typedef struct sheaf_key {
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
} sheaf_key;

/** The key of a lone session id. `session` is borrowed by the returned value. */
SHEAF_API sheaf_key sheaf_key_of(const char *session);

/** Room for an id or an encoded key part, with its NUL. */
#define SHEAF_ID_ROOM 136
#define SHEAF_KEY_PART_ROOM 208

/**
 * Writes a new UUIDv7 as text. Ids made in one process ascend, also when the
 * clock stands still or goes back.
 * @return 0 or SHEAF_STORAGE when the system has no randomness
 */
SHEAF_API int sheaf_id_new(char out[SHEAF_ID_ROOM], sheaf_error *err);

/**
 * Encodes one key part the way paths, SQL, Redis tags and hashes spell it:
 * bytes outside [A-Za-z0-9._-], a leading dot and the dot of a final ".jsonl"
 * as %XX, an empty part as "%". The result is NUL-terminated.
 * @return 0; SHEAF_LIMIT over SHEAF_KEY_PART_BYTES_MAX encoded bytes
 */
SHEAF_API int sheaf_key_encode(char out[SHEAF_KEY_PART_ROOM], sheaf_str part, sheaf_error *err);

/**
 * The reverse of sheaf_key_encode(). `out_len` receives the length (a part may
 * hold NUL bytes).
 * @return 0; SHEAF_INVALID for text that sheaf_key_encode() never writes
 */
SHEAF_API int sheaf_key_decode(char out[SHEAF_KEY_PART_ROOM], size_t *out_len, sheaf_str encoded,
                               sheaf_error *err);

SHEAF_END
#endif
