/*
 * A second opinion on stacks: unwinds the captured bytes by libdwfl, which shares nothing with the
 * tracer's own unwinder, and compares.
 *
 * Life: check_new → check_stack … → check_free, before modules_free. From the reader's thread;
 * nothing is written, no process is looked at. Memory is bounded: a few processes' sets of files
 * are kept, and a number of files' unwind tables.
 */
#pragma once

#include "tracer/modules.h"
#include "tracer/unwind.h"

struct check;

int check_new(struct check **ret, struct modules *ms, struct err *err);
void check_free(struct check *c); /* NULL allowed */

enum check_verdict {
	CHECK_EQUAL,
	CHECK_DIFFERENT,
	/* The walk to compare with is not full, or libdwfl cannot go as far and has found no
	 * difference: bytes end, a file cannot be read, code has no .eh_frame. */
	CHECK_UNDECIDED,
};

/*
 * expected: what the walk of this very capture has found, innermost first, as unwind() gives it.
 * ranges: of the process, sorted by start. The capture's registers are those of expected[0].
 */
enum check_verdict check_stack(struct check *c, const struct range *ranges, size_t n_ranges,
			       const struct capture *capture, const struct frame_ref *expected,
			       uint32_t n, enum stack_quality quality);
