/*
 * realloc(p, 0): glibc and jemalloc free and return NULL; mimalloc gives a block of size 0.
 * EXPECT alloc malloc 1019 x 5
 * EXPECT free realloc 1019 x 5
 * EXPECT[block] alloc malloc 1019 x 5
 * EXPECT[block] free realloc 1019 x 5
 * EXPECT[block] alloc realloc 0 x 5
 * EXPECT[block] free free 0 x 5
 * ALLOW alloc malloc 72704
 */
#include "trace.h"

int main(void)
{
	for (int i = 0; i < 5; i++)
		free(opaque(realloc(alloc(1019), 0)));
	return 0;
}
