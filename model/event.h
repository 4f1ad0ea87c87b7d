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
#include "model/kinds.h"

struct event {
	int64_t t_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint64_t address, size;
	uint32_t stack;    /* ALLOC, FAILED, MMAP, BRK: id of a stack; 0 = not known */
	uint16_t function; /* id of the function's name; 0 = none (FORK, EXEC, EXIT) */
	uint8_t kind, flags;
};

const char *event_kind_name(enum event_kind kind); /* alloc, free, restore, … */
