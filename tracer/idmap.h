/*
 * A hash map from nonzero 64-bit keys to 64-bit values: open addressing, grows, no deletion but
 * of everything. Zero-initialised it is empty.
 */
#pragma once

#include "base/base.h"

struct idmap {
	struct idmap_slot {
		uint64_t key, value;
	} * slots;
	size_t n, cap; /* cap: a power of two */
};

void idmap_done(struct idmap *m);

/* The value's place, or NULL. */
uint64_t *idmap_find(const struct idmap *m, uint64_t key);

/* Sets; 0 or -ENOMEM. */
int idmap_put(struct idmap *m, uint64_t key, uint64_t value);

/* 64 bits well mixed: nearby keys end far apart. */
uint64_t idmap_hash(uint64_t key);
