/*
 * The blocks that are live while a stream of events is written or read: per process a number for
 * each allocation, so that a free can say which one it ends.
 *
 * The writer finds numbers by address, the reader addresses by number; the memory that either
 * needs is bounded by what is live. Zero-initialise, owners_done.
 */
#pragma once

#include "base/map.h"

struct process_blocks {
	uint32_t pid;
	uint64_t n_allocs; /* the number of its last allocation; the first is 1 */
	struct map blocks;
};

struct owners {
	struct map processes;        /* by pid → struct process_blocks, owned */
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
