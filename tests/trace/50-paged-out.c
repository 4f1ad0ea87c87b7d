/*
 * Pages of the stack are swapped out when the allocator is called: they hold the return addresses.
 * Needs swap, else status 77. Says how many pages were out, over all rounds. The first function's
 * stack is known when its pages go, the second's is seen with its pages gone for the first time.
 * EXPECT alloc malloc 1451 x 13
 * EXPECT free free 1451 x 13
 * EXPECT alloc malloc 1453 x 1
 * EXPECT free free 1453 x 1
 */
#include "trace.h"

#define PAGE 4096UL
#define LEVELS 8

static uintptr_t top; /* of main's frame */
static int pages_out;

static int count_out(uintptr_t from, uintptr_t to)
{
	static uint64_t entries[512];
	int fd = open("/proc/self/pagemap", O_RDONLY), n = 0;
	size_t bytes = (to - from) / PAGE * sizeof(entries[0]);

	CHECK(fd >= 0 && bytes <= sizeof(entries));
	CHECK(pread(fd, entries, bytes, (off_t)(from / PAGE * sizeof(entries[0]))) ==
	      (ssize_t)bytes);
	close(fd);
	for (size_t i = 0; i < (to - from) / PAGE; i++)
		n += entries[i] >> 62 & 1;
	return n;
}

/* All pages from two above the caller's frame up to main's. */
static __attribute__((noinline)) void page_out(void)
{
	uintptr_t from = ((uintptr_t)__builtin_frame_address(0) & -PAGE) + 2 * PAGE;
	uintptr_t to = top & -PAGE;
	int all = (int)((to - from) / PAGE), n = 0;

	/* A page may still be on its way to the lists that reclaim knows. */
	for (int i = 0; i < 100 && n < all; i++) {
		CHECK(madvise((void *)from, to - from, MADV_PAGEOUT) == 0);
		n = count_out(from, to);
		if (n == 0)
			_exit(77);
		if (n < all)
			usleep(10000);
	}
	CHECK(n == all);
	pages_out += n;
}

static __attribute__((noinline)) void known(int level, int is_out)
{
	volatile char room[3 * PAGE];

	room[0] = 1;
	if (level > 0)
		known(level - 1, is_out);
	if (level == 0 && is_out)
		page_out();
	if (level == 0)
		pairs(1451, 1);
	room[1] = room[0];
}

static __attribute__((noinline)) void unknown(int level)
{
	volatile char room[3 * PAGE];

	room[0] = 1;
	if (level > 0) {
		unknown(level - 1);
	} else {
		page_out();
		pairs(1453, 1);
	}
	room[1] = room[0];
}

int main(void)
{
	top = (uintptr_t)__builtin_frame_address(0);
	for (int i = 0; i < 13; i++)
		known(LEVELS - 1, i >= 8);
	unknown(LEVELS - 1);
	dprintf(1, "%d\n", pages_out);
	return 0;
}
