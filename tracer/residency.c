#include "tracer/residency.h"

#include <errno.h>

void residency_begin(struct residency *r, uint32_t allocator)
{
	r->n_sites = 0;
	r->allocator = allocator;
	r->n_ownerless = 0;
	map_clear(&r->seen);
}

int residency_process(struct residency *r, size_t n_sites, const struct live_block *blocks,
		      size_t n_blocks, const struct live_block *pieces, size_t n_pieces)
{
	if (n_sites > r->cap_sites) {
		size_t cap = n_sites + n_sites / 2;
		struct site_bytes *grown = realloc(r->sites, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->sites = grown;
		r->cap_sites = cap;
	}
	for (; r->n_sites < n_sites; r->n_sites++)
		r->sites[r->n_sites] = (struct site_bytes){0};
	r->blocks = blocks;
	r->n_blocks = n_blocks;
	r->pieces = pieces;
	r->n_pieces = n_pieces;
	r->block = r->piece = 0;
	return 0;
}

/* -- who owns what -------------------------------------------------------------------------------
 */

/* A walk over what is owned in a range: parts of one owner each. */
struct walk {
	uint64_t at, end;
	size_t block, piece;
	const struct live_block *owner; /* of the part found last */
	uint64_t bytes;
};

/* Where the bytes end that are the block's: the next one may begin within it. */
static uint64_t block_end(const struct residency *r, size_t i)
{
	uint64_t end = r->blocks[i].address + r->blocks[i].size;

	return i + 1 < r->n_blocks ? MIN(end, r->blocks[i + 1].address) : end;
}

static uint64_t piece_end(const struct residency *r, size_t i)
{
	return r->pieces[i].address + r->pieces[i].size;
}

static void skip_ended(const struct residency *r, size_t *block, size_t *piece, uint64_t at)
{
	while (*block < r->n_blocks && block_end(r, *block) <= at)
		++*block;
	while (*piece < r->n_pieces && piece_end(r, *piece) <= at)
		++*piece;
}

static bool walk_next(const struct residency *r, struct walk *w)
{
	while (w->at < w->end) {
		uint64_t from = w->at, to = w->end;

		skip_ended(r, &w->block, &w->piece, from);
		w->owner = NULL;
		if (w->block < r->n_blocks && r->blocks[w->block].address <= from) {
			w->owner = &r->blocks[w->block];
			to = MIN(to, block_end(r, w->block));
		} else if (w->block < r->n_blocks) {
			to = MIN(to, r->blocks[w->block].address);
		}
		if (!w->owner && w->piece < r->n_pieces && r->pieces[w->piece].address <= from) {
			w->owner = &r->pieces[w->piece];
			to = MIN(to, piece_end(r, w->piece));
		} else if (!w->owner && w->piece < r->n_pieces) {
			to = MIN(to, r->pieces[w->piece].address);
		}
		w->at = to;
		w->bytes = to - from;
		if (w->owner)
			return true;
	}
	return false;
}

static struct walk walk_over(struct residency *r, uint64_t start, uint64_t end)
{
	skip_ended(r, &r->block, &r->piece, start);
	return (struct walk){.at = start, .end = end, .block = r->block, .piece = r->piece};
}

/* -- shares --------------------------------------------------------------------------------------
 */

/* What happened to the page before its owner was there is not the owner's. */
static void add(struct residency *r, uint32_t site, int64_t since_ns, const struct page *p,
		int64_t bytes)
{
	struct site_bytes *s = &r->sites[site - 1];
	bool is_swapped = p->state == PAGE_SWAPPED;

	*(is_swapped ? &s->swapped : &s->resident) += bytes;
	if (is_swapped && p->in_swapcache)
		s->swapcache += bytes;
	if (p->returned_before_ns && p->returned_before_ns >= since_ns)
		s->thrashing += bytes;
	else if (p->returned_ns && p->returned_ns >= since_ns)
		s->returned += bytes;
	else if (is_swapped)
		s->cold += bytes;
}

/* Divides bytes among the owners in the range; false = there are none. */
static bool divide(struct residency *r, uint64_t end, const struct page *p, uint64_t bytes)
{
	const struct walk start = walk_over(r, p->address, end);
	struct walk w = start;
	uint64_t owned = 0, so_far = 0, given = 0;

	while (walk_next(r, &w))
		owned += w.bytes;
	w = start;
	while (walk_next(r, &w)) {
		uint64_t up_to;

		/* Rounded as a sum, so that nothing is lost by it. */
		so_far += w.bytes;
		up_to = (uint64_t)((unsigned __int128)bytes * so_far / owned);
		add(r, w.owner->site, w.owner->t_ns, p, (int64_t)(up_to - given));
		given = up_to;
	}
	return owned > 0;
}

static int keep_ownerless(struct residency *r, const struct page *p)
{
	if (r->n_ownerless == r->cap_ownerless) {
		size_t cap = r->cap_ownerless ? 2 * r->cap_ownerless : 1024;
		struct page *grown = realloc(r->ownerless, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->ownerless = grown;
		r->cap_ownerless = cap;
	}
	r->ownerless[r->n_ownerless++] = *p;
	return 0;
}

static bool has_owner(struct residency *r, const struct page *p)
{
	struct walk w = walk_over(r, p->address, p->address + PAGE_BYTES);

	return walk_next(r, &w);
}

/* 1: it is counted for the first time, 0: it was counted before. */
static int count_once(struct residency *r, const struct page *p)
{
	if (!p->identity)
		return 1;
	if (map_get(&r->seen, p->identity))
		return 0;
	return map_put(&r->seen, p->identity, 1, NULL) < 0 ? -ENOMEM : 1;
}

int residency_page(struct residency *r, const struct page *p, bool is_anon)
{
	int is_new;

	if (p->identity && !has_owner(r, p))
		return is_anon ? keep_ownerless(r, p) : 0;
	is_new = count_once(r, p);
	if (is_new <= 0)
		return is_new;
	if (!divide(r, p->address + PAGE_BYTES, p, PAGE_BYTES) && is_anon)
		add(r, r->allocator, 0, p, (int64_t)PAGE_BYTES);
	return 0;
}

void residency_swapped(struct residency *r, uint64_t start, uint64_t end, uint64_t bytes)
{
	const struct page whole = {.address = start, .state = PAGE_SWAPPED};

	(void)divide(r, end, &whole, bytes);
}

int residency_end(struct residency *r)
{
	for (size_t i = 0; i < r->n_ownerless; i++) {
		int is_new = count_once(r, &r->ownerless[i]);

		if (is_new < 0)
			return is_new;
		if (is_new)
			add(r, r->allocator, 0, &r->ownerless[i], (int64_t)PAGE_BYTES);
	}
	return 0;
}

void residency_done(struct residency *r)
{
	map_done(&r->seen);
	free(r->sites);
	free(r->ownerless);
	*r = (struct residency){0};
}
