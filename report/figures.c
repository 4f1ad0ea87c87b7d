#include "report/run_data.h"
#include "report/run_view.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A floor is a working size, not a moment; below one refault in four what was taken was cold. */
#define FLOOR_WINDOW_NS INT64_C(5000000000)
#define FLOOR_REFAULT_RATIO 0.25

/* Starting and ending cost the same however short the run is: below this they are the share. */
#define TOOL_SHARE_S 1.0

#define TOO_FEW "fewer than two samples"

const struct figure_info figure_infos[FIG_COUNT] = {
#define FIGURE(name_, section_, unit_, label_, definition_) \
	[FIG_##name_] = {#name_, SEC_##section_, UNIT_##unit_, label_, definition_},
#include "report/figures.def"
#undef FIGURE
};

static void set(struct run_view *v, enum figure_id id, double value)
{
	v->fig[id] = (struct figure){.v = value};
}

static void set_missing(struct run_view *v, enum figure_id id, const char *why)
{
	v->fig[id] = (struct figure){.v = NAN, .why = why};
}

/* The value, or why there is none. */
static void set_or(struct run_view *v, enum figure_id id, double value, const char *why)
{
	if (isnan(value))
		set_missing(v, id, why);
	else
		set(v, id, value);
}

enum gauge_stat { STAT_MAX, STAT_MIN, STAT_MEDIAN, STAT_MEAN };

static const struct gauge_rule {
	enum figure_id id;
	enum source source;
	enum gauge_stat stat;
} gauge_rules[] = {
	{FIG_used_max_bytes, SRC_CURRENT, STAT_MAX},
	{FIG_used_median_bytes, SRC_CURRENT, STAT_MEDIAN},
	{FIG_used_mean_bytes, SRC_CURRENT, STAT_MEAN},
	{FIG_resident_max_bytes, SRC_RESIDENT, STAT_MAX},
	{FIG_physical_max_bytes, SRC_PHYSICAL, STAT_MAX},
	{FIG_logical_max_bytes, SRC_LOGICAL, STAT_MAX},
	{FIG_user_max_bytes, SRC_USER, STAT_MAX},
	{FIG_anon_max_bytes, SRC_ANON, STAT_MAX},
	{FIG_inactive_anon_max_bytes, SRC_INACTIVE_ANON, STAT_MAX},
	{FIG_cache_max_bytes, SRC_CACHE, STAT_MAX},
	{FIG_shmem_max_bytes, SRC_SHMEM, STAT_MAX},
	{FIG_kernel_max_bytes, SRC_KERNEL_OWN, STAT_MAX},
	{FIG_swapped_max_bytes, SRC_SWAP_ONLY, STAT_MAX},
	{FIG_swapped_median_bytes, SRC_SWAP_ONLY, STAT_MEDIAN},
	{FIG_swapped_share_max, SRC_SWAP_SHARE, STAT_MAX},
	{FIG_zswapped_max_bytes, SRC_ZSWAPPED, STAT_MAX},
	{FIG_saving_max_bytes, SRC_SAVING, STAT_MAX},
	{FIG_saving_median_bytes, SRC_SAVING, STAT_MEDIAN},
	{FIG_saving_median_share, SRC_SAVING_SHARE, STAT_MEDIAN},
	{FIG_zswap_ratio, SRC_ZSWAP_RATIO, STAT_MEDIAN},
	{FIG_host_zswap_pool_max_bytes, SRC_POOL, STAT_MAX},
	{FIG_host_zram_max_bytes, SRC_ZRAM_USED, STAT_MAX},
	{FIG_host_zram_incompressible, SRC_ZRAM_HUGE_SHARE, STAT_MAX},
	{FIG_host_swap_ratio, SRC_HOST_RATIO, STAT_MEDIAN},
	{FIG_host_swap_ratio_filled, SRC_HOST_RATIO_FILLED, STAT_MEDIAN},
	{FIG_host_pool_efficiency, SRC_POOL_EFFICIENCY, STAT_MEDIAN},
	{FIG_host_net_ratio, SRC_NET_RATIO, STAT_MEDIAN},
	{FIG_host_available_min_bytes, SRC_HOST_AVAILABLE, STAT_MIN},
	{FIG_host_swap_free_min_bytes, SRC_HOST_SWAP_FREE, STAT_MIN},
};

enum counter_stat { STAT_TOTAL, STAT_AVG, STAT_RATE_MEDIAN, STAT_RATE_MAX };

static const struct counter_rule {
	enum figure_id id;
	enum source source;
	enum counter_stat stat;
	double scale; /* kernel unit -> figure's unit */
} counter_rules[] = {
	{FIG_stalled_some_s, SRC_SOME, STAT_TOTAL, 1e-6},
	{FIG_stalled_some_share, SRC_SOME, STAT_AVG, 1e-6},
	{FIG_stalled_some_worst, SRC_SOME, STAT_RATE_MAX, 1e-6},
	{FIG_stalled_full_s, SRC_FULL, STAT_TOTAL, 1e-6},
	{FIG_stalled_full_share, SRC_FULL, STAT_AVG, 1e-6},
	{FIG_stalled_full_worst, SRC_FULL, STAT_RATE_MAX, 1e-6},
	{FIG_major_faults, SRC_PGMAJFAULT, STAT_TOTAL, 1},
	{FIG_major_faults_median_per_s, SRC_PGMAJFAULT, STAT_RATE_MEDIAN, 1},
	{FIG_major_faults_avg_per_s, SRC_PGMAJFAULT, STAT_AVG, 1},
	{FIG_major_faults_max_per_s, SRC_PGMAJFAULT, STAT_RATE_MAX, 1},
	{FIG_faults, SRC_PGFAULT, STAT_TOTAL, 1},
	{FIG_faults_median_per_s, SRC_PGFAULT, STAT_RATE_MEDIAN, 1},
	{FIG_faults_avg_per_s, SRC_PGFAULT, STAT_AVG, 1},
	{FIG_faults_max_per_s, SRC_PGFAULT, STAT_RATE_MAX, 1},
	{FIG_refaults, SRC_REFAULTS, STAT_TOTAL, 1},
	{FIG_zswap_in_pages, SRC_ZSWPIN, STAT_TOTAL, 1},
	{FIG_zswap_out_pages, SRC_ZSWPOUT, STAT_TOTAL, 1},
	{FIG_swap_in_pages, SRC_PSWPIN, STAT_TOTAL, 1},
	{FIG_swap_out_pages, SRC_PSWPOUT, STAT_TOTAL, 1},
	{FIG_cpu_s, SRC_CPU, STAT_TOTAL, 1e-6},
	{FIG_cpus, SRC_CPU, STAT_AVG, 1e-6},
	{FIG_read_bytes, SRC_RBYTES, STAT_TOTAL, 1},
	{FIG_written_bytes, SRC_WBYTES, STAT_TOTAL, 1},
	{FIG_oom_kills, SRC_OOM_KILL, STAT_TOTAL, 1},
	{FIG_limit_hits, SRC_EVENTS_MAX, STAT_TOTAL, 1},
	{FIG_throttled, SRC_EVENTS_HIGH, STAT_TOTAL, 1},
	{FIG_host_swap_in_pages, SRC_HOST_PSWPIN, STAT_TOTAL, 1},
	{FIG_host_swap_out_pages, SRC_HOST_PSWPOUT, STAT_TOTAL, 1},
	{FIG_host_stalled_full_share, SRC_HOST_FULL, STAT_AVG, 1e-6},
};

static double pick_gauge(const struct gauge_stats *s, enum gauge_stat stat)
{
	switch (stat) {
	case STAT_MAX:
		return s->max;
	case STAT_MIN:
		return s->min;
	case STAT_MEDIAN:
		return s->median;
	case STAT_MEAN:
		return s->mean;
	}
	return NAN;
}

static double pick_counter(const struct rate_stats *s, enum counter_stat stat)
{
	switch (stat) {
	case STAT_TOTAL:
		return s->n > 0 ? s->total : NAN;
	case STAT_AVG:
		return s->avg;
	case STAT_RATE_MEDIAN:
		return s->median;
	case STAT_RATE_MAX:
		return s->max;
	}
	return NAN;
}

/* Rules of one source stand together: it is worked through once. */
static int apply_gauges(struct run_view *v, const struct run_data *d)
{
	struct gauge_stats s = {0};

	for (size_t i = 0; i < ARRAY_SIZE(gauge_rules); i++) {
		const struct gauge_rule *rule = &gauge_rules[i];
		const char *why = d->why[rule->source];

		if ((i == 0 || rule->source != rule[-1].source) &&
		    stats_gauge(&d->tl, d->v[rule->source], &s) < 0)
			return -ENOMEM;
		set_or(v, rule->id, pick_gauge(&s, rule->stat), why ? why : TOO_FEW);
	}
	return 0;
}

static int apply_counters(struct run_view *v, const struct run_data *d)
{
	struct rate_stats s = {0};
	size_t resets = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counter_rules); i++) {
		const struct counter_rule *rule = &counter_rules[i];
		const char *why = d->why[rule->source];

		if (i == 0 || rule->source != rule[-1].source) {
			if (stats_counter(&d->tl, d->v[rule->source], &s) < 0)
				return -ENOMEM;
			resets += s.resets;
		}
		set_or(v, rule->id, rule->scale * pick_counter(&s, rule->stat),
		       why ? why : TOO_FEW);
	}
	set(v, FIG_counter_resets, (double)resets);
	return 0;
}

static int set_peak(struct run_view *v, const struct run_data *d)
{
	struct gauge_stats s;

	if (stats_gauge(&d->tl, d->v[SRC_PEAK], &s) < 0)
		return -ENOMEM;
	if (s.n > 0)
		set(v, FIG_peak_bytes, s.max);
	else
		v->fig[FIG_peak_bytes] = v->fig[FIG_used_max_bytes];
	return 0;
}

/* Compressed bytes come from memory.stat or, on older kernels, from memory.zswap.current. */
static int set_zswap(struct run_view *v, const struct run_data *d)
{
	enum source from = d->why[SRC_ZSWAP] ? SRC_ZSWAP_CURRENT : SRC_ZSWAP;
	struct gauge_stats s;

	if (stats_gauge(&d->tl, d->v[from], &s) < 0)
		return -ENOMEM;
	set_or(v, FIG_zswap_max_bytes, s.max, d->why[SRC_ZSWAP]);
	if (stats_gauge(&d->tl, d->v[SRC_ZSWAPPED], &s) < 0)
		return -ENOMEM;
	set_or(v, FIG_zswap_ratio_at_most, s.n > 0 ? d->v[SRC_ZSWAP_RATIO][s.max_at] : NAN,
	       d->why[SRC_ZSWAP_RATIO] ? d->why[SRC_ZSWAP_RATIO] : "compressed size not known");
	return 0;
}

static bool host_has_no_swap(const struct run_data *d)
{
	if (d->why[SRC_HOST_SWAP_TOTAL])
		return false;
	for (size_t i = 0; i < d->tl.n; i++) {
		if (d->v[SRC_HOST_SWAP_TOTAL][i] > 0)
			return false;
	}
	return true;
}

static int set_saving(struct run_view *v, const struct run_data *d)
{
	static const enum figure_id savings[] = {FIG_saving_max_bytes, FIG_saving_max_share,
						 FIG_saving_median_bytes, FIG_saving_median_share};
	const char *why = d->why[SRC_SAVING_SHARE];
	struct gauge_stats s;
	double share = NAN;

	if (stats_gauge(&d->tl, d->v[SRC_SAVING], &s) < 0)
		return -ENOMEM;
	/* Nothing saved at any time may mean an instant at which nothing was in use. */
	if (s.n > 0)
		share = s.max == 0 ? 0 : d->v[SRC_SAVING_SHARE][s.max_at];
	set_or(v, FIG_saving_max_share, share, why ? why : "nothing in use");
	for (size_t i = 0; host_has_no_swap(d) && i < ARRAY_SIZE(savings); i++)
		set_missing(v, savings[i], "the host has no swap");
	return 0;
}

static double total(const struct run_data *d, enum source s)
{
	struct rate_stats stats;

	return stats_counter(&d->tl, d->v[s], &stats) == 0 && stats.n > 0 ? stats.total : NAN;
}

/* a / b of two totals, or the reason: one of them missing, or nothing happened. */
static void set_quotient(struct run_view *v, enum figure_id id, const struct run_data *d,
			 enum source a, enum source b, double scale, const char *why_zero)
{
	double x = total(d, a), y = total(d, b);

	if (d->why[a] || d->why[b])
		set_missing(v, id, d->why[a] ? d->why[a] : d->why[b]);
	else if (isnan(x) || isnan(y))
		set_missing(v, id, TOO_FEW);
	else if (y == 0)
		set_missing(v, id, why_zero);
	else
		set(v, id, scale * x / y);
}

static bool accept_window(void *arg, size_t first, size_t last)
{
	const struct run_data *d = arg;
	double back = d->v[SRC_REFAULTS][last] - d->v[SRC_REFAULTS][first];
	double taken = d->v[SRC_PGSTEAL][last] - d->v[SRC_PGSTEAL][first];

	/* Nothing taken and nothing back: the size holds by itself. NAN fails all comparisons. */
	return back >= 0 && taken >= 0 && (back == 0 || back < FLOOR_REFAULT_RATIO * taken);
}

/* Before the first reclaim the workload was filling up: its size then is nobody's floor. */
static size_t first_reclaim(const struct run_data *d)
{
	const double *v = d->v[SRC_PGSTEAL];
	size_t first = 0;

	while (first < d->tl.n && isnan(v[first]))
		first++;
	for (size_t i = first; i < d->tl.n; i++) {
		if (v[i] > v[first])
			return i;
	}
	return SIZE_MAX;
}

/* When the main process has ended its memory goes, which is no floor either. */
static size_t last_alive(const struct run_view *v, const struct run_data *d)
{
	double end = (double)v->row.exec_t_ns + v->row.duration_s * 1e9;
	size_t last = d->tl.n - 1;

	if (v->row.exec_t_ns == READ_NULL || isnan(end))
		return last;
	while (last > 0 && (double)d->t_ns[last] > end)
		last--;
	return last;
}

static int set_floor(struct run_view *v, const struct run_data *d)
{
	static const enum source needs[] = {SRC_CURRENT, SRC_PGSTEAL, SRC_REFAULTS};
	size_t from = first_reclaim(d);
	struct gauge_stats user;
	struct timeline part;
	struct window w;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		if (!d->why[needs[i]])
			continue;
		set_missing(v, FIG_floor_bytes, d->why[needs[i]]);
		set_missing(v, FIG_hot_bytes, d->why[needs[i]]);
		return 0;
	}
	set_missing(v, FIG_floor_bytes,
		    from == SIZE_MAX ? "nothing was reclaimed"
				     : "no 5 s with refault ratio < 0.25");
	set_missing(v, FIG_hot_bytes,
		    from == SIZE_MAX ? "nothing was reclaimed" : "no floor found");
	if (from == SIZE_MAX)
		return 0;
	r = stats_least_window(&d->tl, d->v[SRC_CURRENT], from, last_alive(v, d), FLOOR_WINDOW_NS,
			       accept_window, (void *)d, &w);
	if (r <= 0)
		return r;
	set(v, FIG_floor_bytes, w.median);
	part = (struct timeline){w.last - w.first + 1, d->t_ns + w.first, d->tl.hole_ns};
	if (stats_gauge(&part, d->v[SRC_USER] + w.first, &user) < 0)
		return -ENOMEM;
	set_or(v, FIG_hot_bytes, user.median, d->why[SRC_USER] ? d->why[SRC_USER] : TOO_FEW);
	return 0;
}

/* A limit of the run's knob that a decision wrote; reclaim holds none. */
static bool has_decided_limit(const struct run_view *v)
{
	return v->decisions.least_limit != READ_NULL &&
	       !(v->row.knob && strcmp(v->row.knob, "memory.reclaim") == 0);
}

/* The decisions know of limits that no sample found; `sampled` is the least that one did. */
static void add_decided_limit(struct run_view *v, double sampled)
{
	const struct decision_summary *d = &v->decisions;

	if (isnan(sampled))
		set(v, FIG_limit_last_bytes, (double)d->last_limit);
	if (!isnan(sampled) && sampled <= (double)d->least_limit)
		return;
	set(v, FIG_limit_least_bytes, (double)d->least_limit);
	set(v, FIG_limit_least_t_s, (double)MAX(d->least_limit_t_ns, 0) / 1e9);
}

static void set_limits(struct run_view *v, const struct run_data *d)
{
	const double *limit = d->v[SRC_LIMIT];
	double held = 0, span = 0, last = NAN, least = NAN, least_t = NAN;
	const char *why = d->why[SRC_LIMIT];
	size_t changes = 0;

	for (size_t i = 0; i < d->tl.n; i++) {
		double gap = i > 0 ? (double)(d->t_ns[i] - d->t_ns[i - 1]) : 0;

		span += gap;
		if (i > 0 && !isnan(limit[i - 1]))
			held += gap;
		if (i > 0 && limit[i] != limit[i - 1] && !(isnan(limit[i]) && isnan(limit[i - 1])))
			changes++;
		if (isnan(limit[i]))
			continue;
		last = limit[i];
		if (isnan(least) || last < least) {
			least = last;
			least_t = (double)d->t_ns[i] / 1e9;
		}
	}
	if (has_decided_limit(v) && isnan(least))
		why = "held between samples only";
	set_or(v, FIG_limit_least_bytes, least, why);
	set_or(v, FIG_limit_least_t_s, least_t, why);
	set_or(v, FIG_limit_last_bytes, last, why);
	set_or(v, FIG_limit_changes, why ? NAN : (double)changes, why);
	set_or(v, FIG_limit_held_share, why || span == 0 ? NAN : held / span, why ? why : TOO_FEW);
	if (has_decided_limit(v))
		add_decided_limit(v, least);
}

/* What the recorder wrote into the run's row at the end. */
static void set_row_figures(struct run_view *v)
{
	const struct run_row *row = &v->row;
	const char *why = v->state == RUN_ENDED ? "not recorded" : "the run's end is not recorded";

	set_or(v, FIG_duration_s, row->duration_s, why);
	set_or(v, FIG_tool_cpu_s, row->tool_cpu_s, why);
	set_or(v, FIG_tool_cpu_share,
	       row->duration_s >= TOOL_SHARE_S ? row->tool_cpu_s / row->duration_s : NAN,
	       row->duration_s < TOOL_SHARE_S ? "run shorter than 1 s" : why);
	set_or(v, FIG_tool_rss_bytes,
	       row->tool_rss_bytes == READ_NULL ? NAN : (double)row->tool_rss_bytes, why);
	set_or(v, FIG_actuator_cpu_s, row->actuator_cpu_s,
	       v->state == RUN_ENDED ? "no such process" : why);
}

static void set_trust(struct run_view *v, const struct run_data *d)
{
	const struct run_row *row = &v->row;
	double period = row->period_ns > 0 ? (double)row->period_ns / 1e9 : NAN;
	const size_t n = d->tl.n;
	struct gap_stats gaps;

	stats_gaps(&d->tl, &gaps);
	set(v, FIG_samples, (double)n);
	set_or(v, FIG_period_s, period, "not recorded");
	set_or(v, FIG_period_mean_s, gaps.mean_ns > 0 ? (double)gaps.mean_ns / 1e9 : NAN, TOO_FEW);
	set_or(v, FIG_gap_max_s, n > 1 ? (double)gaps.max_ns / 1e9 : NAN, TOO_FEW);
	set(v, FIG_holes, (double)gaps.holes);
	set(v, FIG_holes_s, (double)gaps.hole_ns / 1e9);
	set(v, FIG_samples_missing, n > 0 ? (double)d->seq[n - 1] - (double)n : 0);
	set_or(v, FIG_sampled_share,
	       row->duration_s >= 2 * period ? period * (double)n / row->duration_s : NAN,
	       isnan(period)                  ? "period not recorded"
	       : row->duration_s < 2 * period ? "run shorter than two periods"
					      : "run time not known");
}

static void set_flags(struct run_view *v, const struct run_data *d)
{
	v->lacks_swapcached =
		d->why[SRC_SWAPCACHED] && !d->why[SRC_SWAP] && v->fig[FIG_swapped_max_bytes].v > 0;
	v->lacks_zswap_bytes = d->why[SRC_ZSWAP] && d->why[SRC_ZSWAP_CURRENT] &&
			       v->fig[FIG_host_zswap_pool_max_bytes].v > 0;
	v->has_zram_share = v->fig[FIG_host_zram_max_bytes].v > 0;
}

int figures_compute(struct run_view *v, const struct run_data *d, struct err *err)
{
	if (apply_gauges(v, d) < 0 || apply_counters(v, d) < 0 || set_peak(v, d) < 0 ||
	    set_zswap(v, d) < 0 || set_saving(v, d) < 0 || set_floor(v, d) < 0)
		return err_set(err, -ENOMEM, "no memory for the figures of run %lld",
			       (long long)v->row.run_id);
	set_quotient(v, FIG_refault_ratio, d, SRC_REFAULTS, SRC_PGSTEAL, 1,
		     "nothing was reclaimed");
	set_quotient(v, FIG_reclaim_efficiency, d, SRC_PGSTEAL, SRC_PGSCAN, 1,
		     "nothing was reclaimed");
	set_quotient(v, FIG_stall_per_page_s, d, SRC_SOME, SRC_SWAPINS, 1e-6,
		     "nothing was swapped in");
	if (v->fig[FIG_floor_bytes].why || v->fig[FIG_peak_bytes].why ||
	    !(v->fig[FIG_peak_bytes].v > 0))
		set_missing(v, FIG_floor_share, "no floor found");
	else
		set(v, FIG_floor_share, v->fig[FIG_floor_bytes].v / v->fig[FIG_peak_bytes].v);
	set_limits(v, d);
	set_row_figures(v);
	set_trust(v, d);
	set_flags(v, d);
	return 0;
}
