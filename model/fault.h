/*
 * Major faults and what a scan of the page tables sees, as plain data: rows of tables `fault`,
 * `scan` and `site_sample`.
 */
#pragma once

#include "base/base.h"
#include "model/kinds.h"

const char *fault_mapping_name(enum fault_mapping m); /* file, anon, stack, brk, vdso, unknown */

struct fault {
	int64_t t_ns; /* since the run's first sample; when it had been served */
	uint32_t pid, tid;
	uint64_t address;
	uint32_t site; /* 0 = not the heap */
	enum fault_mapping mapping;
	const char *file;    /* NULL = none or not known; lives as long as the tracer */
	int64_t file_offset; /* of the byte; -1 = none */
	uint32_t place; /* of the instruction: frames[place - 1] of the result; 0 = not known */
	int64_t duration_ns; /* -1 = not known */
	bool is_own;         /* the tracer's reading of a stack, not the workload's doing */
};

/* One scan: what there was and what it took. */
struct scan {
	int64_t t_ns; /* since the run's first sample */
	int64_t period_ns, scan_ns;
	int64_t processes, blocks;
	int64_t resident_bytes, swapped_bytes, swapcache_bytes; /* of all sites; -1 = not known */
};

/* A site at one scan. Bytes of pages, each divided among the live blocks on it; the columns are
 * described in store/schema.c. */
struct site_sample {
	uint32_t site;
	int64_t live_bytes;
	int64_t resident_bytes, swapped_bytes, swapcache_bytes; /* swapcache: -1 = not known */
	int64_t cold_bytes, returned_bytes, thrashing_bytes;
	int64_t major_faults;
};
