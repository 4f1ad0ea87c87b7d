/*
 * The time series of one run from which its figures are computed: the columns of
 * report/columns.def, and what reference formulas derive from them sample by sample.
 *
 * Life: run_data_load -> use -> run_data_done (also after a failed load). One run is held at a
 * time: memory grows with its samples, not with the session.
 */
#pragma once

#include "report/stats.h"
#include "store/read.h"

enum source {
#define COLUMN(id, column, missing) SRC_##id,
#include "report/columns.def"
#undef COLUMN
	SRC_COLUMNS, /* what follows is derived, in bytes unless said otherwise */
	SRC_RESIDENT = SRC_COLUMNS,
	SRC_SWAP_ONLY, /* in swap and not in memory too */
	SRC_LOGICAL,   /* with nothing compressed */
	SRC_PHYSICAL,  /* with the share of zram */
	SRC_SAVING,
	SRC_SAVING_SHARE, /* fraction of logical */
	SRC_SWAP_SHARE,   /* fraction of logical */
	SRC_USER,         /* anon + file */
	SRC_CACHE,        /* file without shmem */
	SRC_KERNEL_OWN,
	SRC_ZSWAP_RATIO,     /* original / compressed */
	SRC_REFAULTS,        /* counter, pages */
	SRC_SWAPINS,         /* counter, pages */
	SRC_LIMIT,           /* of the run's knob; NAN = none */
	SRC_ZRAM_HUGE_SHARE, /* fraction, host */
	SRC_HOST_RATIO,
	SRC_HOST_RATIO_FILLED,
	SRC_POOL_EFFICIENCY, /* fraction, host */
	SRC_NET_RATIO,
	SRC_COUNT
};

struct run_data {
	struct timeline tl;
	int64_t *seq, *t_ns;        /* tl borrows t_ns */
	double *v[SRC_COUNT];       /* tl.n values, NAN where missing; never NULL after loading */
	const char *why[SRC_COUNT]; /* not one value: the reason, static; else NULL */
	double page_size;           /* NAN = not recorded */
};

int run_data_load(struct run_data *d, struct reader *r, const struct run_row *run, double page_size,
		  struct err *err);
void run_data_done(struct run_data *d);
