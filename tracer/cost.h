/* What one probe hit costs on this machine, found by trying: tells how much a run was slowed. */
#pragma once

#include "tracer/kernel.h"

/* ns of a hit on an emulated instruction whose program ends at its scope test; a function of our
 * own is probed for a moment. -1: could not be measured. */
int64_t cost_of_trap(struct kernel *k);
