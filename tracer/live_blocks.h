/*
 * The heap blocks of one address space: a hash table by address, and on demand their order.
 *
 * Open addressing with linear probing; removal shifts back, so there are no tombstones. A slot's
 * home grows with its hash, so that growing is one pass in order through both arrays, cheap
 * enough to grow by a quarter: 43 to 54 bytes per block while it grows, 107 at most after many
 * were removed. The order costs 8 more.
 *
 * Life: zeroed → blocks_at … → blocks_done. Pointers to blocks hold until the next blocks_at or
 * blocks_remove.
 */
#pragma once

#include "tracer/live_starts.h"

struct block {
	uint64_t address, size; /* address 0: an empty slot */
	int64_t t_ns;
	uint32_t site;
	bool is_inherited; /* from the parent: counts nowhere */
};

struct blocks {
	struct block *slots;
	size_t n, cap;
	struct starts starts; /* of blocks on more than one page; complete where has_starts */
	bool has_starts;
};

void blocks_done(struct blocks *b);

/* The block with that address or NULL. */
struct block *blocks_find(const struct blocks *b, uint64_t address);

/* The block with that address: as it is, or new with site 0, to be filled in; blocks_filled then.
 * NULL = no memory. address is not 0. */
struct block *blocks_at(struct blocks *b, uint64_t address);
void blocks_filled(struct blocks *b, const struct block *at);

void blocks_remove(struct blocks *b, struct block *at);

/* All blocks of from, as inherited ones. *ret is overwritten. 0 or -ENOMEM. */
int blocks_inherit(struct blocks *ret, const struct blocks *from);

/*
 * The block that has the byte at that address; of overlapping ones any. Blocks begin at multiples
 * of 8. The first call goes through all blocks; from then on those of more than a page are kept in
 * order.
 */
const struct block *blocks_find_inside(struct blocks *b, uint64_t address);
