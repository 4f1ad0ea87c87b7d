/*
 * What is live: every block and mapping of every process, and the sites that own them.
 *
 * Pure: events in order of time go in, totals per site come out. Memory is bounded by what is
 * live, not by how many events there were. Processes are told apart by pid between FORK or EXEC
 * and EXIT; a fork's child starts with a copy of what its parent has live. Events of pids never
 * announced start such a process.
 *
 * Life: live_new → live_event … → live_finish → live_site … → live_free. From one thread.
 */
#pragma once

#include "model/event.h"
#include "model/site.h"

struct live;

int live_new(struct live **ret);
void live_free(struct live *l); /* NULL allowed */

/* What an event did. */
enum live_effect {
	LIVE_OK,
	LIVE_NOTHING,   /* it changed nothing: free of NULL or of a block never seen, munmap of
			 * something that no site owns. Not worth recording */
	LIVE_UNKNOWN,   /* FREE of a block that is not known: allocated before the trace began, or
			 * its ALLOC was lost. Counted */
	LIVE_NO_MEMORY, /* forgotten and counted */
};

enum live_effect live_event(struct live *l, const struct event *ev);

struct live_totals {
	int64_t events; /* those that had an effect */
	int64_t live_bytes, live_count;
	int64_t peak_bytes, peak_t_ns; /* highest live_bytes, when first reached */
	int64_t unknown_frees, failed_allocs, no_memory;
	int64_t replaced; /* ALLOC at the address of a live block: its FREE was not seen */
};

struct live_totals live_totals(const struct live *l);

/* Who owns the byte at that address of that process now: its site's id (1, 2, …), or 0. The
 * block's bounds are returned where ret is not NULL. */
struct live_block {
	uint64_t address, size;
	uint32_t site;
	int64_t t_ns;
};
uint32_t live_find(const struct live *l, uint32_t pid, uint64_t address, struct live_block *ret);

/* Settles at_peak_bytes of every site. What is live now stays live: leaks. */
void live_finish(struct live *l);

/* Sites 0 … n-1, ids 1 … n in order of their first event. */
size_t live_sites(const struct live *l, const struct site **ret);
