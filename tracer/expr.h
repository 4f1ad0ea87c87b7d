/*
 * Evaluates the DWARF expressions that unwind rules are made of.
 *
 * In two ways with one evaluator: with the registers' values known the result is a number (as
 * full unwinding needs it); with symbols for them it stays a sum, so that a rule can be turned
 * into a row once for every frame at that place. Pure.
 */
#pragma once

#include <elfutils/libdw.h>

#include "tracer/cfi.h"

/* DWARF's numbers of x86-64 registers. */
enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_R12 = 12, REG_RIP = 16 };

/* base + off, and the word there if is_deref. Base ROW_NONE: a plain number. */
struct expr_value {
	enum row_base base;
	bool is_deref;
	uint64_t off;
};

struct expr_env {
	const struct cfi_regs *regs;  /* NULL: rsp and rbp are symbols, the others unknown */
	uint64_t pc;                  /* what rip reads as */
	const struct expr_value *cfa; /* NULL: not to be used */
	cfi_read_fn *read;            /* with regs only */
	void *ctx;
};

/* false: an operation that does not occur in unwind rules, or a value that is not known.
 * *ret_is_value: the result is the value itself, not the address where it was saved. */
bool expr_eval(const struct expr_env *env, const Dwarf_Op *ops, size_t n, struct expr_value *ret,
	       bool *ret_is_value);
