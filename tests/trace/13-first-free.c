/*
 * A thread whose first call of the allocator is free (which sets up its cache): one event.
 * libc frees the thread's cache at its end, which no call had allocated: that free is unknown.
 * EXPECT alloc malloc 1109 x 7
 * EXPECT free free 1109 x 7
 * ALLOW free free ?
 * UNKNOWN x 7
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 */
#include "trace.h"

static void *release(void *p)
{
	free(p);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 7; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, release, alloc(1109)) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	return 0;
}
