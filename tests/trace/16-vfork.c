/*
 * vfork, clone(CLONE_VM) and posix_spawn share the heap until exec: what the child allocates the
 * parent frees, and nothing is live twice.
 * EXPECT alloc malloc 1151 x 7
 * EXPECT free free 1151 x 7
 * EXPECT alloc malloc 1153 x 5
 * EXPECT free free 1153 x 5
 * EXPECT alloc malloc 1163 x 3
 * EXPECT free free 1163 x 2
 * EXPECT fork - - x 3
 * LIVE 1163 x 1
 * IGNORE mmap libc.so.6
 * NOORACLE
 */
#include "trace.h"

#include <sched.h>
#include <spawn.h>

static void *block[7];
static char stack[65536] __attribute__((aligned(16)));

static int child(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++)
		block[i] = alloc(1153);
	free(block[4]);
	_exit(0);
}

int main(int argc, char **argv)
{
	char *args[] = {argv[0], "child", NULL};
	pid_t pid;

	if (argc > 1) {
		alloc(1163);
		pairs(1163, 2);
		return 0;
	}
	for (int i = 0; i < 7; i++)
		block[i] = alloc(1151);
	pid = vfork();
	if (pid == 0) {
		for (int i = 0; i < 3; i++)
			free(block[i]);
		_exit(0);
	}
	wait_for(pid, 0);
	for (int i = 3; i < 7; i++)
		free(block[i]);
	pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	CHECK(pid > 0);
	wait_for(pid, 0);
	for (int i = 0; i < 4; i++)
		free(block[i]);
	CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, NULL) == 0);
	wait_for(pid, 0);
	return 0;
}
