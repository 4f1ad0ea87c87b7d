/*
 * A block that realloc gives up is taken by another thread before realloc returns: the release
 * counts from the call's begin, so no live block is ever allocated (expect.py's replay).
 * libc frees the thread's cache at its end, which no call had allocated: that free is unknown.
 * EXPECT alloc malloc 5003 x 2003
 * EXPECT free realloc 5003 x 2003
 * EXPECT alloc realloc 20011 x 2003
 * EXPECT free free 20011 x 2003
 * EXPECT alloc malloc 5009 x 4001
 * EXPECT free free 5009 x 4001
 * ALLOW free free ?
 * UNKNOWN x 1
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 */
#include "trace.h"

#define REALLOCS 2003
#define MALLOCS 4001

/* Both threads use one arena, and blocks too large for their caches. */
static void *taker(void *arg)
{
	for (int i = 0; i < MALLOCS; i++) {
		void *p = alloc(5009);

		if (i % 16 == 0)
			sched_yield();
		free(p);
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	CHECK(mallopt(M_ARENA_MAX, 1));
	CHECK(pthread_create(&thread, NULL, taker, NULL) == 0);
	for (int i = 0; i < REALLOCS; i++)
		free(opaque(realloc(alloc(5003), 20011)));
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}
