/*
 * Captures of the test's own stack, and what must come out of unwinding them.
 *
 * own_stack_setup reads this process's code, own_stack_teardown releases it. own_snap() takes the
 * capture where it is called, together with glibc's backtrace() as the truth; the expect
 * functions end the test where the frames differ.
 */
#pragma once

#include "tracer/unwind.h"

#define NOINLINE __attribute__((noinline))

struct shot {
	struct capture capture;
	void *truth[UNWIND_FRAMES_MAX + 64]; /* of backtrace() */
	int n_truth;
	uint64_t low; /* copy from here, if below rsp: the other stack's end */
};

struct used {
	struct frame_ref at;
	struct row row;
};

extern struct shot own_shot;
extern struct frame_ref own_frames[UNWIND_FRAMES_MAX]; /* of the last walk */
extern struct used own_used[UNWIND_FRAMES_MAX];        /* its rows, in order */
extern int own_n_used;

/* glibc's: a sanitiser's own is one frame deeper. */
extern int (*glibc_backtrace)(void **ret, int n);

int own_stack_setup(void **state);
int own_stack_teardown(void **state);

struct unwind_env own_environment(void);
const struct range *range_of(uint64_t address); /* NULL = no code of this process */

/* void take_regs(uint64_t regs[8]): rbx, rbp, r12 ... r15 as the caller has them, its rsp after
 * the return and the address returned to. */
void take_regs(uint64_t regs[8]);

/* The caller's stack into `own_shot`; level 0 is this function, in the capture and in the truth.
 * Returns 1. */
int own_snap(void);

/* Unwinds; rows are checked to be told of once for each frame. */
int own_walk(const struct capture *c, enum stack_quality *quality);

/* Frames from … n - 1 are those of the truth. */
void expect_frames(int from, int n);

/* The stack in `own_shot` in full, once more by full evaluation of every frame; the number of
 * frames. Level 0 is not compared: it is at another call in own_snap(). */
int expect_shot(void);

/* And by nothing but the rows told of, as the BPF program does it. */
void expect_rows_alone(int n);
