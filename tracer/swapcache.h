/*
 * Which swapped pages are still in memory too, in the swap cache: after a page was written to a
 * plain swap file, and where it was read ahead. Known where the kernel lets its own table be read
 * (bpf/swapcache.bpf.c).
 *
 * Life: swapcache_open → swapcache_look … → swapcache_close.
 */
#pragma once

#include "base/base.h"

struct swapcache;

/* NULL: this kernel does not tell. */
struct swapcache *swapcache_open(void);
void swapcache_close(struct swapcache *c); /* NULL allowed */

/* Of n entries as pagemap_swap_entry gives them. 0 or a negative errno. */
int swapcache_look(struct swapcache *c, const uint64_t *entries, size_t n, bool *ret);
