/*
 * The mappings of a process as /proc/PID/maps lists them, as far as memory of its own may be in
 * them.
 *
 * Shared anonymous memory that is swapped out is in no page table. The kernel says of a mapping
 * how much of it is: `Swap:` of /proc/PID/smaps, which walks all page tables of the process and is
 * read only where there is such a mapping and swap in use.
 *
 * Life: zeroed → areas_read … → areas_done.
 */
#pragma once

#include "base/base.h"

struct area {
	uint64_t start, end;
	bool is_anon;           /* private and anonymous, no stack and none of the kernel's */
	bool is_shmem;          /* anonymous and shared */
	uint64_t inode, offset; /* of shmem: with both the same it is the same memory */
	uint64_t swapped_bytes; /* of shmem, after areas_read_swapped */
};

struct areas {
	struct area *list; /* in order of address */
	size_t n, cap;
};

/* None: the process is gone. 0 or a negative errno, no message. */
int areas_read(struct areas *a, pid_t pid);
int areas_read_swapped(struct areas *a, pid_t pid);
void areas_done(struct areas *a);
