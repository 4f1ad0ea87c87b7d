/*
 * The host's end of tools/vm: runs qemu and connects our own stdin, stdout,
 * stderr, signals and exit status to COMMAND in the guest (agent.c).
 *
 *	launch LOG CWD QEMU ARG… -- COMMAND ARG…
 *
 * qemu finds the guest's serial ports as socket descriptors 3 to 6 (control,
 * stdin, stdout, stderr) and writes the console to its stdout; descriptors from
 * 7 are the caller's. COMMAND gets our environment. LOG is written only when the
 * machine fails.
 *
 * qemu never outlives us: the kernel kills it when we die (PR_SET_PDEATHSIG). It
 * has its own session, so that Ctrl-C reaches us alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "stream.h"

#define EXIT_MACHINE 125 /* the machine failed, not COMMAND */
#define BOOT_S 300       /* emulated on a busy host; 4 to 6 s is usual */
#define BOOTS 3
#define GRACE_S 15      /* for COMMAND to end after INT or TERM */
#define PIPE_CHUNK 4096 /* see stream_move */
#define FIRST_PORT 3
#define PORTS 4

struct vm {
	const char *log, *cwd;
	char **qemu, **command;
	pid_t pid;
	int boots;
	int control, console, signals;
	bool running, ended;
	bool eof_sent, closed_sent[3];
	int signal;      /* the first INT or TERM */
	double deadline; /* 0: none */
	uint64_t status, want[3];
	struct stream in, out, err;
	struct inbox inbox;
	size_t console_len;
	char console_buf[(256 << 10) + 1]; /* its end, if there is more */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("tools/vm: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static void end(struct vm *vm, int status)
{
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
	exit(status);
}

static void read_console(struct vm *vm)
{
	size_t half = sizeof(vm->console_buf) / 2, room = 2 * half - vm->console_len;
	ssize_t n;

	if (!room) {
		memmove(vm->console_buf, vm->console_buf + half, half);
		vm->console_len = room = half;
	}
	n = read(vm->console, vm->console_buf + vm->console_len, room);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_fd(&vm->console);
	if (n > 0)
		vm->console_len += n;
}

/* Out of the way of the numbers that qemu is told. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 100);

	close(fd);
	return up;
}

static void exec_qemu(struct vm *vm, pid_t parent, int output, int ports[PORTS])
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_MACHINE);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	dup2(output, 1);
	dup2(output, 2);
	for (int i = 0; i < PORTS; i++)
		dup2(ports[i], FIRST_PORT + i);
	execv(vm->qemu[0], vm->qemu);
	dprintf(2, "%s: %s\n", vm->qemu[0], strerror(errno));
	_exit(EXIT_MACHINE);
}

static void boot(struct vm *vm)
{
	int pair[2], theirs[PORTS], output[2] = {-1, -1};
	int *ours[PORTS] = {&vm->control, &vm->in.to, &vm->out.from, &vm->err.from};
	pid_t parent = getpid();

	vm->boots++;
	vm->console_len = 0;
	vm->inbox = (struct inbox){0};
	vm->deadline = now() + BOOT_S;
	for (int i = 0; i < PORTS; i++) {
		close_fd(ours[i]);
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
		*ours[i] = move_up(pair[0]);
		theirs[i] = move_up(pair[1]);
		fcntl(*ours[i], F_SETFL, O_NONBLOCK);
	}
	if (pipe2(output, O_CLOEXEC) || (vm->pid = fork()) < 0) {
		say("cannot start %s: %s", vm->qemu[0], strerror(errno));
		exit(EXIT_MACHINE);
	}
	if (vm->pid == 0)
		exec_qemu(vm, parent, move_up(output[1]), theirs);
	for (int i = 0; i < PORTS; i++)
		close(theirs[i]);
	close(output[1]);
	vm->console = output[0];
	fcntl(vm->console, F_SETFL, O_NONBLOCK);
}

/* The machine's last words: why the kernel gave up, else the last line. */
static void print_reason(const char *text)
{
	const char *line = strstr(text, "Kernel panic"), *next = text;

	for (; !line && *next; next += strspn(next, "\r\n")) {
		text = next;
		next += strcspn(next, "\r\n");
	}
	if (!line)
		line = text;
	fprintf(stderr, "%.*s", (int)strcspn(line, "\r\n"), line);
}

static void fail(struct vm *vm, const char *why)
{
	int fd, status = 0;

	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, &status, 0);
	while (vm->console >= 0)
		read_console(vm);
	vm->console_buf[vm->console_len] = 0;
	/* The emulation has races that can hit a booting kernel; nothing is lost yet. */
	if (!vm->running && vm->boots < BOOTS && strstr(vm->console_buf, "Kernel panic")) {
		boot(vm);
		return;
	}
	fd = open(vm->log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd >= 0)
		write_all(fd, vm->console_buf, vm->console_len);
	fprintf(stderr, "tools/vm: %s: ", why);
	if (vm->console_len)
		print_reason(vm->console_buf);
	else
		fprintf(stderr, "qemu ended silently, wait status %#x", status);
	fprintf(stderr, " (its console is in %s)\n", vm->log);
	exit(EXIT_MACHINE);
}

static void send_command(struct vm *vm)
{
	char *body = NULL;
	size_t len = 0;
	int argc = 0;
	struct timespec t;
	uint64_t head[2];
	FILE *f = open_memstream(&body, &len);

	while (vm->command[argc])
		argc++;
	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = argc;
	head[1] = t.tv_sec * 1000000000ULL + t.tv_nsec;
	fwrite(head, sizeof(head), 1, f);
	fprintf(f, "%s%c", vm->cwd, 0);
	for (int i = 0; i < argc; i++)
		fprintf(f, "%s%c", vm->command[i], 0);
	for (char **e = environ; *e; e++)
		fprintf(f, "%s%c", *e, 0);
	fclose(f);
	frame_send(vm->control, FRAME_RUN, body, len);
	free(body);
}

static void on_frame(struct vm *vm)
{
	const struct frame *f = &vm->inbox.head;
	uint64_t v[3] = {0};

	switch (f->type) {
	case FRAME_READY:
		if (f->len)
			say("%s", vm->inbox.body);
		vm->deadline = 0;
		vm->running = true;
		send_command(vm);
		break;
	case FRAME_FAILED:
		say("%s", vm->inbox.body);
		end(vm, EXIT_MACHINE);
		break;
	case FRAME_EXIT:
		memcpy(v, vm->inbox.body, f->len < sizeof(v) ? f->len : sizeof(v));
		vm->status = v[0];
		vm->want[1] = v[1];
		vm->want[2] = v[2];
		vm->ended = true;
		vm->deadline = 0;
		break;
	}
}

/*
 * INT and TERM ask COMMAND to end: the second one, or time, ends the machine.
 * HUP and QUIT are only passed on.
 */
static void on_signal(struct vm *vm)
{
	struct signalfd_siginfo info;
	bool asks_to_end;

	if (read(vm->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		return; /* the control port ends too */
	asks_to_end = info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM;
	if (!vm->running || vm->ended || (asks_to_end && vm->signal))
		end(vm, 128 + info.ssi_signo);
	frame_send_u64(vm->control, FRAME_SIGNAL, info.ssi_signo);
	if (asks_to_end) {
		vm->signal = info.ssi_signo;
		vm->deadline = now() + GRACE_S;
	}
}

static void on_deadline(struct vm *vm)
{
	if (!vm->running) {
		fail(vm, "the machine did not come up");
		return;
	}
	say("COMMAND went on for %d s after the signal; machine stopped", GRACE_S);
	end(vm, 128 + vm->signal);
}

static void tell_ends(struct vm *vm)
{
	struct stream *outputs[] = {NULL, &vm->out, &vm->err};

	if (!vm->running || vm->ended)
		return;
	if (vm->in.from < 0 && !vm->in.len && !vm->eof_sent) {
		vm->eof_sent = true;
		frame_send_u64(vm->control, FRAME_EOF, vm->in.total);
	}
	for (int i = 1; i < 3; i++) {
		if (outputs[i]->to < 0 && !vm->closed_sent[i]) {
			vm->closed_sent[i] = true;
			frame_send_u64(vm->control, FRAME_CLOSED, i);
		}
	}
}

static void step(struct vm *vm)
{
	struct pollfd p[9] = {
		{.fd = vm->control, .events = POLLIN},
		{.fd = vm->signals, .events = POLLIN},
		{.fd = vm->console, .events = POLLIN},
	};
	struct stream *streams[] = {&vm->in, &vm->out, &vm->err};
	double left = vm->deadline - now();
	int got = 0;

	for (int i = 0; i < 3; i++)
		stream_poll(streams[i], p + 3 + 2 * i);
	if (!vm->running) /* leave our stdin alone */
		p[3].fd = -1;
	if (poll(p, 9, !vm->deadline ? -1 : left > 0 ? left * 1000 + 1 : 0) < 0)
		return;
	if (vm->deadline && now() >= vm->deadline) {
		on_deadline(vm);
		return;
	}
	if (p[1].revents)
		on_signal(vm);
	if (p[2].revents)
		read_console(vm);
	while (p[0].revents && (got = inbox_read(&vm->inbox, vm->control)) == 1)
		on_frame(vm);
	if (got < 0) {
		fail(vm, "the machine stopped before COMMAND ended");
		return;
	}
	for (int i = 0; i < 3; i++)
		stream_move(streams[i], p + 3 + 2 * i, PIPE_CHUNK);
	tell_ends(vm);
}

static bool done(const struct vm *vm)
{
	return vm->ended && vm->out.total == vm->want[1] && vm->err.total == vm->want[2] &&
	       !vm->out.len && !vm->err.len;
}

int main(int argc, char **argv)
{
	static struct vm vm = {.control = -1,
			       .in = {.from = 0, .to = -1},
			       .out = {.from = -1, .to = 1},
			       .err = {.from = -1, .to = 2}};
	sigset_t set;
	int fd;

	/* Descriptors 0 to 2 may have come closed; they must not become anything else. */
	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3)
		;
	close(fd);
	if (argc < 5)
		return EXIT_MACHINE;
	vm.log = argv[1];
	vm.cwd = argv[2];
	vm.qemu = vm.command = argv + 3;
	while (*vm.command && strcmp(*vm.command, "--"))
		vm.command++;
	if (!*vm.command)
		return EXIT_MACHINE;
	*vm.command++ = NULL;

	sigemptyset(&set);
	for (const int *s = (int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, 0}; *s; s++)
		sigaddset(&set, *s);
	vm.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	/* SIGTTIN: as a background job of a shell we have no stdin, and go on. */
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGTTIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	boot(&vm);
	while (!done(&vm))
		step(&vm);
	end(&vm, vm.status);
}
