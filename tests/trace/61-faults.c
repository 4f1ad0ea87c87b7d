/*
 * Major faults of known sites, counted by the kernel too. Three allocations of 997, 499 and 211
 * pages are paged out, and 701, 499 and 0 of their pages are touched again, those of the second
 * twice over, with a second paging out in between; realloc moves a block that is paged out; a freed
 * and reused address; a child after fork; a file that is not in the page cache; a mapping of which
 * a part is gone.
 *
 * Prints "FUNCTION FAULTS", the function that allocated, from the kernel's own count of the
 * process's major faults. Argument: a file of 16 pages.
 */
#include "trace.h"

#include <sys/resource.h>

#define PAGE 4096

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static long major_faults(void)
{
	struct rusage ru;

	CHECK(getrusage(RUSAGE_SELF, &ru) == 0);
	return ru.ru_majflt;
}

static int swapped(const char *p, size_t pages)
{
	int fd = open("/proc/self/pagemap", O_RDONLY), n = 0;
	uint64_t entry;

	CHECK(fd >= 0);
	for (size_t i = 0; i < pages; i++) {
		CHECK(pread(fd, &entry, 8, (off_t)(((uintptr_t)p / PAGE + i) * 8)) == 8);
		n += entry >> 62 & 1;
	}
	close(fd);
	return n;
}

/* Until they are out: a page that is just being used is passed over. */
static void page_out(char *p, size_t pages)
{
	for (int i = 0; i < 100 && swapped(p, pages) < (int)pages; i++)
		CHECK(madvise(p, pages * PAGE, MADV_PAGEOUT) == 0);
	CHECK(swapped(p, pages) == (int)pages);
}

static void fill(char *p, size_t pages)
{
	for (size_t i = 0; i < pages * PAGE; i += 64)
		p[i] = (char)(1 + i / 64 % 97);
}

static void touch(const char *p, size_t from, size_t to)
{
	volatile char c;

	for (size_t i = from; i < to; i++)
		c = p[i * PAGE];
	(void)c;
}

static void tell(const char *site, long since)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %ld\n", site, major_faults() - since);

	CHECK(write(1, line, (size_t)n) == n);
}

__attribute__((noinline)) static char *first(void)
{
	return opaque(aligned_alloc(PAGE, 997 * PAGE));
}

__attribute__((noinline)) static char *second(void)
{
	return opaque(aligned_alloc(PAGE, 499 * PAGE));
}

__attribute__((noinline)) static char *third(void)
{
	char *p = opaque(
		mmap(NULL, 211 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	CHECK(p != MAP_FAILED);
	return p;
}

__attribute__((noinline)) static char *small(void)
{
	return opaque(malloc(100));
}

__attribute__((noinline)) static char *moved(void)
{
	return opaque(malloc(61 * PAGE));
}

__attribute__((noinline)) static char *copied(void)
{
	return opaque(malloc(23 * PAGE));
}

__attribute__((noinline)) static char *grown(char *p)
{
	return opaque(realloc(p, 8191 * PAGE));
}

__attribute__((noinline)) static char *before(void)
{
	return opaque(aligned_alloc(PAGE, 7 * PAGE));
}

__attribute__((noinline)) static char *after(void)
{
	return opaque(aligned_alloc(PAGE, 6 * PAGE));
}

static void three_sites(void)
{
	char *a = first(), *b = second(), *c = third();
	long was;

	fill(a, 997);
	fill(b, 499);
	fill(c, 211);
	page_out(a, 997);
	page_out(b, 499);
	page_out(c, 211);
	was = major_faults();
	touch(a, 100, 801);
	tell("first", was);
	was = major_faults();
	touch(b, 0, 499);
	page_out(b, 499);
	touch(b, 0, 499);
	tell("second", was);
	/* The middle goes; what is left is still the third site's. */
	CHECK(munmap(c + 50 * PAGE, 100 * PAGE) == 0);
	was = major_faults();
	touch(c, 0, 50);
	touch(c, 150, 153);
	tell("third", was);
}

/* Some of the pages hold other blocks, or the allocator's own words: one fault is one site's. */
static void small_blocks(void)
{
	static char *p[2003];
	char *from;
	size_t pages;
	long was;

	for (int i = 0; i < 2003; i++)
		memset(p[i] = small(), 'x', 100);
	from = (char *)((uintptr_t)p[1] & -(uintptr_t)PAGE) + PAGE;
	pages = (size_t)(p[2002] - from) / PAGE;
	page_out(from, pages);
	was = major_faults();
	for (int i = 0; i < 2003; i++) /* the first byte met on each page is a block's */
		*(volatile char *)&p[i][0] = 'y';
	tell("small", was);
}

/* The whole pages of a block go out. */
static void page_out_inside(char *p, size_t pages)
{
	fill(p, pages);
	page_out((char *)((uintptr_t)p & -(uintptr_t)PAGE) + PAGE, pages - 1);
}

static void reallocated(void)
{
	char *p = moved(), *q = copied();
	long was;

	CHECK(malloc(100)); /* in the way of what comes: it cannot grow where it is */
	page_out_inside(q, 23);
	was = major_faults();
	q = opaque(realloc(q, 27 * PAGE)); /* copies: that meets the old pages */
	tell("copied", was);
	page_out_inside(p, 61);
	was = major_faults();
	p = grown(p); /* moves the pages as they are */
	touch(p, 0, 61);
	tell("grown", was);
	free(p);
	free(q);
}

static void reused(void)
{
	char *p = before(), *q;
	long was;

	fill(p, 7);
	page_out(p, 7);
	was = major_faults();
	touch(p, 0, 5);
	tell("before", was);
	free(p);
	q = after();
	CHECK(q == p);
	was = major_faults();
	fill(q, 6); /* its sixth page has been out since it was the other's */
	page_out(q, 6);
	touch(q, 0, 3);
	tell("after", was);
	free(q);
}

static void forked(void)
{
	char *p = first();
	pid_t pid;

	fill(p, 100);
	page_out(p, 100);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		long was = major_faults();

		touch(p, 0, 13);
		tell("child", was);
		_exit(0);
	}
	wait_for(pid, 0);
}

static void file(const char *path)
{
	int fd = open(path, O_RDONLY);
	char *p;
	long was;

	CHECK(fd >= 0 && fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	p = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && madvise(p, 16 * PAGE, MADV_RANDOM) == 0);
	was = major_faults();
	touch(p, 3, 4);
	touch(p, 9, 11);
	tell("file", was);
	usleep(100000); /* whose name it is can only be asked while we are there */
}

int main(int argc, char **argv)
{
	stay_on_this_cpu();
	CHECK(argc == 2);
	reused(); /* first: later on, free memory may be out too */
	three_sites();
	small_blocks();
	reallocated();
	forked();
	file(argv[1]);
	return 0;
}
