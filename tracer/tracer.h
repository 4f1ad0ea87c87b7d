/*
 * The allocation tracer: every allocation of a run's workload, with its stack, from outside.
 *
 * Life: tracer_new (loads the programs, copies and probes the command's libraries) →
 * tracer_enter in the forked child → tracer_start (watches what the child opens; starts the
 * reader's thread) → the child executes → tracer_stop when the group is empty → tracer_result →
 * tracer_free. What is recorded goes to the sink, from the reader's thread.
 *
 * Nothing is lost silently: a ring half full freezes the group until it is read, one nearly full
 * stops its writers; what is lost nevertheless is counted, by ring and time.
 */
#pragma once

#include "bpf/events.h"
#include "cgroup/cgroup.h"
#include "model/event.h"
#include "model/fault.h"
#include "model/site.h"

struct tracer;

/* Where the record goes. What an event refers to is told before it. */
struct trace_sink {
	void *ctx;
	void (*function)(void *ctx, uint16_t id, const char *name);
	void (*module)(void *ctx, const struct module *m);
	void (*stack)(void *ctx, uint32_t id, enum stack_quality quality,
		      const struct frame_ref *frames, uint32_t n);
	void (*event)(void *ctx, const struct event *ev);
	/* From the reader's thread; with sites from the thread that scans. */
	void (*faults)(void *ctx, const struct fault *faults, size_t n);
	void (*scan)(void *ctx, const struct scan *scan, const struct site_sample *sites, size_t n);
	void (*loss)(void *ctx, int ring, int64_t from_ns, int64_t to_ns, int64_t count);
	void (*flush)(void *ctx); /* about once a second */
};

struct tracer_opts {
	const char *command; /* as for execvp */
	const struct cgroup *cg;
	enum trace_policy policy;
	unsigned parts; /* of enum trace_part; without TRACE_ALLOC nothing is probed */
	const struct trace_sink *sink;
	int64_t scan_period_ns; /* at least, between scans of the page tables */
	/* For tests; 0 = as usual. */
	size_t ring_bytes;
	int reader_delay_ms;
};

/* -EPERM, -ENOTSUP: this user or this kernel cannot; err says why and what to do. */
int tracer_new(struct tracer **ret, const struct tracer_opts *opts, struct err *err);
void tracer_free(struct tracer *t); /* NULL allowed */

/* In the workload's process, before exec and before rights are given up. Async-signal-safe. */
int tracer_enter(const struct tracer *t);

int tracer_start(struct tracer *t, pid_t pid, int64_t t0_mono_ns, struct err *err);

/* 0, or why major faults are not recorded. */
int tracer_no_faults(const struct tracer *t, struct err *err);

/* With POLICY_ABORT: an event was lost, the run is to be ended. */
bool tracer_has_aborted(const struct tracer *t);

/* The pipeline's state now, a row per ring; at most max. Any thread. */
int tracer_stats(struct tracer *t, struct tracer_stat *ret, int max);

/* How much longer the workload takes for being traced, so far: 0.5 = half as long again, at most
 * TRACE_SLOWDOWN_MAX; NAN = not known. cpu_ns: its CPU time so far. */
double tracer_slowdown(const struct tracer *t, int64_t cpu_ns);

/* Ends the recording: everything that the workload has done is read, the probes go. */
void tracer_stop(struct tracer *t);

/* What the caller knows of a run at its end; -1 = not known. */
struct tracer_run {
	int64_t cpu_ns;        /* of the workload */
	int64_t bytes_written; /* by the sink */
};

/* Names, sites and figures; borrowed from t. on_progress (may be NULL) is told a fraction 0…1. */
int tracer_result(struct tracer *t, struct tracer_run run,
		  void (*on_progress)(void *ctx, double done), void *ctx, struct trace_result *ret,
		  struct err *err);
