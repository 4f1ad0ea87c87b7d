/*
 * Stacks, sites and what else a traced run leaves behind, as plain data: what the tracer hands to
 * store/ (tables module, frame, stack, stack_frame, site, site_histogram, process, coverage).
 *
 * One site of a run is no stack's: kind SITE_OTHER without a stack is the allocator's own memory,
 * free or internal, private anonymous pages on which nothing is live.
 */
#pragma once

#include "base/base.h"
#include "model/kinds.h"

enum site_kind { SITE_MALLOC, SITE_MMAP, SITE_BRK, SITE_OTHER };

const char *stack_quality_name(enum stack_quality q); /* full, cut, guessed, none */
const char *site_kind_name(enum site_kind k);         /* malloc, mmap, brk, other */

#define BUILD_ID_MAX 20

/* A file whose code was seen on a stack. */
struct module {
	uint32_t id; /* 1, 2, … ; 0 = code of no file (JIT) */
	char *path;
	uint8_t build_id[BUILD_ID_MAX];
	int build_id_len; /* 0 = it has none */
};

/* One place in the code, before symbols. */
struct frame_ref {
	uint32_t module;
	uint64_t offset; /* ELF virtual address of the return address; names are those of
			  * offset - 1. module 0: the absolute address */
};

/* A place with its name. One frame_ref becomes several of these where functions are inlined,
 * innermost first, the last one being the function itself. */
struct frame {
	struct frame_ref ref;
	const char *function; /* demangled; NULL = not known */
	const char *file;     /* source file; NULL = not known */
	int line;             /* 0 = not known */
	bool is_inline;
};

/* Level 0 is the allocator's caller. */
struct stack {
	uint32_t id;            /* 1, 2, … */
	const uint32_t *frames; /* indexes into trace_result.frames, inlined ones included */
	uint32_t depth;
	enum stack_quality quality;
};

#define SITE_LOG2_MAX 64

/* All allocations of one kind with one stack. Bytes are those requested. */
struct site {
	uint32_t id;    /* 1, 2, … within a run */
	uint32_t stack; /* 0 = not known */
	enum site_kind kind;
	int64_t alloc_count, free_count;
	int64_t alloc_bytes;
	int64_t live_bytes, live_count; /* now, in processes that are there */
	/* Not freed when its process exited, or still live at the end of the run (column
	 * end_live_bytes). What exec discards is neither freed nor leaked. */
	int64_t leaked_bytes, leaked_count;
	int64_t peak_live_bytes;
	int64_t at_peak_bytes;   /* live when the whole workload's live bytes were highest */
	int64_t temporary_count; /* blocks freed by the next event of the thread that allocated */
	int64_t failed_count;
	int64_t major_faults; /* of its addresses, while they were its; -1 = not traced */
	int64_t fault_ns;     /* that they took, where that is known; -1 = nothing was measured */
	int64_t max_swapped_bytes;             /* over all scans; -1 = never scanned */
	uint32_t size_log2[SITE_LOG2_MAX];     /* blocks of 2^i ... 2^(i+1)-1 bytes; 0 in [0] */
	uint32_t lifetime_log2[SITE_LOG2_MAX]; /* freed blocks by age in ns, likewise */
};

struct process_info {
	uint32_t pid, ppid;
	int64_t start_t_ns; /* since the run's first sample */
	int64_t end_t_ns;   /* -1 = still alive */
	int exit_code;      /* -1 = not known or killed by a signal */
	char comm[16];
	char *exe; /* NULL = not known */
};

/* What was looked for in one file, and whether it was found. */
struct coverage {
	char *path;
	char *families; /* "glibc", "jemalloc, c++"; "" = no allocator in it */
	int probes;
	bool is_private; /* the workload's own copy: nobody else pays */
	char *problem;   /* NULL = none; else a sentence: stripped, truncated, not x86-64 … */
};

/* The pipeline's own record, once a second: one row of table `tracer_stat`. */
struct tracer_stat {
	int64_t t_ns;
	int ring;              /* the CPU */
	int64_t written, read; /* events so far */
	int64_t fill_peak;     /* bytes, since the last row */
	int64_t paused_ns;     /* the workload was held, so far */
	int64_t backlog;       /* events read and not yet in order */
	int64_t encode_ns, write_ns, rss;
};

/* How much a run was slowed is an estimate, right to about a tenth of the cost: of a run that did
 * little else than hit probes no more is known than that it was slowed by this or more. */
#define TRACE_SLOWDOWN_MAX 4.0

/* What a traced run leaves at its end. Owned by the tracer; borrowed by the store. */
struct trace_result {
	const struct module *modules;
	size_t n_modules;
	const struct frame *frames; /* first those of faults, by struct fault's place */
	size_t n_frames;
	const struct stack *stacks;
	size_t n_stacks;
	const struct site *sites;
	size_t n_sites;
	const struct process_info *processes;
	size_t n_processes;
	const struct coverage *coverage;
	size_t n_coverage;
	/* Figures of the trace as a whole, for the column run.trace (JSON object of numbers):
	 * the keys are documented in docs/formats.md. */
	const char *summary_json;
};
