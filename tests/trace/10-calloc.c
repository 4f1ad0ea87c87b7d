/*
 * A calloc whose product overflows allocates nothing.
 * EXPECT alloc calloc 1099 x 7
 * EXPECT free free 1099 x 7
 * ALLOW failed calloc *
 */
#include "trace.h"

int main(void)
{
	volatile size_t big = 1UL << 33;

	for (int i = 0; i < 7; i++)
		free(opaque(calloc(7, 157)));
	for (int i = 0; i < 5; i++)
		CHECK(!opaque(calloc(big, big)));
	for (int i = 0; i < 3; i++)
		CHECK(!opaque(calloc(big + 1, big)));
	return 0;
}
