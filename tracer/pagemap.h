/*
 * The page tables of other processes, as /proc/PID/pagemap shows them: which pages are in memory
 * and which are swap entries. What is empty is skipped by the ioctl PAGEMAP_SCAN where the kernel
 * has it (Linux 6.7), so that reserved address space without pages costs next to nothing.
 *
 * The zero page, small or huge, counts as no page: no memory is spent on it. It is known by its
 * number, so without CAP_SYS_ADMIN, which shows numbers of pages, it counts as present, and a page
 * that several processes have looks like one of each. Shared
 * anonymous memory (shmem) that is swapped out leaves no trace in a page table: see areas.h.
 *
 * Life: pagemaps_open once, pagemap_open for each process; their close functions.
 */
#pragma once

#include "base/err.h"

#define PAGE_BYTES UINT64_C(4096)

enum page_state { PAGE_NONE, PAGE_PRESENT, PAGE_SWAPPED };

/* What there is to know of a page for dividing it. */
struct page {
	uint64_t address;
	enum page_state state;
	uint64_t identity; /* the same for all processes that have the page; 0 = no other can */
	bool in_swapcache; /* swapped, and still in memory too */
	/* When it last came back from swap, and when before; 0 = never. CLOCK_MONOTONIC. */
	int64_t returned_ns, returned_before_ns;
};

/* What all processes have in common. */
struct pagemaps {
	void *zero, *huge;           /* mappings of ours that hold zero pages */
	uint64_t zero_pfn, huge_pfn; /* 0 = not known, or there is none */
	bool has_scan;
};

struct pagemap {
	const struct pagemaps *all;
	int fd;
};

int pagemaps_open(struct pagemaps *ret, struct err *err);
void pagemaps_close(struct pagemaps *p);

/* Negative errno: -ENOENT or -ESRCH, the process is gone; -EACCES, -EPERM, rights lack. */
int pagemap_open(struct pagemap *ret, const struct pagemaps *all, pid_t pid);
void pagemap_close(struct pagemap *m);

/*
 * Reads entries of pages from *at on, a page's border, and below end; empty ones at the beginning
 * are skipped: *at becomes the first one's address. Returns how many were read, 0 = there are no
 * more, or a negative errno.
 */
ssize_t pagemap_read(const struct pagemap *m, uint64_t *at, uint64_t end, uint64_t *entries,
		     size_t max);

enum page_state pagemap_state(const struct pagemaps *all, uint64_t entry);

/* As struct page has it. A swap entry tells nothing about who else has it: it always has one. */
uint64_t pagemap_identity(uint64_t entry);

/* Of a swapped page: offset in the swap area << 5 | number of the area. */
uint64_t pagemap_swap_entry(uint64_t entry);
