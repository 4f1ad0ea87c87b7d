/*
 * Pairs for every allocator, linked or preloaded: 10007 of malloc and free, two events each.
 * EXPECT alloc malloc 23 x 3336
 * EXPECT alloc malloc 1021 x 3336
 * EXPECT alloc malloc 40009 x 3335
 * EXPECT free free 23 x 3336
 * EXPECT free free 1021 x 3336
 * EXPECT free free 40009 x 3335
 * ALLOW alloc malloc 72704
 * IGNORE alloc libtcmalloc
 * ALLOW[static] alloc malloc *
 * ALLOW[static] alloc calloc *
 * ALLOW[static] free free *
 * ALLOW[static] alloc new *
 */
#include "trace.h"

int main(void)
{
	static const size_t sizes[] = {23, 1021, 40009};

	for (int i = 0; i < 10007; i++)
		pairs(sizes[i % 3], 1);
	return 0;
}
