/*
 * What a hit of a probe costs on this machine, without the program's own work; found by trying,
 * with probes on functions of our own for a moment. Tells how much a run is slowed.
 */
#pragma once

#include "tracer/kernel.h"

struct cost {
	int64_t emulated_ns; /* at an instruction that the kernel carries out itself; -1 = unknown
			      */
	int64_t stepped_ns;  /* at one that it single-steps: CALL_STEPPED */
	int64_t return_ns;   /* beside the entry's, of a call whose return is seen */
};

void cost_measure(struct cost *ret, struct kernel *k);

/* ns of the workload's CPU time that probes have taken so far, programs included; -1 = not known.
 */
int64_t cost_so_far(const struct cost *c, struct kernel *k);

/* How much longer the workload takes for it: 0.5 = half as long again. At most TRACE_SLOWDOWN_MAX;
 * NAN when either time is not known (-1). */
double cost_slowdown(int64_t cost_ns, int64_t cpu_ns);
