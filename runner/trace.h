/*
 * The tracer of one run, wired to the session: its record goes into events.zst, its result into
 * profile.db, and what it may leave undone is registered with the guard.
 *
 * Life: trace_new (before the fork) → trace_enter in the child → trace_start → trace_beat … →
 * trace_finish → trace_free. A tracer that cannot be had is no error of the run: trace_decline
 * records why.
 */
#pragma once

#include "runner/run.h"

struct trace;

int trace_new(struct trace **ret, const struct run_env *env, const struct run_spec *spec,
	      const struct cgroup *cg, struct err *err);
void trace_free(struct trace *t); /* NULL allowed */

/* For spawn_opts.prepare. */
int trace_enter(void *trace);

int trace_start(struct trace *t, int64_t run_id, pid_t pid, int64_t t0_mono_ns, struct err *err);

/* About twice a second: stores the pipeline's own record. False: an event was lost and the policy
 * is to end the run then. */
bool trace_beat(struct trace *t);

/* The group is empty. cpu_ns: of the workload, -1 = not known. Takes as long as names need. */
int trace_finish(struct trace *t, int64_t cpu_ns, struct err *err);

/* The run has no trace, and its row says why. */
void trace_decline(const struct run_env *env, int64_t run_id, const char *why);
