/*
 * Addresses in order: of the blocks that lie on more than one page, to find the one that an
 * address is inside of. A treap whose priorities are hashes of the addresses: its shape depends
 * on nothing but what is in it.
 *
 * Life: zeroed → starts_add, starts_remove … → starts_done.
 */
#pragma once

#include "base/base.h"

struct start;

struct starts {
	struct start *root;
};

void starts_done(struct starts *s);

/* The address is not there yet. 0 or -ENOMEM. */
int starts_add(struct starts *s, uint64_t address);
void starts_remove(struct starts *s, uint64_t address); /* nothing, where it is not there */

/* The highest address that is not above that one; 0 = none. */
uint64_t starts_below(const struct starts *s, uint64_t address);
