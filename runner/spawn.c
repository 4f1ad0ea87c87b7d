#include "runner/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* Statuses of the shell's convention, as env(1), timeout(1) and nohup(1) give them. */
#define EXIT_OURS 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

const int spawn_dispositions[3] = {SIGPIPE, SIGXFSZ, SIGCHLD};

struct identity {
	bool is_set;
	uid_t uid;
	gid_t gid;
	char name[64], home[256], shell[256];
};

static int find_user(struct identity *ret, const char *name, struct err *err)
{
	const struct passwd *pw;

	*ret = (struct identity){0};
	if (!name)
		return 0;
	errno = 0;
	pw = getpwnam(name);
	if (!pw)
		return err_set(err, -EINVAL, "--user %s: no such user", name);
	ret->is_set = true;
	ret->uid = pw->pw_uid;
	ret->gid = pw->pw_gid;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", pw->pw_name);
	(void)snprintf(ret->home, sizeof(ret->home), "%s", pw->pw_dir);
	(void)snprintf(ret->shell, sizeof(ret->shell), "%s", pw->pw_shell);
	return 0;
}

/* -- in the child: everything up to exec; a failure is sent as errno --------------------------- */

/* What the child was at when it failed; it sends this with the errno. */
enum stage { AT_STDIN, AT_USER, AT_EXEC };

struct failure {
	int code;
	enum stage stage;
};

static int status_of(enum stage stage, int code)
{
	if (stage != AT_EXEC)
		return EXIT_OURS;
	return code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static _Noreturn void fail(int exec_fd, enum stage stage)
{
	struct failure f = {.code = errno, .stage = stage};

	(void)!write(exec_fd, &f, sizeof(f));
	_exit(status_of(stage, f.code));
}

static void become(const struct identity *id, int exec_fd)
{
	if (!id->is_set)
		return;
	if (initgroups(id->name, id->gid) < 0 || setgid(id->gid) < 0 || setuid(id->uid) < 0 ||
	    setenv("HOME", id->home, 1) < 0 || setenv("SHELL", id->shell, 1) < 0 ||
	    setenv("USER", id->name, 1) < 0 || setenv("LOGNAME", id->name, 1) < 0)
		fail(exec_fd, AT_USER);
}

static void open_stdin(const char *path, int exec_fd)
{
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDONLY);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		fail(exec_fd, AT_STDIN);
	if (fd != STDIN_FILENO)
		close(fd);
}

struct pipes {
	int gate[2], exec[2], ready[2];
};

static _Noreturn void child(const struct spawn_opts *o, const struct identity *id,
			    const struct pipes *p)
{
	int gate_fd = p->gate[0], exec_fd = p->exec[1];
	int prepared = o->prepare ? o->prepare(o->prepare_ctx) : 0;
	char byte;

	close(p->gate[1]);
	close(p->exec[0]);
	(void)!write(p->ready[1], &prepared, sizeof(prepared));
	close(p->ready[0]);
	close(p->ready[1]);
	for (size_t i = 0; i < ARRAY_SIZE(spawn_dispositions); i++)
		(void)signal(spawn_dispositions[i],
			     sigismember(&o->ignored, spawn_dispositions[i]) ? SIG_IGN : SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &o->sigmask, NULL);
	open_stdin(o->stdin_path, exec_fd);
	become(id, exec_fd);
	/* End of file: analyzer is gone or has given up. */
	if (read(gate_fd, &byte, 1) != 1)
		_exit(EXIT_NOT_FOUND);
	(void)execvp(o->argv[0], o->argv);
	fail(exec_fd, AT_EXEC);
}

/* -- in analyzer --------------------------------------------------------------------------------
 */

/* fork(), into the group in one step where the kernel can. */
static pid_t fork_into(const struct cgroup *cg)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	pid_t pid;

	if (!cg || cg->is_fake)
		return fork();
	args.cgroup = cg->dirfd;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	/* ENOENT: the group was made before any controller was ever enabled at the root. */
	if (pid >= 0 || (errno != ENOSYS && errno != ENOENT && errno != EINVAL && errno != EPERM))
		return pid;
	return fork();
}

/* The fallback: whoever was not born in the group is moved while it waits at the gate. Written
 * in every case, since the fork fallback cannot be told from here; moving to where one is does
 * nothing. */
static int move_into(const struct cgroup *cg, pid_t pid)
{
	char text[16];

	if (!cg)
		return 0;
	(void)snprintf(text, sizeof(text), "%d", pid);
	return cgroup_write(cg, "cgroup.procs", text);
}

static void close_pipes(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		close_fd(&p->gate[i]);
		close_fd(&p->exec[i]);
		close_fd(&p->ready[i]);
	}
}

int spawn_gated(struct spawned *ret, const struct spawn_opts *opts, struct err *err)
{
	struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}};
	struct identity id;
	pid_t pid;
	int r;

	r = find_user(&id, opts->user, err);
	if (r < 0)
		return r;
	if (pipe2(p.gate, O_CLOEXEC) < 0 || pipe2(p.exec, O_CLOEXEC) < 0 ||
	    pipe2(p.ready, O_CLOEXEC) < 0 || (pid = fork_into(opts->cg)) < 0) {
		r = err_errno(err, -errno, "cannot start a process");
		close_pipes(&p);
		return r;
	}
	if (pid == 0)
		child(opts, &id, &p);
	close_fd(&p.ready[1]);
	*ret = (struct spawned){.pid = pid,
				.gate_fd = TAKE_FD(p.gate[1]),
				.exec_fd = TAKE_FD(p.exec[0]),
				.prepared = -EIO};
	(void)!read(p.ready[0], &ret->prepared, sizeof(ret->prepared));
	close_pipes(&p);
	r = move_into(opts->cg, pid);
	if (r < 0) {
		spawn_close(ret);
		return err_errno(err, r, "cannot put the workload into %s", opts->cg->path);
	}
	return 0;
}

void spawn_open_gate(struct spawned *s)
{
	(void)!write(s->gate_fd, "g", 1); /* a child that died is seen by its status */
	close_fd(&s->gate_fd);
}

int spawn_exec_result(struct spawned *s, const struct spawn_opts *opts, int *ret_status,
		      struct err *err)
{
	struct failure f = {0};
	ssize_t n = read(s->exec_fd, &f, sizeof(f));

	close_fd(&s->exec_fd);
	if (n != sizeof(f))
		return 0;
	*ret_status = status_of(f.stage, f.code);
	if (f.stage == AT_STDIN)
		return err_errno(err, -f.code, "cannot open --stdin %s", opts->stdin_path);
	if (f.stage == AT_USER) {
		(void)err_errno(err, -f.code, "cannot become --user %s", opts->user);
		return err_hint(err, "that needs root");
	}
	return err_errno(err, -f.code, "cannot run %s", opts->argv[0]);
}

void spawn_close(struct spawned *s)
{
	close_fd(&s->gate_fd);
	close_fd(&s->exec_fd);
}
