/*
 * From what the kernel side sends to stacks: chains are taken as they are, captures are unwound
 * here, and the rows used for that are taught to the kernel side, so that it walks by itself the
 * next time. Equal stacks get one id, however they came.
 *
 * Life: stacks_new → … → stacks_free. The reader's thread.
 */
#pragma once

#include "tracer/kernel.h"
#include "tracer/modules.h"

struct stacks;

struct stacks_totals {
	int64_t chains, captures; /* definitions received */
	int64_t unresolved;       /* captures of processes that were gone */
	int64_t taught;           /* rows */
	int64_t checked, mismatched;
	int64_t tables; /* times that a process's code was looked up */
};

int stacks_new(struct stacks **ret, struct kernel *k, struct modules *ms, struct err *err);
void stacks_free(struct stacks *s); /* NULL allowed */

void stacks_chain(struct stacks *s, const struct record_chain *c);
void stacks_capture(struct stacks *s, const struct record_chain *c);
void stacks_maps(struct stacks *s, const struct record_maps *m);
void stacks_bytes(struct stacks *s, const struct record_bytes *b);

/* A process began (ppid 0: by exec, with new code) or ended. */
void stacks_process(struct stacks *s, uint32_t pid, uint32_t ppid);
void stacks_exit(struct stacks *s, uint32_t pid);

/*
 * What stands for the stack that the kernel side calls id until the event is delivered; 0 = none.
 * A capture is unwound now. A chain may still lie unread in another CPU's ring: it was sent
 * before the event, so it has been read when all rings have been read up to the event's time.
 */
uint32_t stacks_refer(struct stacks *s, uint64_t id);

/* The id of the stack, then; 0 = not known. */
uint32_t stacks_resolve(struct stacks *s, uint32_t reference);

/* Where an instruction of a process is, as if it were a return address: names are those of offset
 * - 1. Module 0: code of no file, or the process is gone. */
struct frame_ref stacks_locate(struct stacks *s, uint32_t pid, uint64_t ip);

/* Stacks 1 … n; their frames. */
size_t stacks_count(const struct stacks *s);
const struct frame_ref *stacks_frames(const struct stacks *s, uint32_t id, uint32_t *ret_depth,
				      enum stack_quality *ret_quality);

struct stacks_totals stacks_totals(const struct stacks *s);
