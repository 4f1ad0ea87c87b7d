/*
 * One allocation event as plain data, free of how it was captured: what the tracer puts into the
 * live table and into events.zst.
 *
 * Frees are stamped when the call begins, allocations when it returns, so that in order of time
 * no live block is ever allocated twice. A realloc is two events with EVENT_REALLOC: FREE of the
 * old block at entry, ALLOC of the new one at return, or RESTORE when it failed. mremap likewise:
 * MUNMAP, then MMAP or RESTORE.
 */
#pragma once

#include "base/base.h"

enum event_kind {
	EVENT_ALLOC,   /* a block of the heap: address, size as requested */
	EVENT_FREE,    /* address */
	EVENT_RESTORE, /* the thread's last FREE or MUNMAP with EVENT_REALLOC did not happen */
	EVENT_FAILED,  /* an allocation that returned NULL: size */
	EVENT_MMAP,    /* address, size rounded to pages; replaces what was mapped there */
	EVENT_MUNMAP,  /* address, size rounded to pages; may cover parts of several mappings */
	EVENT_BRK,     /* the workload moved its break itself: address = the end before, size =
			* growth in bytes, negative (as int64_t) when it shrank */
	EVENT_FORK,    /* pid made a child: address = the child's pid. Without EVENT_SHARED_MM the
			* child has a copy of what was live */
	EVENT_EXEC,    /* the process's live blocks are gone */
	EVENT_EXIT,    /* the process's last thread ended: size = status as of wait(2) */
	EVENT_KINDS
};

enum {
	EVENT_REALLOC = 1,
	EVENT_SHARED_MM = 2, /* FORK by vfork, posix_spawn or CLONE_VM */
};

struct event {
	int64_t t_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint64_t address, size;
	uint32_t stack;    /* ALLOC, FAILED, MMAP, BRK: id of a stack; 0 = not known */
	uint16_t function; /* id of the function's name; 0 = none (FORK, EXEC, EXIT) */
	uint8_t kind, flags;
};

const char *event_kind_name(enum event_kind kind); /* alloc, free, restore, … */
