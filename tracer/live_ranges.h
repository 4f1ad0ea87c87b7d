/*
 * The mappings of one address space: ordered, disjoint pieces in a treap, so that finding,
 * adding and cutting take O(log n) however many there are.
 *
 * A mapping is what one event made. Cutting leaves pieces of it, each with a reference; who cuts
 * also keeps its byte count. Pieces that were taken out are a list linked by ->right, owned by
 * the caller.
 *
 * Life: zeroed → ranges_reserve, then ranges_take and ranges_put … → ranges_done.
 */
#pragma once

#include "base/base.h"

struct mapping {
	uint32_t site;
	uint32_t refs;  /* pieces, those taken out and the inherited ones included */
	uint64_t bytes; /* live, without inherited pieces; 0 = it is gone */
	int64_t t_ns, gone_t_ns;
};

struct piece {
	uint64_t start, end;
	struct mapping *mapping;
	struct piece *left, *right;
	uint32_t priority; /* higher than those of the pieces below it */
	bool is_inherited; /* from the parent: counts nowhere */
};

#define RANGES_SPARE 3

struct ranges {
	struct piece *root;
	struct piece *spare[RANGES_SPARE];
	int n_spare;
	uint32_t random;
};

void ranges_done(struct ranges *r);

/* Memory for one ranges_take and one ranges_add, which then cannot fail. 0 or -ENOMEM. */
int ranges_reserve(struct ranges *r);

/* Takes [start, end) out, cutting the pieces at its ends. */
struct piece *ranges_take(struct ranges *r, uint64_t start, uint64_t end);

/* Adds a piece where nothing is: a new one, which takes a reference, or one that was taken out. */
void ranges_add(struct ranges *r, uint64_t start, uint64_t end, struct mapping *m);
void ranges_put(struct ranges *r, struct piece *p);

/* All pieces of from, as inherited ones. *ret is overwritten. 0 or -ENOMEM. */
int ranges_inherit(struct ranges *ret, const struct ranges *from);

/* The piece with that byte; the first piece that begins there or later. NULL = none. */
const struct piece *ranges_find(const struct ranges *r, uint64_t address);
const struct piece *ranges_next(const struct ranges *r, uint64_t address);

/* Frees a list of pieces; a mapping goes with its last one. NULL allowed. */
void pieces_free(struct piece *list);
