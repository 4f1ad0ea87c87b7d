/*
 * What memory pressure did to the sites of a traced run: which are hot and which cold, where the
 * major faults came from and what they cost, and what happened when the squeezer tightened and
 * when the workload stalled.
 *
 * Life: pressure_load -> use -> pressure_done. Owns everything but reasons, which are static.
 * Memory grows with sites while loading, never with the number of faults.
 */
#pragma once

#include "report/run_data.h"
#include "report/trace_view.h"
#include "store/read_pressure.h"

/* What became of a site's pages. */
enum site_class {
	CLASS_HOT,       /* never left memory */
	CLASS_COLD,      /* swapped, and never came back */
	CLASS_RETURNED,  /* came back once */
	CLASS_THRASHING, /* came back more often */
	N_CLASSES
};

const char *site_class_name(enum site_class c); /* hot, cold, returned, thrashing */

/* A site thrashes when more than this share of what was ever swapped of it came back more than
 * once; below so many bytes that says nothing. */
#define THRASHING_SHARE 0.25
#define THRASHING_LEAST (INT64_C(256) << 10)
/* The share of all cold bytes that the fewest sites are named for. */
#define COLD_OWNED_SHARE 0.9
/* How long after a tightening faults are counted, unless another decision comes first. */
#define AFTERMATH_NS (INT64_C(5) * 1000000000)

/* Sites kept of each order; those named with a decision or a peak of the text are kept too. */
#define PRESSURE_KEPT 20
#define PLACES_KEPT 3
#define AMOUNTS_KEPT 3
#define PEAKS_KEPT 3

/* Faults and the time that they took. */
struct fault_cost {
	int64_t faults, timed; /* those whose time was measured */
	double seconds;        /* measured or estimated: pressure_view.cost; NAN = not known */
};

enum cost_source { COST_UNKNOWN, COST_MEASURED, COST_ESTIMATED };

struct pressure_site {
	struct site_view site;     /* of its row: site_id, stack_id, kind */
	struct frame_row *place;   /* by which it is known */
	size_t n_place;            /* 0 or 1 */
	int64_t max_swapped_bytes; /* READ_NULL = not known, as the next two */
	int64_t live_bytes, swapped_bytes;
	int64_t bytes[N_CLASSES]; /* 0 when the site was not seen */
	struct fault_cost cost;
	struct fault_place_row places[PLACES_KEPT]; /* borrowed: instructions, most faults first */
	size_t n_places;
	struct rank_stats with_stall; /* its faults and the stall share, by sample interval */
	bool is_kept;                 /* used while loading */
};

/* Resident and swapped. */
int64_t pressure_site_bytes(const struct pressure_site *s);
enum site_class pressure_site_class(const struct pressure_site *s);

enum pressure_order { BY_COLD, BY_BYTES, BY_THRASHING, BY_FAULTS, N_PRESSURE_ORDERS };

/* Faults that hit no site. */
struct pressure_mapping {
	char *mapping, *file; /* as in `fault`; file NULL = none */
	struct fault_cost cost;
};

struct site_amount {
	int64_t site_id, amount; /* bytes or faults */
};

struct amounts {
	struct site_amount top[AMOUNTS_KEPT]; /* the largest first */
	size_t n;
	int64_t total; /* of all sites */
};

/* A tightening. */
struct decision_effect {
	int64_t t_ns, limit_before, limit_after;
	int64_t from_ns, to_ns; /* the scans around it; READ_NULL = there is none */
	struct amounts taken;   /* bytes resident in the first and no more in the second */
	int64_t aftermath_ns;   /* for which faults were counted */
	struct amounts faulted;
};

/* A sample interval with a high stall share. */
struct stall_peak {
	int64_t from_ns, to_ns;
	double share; /* some tasks */
	struct amounts faulted;
};

struct pressure_view {
	const char *why_none;     /* not traced, or no sites: nothing of the following */
	const char *why_no_scans; /* NULL = pages were scanned */
	size_t n_scans;
	double scan_s;        /* CPU time of all scans */
	struct scan_row scan; /* the last one that found anything: bytes below are of it */
	bool was_swapped;     /* anything, at any time */
	int64_t total[N_CLASSES];
	size_t n_cold_owners; /* the fewest sites, first of BY_COLD, with COLD_OWNED_SHARE ... */
	int64_t cold_owned;   /* ... of all cold bytes */

	const char *why_no_faults;      /* NULL = faults were recorded */
	struct fault_cost faults;       /* all of the workload's */
	int64_t attributed, own_faults; /* of `faults` those of sites; the tracer's, apart */
	enum cost_source cost;
	const char *why_no_cost;           /* of COST_UNKNOWN */
	struct pressure_mapping *mappings; /* by faults */
	size_t n_mappings;

	struct pressure_site *sites; /* kept ones, by site_id */
	size_t n_sites;
	size_t top[N_PRESSURE_ORDERS][PRESSURE_KEPT]; /* indexes into sites; none of 0 */
	size_t n_top[N_PRESSURE_ORDERS];

	size_t n_tighten;                  /* decisions */
	struct decision_effect *decisions; /* those that took or brought something, by time */
	size_t n_decisions;
	struct stall_peak peaks[PEAKS_KEPT]; /* the highest first */
	size_t n_peaks;
	struct fault_place_row *places; /* owned: what the sites borrow */
	size_t n_place_rows;
};

/* Of a run whose trace is done; otherwise there is nothing but the reasons. */
int pressure_load(struct pressure_view *p, struct reader *r, int64_t run_id,
		  const struct trace_view *trace, const struct run_data *d, struct err *err);
void pressure_done(struct pressure_view *p);

/* Whether c->seconds is a time: measured for some of its faults, or estimated. */
bool pressure_has_cost(const struct pressure_view *p, const struct fault_cost *c);

/* NULL when it is not kept. */
const struct pressure_site *pressure_find(const struct pressure_view *p, int64_t site_id);

/* The indexes of the decisions that took most, the largest first; returns how many, at most n. */
size_t pressure_most_taken(const struct pressure_view *p, size_t n, size_t ret[]);

void amounts_add(struct amounts *a, int64_t site_id, int64_t amount);

/* What the sites lost around each tightening; site_id READ_NULL = all. Owned by the caller.
 * In pressure_time.c, as the next one. */
int pressure_load_decisions(struct reader *r, int64_t run_id, int64_t site_id,
			    const struct scan_row *scans, size_t n_scans,
			    struct decision_effect **ret, size_t *ret_n, struct err *err);

/* Internal to pressure_load: the estimated costs of `sums` (by site, mapping, file) into est_s,
 * each site's correlation for the n `sites` that lead by faults, and the peaks. *ret_why: why
 * nothing could be estimated. */
int pressure_load_intervals(struct pressure_view *p, struct reader *r, int64_t run_id,
			    const struct run_data *d, const struct fault_sum_row *sums,
			    size_t n_sums, double *est_s, struct pressure_site *const sites[],
			    size_t n_sites, struct err *err);
