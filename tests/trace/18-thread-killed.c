/*
 * A thread that ends in the middle of an allocator call leaves nothing behind that a later thread
 * could be taken for. posix_memalign faults where it stores its result, realloc where it reads
 * the block's header; the handler ends the thread there.
 * EXPECT alloc malloc 1201 x 7
 * EXPECT free free 1201 x 7
 * ALLOW free realloc ?
 * UNKNOWN x 3
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 * NOORACLE
 */
#include "trace.h"

static char *wall; /* two pages nobody may touch */

static void end_thread(int signal)
{
	(void)signal;
	syscall(SYS_exit, 0);
}

static void *store(void *arg)
{
	CHECK(posix_memalign((void **)wall, 64, 1202) != 12345);
	return arg;
}

static void *resize(void *arg)
{
	CHECK(realloc(wall + 4096, 1203) != arg);
	return arg;
}

int main(void)
{
	pthread_t thread;

	wall = (char *)syscall(SYS_mmap, NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(wall != MAP_FAILED);
	signal(SIGSEGV, end_thread);
	for (int i = 0; i < 5; i++) {
		CHECK(pthread_create(&thread, NULL, i % 2 ? store : resize, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	pairs(1201, 7);
	return 0;
}
