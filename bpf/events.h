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
	CALL_BRK,    /* brk(end) */
	CALL_SBRK,   /* sbrk(increment) returns the end before */
	CALL_UNWIND, /* an exception or the end of a thread is about to leave frames */
	CALL_LOADED, /* ld.so has mapped or unmapped a library */
	CALL_COST,   /* analyzer's own, to find what a probe costs */
};

#define CALL_NO_ARG 7
#define CALL_ROUND_PAGE 1 /* pvalloc */
#define CALL_STEPPED 2    /* the probe is on an instruction that the kernel has to single-step */

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

/* -- what the rings carry ------------------------------------------------------------------------
 */

#define CHAIN_FRAMES_MAX 1024
#define CHAIN_FIXES 4
#define CHECK_EVERY 1021 /* walked stacks; prime, to fall into no program's rhythm */
#define CAPTURE_CHUNK 4096
#define CAPTURE_CHUNKS 64 /* of the stack at most, per capture: 256 KiB; clang needs 132 KB */

enum record_type {
	RECORD_CALL = 1,
	RECORD_CHAIN,
	RECORD_CAPTURE,
	RECORD_BYTES,
	RECORD_MAPS,
	RECORD_UNWIND,
	RECORD_PROCESS,
	RECORD_FAULT
};

/* An event. kind and flags as in model/event.h. */
struct record_call {
	u8 type;
	u8 kind;
	u8 flags;
	u8 pad;
	u16 function;
	u16 pad2;
	u64 seq; /* of its ring: 0, 1, 2 … ; a number missing is an event lost */
	u64 t_ns;
	u32 pid, tid;
	u64 address, size;
	u64 stack; /* 0, or the id of a chain or capture that was sent before */
};

/*
 * RECORD_CHAIN: a stack never seen before, walked to its end: pcs[depth], keyed as rows are.
 * RECORD_CAPTURE: a walk that met an address without a row. pcs[depth] is what was walked, then
 * come the registers there; the bytes of the stack from sp upwards follow in RECORD_BYTES.
 */
struct record_chain {
	u8 type;
	u8 quality; /* enum stack_quality; of a capture: STACK_NONE when the table was not valid */
	u16 depth;
	u32 pid;
	u64 id;
	u64 ip, sp, bp;
	u64 rbx, r12, r13, r14, r15; /* of the innermost frame: only with depth 0 */
	/* Of a capture: which table of the process's code it belongs to. */
	u64 exec_pages, generation;
	u64 checks; /* a capture of what was walked all the same, to compare: the chain's id */
	u32 n_bytes;
	u32 n_fixes;
	/* Return addresses that the kernel has replaced by its trampoline, and the true ones. */
	struct {
		u64 slot, address;
	} fix[CHAIN_FIXES];
	u64 pcs[CHAIN_FRAMES_MAX];
};

#define CHAIN_HEAD offsetof(struct record_chain, pcs)

/* Never across a page: the next one may not be there. */
struct record_bytes {
	u8 type;
	u8 pad[3];
	u32 len;
	u64 id;
	u64 address;
	u8 bytes[CAPTURE_CHUNK];
};

/* The executable mappings of a process whose table was not valid, where the kernel can list them:
 * the process may be gone before user space could look. Sent before the capture. */
#define MAPS_MAX 200

struct record_maps {
	u8 type;
	u8 pad;
	u16 n;
	u32 pid;
	u64 exec_pages;
	u64 generation; /* see struct table */
	u64 vdso;       /* where the kernel's own code is mapped */
	struct map_entry {
		u64 start, end;
		u64 pgoff; /* in pages */
		u64 dev;   /* as the kernel has it: major << 20 | minor; 0 = no file */
		u64 ino;
	} entry[MAPS_MAX];
};

/* An unwinder is about to look at the stack of a thread that is inside allocator calls, and has
 * been stopped: the true return addresses are to be written into their slots. */
#define UNWIND_SLOTS 4

struct record_unwind {
	u8 type;
	u8 pad[3];
	u32 pid;
	u64 n;
	struct {
		u64 slot, address;
	} fix[UNWIND_SLOTS];
};

struct record_process {
	u8 type;
	u8 kind;  /* EVENT_FORK, EVENT_EXEC, EVENT_EXIT */
	u8 flags; /* EVENT_SHARED_MM */
	u8 pad[5];
	u64 seq;
	u64 t_ns;
	u32 pid, ppid; /* FORK: ppid made pid */
	u64 start_ns;  /* boot time */
	u32 status;    /* EXIT: as of wait(2) */
	u32 pad2;
	char comm[16];
};

/* A major fault that has been served. */
struct record_fault {
	u8 type;
	u8 mapping; /* enum fault_mapping */
	u8 is_own;  /* a program's reading of the stack */
	u8 pad[5];
	u64 seq;
	u64 t_ns;
	u64 duration_ns; /* 0 = not known */
	u32 pid, tid;
	u64 address, ip; /* ip: in user mode, also where the kernel met the fault for it */
	/* What is mapped at the address, where that is a file: major << 20 | minor of its device.
	 */
	u64 dev, ino, file_offset;
};

_Static_assert(sizeof(struct record_call) == 56, "struct record_call");
_Static_assert(sizeof(struct record_chain) == 176 + 8 * CHAIN_FRAMES_MAX, "struct record_chain");
_Static_assert(sizeof(struct record_bytes) == 24 + CAPTURE_CHUNK, "struct record_bytes");
_Static_assert(sizeof(struct record_maps) == 32 + 40 * MAPS_MAX, "struct record_maps");
_Static_assert(sizeof(struct record_unwind) == 16 + 16 * UNWIND_SLOTS, "struct record_unwind");
_Static_assert(sizeof(struct record_process) == 64, "struct record_process");
_Static_assert(sizeof(struct record_fault) == 80, "struct record_fault");

/* -- maps ----------------------------------------------------------------------------------------
 */

/* Code of no file: its offset is the address itself. */
#define MODULE_ANONYMOUS 0xffff

#define ROW_KEY(module, offset) ((u64)(module) << 48 | ((offset) & ((1ULL << 48) - 1)))

#define TABLE_RANGES 256

/* Where the code of a process is: valid while the process has just as many pages of code, and
 * ld.so has not changed what is mapped. */
struct table {
	u64 exec_pages; /* mm_struct.exec_vm, without the page of the probes */
	u32 n;
	u32 generation; /* goes up with each change by ld.so, and with exec */
	struct table_range {
		u64 start, end;
		u64 bias;
		u64 module;
	} range[TABLE_RANGES]; /* sorted by start; unused ones are ~0 */
};

/* One per CPU, shared with user space by mmap. */
struct cpu_state {
	u64 seq;  /* events produced: the next number */
	u64 lost; /* of them not in the ring */
	u64 lost_from_ns, lost_to_ns;
	u64 hits;       /* programs run for the workload */
	u64 stepped;    /* of them at entries with CALL_STEPPED */
	u64 returns;    /* and at returns */
	u64 program_ns; /* spent in them once the scope was known */
	u64 outside;    /* for others: shared files */
	u64 nested;     /* calls made by allocators themselves */
	u64 walked, chains, captures;
	u64 captures_lost; /* no room for the stack: its event has none */
	u64 faulted_pages; /* that reading the stack has brought in */
	u64 stops;
	u64 no_storage;
	u64 skipped; /* calls in handlers on a signal stack above what they interrupt */
	u64 peak;    /* bytes in the ring at most; user space takes it back to 0 */
	u64 woken;
};

/* Written by user space while the tracer runs. */
struct control {
	u64 heartbeat_ns; /* without a fresh one nobody is stopped */
};

/* A process that a program has stopped, keyed by pid. */
struct stopped {
	u8 is_own_pending; /* our SIGSTOP is on its way */
	u8 is_foreign;     /* somebody else has stopped it too: it stays stopped */
	u8 pad[6];
	u64 since_ns;
};

enum trace_policy { POLICY_PAUSE, POLICY_DROP, POLICY_ABORT };
