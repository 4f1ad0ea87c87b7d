/*
 * Frames whose size is known only when they run: alloca and arrays of variable length.
 * EXPECT alloc malloc 1439 x 202
 * EXPECT free free 1439 x 202
 */
#include "trace.h"

static __attribute__((noinline)) void with_array(int n)
{
	volatile char room[n * 64 + 1];

	room[n] = 1;
	pairs(1439, 1);
	room[0] = room[n];
}

static __attribute__((noinline)) void with_alloca(int n)
{
	volatile char *room = __builtin_alloca((size_t)n * 512 + 16);

	room[n] = 1;
	pairs(1439, 1);
	with_array(n);
	room[0] = 1;
}

int main(void)
{
	for (int n = 0; n < 101; n++)
		with_alloca(n);
	return 0;
}
