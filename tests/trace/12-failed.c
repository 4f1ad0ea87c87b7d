/*
 * A malloc that fails leaves no block; it is told as failed, with its size.
 * EXPECT failed malloc 9223372036854771711 x 7
 * EXPECT alloc malloc 1103 x 3
 * EXPECT free free 1103 x 3
 */
#include "trace.h"

int main(void)
{
	volatile size_t huge = SIZE_MAX / 2 - 4096;

	for (int i = 0; i < 7; i++)
		CHECK(!opaque(malloc(huge)));
	pairs(1103, 3);
	return 0;
}
