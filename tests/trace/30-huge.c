/*
 * Sizes beyond 4 GiB, not touched.
 * EXPECT mmap mmap 5368713216 x 3
 * EXPECT munmap munmap 5368713216 x 2
 * EXPECT alloc malloc 4831838209 x 3
 * EXPECT free free 4831838209 x 3
 * EXPECT alloc realloc 6442450951 x 3
 * EXPECT alloc malloc 4831838208 x 3
 * EXPECT free realloc 4831838208 x 3
 * EXPECT free free 6442450951 x 3
 */
#include "trace.h"

int main(void)
{
	for (int i = 0; i < 3; i++) {
		void *p = mmap(NULL, 5368709121UL, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		CHECK(p != MAP_FAILED);
		if (i > 0)
			CHECK(munmap(p, 5368709121UL) == 0);
		free(alloc(4831838209UL));
		p = opaque(realloc(alloc(4831838208UL), 6442450951UL));
		CHECK(p);
		free(p);
	}
	return 0;
}
