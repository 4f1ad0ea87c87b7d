/*
 * The block is known from *memptr after a return of 0, wherever that pointer lies; errors are no
 * allocation.
 * EXPECT alloc posix_memalign 1063 x 7
 * EXPECT free free 1063 x 7
 * EXPECT alloc posix_memalign 1069 x 2
 * EXPECT free free 1069 x 2
 * ALLOW failed posix_memalign 9223372036854771711
 */
#include "trace.h"

int main(void)
{
	volatile size_t huge = SIZE_MAX / 2 - 4096, three = 3;
	char places[8192] = "";
	void *p;

	for (int i = 0; i < 7; i++) {
		CHECK(posix_memalign(&p, 256, 1063) == 0 && (uintptr_t)p % 256 == 0);
		free(p);
	}
	for (int i = 0; i < 5; i++)
		CHECK(posix_memalign(&p, three, 1064) == EINVAL);
	for (int i = 0; i < 3; i++)
		CHECK(posix_memalign(&p, 64, huge) == ENOMEM);
	for (int i = 0; i < 2; i++) { /* a pointer not aligned, across two pages */
		char *at = (char *)(((uintptr_t)places + 4096) & ~4095UL) - 3;

		CHECK(posix_memalign((void **)opaque(at), 64, 1069) == 0);
		memcpy(&p, at, sizeof(p));
		free(p);
	}
	return 0;
}
