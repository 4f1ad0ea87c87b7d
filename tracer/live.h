/*
 * What is live: every block and mapping of every process, and the sites that own them.
 *
 * Pure: events in order of time go in, totals per site come out. Memory is bounded by what is
 * live, not by how many events there were. Processes are told apart by pid between FORK or EXEC
 * and EXIT. Events of pids never announced start an empty process.
 *
 * Everything is counted once, where it was requested. What a fork's child has from its parent is
 * inherited: it is found and can be freed in the child, but neither its being there nor its
 * freeing changes any figure of a site. After FORK with EVENT_SHARED_MM both pids mean one
 * address space, until the child's EXEC or EXIT. When the last pid of an address space exits,
 * what is live in it is leaked; when it calls exec, that is discarded. Both leave the live
 * figures.
 *
 * One MMAP or growing BRK is one allocation, freed when its last byte goes; until then its live
 * bytes are what is left of it. An allocation over something live replaces it: that was freed.
 *
 * Life: live_new → live_event … → live_finish → live_sites … → live_free. From one thread.
 */
#pragma once

#include "model/event.h"
#include "model/fault.h"
#include "model/site.h"

struct live;

int live_new(struct live **ret);
void live_free(struct live *l); /* NULL allowed */

/* What an event did. */
enum live_effect {
	LIVE_OK,
	LIVE_NOTHING,   /* it changed nothing: free of NULL, munmap of something that no site owns,
			 * RESTORE of nothing, a range that cannot be. Not worth recording; it does
			 * not stand between a thread's ALLOC and the FREE that makes it temporary */
	LIVE_UNKNOWN,   /* FREE of a block that is not known: allocated before the trace began, or
			 * its ALLOC was lost. Counted */
	LIVE_NO_MEMORY, /* forgotten and counted */
};

/*
 * FREE and MUNMAP with EVENT_REALLOC count like those without. RESTORE as the thread's next event
 * puts back what they took, and takes back what they counted; a peak reached in between stays.
 * What threads did last is kept for at least the 16,384 that were active last.
 */
enum live_effect live_event(struct live *l, const struct event *ev);

struct live_totals {
	int64_t events; /* LIVE_OK and LIVE_UNKNOWN */
	int64_t live_bytes, live_count;
	int64_t peak_bytes, peak_t_ns; /* highest live_bytes, when first reached */
	int64_t unknown_frees, failed_allocs, no_memory;
	int64_t replaced; /* ALLOC at the address of a live block (inherited or not): its FREE was
			   * not seen */
};

struct live_totals live_totals(const struct live *l);

/* Bounds of a mapping are those of the part that the address is in. */
struct live_block {
	uint64_t address, size;
	uint32_t site;
	int64_t t_ns;
};

/*
 * Who owns the byte at that address of that process now: its site's id (1, 2, …), or 0. *ret is
 * set where ret is not NULL and somebody does. A block goes before a mapping that it lies in; of
 * overlapping blocks any may be found; a block of 0 bytes is found at its
 * own address. The first call for a process goes through all its blocks.
 */
uint32_t live_find(const struct live *l, uint32_t pid, uint64_t address, struct live_block *ret);

/* Faults are traced: sites have 0 of them from now on, before they were not known. Called before
 * the first event. */
void live_count_faults(struct live *l);

/*
 * Whose a major fault at that address is, now: the owner's, counted unless it is our own doing; 0 =
 * nobody's. While a thread's realloc copies a block, it is still the block's site. Anonymous memory
 * on which nothing is live is the allocator's: SITE_OTHER without a stack.
 */
uint32_t live_fault(struct live *l, const struct fault *f);

/*
 * For laying what is live over pages. The address space of a process: a number that only those
 * processes have too that share it; 0 = no event of that pid was seen.
 */
uint64_t live_space(const struct live *l, uint32_t pid);

/*
 * Copies its blocks, in no order, and behind them the parts of mappings, in order; those of the
 * parent that are inherited too. Returns how many blocks there are, *ret_pieces how many parts;
 * where both together are more than max, nothing was copied.
 */
size_t live_copy(const struct live *l, uint32_t pid, struct live_block *ret, size_t max,
		 size_t *ret_pieces);

/* The site of the allocator's own memory, made by the first call; 0 = no memory. */
uint32_t live_allocator(struct live *l);

/* So many bytes of the site are swapped: sets max_swapped_bytes if it was less. */
void live_swapped(struct live *l, uint32_t site, int64_t bytes);

/* At the end, once: settles at_peak_bytes of every site. What is live stays live, and counts as
 * leaked. */
void live_finish(struct live *l);

/* Sites 0 … n-1, ids 1 … n in order of their first event. Borrowed until the next event. */
size_t live_sites(const struct live *l, const struct site **ret);
