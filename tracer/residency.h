/*
 * Pages divided among the sites that own what is on them.
 *
 * Pure. A page is divided among the live blocks on it in proportion to their bytes on it, to the
 * byte: what a page's sites get is its size. A byte that is both a block's and a mapping's is the
 * block's; of overlapping blocks it belongs to the one that begins nearest before it. Private
 * anonymous pages without an owner are the allocator's. A page of several processes counts once,
 * and is the allocator's only when it has an owner in none of them.
 *
 * Life: zeroed → residency_begin → per process residency_process, then its pages in order of
 * address → residency_end → sites; from begin again for the next scan → residency_done.
 * Errors: -ENOMEM only.
 */
#pragma once

#include "base/map.h"
#include "tracer/live.h"
#include "tracer/pagemap.h"

struct site_bytes {
	int64_t resident, swapped, swapcache;
	int64_t cold, returned, thrashing;
};

struct residency {
	struct site_bytes *sites; /* by id - 1 */
	size_t n_sites, cap_sites;
	uint32_t allocator;     /* its site's id */
	struct map seen;        /* identities of pages that were counted */
	struct page *ownerless; /* that somebody else may own */
	size_t n_ownerless, cap_ownerless;
	/* Of the process: */
	const struct live_block *blocks, *pieces;
	size_t n_blocks, n_pieces;
	size_t block, piece; /* the first that does not end before the last page */
};

void residency_begin(struct residency *r, uint32_t allocator);

/* Each in order of address; borrowed until the next call. Pieces do not overlap. n_sites: that
 * there are by now, the allocator's among them. */
int residency_process(struct residency *r, size_t n_sites, const struct live_block *blocks,
		      size_t n_blocks, const struct live_block *pieces, size_t n_pieces);

/* p is not PAGE_NONE. is_anon: private anonymous memory, else without an owner it is nobody's. */
int residency_page(struct residency *r, const struct page *p, bool is_anon);

/* So many bytes of [start, end) are swapped, it is not known which: divided as one page. The
 * range is at or above that of the last page. */
void residency_swapped(struct residency *r, uint64_t start, uint64_t end, uint64_t bytes);

int residency_end(struct residency *r);
void residency_done(struct residency *r);
