/*
 * The blocks that are live while a stream of events is written or read: per process a number for
 * each allocation, so that a free can say which one it ends.
 *
 * The writer finds numbers by address, the reader addresses by number; the memory that either
 * needs is bounded by what is live. Zero-initialise, owners_done.
 */
#pragma once

#include "base/base.h"

/* 64 bits → 64 bits; the value 0 means not there. */
struct map {
	struct map_slot {
		uint64_t key, value;
	} * slots; /* owned; 1 << bits */
	size_t n;
	unsigned int bits;
};

uint64_t map_get(const struct map *m, uint64_t key);
/* value != 0; *ret_old is what it replaces. -ENOMEM. */
int map_put(struct map *m, uint64_t key, uint64_t value, uint64_t *ret_old);
/* Removes; returns the value. */
uint64_t map_take(struct map *m, uint64_t key);
void map_clear(struct map *m);
void map_done(struct map *m);

struct process_blocks {
	uint32_t pid;
	uint64_t n_allocs; /* the number of its last allocation; the first is 1 */
	struct map blocks;
};

struct owners {
	struct map processes;
	struct process_blocks *last; /* the one asked for last; borrowed from processes */
};

/* NULL when the process has allocated nothing yet. */
struct process_blocks *owners_find(struct owners *l, uint32_t pid);
/* Made if needed; NULL: no memory. */
struct process_blocks *owners_get(struct owners *l, uint32_t pid);
/* The process ended or was replaced. */
void owners_drop(struct owners *l, uint32_t pid);
/* All processes are gone. */
void owners_done(struct owners *l);
