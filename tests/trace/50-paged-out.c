/*
 * Pages of the stack are swapped out when the allocator is called: they hold the return addresses.
 * Needs swap, else status 77. Says how many pages were out, and how many of them had come back
 * after the allocator's return, over all rounds: nobody but the tracer has touched them. The first
 * function's stack is known when its pages go, the second's is seen with its pages gone for the
 * first time.
 * EXPECT alloc malloc 1451 x 13
 * EXPECT free free 1451 x 13
 * EXPECT alloc malloc 1453 x 1
 * EXPECT free free 1453 x 1
 * ALLOW alloc malloc 4096
 * ALLOW free free 4096
 */
#include "trace.h"

#define PAGE 4096UL
#define LEVELS 8
#define ROOM (3 * PAGE)

static uintptr_t top;      /* of main's frame */
static uintptr_t from, to; /* the pages that go */
static int pages_out, pages_back;

static int count_out(void)
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

/* All pages from two above the caller's frame up to main's. On one CPU: a page just written waits
 * in that CPU's batch, out of reach of reclaim, and only a call there takes it out. */
static __attribute__((noinline)) void page_out(void)
{
	int all, n = 0;

	from = ((uintptr_t)__builtin_frame_address(0) & -PAGE) + 2 * PAGE;
	to = top & -PAGE;
	all = (int)((to - from) / PAGE);

	/* A page may still be on its way to the lists that reclaim knows. */
	for (int i = 0; i < 100 && n < all; i++) {
		CHECK(madvise((void *)from, to - from, MADV_PAGEOUT) == 0);
		n = count_out();
		if (n == 0)
			_exit(77);
		if (n < all)
			usleep(10000);
	}
	CHECK(n == all);
	pages_out += n;
}

/* From one place, whether pages are out or not: it is one site. */
static __attribute__((noinline)) void pair(size_t size, int is_out)
{
	if (is_out)
		page_out();
	pairs(size, 1);
	if (is_out)
		pages_back += (int)((to - from) / PAGE) - count_out();
}

/* A page that was never written is no page. */
static void fill(volatile char *room)
{
	for (size_t i = 0; i < ROOM; i += 64)
		room[i] = (char)(i / 64 + 1);
}

static __attribute__((noinline)) void known(int level, int is_out)
{
	volatile char room[ROOM];

	fill(room);
	if (level > 0)
		known(level - 1, is_out);
	else
		pair(1451, is_out);
	room[1] = room[0];
}

static __attribute__((noinline)) void unknown(int level)
{
	volatile char room[ROOM];

	fill(room);
	if (level > 0)
		unknown(level - 1);
	else
		pair(1453, 1);
	room[1] = room[0];
}

int main(void)
{
	stay_on_this_cpu();
	top = (uintptr_t)__builtin_frame_address(0);
	for (int i = 0; i < 13; i++)
		known(LEVELS - 1, i >= 8);
	unknown(LEVELS - 1);
	dprintf(1, "%d %d\n", pages_out, pages_back);
	return 0;
}
