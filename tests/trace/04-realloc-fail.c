/*
 * A realloc that fails leaves the block as it was: it is freed later, under its first size.
 * EXPECT alloc malloc 1021 x 7
 * EXPECT free realloc 1021 x 4
 * EXPECT restore realloc 1021 x 4
 * EXPECT free reallocarray 1021 x 3
 * EXPECT restore reallocarray 1021 x 3
 * EXPECT free free 1021 x 7
 * ALLOW failed realloc *
 * ALLOW failed reallocarray *
 */
#include "trace.h"

int main(void)
{
	volatile size_t huge = SIZE_MAX / 2 - 4096, half = SIZE_MAX / 2;

	for (int i = 0; i < 7; i++) {
		char *p = alloc(1021);

		p[1020] = 7;
		CHECK(!(i % 2 ? reallocarray(p, half, 4) : realloc(p, huge)));
		CHECK(p[1020] == 7);
		free(p);
	}
	return 0;
}
