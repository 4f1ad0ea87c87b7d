#include "runner/children.h"

#include <fcntl.h>
#include <signal.h>

#define OUR_CHILDREN "/proc/thread-self/children"

void children_signal(const struct cgroup *cg, pid_t main_pid, pid_t except, int sig)
{
	_cleanup_fclose_ FILE *f = NULL;
	int fd = -1, pid;

	if (cg->dirfd < 0)
		f = fopen(OUR_CHILDREN, "re");
	else if (!cg->is_fake)
		fd = openat(cg->dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "r");
	while (f && fscanf(f, "%d", &pid) == 1) {
		if (pid == main_pid)
			main_pid = 0;
		if (pid > 0 && pid != except)
			(void)kill(pid, sig); /* gone meanwhile is fine */
	}
	if (main_pid > 0)
		(void)kill(main_pid, sig);
}

bool children_exist(pid_t except)
{
	_cleanup_fclose_ FILE *f = fopen(OUR_CHILDREN, "re");
	int pid;

	if (!f)
		return false;
	while (fscanf(f, "%d", &pid) == 1) {
		if (pid != except)
			return true;
	}
	return false;
}
