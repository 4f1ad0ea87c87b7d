#include "runner/children.h"

#include <fcntl.h>
#include <signal.h>

void children_signal(const struct cgroup *cg, pid_t main_pid, int sig)
{
	_cleanup_fclose_ FILE *f = NULL;
	int fd = -1, pid;

	if (cg->dirfd >= 0 && !cg->is_fake)
		fd = openat(cg->dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "r");
	if (!f) {
		if (main_pid > 0)
			(void)kill(main_pid, sig);
		return;
	}
	while (fscanf(f, "%d", &pid) == 1)
		(void)kill(pid, sig); /* gone meanwhile is fine */
}

bool children_exist(pid_t except)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/thread-self/children", "re");
	int pid;

	if (!f)
		return false;
	while (fscanf(f, "%d", &pid) == 1) {
		if (pid != except)
			return true;
	}
	return false;
}
