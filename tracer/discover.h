/*
 * Which allocator entry points a file holds, and where each is best probed.
 *
 * One table names every family's functions (glibc, C++ operators, jemalloc with its prefixes,
 * tcmalloc, mimalloc, the mmap family of libc) and what their arguments mean. Both symbol tables
 * are read; of several names at one address (free, cfree, __libc_free) one probe is made. A probe
 * goes to the first instruction that the kernel emulates (one trap instead of two and a single
 * step) where that is provably the same: reached only by falling through from the entry, with no
 * argument register, rsp or stack slot of the return address changed before it.
 *
 * A family counts where it can both allocate and release. Plain C names count where other files'
 * calls arrive at them (exported ones, and those of static programs), so mmap also in libraries
 * that stand in for libc's. ld.so's own malloc is left out: it serves only until libc's is there.
 */
#pragma once

#include "bpf/events.h"
#include "tracer/elf.h"

struct probe {
	uint64_t offset; /* in the file */
	uint64_t cookie; /* CALL_COOKIE */
	bool has_return; /* also needs a probe on its return */
};

struct probes {
	struct probe *p; /* owned, by offset, unique */
	size_t n;
	char families[96]; /* "glibc, c++"; "" = none */
	char problem[160]; /* "" = none; why something expected was not found */
};

/* The name that CALL_COOKIE's function field stands for; NULL for 0 and unknown ids. Ids are
 * 1 … probe_function_count(). */
const char *probe_function_name(unsigned id);
unsigned probe_function_count(void);

/* Negative only when out of memory; a file without allocators gives n = 0. */
int discover(struct probes *ret, const struct elf_file *f, struct err *err);
void probes_done(struct probes *p);
