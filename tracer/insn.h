/*
 * x86-64 machine code, as far as placing a probe needs it: how long an instruction is, where it
 * may branch to, whether it can be skipped. What is not known is refused, never guessed.
 */
#pragma once

#include "base/base.h"

#define INSN_MAX 15 /* bytes of the longest */

struct insn {
	uint8_t length;
	bool is_branch;   /* a direct jump or call: to its end + target */
	bool is_computed; /* a jump to an address from a register or a table */
	/* The kernel carries it out itself when a uprobe is on it: nop, push, direct jumps and
	 * calls. Any other is copied away and single-stepped. */
	bool is_emulated;
	/* Writes nothing but flags, rax, r10 and r11: registers that hold no argument, and that a
	 * function may change without having saved them. */
	bool is_harmless;
	int32_t target;
};

/* 0, or -EINVAL: unknown, or it does not end within n bytes. */
int insn_decode(struct insn *ret, const uint8_t *code, size_t n);
