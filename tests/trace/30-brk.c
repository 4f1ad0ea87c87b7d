/*
 * The break moved by the program itself; malloc's own moves are none of it.
 * EXPECT brk sbrk 8209 x 3
 * EXPECT brk sbrk -8209 x 1
 * EXPECT brk brk 40960 x 1
 * EXPECT brk brk -4096 x 1
 * EXPECT alloc malloc 90001 x 5
 * NOORACLE
 */
#include "trace.h"

int main(void)
{
	volatile intptr_t huge = 1L << 46;
	char *end;

	for (int i = 0; i < 5; i++)
		alloc(90001);
	for (int i = 0; i < 3; i++)
		CHECK(sbrk(8209) != (void *)-1);
	CHECK(sbrk(-8209) != (void *)-1);
	CHECK(sbrk(huge) == (void *)-1);
	for (int i = 0; i < 7; i++)
		end = sbrk(0);
	CHECK(brk(end + 40960) == 0);
	CHECK(brk(end + 36864) == 0);
	CHECK(brk(end + huge) == -1);
	return 0;
}
