/*
 * What analyzers have left behind that died together with their guards (both killed, or the guard
 * out of memory): their journals are replayed as the guard would have done.
 *
 * A journal is in use while anybody holds its lock: analyzer, its guard, or a helper that still
 * waits in the kernel. Such ones are left alone.
 */
#pragma once

#include "runner/journal.h"

struct recovery {
	const char *journal;               /* path */
	const struct journal_entry *entry; /* what was to be put back */
	const struct err *problem;         /* NULL = it is put back */
};

typedef void recover_fn(void *ctx, const struct recovery *r);

struct recover_totals {
	int journals; /* of dead analyzers */
	int in_use;
	int put_back, left; /* entries; a journal with some left stays */
};

/* All journals of this user. Negative: the directory cannot be read. */
int recover(const struct root *root, recover_fn *fn, void *ctx, struct recover_totals *ret,
	    struct err *err);
