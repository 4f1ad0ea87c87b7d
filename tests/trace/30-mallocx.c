/*
 * jemalloc's own interface.
 * EXPECT alloc mallocx 1399 x 7
 * EXPECT free rallocx 1399 x 7
 * EXPECT alloc rallocx 1409 x 7
 * EXPECT free dallocx 1409 x 4
 * EXPECT free sdallocx 1409 x 3
 * EXPECT alloc mallocx 1423 x 5
 * ALLOW alloc malloc 72704
 * NOORACLE
 */
#include "trace.h"

#include <jemalloc/jemalloc.h>

int main(void)
{
	for (int i = 0; i < 7; i++) {
		void *p = opaque(mallocx(1399, MALLOCX_ALIGN(64)));

		CHECK(p);
		p = opaque(rallocx(p, 1409, MALLOCX_ZERO));
		CHECK(p);
		if (i % 2)
			sdallocx(p, 1409, 0);
		else
			dallocx(p, 0);
	}
	for (int i = 0; i < 5; i++)
		CHECK(opaque(mallocx(1423, 0)));
	return 0;
}
