/*
 * First process of the virtual machine once its file systems are there: runs
 * COMMAND with three pipes, moves their bytes to and from the serial ports,
 * delivers signals, reports the exit status. See stream.h for the protocol.
 *
 *	agent SETTINGS		run what the host asks for
 *	agent --failed WHY	tell the host that there will be no COMMAND
 *
 * One loop and no threads; every descriptor of ours is non-blocking, so that a
 * COMMAND that does not read its stdin delays nothing. Memory is locked: this
 * machine exists to be short of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "stream.h"

/* cache=mmap: without shared mappings SQLite cannot write in WAL mode. */
#define CWD_OPTIONS "trans=virtio,version=9p2000.L,msize=512000,cache=mmap"

struct agent {
	int control;
	int signals;
	pid_t command;
	int status;           /* as in $?, -1 while COMMAND runs */
	uint64_t stdin_bytes; /* UINT64_MAX until the host has told */
	struct stream in, out, err;
	struct inbox inbox;
};

/* The driver makes the ports' files some time after it was loaded. */
static int open_port(int number)
{
	char pattern[32];
	glob_t found = {0};
	int fd = -1;

	snprintf(pattern, sizeof(pattern), "/dev/vport*p%d", number);
	for (int try = 0; fd < 0 && try < 1000; try++) {
		if (try)
			usleep(10000);
		if (glob(pattern, 0, NULL, &found) == 0)
			fd = open(found.gl_pathv[0], O_RDWR | O_NONBLOCK | O_CLOEXEC);
		globfree(&found);
	}
	return fd;
}

/* The host answers a failure by killing the machine. */
static void fail(int control, const char *why)
{
	frame_send(control, FRAME_FAILED, why, strlen(why));
	for (;;)
		pause();
}

static void fail_errno(struct agent *a, const char *what, const char *path)
{
	char why[512];

	snprintf(why, sizeof(why), "%s %s: %s", what, path, strerror(errno));
	fail(a->control, why);
}

/* The caller's directory comes last, so that it is there also below /tmp. */
static void mount_cwd(struct agent *a, char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		mkdir(path, 0755);
	}
	mkdir(path, 0755);
	if (mount("cwd", path, "9p", 0, CWD_OPTIONS))
		fail_errno(a, "cannot mount the current directory", path);
}

static void exec_command(const char *cwd, char **argv, int fds[3])
{
	struct rlimit files = {1024, 524288}; /* systemd's default */
	sigset_t none;

	setsid();
	for (int i = 0; i < 3; i++)
		dup2(fds[i], i);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &files);
	if (chdir(cwd) == 0)
		execvp(argv[0], argv);
	dprintf(2, "tools/vm: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void make_pipe(struct agent *a, int *ours, int *theirs, int our_end)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		fail_errno(a, "cannot make", "a pipe");
	*ours = fd[our_end];
	*theirs = fd[!our_end];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
}

/* body: argc and time as u64; cwd, argv and environment, each string ended by a 0 */
static void start_command(struct agent *a, char *body, size_t len)
{
	uint64_t head[2];
	char *cwd = body + sizeof(head), *end = body + len;
	char **argv = calloc(len, sizeof(*argv));
	size_t n = 0;
	int fds[3];

	memcpy(head, body, sizeof(head));
	/* The machine's own clock is up to a second late: files would come from the future. */
	clock_settime(CLOCK_REALTIME, &(struct timespec){.tv_sec = head[1] / 1000000000,
							 .tv_nsec = head[1] % 1000000000});
	for (char *p = cwd + strlen(cwd) + 1; p < end; p += strlen(p) + 1) {
		argv[n++] = p;
		n += n == head[0]; /* a NULL between argv and environment */
	}
	environ = argv + head[0] + 1; /* execvp looks for PATH in it */

	mount_cwd(a, cwd);
	make_pipe(a, &a->in.to, &fds[0], 1);
	make_pipe(a, &a->out.from, &fds[1], 0);
	make_pipe(a, &a->err.from, &fds[2], 0);
	/* vfork returns after the exec: no signal can come before the setsid. */
	a->command = vfork();
	if (a->command < 0)
		fail_errno(a, "cannot start", argv[0]);
	if (a->command == 0)
		exec_command(cwd, argv, fds);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void reap(struct agent *a)
{
	struct signalfd_siginfo ignored;
	int status;
	pid_t pid;

	while (read(a->signals, &ignored, sizeof(ignored)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != a->command)
			continue;
		a->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		/* What COMMAND left behind ends with it. */
		kill(-1, SIGKILL);
	}
}

static void on_frame(struct agent *a, const struct frame *f, char *body)
{
	uint64_t value = 0;

	if (f->type == FRAME_RUN) {
		start_command(a, body, f->len);
		return;
	}
	memcpy(&value, body, f->len < sizeof(value) ? f->len : sizeof(value));
	if (f->type == FRAME_SIGNAL && a->command > 0)
		kill(-a->command, value);
	else if (f->type == FRAME_EOF)
		a->stdin_bytes = value;
	else if (f->type == FRAME_CLOSED)
		close_fd(value == 1 ? &a->out.from : &a->err.from);
}

static void step(struct agent *a)
{
	struct pollfd p[8] = {
		{.fd = a->control, .events = POLLIN},
		{.fd = a->signals, .events = POLLIN},
	};
	struct stream *streams[] = {&a->in, &a->out, &a->err};
	bool ended = a->status >= 0;

	for (int i = 0; i < 3; i++)
		stream_poll(streams[i], p + 2 + 2 * i);
	if (a->command == 0) /* its pipe is not there yet */
		p[2].fd = -1;
	if (poll(p, 8, ended ? 10 : -1) < 0)
		return;
	if (p[1].revents)
		reap(a);
	while (p[0].revents && inbox_read(&a->inbox, a->control) == 1)
		on_frame(a, &a->inbox.head, a->inbox.body);
	for (int i = 0; i < 3; i++)
		stream_move(streams[i], p + 2 + 2 * i, SIZE_MAX);
	if (a->in.total == a->stdin_bytes && !a->in.len)
		close_fd(&a->in.to);
	/*
	 * An empty pipe of a COMMAND that has ended is at its end. Do not wait
	 * for end of file: a killed process can hold it for long while it reclaims.
	 */
	for (int i = 1; ended && i < 3; i++)
		if (p[2 + 2 * i].fd >= 0 && !p[2 + 2 * i].revents)
			close_fd(&streams[i]->from);
}

int main(int argc, char **argv)
{
	static struct agent a = {.status = -1,
				 .stdin_bytes = UINT64_MAX,
				 .in.to = -1,
				 .out.from = -1,
				 .err.from = -1};
	sigset_t child, blocked;

	a.control = open_port(1);
	if (a.control < 0)
		return 1; /* the kernel panics, the host sees it */
	if (argc == 3 && !strcmp(argv[1], "--failed"))
		fail(a.control, argv[2]);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	blocked = child;
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	a.signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	a.in.from = open_port(2);
	a.out.to = open_port(3);
	a.err.to = open_port(4);
	frame_send(a.control, FRAME_READY, argv[1], argc > 1 ? strlen(argv[1]) : 0);

	/* After COMMAND's end: until its last bytes are out. */
	while (a.status < 0 || a.out.from >= 0 || a.err.from >= 0 || a.out.len || a.err.len)
		step(&a);
	sync(); /* what was written through shared mappings of the host's files */
	frame_send(a.control, FRAME_EXIT, (uint64_t[]){a.status, a.out.total, a.err.total}, 24);
	for (;;)
		pause();
}
