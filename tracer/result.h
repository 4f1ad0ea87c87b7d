/*
 * What a traced run leaves: frames with names, stacks, sites and figures, put together after the
 * recording. Owns all of it. The slow part is names: progress is told.
 */
#pragma once

#include "tracer/scan.h"

struct result;

struct result_in {
	struct reader *reader;
	struct scanner_totals scans;
	int64_t history_forgotten;
	struct modules *modules;
	const struct coverage *coverage;
	size_t n_coverage;
	int64_t cost_ns; /* of the workload's CPU time, by probes; -1 = not known */
	struct tracer_run run;
	int64_t t0_mono_ns;
	int64_t copied_bytes;
	bool has_faults;
	void (*on_progress)(void *ctx, double done); /* may be NULL */
	void *ctx;
};

int result_new(struct result **ret, const struct result_in *in, struct err *err);
const struct trace_result *result_get(const struct result *r);
void result_free(struct result *r); /* NULL allowed */
