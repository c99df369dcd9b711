/*
 * Open addressing with linear probing; at most three quarters of the slots are
 * used, so that a miss ends soon.
 */
#include "map.h"

#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "hash.h"
#include "mem.h"
#include "sheaf/error.h"
#include "str.h"

#define ROOM_MIN 16u

/*
 * Ids and names come from outside: with a known hash a writer could aim
 * thousands at one slot. The secret is the kernel's gift to each process, so
 * it costs no system call and cannot fail. It makes the order of map_each()
 * differ between runs.
 */
static uint64_t secret[4];
static pthread_once_t secret_once = PTHREAD_ONCE_INIT;

static void secret_make(void)
{
	uint64_t seed[2] = {UINT64_C(0x9e3779b97f4a7c15), (uint64_t)(uintptr_t)&secret_once};
	const void *gift = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	if (gift != NULL)
		memcpy(seed, gift, sizeof(seed));
	for (unsigned i = 0; i < 4; i++) {
		uint64_t z = hash_fold(seed[0] ^ UINT64_C(0xa0761d6478bd642f),
		                       seed[1] ^ (UINT64_C(0xe7037ed1a0b428db) * (i + 1)));
		secret[i] = z ^ (z >> 29) ^ seed[i & 1];
	}
}

static uint64_t key_hash(sheaf_str key)
{
	(void)pthread_once(&secret_once, secret_make);
	uint64_t hash = hash_bytes(key, secret);
	return hash != 0 ? hash : 1;
}

/* NULL marks a removed slot, so "not given" is kept as the empty string, which it equals. */
static sheaf_str key_kept(sheaf_str key)
{
	return key.ptr != NULL ? key : (sheaf_str){"", 0};
}

static map_slot *find(const map *m, sheaf_str key, uint64_t hash)
{
	if (m->room == 0)
		return NULL;
	size_t mask = m->room - 1;
	for (size_t i = (size_t)hash & mask; m->slots[i].hash != 0; i = (i + 1) & mask) {
		map_slot *slot = &m->slots[i];
		if (slot->hash == hash && slot->key.ptr != NULL && str_eq(slot->key, key))
			return slot;
	}
	return NULL;
}

static void put_new(map_slot *slots, size_t room, map_slot new)
{
	size_t mask = room - 1, i = (size_t) new.hash &mask;
	while (slots[i].hash != 0)
		i = (i + 1) & mask;
	slots[i] = new;
}

/* Makes a table for one key more; the removed are left behind, so it may even shrink. */
static int rebuild(map *m)
{
	size_t room = ROOM_MIN;
	while (room / 2 < m->count + 1) {
		if (room > SIZE_MAX / sizeof(map_slot) / 2)
			return SHEAF_NOMEM;
		room *= 2;
	}
	map_slot *slots = mem_zalloc(room * sizeof(*slots));
	if (slots == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < m->room; i++) {
		if (m->slots[i].key.ptr != NULL)
			put_new(slots, room, m->slots[i]);
	}
	mem_free(m->slots);
	m->slots = slots;
	m->room = room;
	m->used = m->count;
	return 0;
}

void map_free(map *m)
{
	mem_free(m->slots);
	*m = (map)MAP_INIT;
}

static int add_new(map *m, sheaf_str key, uint64_t hash, uint64_t value)
{
	if (m->used + 1 > m->room - m->room / 4) {
		int rc = rebuild(m);
		if (rc != 0)
			return rc;
	}
	put_new(m->slots, m->room, (map_slot){hash, key_kept(key), value});
	m->used++;
	m->count++;
	return 0;
}

/* The key is replaced with the value: the old one may have lived in the old value. */
int map_set(map *m, sheaf_str key, uint64_t value)
{
	uint64_t hash = key_hash(key);
	map_slot *slot = find(m, key, hash);
	if (slot == NULL)
		return add_new(m, key, hash, value);
	slot->key = key_kept(key);
	slot->value = value;
	return 0;
}

int map_get_or_set(map *m, sheaf_str key, uint64_t *value)
{
	uint64_t hash = key_hash(key);
	const map_slot *slot = find(m, key, hash);
	if (slot == NULL)
		return add_new(m, key, hash, *value);
	*value = slot->value;
	return 0;
}

bool map_get(const map *m, sheaf_str key, uint64_t *value)
{
	if (m->count == 0)
		return false;
	const map_slot *slot = find(m, key, key_hash(key));
	if (slot == NULL)
		return false;
	*value = slot->value;
	return true;
}

bool map_remove(map *m, sheaf_str key)
{
	if (m->count == 0)
		return false;
	map_slot *slot = find(m, key, key_hash(key));
	if (slot == NULL)
		return false;
	slot->key = (sheaf_str){NULL, 0};
	slot->value = 0;
	m->count--;
	return true;
}

const map_slot *map_each(const map *m, size_t *at)
{
	while (*at < m->room) {
		const map_slot *slot = &m->slots[(*at)++];
		if (slot->key.ptr != NULL)
			return slot;
	}
	return NULL;
}
