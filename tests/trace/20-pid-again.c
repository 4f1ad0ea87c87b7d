/*
 * A pid that is used again is another process: what the first one left is not the second one's.
 * Needs CAP_CHECKPOINT_RESTORE, to ask for the pid; status 77 without.
 * EXPECT alloc malloc 1259 x 5
 * EXPECT alloc malloc 1277 x 3
 * EXPECT free free 1277 x 3
 * LIVE 1259 x 5
 * NOORACLE
 */
#include "trace.h"

#include <linux/sched.h>

static pid_t fork_as(pid_t wanted)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = wanted ? (uintptr_t)&wanted : 0,
				  .set_tid_size = wanted ? 1 : 0};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int main(void)
{
	pid_t pid = fork_as(0), again;

	if (pid == 0) {
		for (int i = 0; i < 5; i++)
			alloc(1259);
		_exit(0);
	}
	wait_for(pid, 0);
	again = fork_as(pid);
	if (again == 0) {
		pairs(1277, 3);
		_exit(0);
	}
	if (again < 0 && (errno == EPERM || errno == ENOSYS))
		return 77;
	CHECK(again == pid);
	wait_for(again, 0);
	return 0;
}
