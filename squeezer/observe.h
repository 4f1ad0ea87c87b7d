/* From two samples to what a law sees: pure arithmetic, formulas as in docs/accounting.md. */
#pragma once

#include "model/sample.h"
#include "squeezer/law.h"

/*
 * Fills what follows from the samples: times, usage, growth, rates, shares, floor. The squeezer
 * adds limit, headroom and history. Rates use the samples' own times; NAN where a counter is
 * missing or was reset.
 */
void observe(struct observation *ret, const struct sample *prev, const struct sample *now);

/*
 * What reclaim cannot go below, in bytes: unevictable + the kernel's own (kernel - zswap) +
 * anonymous and tmpfs memory that swap cannot take + memory.min.
 */
int64_t observe_floor(const struct sample *now);

/* Swap that the group may still fill, in bytes: the least of the host's free swap and what
 * memory.swap.max leaves; -1 = not known. */
int64_t observe_swap_free(const struct sample *now);
