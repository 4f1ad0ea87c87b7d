/*
 * A hash map from 64-bit keys to 64-bit values. Any key is allowed; the value 0 means not there.
 * Pointers are values too: (uintptr_t)p in, map_pointer out; what they point to is the caller's.
 *
 * Open addressing with linear probing, 24 to 48 bytes per key; it grows and does not shrink.
 * Removal shifts back, so there are no tombstones. Zero-initialised it is empty; map_done.
 */
#pragma once

#include "base/base.h"

struct map {
	struct map_slot {
		uint64_t key, value; /* value 0: an empty slot */
	} * slots;                   /* owned; to look at all values go through cap of them */
	size_t n, cap;               /* cap: 0 or 1 << (64 - shift) */
	unsigned int shift;
};

/* 0 = not there. */
uint64_t map_get(const struct map *m, uint64_t key);

/* Sets; value is not 0. *ret_old, where not NULL, is the value replaced. 0 or -ENOMEM. */
int map_put(struct map *m, uint64_t key, uint64_t value, uint64_t *ret_old);

/* Removes and returns the value; 0 = it was not there. */
uint64_t map_take(struct map *m, uint64_t key);

/* Empties, but keeps the memory for what comes next. */
void map_clear(struct map *m);
void map_done(struct map *m);

/* One to one, and nearby keys end far apart: for making a key of several numbers. */
uint64_t map_mix(uint64_t key);

static inline void *map_pointer(uint64_t value)
{
	return (void *)(uintptr_t)value;
}
