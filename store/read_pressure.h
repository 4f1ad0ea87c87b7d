/*
 * What memory pressure did to a traced run's sites: scans of the page tables, the state of each
 * site at a scan, major faults. A part of store/read.h, with its rules: rows are the caller's, a
 * table that the file does not have has no rows.
 *
 * Faults are summed up by SQLite, so that memory grows with what they hit, not with their number.
 * The tracer's own faults count as `own_faults` only.
 */
#pragma once

#include "store/read_trace.h"

/* A row of `scan`, by time. */
struct scan_row {
	int64_t t_ns, period_ns, scan_ns;
	int64_t processes, blocks;
	int64_t resident_bytes, swapped_bytes, swapcache_bytes;
};

int reader_load_scans(struct reader *r, int64_t run_id, struct scan_row **ret, size_t *ret_n,
		      struct err *err);
void scan_rows_free(struct scan_row *rows, size_t n);

/* Every site, by site_id, with its last row of `site_sample` at or before t_ns (INT64_MAX = the
 * last of all): all of it READ_NULL when there is none. */
struct site_state_row {
	int64_t site_id, stack_id;
	char *kind;
	int64_t major_faults, max_swapped_bytes; /* of the whole run */
	int64_t t_ns, live_bytes, resident_bytes, swapped_bytes, swapcache_bytes;
	int64_t cold_bytes, returned_bytes, thrashing_bytes;
};

int reader_load_site_states(struct reader *r, int64_t run_id, int64_t t_ns,
			    struct site_state_row **ret, size_t *ret_n, struct err *err);
void site_state_rows_free(struct site_state_row *rows, size_t n);

/* A row of `site_sample`. */
struct site_sample_row {
	int64_t site_id, t_ns;
	int64_t live_bytes, resident_bytes, swapped_bytes, cold_bytes, thrashing_bytes;
	int64_t major_faults; /* so far */
};

/* Nonzero ends the reading and is returned; negative with err set. */
typedef int site_sample_fn(void *arg, const struct site_sample_row *row);

/* One row after another, by site and time; site_id READ_NULL = of all sites. */
int reader_each_site_sample(struct reader *r, int64_t run_id, int64_t site_id, site_sample_fn *fn,
			    void *arg, struct err *err);

/* Faults with from_ns < t <= to_ns, by what they hit: a site, else a mapping and its file. */
struct fault_sum_row {
	int64_t site_id;      /* READ_NULL: not the heap, */
	char *mapping, *file; /* and then what it is; NULL otherwise */
	int64_t faults, own_faults;
	int64_t timed_faults, duration_ns; /* of `faults`, those whose time was measured */
};

/* By site_id, mapping, file; NULL first. */
int reader_load_fault_sums(struct reader *r, int64_t run_id, int64_t from_ns, int64_t to_ns,
			   struct fault_sum_row **ret, size_t *ret_n, struct err *err);
void fault_sum_rows_free(struct fault_sum_row *rows, size_t n);

/* Faults by the instruction that met them: of each site the 100 with most, the most first. */
struct fault_place_row {
	int64_t site_id, faults;
	struct frame_row at; /* offset READ_NULL: not known */
};

/* site_id READ_NULL = of the 20 sites with most faults. */
int reader_load_fault_places(struct reader *r, int64_t run_id, int64_t site_id,
			     struct fault_place_row **ret, size_t *ret_n, struct err *err);
void fault_place_rows_free(struct fault_place_row *rows, size_t n);

/* A site's faults by whole seconds, those without any left out. */
struct fault_second_row {
	int64_t second, faults;
};

int reader_load_fault_seconds(struct reader *r, int64_t run_id, int64_t site_id,
			      struct fault_second_row **ret, size_t *ret_n, struct err *err);

/* A row of `site_histogram`, by log2; kind: size or lifetime. */
struct histogram_row {
	char *kind;
	int64_t log2, count;
};

int reader_load_histogram(struct reader *r, int64_t run_id, int64_t site_id,
			  struct histogram_row **ret, size_t *ret_n, struct err *err);
void histogram_rows_free(struct histogram_row *rows, size_t n);

/* The frame by which the site is known: the innermost that is no allocator's wrapper, as the view
 * `site_place` has it. 0 or 1 rows. */
int reader_load_site_place(struct reader *r, int64_t run_id, int64_t site_id,
			   struct frame_row **ret, size_t *ret_n, struct err *err);
