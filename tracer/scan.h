/*
 * The residency scan: every so often, what is live is laid over the page tables of the group's
 * processes, and each site told how much of its memory is where. A thread.
 *
 * It takes at most a fiftieth of one CPU: the next scan begins so long after the last one as that
 * needs. What is live is copied while the reader waits; all else happens beside it.
 *
 * Life: scanner_new → scanner_start → scanner_stop, while the reader runs → scanner_totals →
 * scanner_free. Rows go to the sink, from the thread.
 */
#pragma once

#include "tracer/history.h"
#include "tracer/reader.h"

struct scanner;

struct scanner_opts {
	struct reader *reader;
	struct history *history;
	const struct cgroup *cg;
	const struct trace_sink *sink;
	int64_t period_ns; /* at least, from one scan to the next */
};

struct scanner_totals {
	int64_t scans, cpu_ns;
	int64_t period_ns;   /* the last one; -1 = none was done */
	int64_t lock_ns;     /* longest that the reader was kept waiting */
	const char *problem; /* why page tables cannot be read; NULL = they can */
};

int scanner_new(struct scanner **ret, const struct scanner_opts *opts, struct err *err);
void scanner_free(struct scanner *s); /* NULL allowed */

int scanner_start(struct scanner *s, int64_t t0_mono_ns, struct err *err);

/* At once, in the middle of a scan too. */
void scanner_stop(struct scanner *s);
struct scanner_totals scanner_totals(const struct scanner *s);

/* From the beginning of a scan that took cpu_ns to the next one's. */
int64_t scan_period(int64_t least_ns, int64_t cpu_ns);

/* When the next one begins, if the last one was to begin at that time: not in the past. */
int64_t scan_deadline(int64_t last_ns, int64_t period_ns, int64_t now_ns);

/* Sorts by address, in place. */
void scan_sort(struct live_block *blocks, size_t n);
