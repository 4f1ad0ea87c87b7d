#include "report/run_data.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* As the documentation of SCHEMA_HOLE_PERIODS: the view `rate` uses the same bound. */
#define HOLE_PERIODS 3

static const char *const column_names[SRC_COLUMNS] = {
#define COLUMN(id, column, missing) [SRC_##id] = column,
#include "report/columns.def"
#undef COLUMN
};

static const char *const column_missing[SRC_COLUMNS] = {
#define COLUMN(id, column, missing) [SRC_##id] = missing,
#include "report/columns.def"
#undef COLUMN
};

static double at(const struct run_data *d, enum source s, size_t i)
{
	return d->v[s][i];
}

static double or_zero(double v)
{
	return isnan(v) ? 0 : v;
}

/* v, but not below zero; fmax() would turn a missing value into 0. */
static double not_negative(double v)
{
	return v < 0 ? 0 : v;
}

/* Compressed bytes of the group; a kernel that knows none has none (flagged as a warning). */
static double zswap_bytes(const struct run_data *d, size_t i)
{
	double v = at(d, SRC_ZSWAP, i);

	return isnan(v) ? or_zero(at(d, SRC_ZSWAP_CURRENT, i)) : v;
}

static double resident_at(const struct run_data *d, size_t i)
{
	return not_negative(at(d, SRC_CURRENT, i) - zswap_bytes(d, i));
}

static double swap_only_at(const struct run_data *d, size_t i)
{
	return not_negative(at(d, SRC_SWAP, i) - or_zero(at(d, SRC_SWAPCACHED, i)));
}

/* The part of swap that sits on devices, zram among them. */
static double swap_phys_at(const struct run_data *d, size_t i)
{
	return not_negative(swap_only_at(d, i) - or_zero(at(d, SRC_ZSWAPPED, i)));
}

/* Kernels with virtual swap do not charge compressed pages as swap: count what is larger. */
static double logical_at(const struct run_data *d, size_t i)
{
	double swap_only = swap_only_at(d, i), zswapped = or_zero(at(d, SRC_ZSWAPPED, i));

	if (at(d, SRC_SWAP, i) < zswapped)
		swap_only = MAX(swap_only, zswapped);
	return resident_at(d, i) + swap_only;
}

/* zram is charged to nobody: this group gets the part that its swap has in all used swap. */
static double physical_at(const struct run_data *d, size_t i)
{
	double zram = or_zero(at(d, SRC_ZRAM_USED, i));
	double used = at(d, SRC_HOST_SWAP_TOTAL, i) - at(d, SRC_HOST_SWAP_FREE, i);
	double share;

	if (zram == 0)
		return at(d, SRC_CURRENT, i);
	share = used > 0 ? swap_phys_at(d, i) / used : isnan(used) ? NAN : 0;
	return at(d, SRC_CURRENT, i) + zram * (share > 1 ? 1 : share);
}

static double saving_at(const struct run_data *d, size_t i)
{
	return logical_at(d, i) - physical_at(d, i);
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

static double saving_share_at(const struct run_data *d, size_t i)
{
	return ratio(saving_at(d, i), logical_at(d, i));
}

static double swap_share_at(const struct run_data *d, size_t i)
{
	return ratio(swap_only_at(d, i), logical_at(d, i));
}

static double user_at(const struct run_data *d, size_t i)
{
	return at(d, SRC_ANON, i) + at(d, SRC_FILE, i);
}

static double cache_at(const struct run_data *d, size_t i)
{
	return not_negative(at(d, SRC_FILE, i) - at(d, SRC_SHMEM, i));
}

/* `kernel` contains the zswap charge. */
static double kernel_own_at(const struct run_data *d, size_t i)
{
	return not_negative(at(d, SRC_KERNEL, i) - zswap_bytes(d, i));
}

static double zswap_ratio_at(const struct run_data *d, size_t i)
{
	double zswapped = at(d, SRC_ZSWAPPED, i);

	return zswapped > 0 ? ratio(zswapped, zswap_bytes(d, i)) : NAN;
}

static double refaults_at(const struct run_data *d, size_t i)
{
	return at(d, SRC_REFAULT_ANON, i) + at(d, SRC_REFAULT_FILE, i);
}

/* Few kernels count device swap-ins by group; decompressions alone are then a lower bound. */
static double swapins_at(const struct run_data *d, size_t i)
{
	return at(d, SRC_ZSWPIN, i) + or_zero(at(d, SRC_PSWPIN, i));
}

static double zram_huge_share_at(const struct run_data *d, size_t i)
{
	return ratio(at(d, SRC_ZRAM_HUGE, i) * d->page_size, at(d, SRC_ZRAM_ORIG, i));
}

static double host_ratio(const struct run_data *d, size_t i, double same_pages,
			 double zram_same_pages)
{
	double stored = or_zero(at(d, SRC_STORED, i)) - same_pages;
	double orig = stored * d->page_size + or_zero(at(d, SRC_ZRAM_ORIG, i)) -
		      zram_same_pages * d->page_size;
	double used = or_zero(at(d, SRC_POOL, i)) + or_zero(at(d, SRC_ZRAM_USED, i));

	return orig > 0 ? ratio(orig, used) : NAN;
}

static double host_ratio_at(const struct run_data *d, size_t i)
{
	return host_ratio(d, i, 0, 0);
}

/* From 6.12 on same-filled pages do not reach zswap and the file is gone. */
static double host_ratio_filled_at(const struct run_data *d, size_t i)
{
	return host_ratio(d, i, at(d, SRC_SAME, i), or_zero(at(d, SRC_ZRAM_SAME, i)));
}

static double pool_efficiency_at(const struct run_data *d, size_t i)
{
	double len = zswap_bytes(d, i);

	return len > 0 ? ratio(len, at(d, SRC_POOL, i)) : NAN;
}

static double net_ratio_at(const struct run_data *d, size_t i)
{
	return zswap_ratio_at(d, i) * pool_efficiency_at(d, i);
}

#define NEEDS_MAX 4
#define NEEDS(...)              \
	.needs = {__VA_ARGS__}, \
	.n_needs = sizeof((enum source[]){__VA_ARGS__}) / sizeof(enum source)

/* needs: columns without which there is nothing to derive, for the reason; empty: the reason
 * when they are all there. */
static const struct derivation {
	double (*at)(const struct run_data *d, size_t i);
	enum source needs[NEEDS_MAX];
	size_t n_needs;
	const char *empty;
} derivations[SRC_COUNT] = {
	[SRC_RESIDENT] = {resident_at, NEEDS(SRC_CURRENT), "no samples"},
	[SRC_SWAP_ONLY] = {swap_only_at, NEEDS(SRC_SWAP), "no samples"},
	[SRC_LOGICAL] = {logical_at, NEEDS(SRC_CURRENT, SRC_SWAP), "no samples"},
	[SRC_PHYSICAL] = {physical_at, NEEDS(SRC_CURRENT), "used swap of the host not known"},
	[SRC_SAVING] = {saving_at, NEEDS(SRC_CURRENT, SRC_SWAP), "used swap of the host not known"},
	[SRC_SAVING_SHARE] = {saving_share_at, NEEDS(SRC_CURRENT, SRC_SWAP), "nothing in use"},
	[SRC_SWAP_SHARE] = {swap_share_at, NEEDS(SRC_CURRENT, SRC_SWAP), "nothing in use"},
	[SRC_USER] = {user_at, NEEDS(SRC_ANON, SRC_FILE), "no samples"},
	[SRC_CACHE] = {cache_at, NEEDS(SRC_FILE, SRC_SHMEM), "no samples"},
	[SRC_KERNEL_OWN] = {kernel_own_at, NEEDS(SRC_KERNEL), "no samples"},
	[SRC_ZSWAP_RATIO] = {zswap_ratio_at, NEEDS(SRC_ZSWAPPED), "nothing was in zswap"},
	[SRC_REFAULTS] = {refaults_at, NEEDS(SRC_REFAULT_ANON, SRC_REFAULT_FILE), "no samples"},
	[SRC_SWAPINS] = {swapins_at, NEEDS(SRC_ZSWPIN), "no samples"},
	[SRC_ZRAM_HUGE_SHARE] = {zram_huge_share_at, NEEDS(SRC_ZRAM_HUGE, SRC_ZRAM_ORIG),
				 "zram was empty, or page size not known"},
	[SRC_HOST_RATIO] = {host_ratio_at, .empty = "nothing in zswap or zram"},
	[SRC_HOST_RATIO_FILLED] = {host_ratio_filled_at, NEEDS(SRC_SAME),
				   "nothing in zswap or zram"},
	[SRC_POOL_EFFICIENCY] = {pool_efficiency_at, NEEDS(SRC_POOL), "nothing was in zswap"},
	[SRC_NET_RATIO] = {net_ratio_at, NEEDS(SRC_ZSWAPPED, SRC_POOL), "nothing was in zswap"},
};

static bool has_value(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!isnan(v[i]))
			return true;
	}
	return false;
}

/* Takes the loaded column (freed as it goes: both forms of one column at a time). */
static int take_column(struct run_data *d, enum source s, int64_t *col)
{
	d->v[s] = calloc(d->tl.n + 1, sizeof(*d->v[s]));
	if (!d->v[s])
		return -ENOMEM;
	for (size_t i = 0; i < d->tl.n; i++)
		d->v[s][i] = !col || col[i] == READ_NULL ? NAN : (double)col[i];
	if (!has_value(d->v[s], d->tl.n))
		d->why[s] = d->tl.n == 0 ? "no samples"
			    : col        ? column_missing[s]
					 : "not recorded in this file";
	return 0;
}

static int derive(struct run_data *d, enum source s)
{
	const struct derivation *f = &derivations[s];

	d->v[s] = calloc(d->tl.n + 1, sizeof(*d->v[s]));
	if (!d->v[s])
		return -ENOMEM;
	for (size_t i = 0; i < d->tl.n; i++)
		d->v[s][i] = f->at(d, i);
	if (has_value(d->v[s], d->tl.n))
		return 0;
	d->why[s] = d->tl.n == 0 ? "no samples" : f->empty;
	for (size_t i = f->n_needs; i > 0; i--) {
		if (d->why[f->needs[i - 1]])
			d->why[s] = d->why[f->needs[i - 1]];
	}
	return 0;
}

/* The limit that the run's knob sets; a static or foreign limit is in memory.max. */
static int derive_limit(struct run_data *d, const char *knob)
{
	bool is_high = knob && strcmp(knob, "memory.high") == 0;
	bool is_reclaim = knob && strcmp(knob, "memory.reclaim") == 0;
	enum source from = is_high ? SRC_HIGH : SRC_MAX;
	double *v = calloc(d->tl.n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	d->v[SRC_LIMIT] = v;
	/* (double)NUM_MAX rounds up to 2^63; nothing real comes near. */
	for (size_t i = 0; i < d->tl.n; i++)
		v[i] = is_reclaim || d->v[from][i] >= 9e18 ? NAN : d->v[from][i];
	if (is_reclaim)
		d->why[SRC_LIMIT] = "memory.reclaim holds no limit";
	else if (d->why[from])
		d->why[SRC_LIMIT] = d->why[from];
	else if (!has_value(v, d->tl.n))
		d->why[SRC_LIMIT] = "no limit was set";
	return 0;
}

/* Without the period the median gap stands in for it. */
static int set_hole(struct run_data *d, int64_t period_ns)
{
	_cleanup_free_ double *gaps = calloc(d->tl.n + 1, sizeof(*gaps));

	if (!gaps)
		return -ENOMEM;
	d->tl.hole_ns = INT64_MAX;
	if (period_ns > 0 && period_ns < INT64_MAX / HOLE_PERIODS) {
		d->tl.hole_ns = HOLE_PERIODS * period_ns;
	} else if (d->tl.n > 1) {
		for (size_t i = 1; i < d->tl.n; i++)
			gaps[i - 1] = (double)(d->t_ns[i] - d->t_ns[i - 1]);
		d->tl.hole_ns = (int64_t)(HOLE_PERIODS * stats_median(gaps, d->tl.n - 1));
	}
	return 0;
}

static int fill(struct run_data *d, struct series *s, const struct run_row *run)
{
	int r = 0;

	d->tl.n = s->n;
	d->tl.t_ns = d->t_ns = TAKE_PTR(s->t_ns);
	d->seq = TAKE_PTR(s->seq);
	for (int i = 0; r == 0 && i < SRC_COLUMNS; i++) {
		_cleanup_free_ int64_t *col = TAKE_PTR(s->cols[i]);

		r = take_column(d, (enum source)i, col);
	}
	if (r == 0)
		r = derive_limit(d, run->knob);
	for (int i = SRC_COLUMNS; r == 0 && i < SRC_COUNT; i++) {
		if (derivations[i].at)
			r = derive(d, (enum source)i);
	}
	return r == 0 ? set_hole(d, run->period_ns) : r;
}

int run_data_load(struct run_data *d, struct reader *r, const struct run_row *run, double page_size,
		  struct err *err)
{
	_cleanup_(series_done) struct series s = {0};
	int res;

	memset(d, 0, sizeof(*d));
	d->page_size = page_size;
	res = reader_load_series(r, run->run_id, column_names, SRC_COLUMNS, &s, err);
	if (res < 0)
		return res;
	if (fill(d, &s, run) < 0)
		return err_set(err, -ENOMEM, "no memory for the %zu samples of run %lld", s.n,
			       (long long)run->run_id);
	return 0;
}

void run_data_done(struct run_data *d)
{
	for (int i = 0; i < SRC_COUNT; i++)
		free(d->v[i]);
	free(d->seq);
	free(d->t_ns);
	memset(d, 0, sizeof(*d));
}
