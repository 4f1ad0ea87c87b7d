/*
 * What the BPF programs and the tracer say to each other: ring records, map values, cookies.
 *
 * Compiled by both sides; fixed widths, no padding left to the compiler, sizes asserted below.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

/* -- what a probe is for: 64 bits given to the kernel with each probe, back as the cookie -------
 */

enum call_kind {
	CALL_ALLOC,   /* returns the block; size = argument[size_arg] (times argument[count_arg]) */
	CALL_FREE,    /* block = argument[ptr_arg] */
	CALL_REALLOC, /* both */
	CALL_XALLOC,  /* jemalloc's xallocx: block stays, the return value is its size */
	CALL_MEMALIGN, /* posix_memalign: *argument[ptr_arg] after a return of 0 */
	CALL_MMAP,
	CALL_MUNMAP,
	CALL_MREMAP,
	CALL_BRK,  /* brk(end) */
	CALL_SBRK, /* sbrk(increment) returns the end before */
};

#define CALL_NO_ARG 7
#define CALL_ROUND_PAGE 1 /* pvalloc */

/* kind:8, size_arg:8, count_arg:8, ptr_arg:8, flags:8, -:8, function:16 */
#define CALL_COOKIE(kind, size_arg, count_arg, ptr_arg, flags, function)                      \
	((u64)(kind) | (u64)(size_arg) << 8 | (u64)(count_arg) << 16 | (u64)(ptr_arg) << 24 | \
	 (u64)(flags) << 32 | (u64)(function) << 48)

/* -- unwind rows: how to get from one frame to its caller ---------------------------------------
 */

enum row_kind {
	ROW_CFI = 1, /* as below */
	ROW_END,     /* the thread's first frame: there is no caller */
	ROW_GUESS,   /* no unwind information: take rbp for a frame pointer */
	ROW_COMPLEX, /* needs more than rsp and rbp: unwound in user space */
	ROW_STOP,    /* nothing can be done */
};

enum row_base { ROW_NONE, ROW_CFA, ROW_RSP, ROW_RBP };

/*
 * CFA = base + cfa_off, dereferenced if cfa_deref. Return address at ra_base + ra_off, caller's
 * rbp at rbp_base + rbp_off (ROW_NONE: unchanged). The caller's rsp is the CFA, in signal frames
 * what is saved at rsp + 160. In a signal frame the caller's pc is exact, not a return address.
 */
struct row {
	u8 kind;
	u8 cfa_base; /* ROW_RSP, ROW_RBP */
	u8 cfa_deref;
	u8 is_signal;
	u8 ra_base;  /* ROW_CFA, ROW_RSP */
	u8 rbp_base; /* ROW_NONE, ROW_CFA, ROW_RSP, ROW_RBP */
	u8 pad[2];
	s32 cfa_off, ra_off, rbp_off;
};

_Static_assert(sizeof(struct row) == 20, "struct row");
