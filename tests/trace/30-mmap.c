/*
 * Mappings of the program's own: anonymous ones only, in whole pages, and none by a call that
 * failed. What lives in the end: 20 of 32 pages punched, 8 by MAP_FIXED over them, 11 remapped.
 * EXPECT mmap mmap 131072 x 1
 * EXPECT munmap munmap 16384 x 3
 * EXPECT mmap mmap 32768 x 1
 * EXPECT mmap mmap 12288 x 1
 * EXPECT munmap mremap 12288 x 1
 * EXPECT mmap mremap 45056 x 1
 * EXPECT munmap mremap 45056 x 1
 * EXPECT restore mremap ? x 1
 * EXPECT mmap mmap 20480 x 1
 * EXPECT munmap munmap 20480 x 1
 */
#include "trace.h"

#define PAGE 4096UL

static char *map(void *at, size_t size, int flags)
{
	char *p =
		mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 1, size);
	return p;
}

int main(void)
{
	volatile size_t huge = 1UL << 60;
	char *p = map(NULL, 32 * PAGE, 0), *q;
	int fd = open("/proc/self/exe", O_RDONLY);

	for (int i = 0; i < 3; i++) /* holes at pages 2, 10, 18 */
		CHECK(munmap(p + (8 * i + 2) * PAGE, 4 * PAGE) == 0);
	CHECK(map(p + 4 * PAGE, 8 * PAGE, MAP_FIXED) == p + 4 * PAGE);
	q = map(NULL, 3 * PAGE - 5, 0);
	q = mremap(q, 3 * PAGE, 11 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q[0] == 1);
	CHECK(mremap(q, 11 * PAGE, huge, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(q[5] == 1);
	CHECK(mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	CHECK(munmap(p + 1, PAGE) == -1);
	CHECK(madvise(q, PAGE, MADV_DONTNEED) == 0 && q[0] == 0);
	CHECK(mprotect(q, PAGE, PROT_READ) == 0);
	for (int i = 0; i < 7; i++) { /* a file's mapping is no allocation */
		void *f = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

		CHECK(f != MAP_FAILED && munmap(f, 2 * PAGE) == 0);
	}
	CHECK(munmap(map(NULL, 5 * PAGE, MAP_POPULATE), 5 * PAGE) == 0);
	return 0;
}
