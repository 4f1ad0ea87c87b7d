/*
 * A child stops itself, as under job control: its parent sees exactly that one stop, the tracer
 * does not undo it, and the child goes on when told to.
 * EXPECT alloc malloc 1373 x 12
 * EXPECT free free 1373 x 12
 * NOORACLE
 */
#include "trace.h"

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strrchr(text, ')')[2];
}

int main(void)
{
	int status, stops = 0;
	pid_t pid = fork();

	if (pid == 0) {
		pairs(1373, 5);
		raise(SIGSTOP);
		pairs(1373, 7);
		_exit(0);
	}
	while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
		CHECK(WSTOPSIG(status) == SIGSTOP);
		stops++;
		usleep(300000);
		CHECK(state_of(pid) == 'T');
		kill(pid, SIGCONT);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(stops == 1);
	return 0;
}
