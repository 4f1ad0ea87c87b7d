/*
 * Threads with small stacks of their own, one of them lying in static memory, and a coroutine on
 * a stack from the heap: allocations from some frames down, and exactly the frames of that stack.
 * libc frees a thread's cache at its end, which no call had allocated: that free is unknown.
 * EXPECT alloc malloc 1447 x 300
 * EXPECT free free 1447 x 300
 * EXPECT alloc malloc 65536 x 1
 * EXPECT free free 65536 x 1
 * ALLOW free free ?
 * UNKNOWN x 3
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 */
#include "trace.h"

#include <ucontext.h>

static char room[65536] __attribute__((aligned(4096)));
static ucontext_t outside, inside;

static __attribute__((noinline)) void down(int level)
{
	volatile char local[64];

	local[0] = 1;
	if (level > 0)
		down(level - 1);
	else
		pairs(1447, 1);
	local[1] = local[0];
}

static void *levels(void *arg)
{
	for (int i = 0; i < 50; i++)
		down(i);
	return arg;
}

static void coroutine(void)
{
	for (int i = 0; i < 50; i++) {
		down(i);
		CHECK(swapcontext(&inside, &outside) == 0);
	}
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t threads[3];
	char *stack = alloc(65536);

	for (int i = 0; i < 3; i++) {
		CHECK(pthread_attr_init(&attr) == 0);
		CHECK((i == 0 ? pthread_attr_setstack(&attr, room, sizeof(room))
			      : pthread_attr_setstacksize(&attr, 65536)) == 0);
		CHECK(pthread_create(&threads[i], &attr, levels, NULL) == 0);
		CHECK(pthread_attr_destroy(&attr) == 0);
	}
	CHECK(getcontext(&inside) == 0);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = 65536;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	for (int i = 0; i < 50; i++) {
		CHECK(swapcontext(&outside, &inside) == 0);
		down(i);
	}
	levels(NULL);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	free(stack);
	return 0;
}
