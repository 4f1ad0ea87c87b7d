/*
 * Unwind rows of one file: from .eh_frame or .debug_frame, evaluated by libdw's CFI reader,
 * cached by address. A row is what the BPF program needs to walk one frame (bpf/events.h).
 *
 * Life: cfi_open → cfi_row … → cfi_close. From one thread.
 */
#pragma once

#include "base/err.h"
#include "bpf/events.h"

struct cfi;

/* fd is borrowed for the call. A file without unwind information is no error: every row of it
 * is then ROW_GUESS. -ENOEXEC: no ELF file. */
int cfi_open(struct cfi **ret, int fd, const char *name, struct err *err);
void cfi_close(struct cfi *c); /* NULL allowed */

/*
 * The row for a return address, given as ELF virtual address: looked up at vaddr - 1. For an
 * exact pc (first frame of a signal, frame after a signal frame) pass pc + 1. Never fails: what
 * has no unwind information is ROW_GUESS, what the row cannot express ROW_COMPLEX, undefined
 * return address ROW_END.
 */
struct row cfi_row(struct cfi *c, uint64_t vaddr);

/* Full evaluation, for ROW_COMPLEX: DWARF register numbers 0 … 15, 16 = the return address. */
#define CFI_REGS 17
struct cfi_regs {
	uint64_t r[CFI_REGS];
	uint32_t known; /* bit i: r[i] is valid */
};

/* Reads a word of the stack: true and *ret, or false where it is not known. */
typedef bool cfi_read_fn(void *ctx, uint64_t address, uint64_t *ret);

/* One step to the caller by full evaluation: *regs is replaced. 1: done; 0: this is the thread's
 * first frame; -ENODATA: no unwind information or a needed word is missing. is_signal tells that
 * the caller's pc is exact. bias = run-time address - ELF virtual address. */
int cfi_step(struct cfi *c, uint64_t bias, struct cfi_regs *regs, cfi_read_fn *read, void *ctx,
	     bool *ret_is_signal);
