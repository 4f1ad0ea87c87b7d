/*
 * The sites of a run with their figures, and the sum of what is live over all of them.
 *
 * Life: zeroed → site_table_get … → site_table_finish → site_table_done. Only site_table_get can
 * fail. Sites are named by their id: 1, 2, … in order of the first site_table_get.
 */
#pragma once

#include "model/site.h"

struct site_table {
	struct site *sites;
	uint64_t *epochs; /* per site: the peak that its at_peak_bytes is of */
	size_t n, cap;
	uint32_t *slots; /* ids by hash of (stack, kind), 0 = empty; a power of two of them */
	size_t n_slots;
	int64_t live_bytes, live_count;
	int64_t peak_bytes, peak_t_ns;
	bool counts_faults; /* set before the first site */
	uint64_t epoch;     /* how often live_bytes was higher than ever */
};

void site_table_done(struct site_table *t);

/* Finds or makes the site; 0 = no memory. */
uint32_t site_table_get(struct site_table *t, uint32_t stack, enum site_kind kind);

void site_table_alloc(struct site_table *t, uint32_t id, uint64_t size, int64_t t_ns);
void site_table_failed(struct site_table *t, uint32_t id);
void site_table_temporary(struct site_table *t, uint32_t id, int n); /* n = -1 takes it back */

/* Bytes leave or come back, and as many allocations (0 or 1) with them. */
void site_table_remove(struct site_table *t, uint32_t id, uint64_t bytes, int n);
void site_table_put_back(struct site_table *t, uint32_t id, uint64_t bytes, int n, int64_t t_ns);

/* An allocation was freed at that age; n = -1 takes it back. */
void site_table_freed(struct site_table *t, uint32_t id, int64_t age_ns, int n);
void site_table_leaked(struct site_table *t, uint32_t id, uint64_t bytes, int n);

/* duration_ns: -1 = not known. */
void site_table_fault(struct site_table *t, uint32_t id, int64_t duration_ns);
/* So many bytes of it are swapped: the most counts. */
void site_table_swapped(struct site_table *t, uint32_t id, int64_t bytes);

/* Settles at_peak_bytes; what is live is leaked. */
void site_table_finish(struct site_table *t);
