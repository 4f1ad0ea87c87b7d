/*
 * The reading side of the pipeline: rings → order of time → live table and sink. A thread.
 *
 * Life: reader_new → reader_start → reader_stop → reader_live, reader_totals → reader_free.
 */
#pragma once

#include "tracer/faults.h"
#include "tracer/gate.h"
#include "tracer/history.h"
#include "tracer/live.h"
#include "tracer/stacks.h"
#include "tracer/tracer.h"

struct reader;

struct reader_opts {
	struct kernel *kernel;
	struct modules *modules;
	struct gate *gate;       /* told of programs executed; NULL allowed */
	const struct cgroup *cg; /* frozen while a ring is emptied */
	const struct trace_sink *sink;
	struct history *history; /* told of faults; NULL allowed */
	enum trace_policy policy;
	unsigned parts; /* of enum trace_part: what is among the records */
	int delay_ms;   /* for tests: the reader sleeps as long before each look */
};

struct reader_totals {
	int64_t produced, received, lost; /* records of events */
	int64_t recorded;                 /* events given to the sink */
	int64_t quality[4];               /* allocations by quality of their stack */
	int64_t duplicate_frees;          /* an operator delete's own free, and the like */
	int64_t pauses, paused_ns, stops, continued;
	int64_t hits, stepped, returns, program_ns, outside, nested, faulted_pages, captures_lost,
		skipped;
	int64_t faults, own_faults; /* own: met by the programs */
	int64_t cpu_ns;             /* of the thread */
};

int reader_new(struct reader **ret, const struct reader_opts *opts, struct err *err);
void reader_free(struct reader *r); /* NULL allowed */

int reader_start(struct reader *r, int64_t t0_mono_ns, struct err *err);
void reader_stop(struct reader *r);

/* 0 also when the thread is too busy to be asked within a millisecond. */
int reader_stats(struct reader *r, struct tracer_stat *ret, int max);
bool reader_has_aborted(const struct reader *r);

/* What is live now, until reader_unlock: any thread, and not for long, since nothing is read. */
struct live *reader_lock(struct reader *r);
void reader_unlock(struct reader *r);

/* After reader_stop. */
struct live *reader_live(struct reader *r);
struct stacks *reader_stacks(struct reader *r);
struct faults *reader_faults(struct reader *r);
struct reader_totals reader_totals(struct reader *r);
size_t reader_processes(struct reader *r, const struct process_info **ret);
