/*
 * Where in a function a probe costs least: on the first instruction that the kernel emulates, if
 * that is provably as good as the entry.
 */
#pragma once

#include "tracer/elf.h"

/* The distance from the entry, 0 = the entry itself. code is all of the function. */
size_t place_probe(const uint8_t *code, size_t n);

/* A way past the entry, (from, to]: from is the entry, to where the probe is. */
struct place_skip {
	uint64_t from, to;
	bool is_entered; /* something else in the file leads into it */
};

/* Sets is_entered. skip is by address and does not overlap. -ENOMEM. */
int place_check(const struct elf_file *f, struct place_skip *skip, size_t n, struct err *err);
