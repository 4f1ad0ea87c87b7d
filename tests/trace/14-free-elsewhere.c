/*
 * Blocks are freed by another thread than the one that made them, and addresses are used again at
 * once: no free is ever taken for that of the next block.
 * libc frees the thread's cache at its end, which no call had allocated: that free is unknown.
 * EXPECT alloc malloc 1117 x 10007
 * EXPECT free free 1117 x 10007
 * ALLOW free free ?
 * UNKNOWN x 1
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 */
#include "trace.h"

#define BLOCKS 10007

static void *_Atomic box;

static void *releaser(void *arg)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *p;

		while (!(p = box))
			sched_yield();
		box = NULL;
		free(p);
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	CHECK(mallopt(M_ARENA_MAX, 1));
	CHECK(pthread_create(&thread, NULL, releaser, NULL) == 0);
	for (int i = 0; i < BLOCKS; i++) {
		void *p = alloc(1117);

		while (box)
			sched_yield();
		box = p;
	}
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}
