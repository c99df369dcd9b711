/* Comparing, hashing and copying strings that carry their length. */
#include "str.h"

#include "hash.h"
#include "utf8.h"

int str_cmp(sheaf_str a, sheaf_str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n != 0 ? memcmp(a.ptr, b.ptr, n) : 0;
	if (order != 0)
		return order;
	return a.len < b.len ? -1 : a.len > b.len;
}

/* The words are part of the meaning of derived tables: changing them makes those stale. */
uint64_t str_hash(sheaf_str s)
{
	static const uint64_t secret[4] = {
		UINT64_C(0x2d358dccaa6c78a5), UINT64_C(0x8bb84b93962eacc9),
		UINT64_C(0x4b33a62ed433d4a3), UINT64_C(0x4d5a2da51de1aa47)};
	return hash_bytes(s, secret);
}

void str_copy_cut(char *out, size_t room, sheaf_str s)
{
	if (room == 0)
		return;
	sheaf_str cut = utf8_cut(s, room - 1);
	if (cut.len != 0)
		memcpy(out, cut.ptr, cut.len);
	out[cut.len] = '\0';
}
