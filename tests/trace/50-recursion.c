/*
 * A stack 200 frames deep with 12 KiB in each, far beyond any window that a tracer copies.
 * EXPECT alloc malloc 1433 x 211
 * EXPECT free free 1433 x 211
 */
#include "trace.h"

static __attribute__((noinline)) void down(int level, int from)
{
	volatile char room[12288];

	room[level] = 1;
	if (level > 0)
		down(level - 1, from);
	else
		pairs(1433, 1);
	if (level == 190 && from == 190)
		pairs(1433, 1);
	room[0] = room[level];
}

int main(void)
{
	for (int from = 0; from < 210; from++)
		down(from < 200 ? from : 200, from);
	return 0;
}
