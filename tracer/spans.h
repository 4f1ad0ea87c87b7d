/*
 * Ranges of addresses, each with a value: found by an address in them, the innermost one where
 * they overlap.
 *
 * Zero-initialise, spans_add …, spans_sort once, spans_find …, spans_done. Only adding can fail.
 */
#pragma once

#include "base/base.h"

struct span {
	uint64_t low, high; /* high: first address beyond */
	uint64_t reach;     /* greatest high of this and all spans before it */
	size_t value;
};

struct spans {
	struct span *v; /* owned */
	size_t n, size;
};

/* false: no memory. */
bool spans_add(struct spans *s, uint64_t low, uint64_t high, size_t value);

/* By low; where that is equal, the greater value counts as the inner one. */
void spans_sort(struct spans *s);

/* NULL = none. */
const struct span *spans_find(const struct spans *s, uint64_t address);

void spans_done(struct spans *s);
