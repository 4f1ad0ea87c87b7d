/*
 * Runs a command and says how many major faults it, its children and this program had, as the
 * kernel counts them for wait(2): "major faults N" into the file named first. Ends as it does.
 */
#include "trace.h"

#include <sys/resource.h>

int main(int argc, char **argv)
{
	struct rusage all, self;
	char line[64];
	int status, fd, n;
	pid_t pid;

	CHECK(argc > 2);
	CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0); /* no faults of its own at the end */
	signal(SIGINT, SIG_IGN);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && getrusage(RUSAGE_CHILDREN, &all) == 0 &&
	      getrusage(RUSAGE_SELF, &self) == 0);
	n = snprintf(line, sizeof(line), "major faults %ld\n", all.ru_majflt + self.ru_majflt);
	CHECK(write(fd, line, (size_t)n) == n);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
