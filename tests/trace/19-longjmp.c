/*
 * A signal handler leaves an allocator call by longjmp; afterwards every call is reported, from
 * deeper frames than the one that was left as well as from shallower ones.
 * EXPECT alloc malloc 1213 x 7
 * EXPECT free free 1213 x 7
 * EXPECT alloc malloc 1217 x 7
 * EXPECT free free 1217 x 7
 * EXPECT alloc calloc 1223 x 7
 * EXPECT free free 1223 x 7
 * ALLOW free realloc ?
 * UNKNOWN x 4
 * NOORACLE
 */
#include "trace.h"

static char *wall;
static sigjmp_buf back;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static __attribute__((noinline)) void deeper(int levels)
{
	volatile char room[1024];

	room[0] = (char)levels;
	if (levels > 0)
		deeper(levels - 1);
	else
		pairs(1217, 1);
	room[1] = 1;
}

int main(void)
{
	void *p;

	wall = (char *)syscall(SYS_mmap, NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(wall != MAP_FAILED);
	signal(SIGSEGV, leave);
	for (volatile int i = 0; i < 7; i++) {
		if (sigsetjmp(back, 1) == 0) {
			if (i % 2)
				CHECK(posix_memalign((void **)wall, 64, 1202) != 12345);
			else
				CHECK(realloc(wall + 4096, 1203) != opaque(wall));
			CHECK(0);
		}
		deeper(5);
		pairs(1213, 1);
		p = opaque(calloc(1, 1223));
		free(p);
	}
	return 0;
}
