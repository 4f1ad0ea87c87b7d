/*
 * Statistics over samples, each weighted by the time it stands for.
 *
 * Pure functions over borrowed arrays. A gauge's sample stands for half of the gap before it and
 * half of the gap after it (the mean is then the trapezoid rule); a counter's rate is its
 * difference divided by that gap's own time. Gaps longer than hole_ns are holes: they weigh
 * nothing and give no rate, but a counter's total still contains what happened in them. NAN is a
 * missing value. Nothing fails but for lack of memory (-ENOMEM).
 */
#pragma once

#include "base/base.h"

struct timeline {
	size_t n;
	const int64_t *t_ns; /* ascending */
	int64_t hole_ns;     /* INT64_MAX = no gap is a hole */
};

struct gauge_stats {
	size_t n; /* samples with a value */
	double min, max;
	size_t min_at, max_at; /* index of the first such sample */
	/* Of the time covered; NAN with less than two adjacent values. */
	double mean, median;
	int64_t covered_ns;
};

/* n = 0 when no sample has a value. */
int stats_gauge(const struct timeline *tl, const double *v, struct gauge_stats *ret);

struct rate_stats {
	size_t n;      /* differences that could be taken */
	double total;  /* their sum, those across holes included */
	double avg;    /* per second, over the time covered; NAN = none */
	double median; /* of the gaps' rates, by time */
	double max;    /* of the gaps' rates */
	size_t max_at; /* index of the sample at the end of that gap */
	int64_t covered_ns;
	size_t resets; /* differences below zero, left out */
};

int stats_counter(const struct timeline *tl, const double *v, struct rate_stats *ret);

/* The gaps themselves. */
struct gap_stats {
	int64_t span_ns; /* first to last sample */
	int64_t mean_ns; /* of the gaps that are no holes; 0 = none */
	int64_t max_ns;  /* of all */
	size_t holes;
	int64_t hole_ns; /* time in them */
};

void stats_gaps(const struct timeline *tl, struct gap_stats *ret);

/* The least median of `window_ns` of v over windows that start at or after sample `from`, end at
 * or before sample `to`, contain no hole and no missing value, and that `accept` takes. */
struct window {
	size_t first, last;
	double median;
};

typedef bool window_accept_fn(void *arg, size_t first, size_t last);

/* 1 = found, 0 = there is none. */
int stats_least_window(const struct timeline *tl, const double *v, size_t from, size_t to,
		       int64_t window_ns, window_accept_fn *accept, void *arg, struct window *ret);

/* Unweighted, of n values > 0, sorted in place; the mean of the middle two if n is even. */
double stats_median(double *v, size_t n);

/* Spearman's rank correlation of n pairs, -1 ... 1; equal values share the middle of their ranks.
 * Pairs with a NAN are left out. rho: NAN when fewer than this are left, or one side is constant.
 */
#define STATS_RANK_MIN 8

struct rank_stats {
	size_t n; /* pairs */
	double rho;
};

int stats_rank(const double *x, const double *y, size_t n, struct rank_stats *ret);
