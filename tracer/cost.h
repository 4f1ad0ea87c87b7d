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

/* ns of the workload's CPU time that its hits have cost so far, programs apart; -1 = not known. */
int64_t cost_of_traps(const struct cost *c, struct kernel *k);
