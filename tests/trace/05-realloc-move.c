/*
 * In place and moved: both are a release of the old size and an allocation of the new one.
 * EXPECT alloc malloc 2003 x 7
 * EXPECT free realloc 2003 x 7
 * EXPECT alloc realloc 1999 x 7
 * EXPECT free realloc 1999 x 7
 * EXPECT alloc realloc 65521 x 7
 * EXPECT free reallocarray 65521 x 7
 * EXPECT alloc reallocarray 131067 x 7
 * EXPECT free free 131067 x 7
 * EXPECT alloc malloc 31 x 7
 * EXPECT free free 31 x 7
 */
#include "trace.h"

int main(void)
{
	int moved = 0, in_place = 0;

	for (int i = 0; i < 7; i++) {
		char *p = alloc(2003), *guard = alloc(31), *q;
		uintptr_t was = (uintptr_t)p;

		q = opaque(realloc(p, 1999));
		in_place += (uintptr_t)q == was;
		was = (uintptr_t)q;
		q = opaque(realloc(q, 65521));
		moved += (uintptr_t)q != was;
		q = opaque(reallocarray(q, 3, 43689));
		CHECK(q);
		free(q);
		free(guard);
	}
	CHECK(in_place > 0 && moved > 0);
	return 0;
}
