/*
 * The size is the right argument of each; pvalloc rounds it to pages.
 * EXPECT alloc memalign 12288 x 7
 * EXPECT alloc memalign 1087 x 5
 * EXPECT alloc valloc 1091 x 3
 * EXPECT alloc pvalloc 4096 x 2
 * EXPECT alloc pvalloc 8192 x 2
 * EXPECT free free 12288 x 7
 * EXPECT free free 1087 x 5
 * EXPECT free free 1091 x 3
 * EXPECT free free 4096 x 2
 * EXPECT free free 8192 x 2
 */
#include "trace.h"

int main(void)
{
	for (int i = 0; i < 7; i++)
		free(opaque(aligned_alloc(4096, 12288)));
	for (int i = 0; i < 5; i++)
		free(opaque(memalign(256, 1087)));
	for (int i = 0; i < 3; i++)
		free(opaque(valloc(1091)));
	for (int i = 0; i < 2; i++)
		free(opaque(pvalloc(1093)));
	for (int i = 0; i < 2; i++)
		free(opaque(pvalloc(4097)));
	return 0;
}
