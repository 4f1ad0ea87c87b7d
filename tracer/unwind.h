/*
 * Unwinds a captured stack outside the process, by the files' unwind rows.
 *
 * Pure: the capture (registers, bytes of the stack), the process's executable ranges and a way to
 * get a file's rows go in, frames come out. The walk is the one that the BPF program makes with
 * learned rows (bpf/events.h), so that both yield the same frames; rows used are reported, for
 * teaching.
 */
#pragma once

#include "model/site.h"
#include "tracer/cfi.h"

/* An executable mapping of a process. */
struct range {
	uint64_t start, end;
	uint64_t bias;   /* run-time address - ELF virtual address */
	uint32_t module; /* 0 = code of no file */
};

struct capture {
	uint64_t ip, rsp, rbp;            /* ip: a return address */
	uint64_t rbx, r12, r13, r14, r15; /* with has_registers */
	bool has_registers;
	uint64_t base; /* address of bytes[0] */
	const uint8_t *bytes;
	size_t len;
};

struct unwind_env {
	const struct range *ranges; /* sorted by start, disjoint */
	size_t n_ranges;
	struct cfi *(*get_cfi)(void *ctx, uint32_t module); /* NULL: the file cannot be read */
	/* Told of every row used, keyed as the BPF side looks it up. May be NULL. */
	void (*on_row)(void *ctx, struct frame_ref at, const struct row *row);
	void *ctx;
};

#define UNWIND_FRAMES_MAX 1024

/*
 * Frames innermost first into ret[UNWIND_FRAMES_MAX]: the first is ip. Returns their number and
 * the quality: STACK_FULL when ROW_END was reached, STACK_GUESSED when that took a guess,
 * STACK_CUT when the bytes, the frames or the rows ran out.
 */
int unwind(const struct unwind_env *env, const struct capture *c, struct frame_ref *ret,
	   enum stack_quality *ret_quality);
