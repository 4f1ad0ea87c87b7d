/*
 * A run's trace as the reports show it: its figures, totals over all sites, and those sites that
 * lead one of the rankings, with their stacks.
 *
 * Life: trace_view_load -> use -> trace_view_done. Owns everything. Memory grows with the rankings
 * kept, not with the number of sites; while loading, with that too.
 */
#pragma once

#include "store/read_trace.h"

#include <string.h>

enum trace_key {
#define TRACE(key, unit, definition) TRACE_##key,
#include "report/trace.def"
#undef TRACE
	TRACE_COUNT
};

extern const char *const trace_keys[TRACE_COUNT];

/* What sites are ranked by. */
enum site_order {
	ORDER_AT_PEAK,   /* at_peak_bytes */
	ORDER_ALLOCATED, /* alloc_bytes */
	ORDER_CALLS,     /* alloc_count */
	ORDER_LEAKED,    /* end_live_bytes */
	ORDER_TEMPORARY, /* temporary_count */
	N_ORDERS
};

extern const char *const site_order_keys[N_ORDERS]; /* the columns */

/* The row's value by which it is ranked; 0 when it is not known. */
int64_t site_order_value(const struct site_row *row, enum site_order order);

/* Sites kept of each ranking. */
#define SITES_KEPT 20

struct site_view {
	struct site_row row;
	char *quality; /* "none" without a stack */
	struct frame_row *frames;
	size_t n_frames;
};

/* Loads the quality and frames of s->row.stack_id. */
int site_view_load_stack(struct site_view *s, struct reader *r, struct err *err);
void site_view_done(struct site_view *s);

/* The site of the allocator's own memory, free or internal: it has no stack. */
static inline bool site_is_allocator(const struct site_row *row)
{
	return row->stack_id == READ_NULL && row->kind && strcmp(row->kind, "other") == 0;
}

enum trace_state {
	TRACE_ABSENT,     /* not traced */
	TRACE_UNFINISHED, /* its result was never written: it still runs, or the recorder died */
	TRACE_DONE
};

struct trace_view {
	enum trace_state state;
	char *why_absent;      /* as the recorder said; NULL = it did not */
	double v[TRACE_COUNT]; /* as in run.trace: bytes, counts, ns; NAN = not known */
	size_t n_all;          /* sites */
	int64_t total[N_ORDERS], total_leaked_count; /* over all sites */
	bool has_faults;                             /* of sites, are known */
	struct site_view *sites;                     /* by site_id */
	size_t n_sites;
	size_t top[N_ORDERS][SITES_KEPT]; /* indexes into sites, the largest first, none of 0 */
	size_t n_top[N_ORDERS];
	struct coverage_row *coverage;
	size_t n_coverage;
};

/* json: the column run.trace; NULL allowed. */
int trace_view_load(struct trace_view *t, struct reader *r, int64_t run_id, const char *json,
		    struct err *err);
void trace_view_done(struct trace_view *t);
