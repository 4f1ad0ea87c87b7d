#include "squeezer/actuator.h"

#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* One request should block about this long: the bound on how late a stop is seen. */
#define PUMP_NS (50 * NS_PER_MS)
#define STEP_MIN INT64_C(262144)
#define STEP_START (INT64_C(4) << 20)

struct message {
	uint32_t id;
	struct actuator_request req;
};

struct answer {
	uint32_t id;
	struct actuator_result res;
};

/* The newest request that is to stop, in memory that both processes share: a signal alone could
 * come before the request that it means has been read. */
struct shared {
	_Atomic uint32_t cancelled_id;
};

struct actuator {
	int sock;
	pid_t pid;
	uint32_t id;
	bool is_busy;
	bool is_dead; /* and perhaps reaped: its pid may be somebody else's by now */
	int64_t cpu_ns;
	struct shared *shared;
};

/* -- the process --------------------------------------------------------------------------- */

static void on_stop(int sig)
{
	(void)sig; /* its work is to interrupt the write */
}

struct pump {
	const struct cgroup *cg;
	const struct shared *shared;
	uint32_t id; /* of the request */
	int current_fd, reclaim_fd;
	int64_t step;
	double last_pace; /* bytes asked for per ns */
	bool was_growing;
};

static bool is_cancelled(const struct pump *p)
{
	return p->shared->cancelled_id >= p->id;
}

static int64_t read_usage(const struct pump *p)
{
	char buf[32];
	const char *end;
	int64_t v;
	ssize_t n = pread(p->current_fd, buf, sizeof(buf), 0);

	if (n < 0)
		return -errno;
	return num_scan_u63(buf, buf + n, &v, &end) < 0 ? -EIO : v;
}

/* Asks the kernel once for `bytes`. Where there is no memory.reclaim: memory.high below usage
 * for a moment, which reclaims in this process as well. 0, -EAGAIN (got less), -EINTR, … */
static int ask(const struct pump *p, int64_t usage, int64_t bytes)
{
	char buf[32], old[32];
	int len, r;

	if (p->reclaim_fd >= 0) {
		len = snprintf(buf, sizeof(buf), "%" PRId64, bytes);
		return write(p->reclaim_fd, buf, len) < 0 ? -errno : 0;
	}
	r = cgroup_read(p->cg, "memory.high", old, sizeof(old));
	if (r < 0)
		return r;
	r = cgroup_write_number(p->cg, "memory.high", usage - bytes);
	(void)cgroup_write(p->cg, "memory.high", old); /* the squeezer restores it anyway */
	return r;
}

/*
 * The next step's size: so that it takes about PUMP_NS, unless smaller steps only waste time. On
 * a classic LRU whose pages are all active a request scans a whole lap of the list for its first
 * page, so that 1 MiB takes as long as 4 (0.4-0.7 s for 256 MiB were measured, emulated): there the
 * size follows the pace in bytes per ns instead.
 */
static void adapt_step(struct pump *p, int64_t took_ns, int64_t max_step)
{
	double pace = (double)p->step / MAX(took_ns, 1);
	bool grows = took_ns < PUMP_NS;

	if (p->last_pace == 0)
		grows = true; /* the first comparison is with a larger one */
	else if (!grows)
		grows = p->was_growing ? pace > 1.3 * p->last_pace : pace < 0.75 * p->last_pace;
	if (grows || took_ns > 2 * PUMP_NS) {
		p->step = MIN(MAX(grows ? p->step * 2 : p->step / 2, STEP_MIN), max_step);
		p->was_growing = grows;
	}
	p->last_pace = pace;
}

static void finish(const struct pump *p, const struct actuator_request *req,
		   struct actuator_result *res)
{
	if (res->outcome != OUTCOME_OK || req->then_limit_bytes < 0)
		return;
	res->usage_bytes = read_usage(p);
	if (res->usage_bytes < 0 || res->usage_bytes > req->then_limit_bytes || is_cancelled(p)) {
		res->outcome = OUTCOME_PARTIAL;
		return;
	}
	res->error = -cgroup_write_number(p->cg, req->then_file, req->then_limit_bytes);
	res->wrote_limit = res->error == 0;
	if (!res->wrote_limit)
		res->outcome = OUTCOME_ERROR;
}

/*
 * Small requests until usage is down, the time is over, a stop is asked for, or nothing moves:
 * without progress three times EAGAIN (the kernel could not get all of it) or nine times in all,
 * or eight times the wanted amount asked for: a page that goes to zswap at ratio r frees only
 * 1 - r of itself.
 */
static struct actuator_result pump(struct pump *p, const struct actuator_request *req)
{
	int64_t start = clock_mono_ns(), usage = read_usage(p), best = usage, asked = 0;
	int64_t quota = 8 * MAX(usage - req->target_bytes, STEP_MIN);
	struct actuator_result res = {.outcome = OUTCOME_OK};
	int idle = 0;

	/* Half as much again as is left, since a page in zswap frees less than itself; and a rest
	 * below the least step is not worth another lap of the list. */
	while (usage > req->target_bytes + STEP_MIN) {
		int64_t left = usage - req->target_bytes, before = clock_mono_ns();
		int64_t step = MIN(MIN(p->step, left + left / 2), req->max_step_bytes);
		int r = ask(p, usage, step);

		asked += step;
		if (step == p->step)
			adapt_step(p, clock_mono_ns() - before, req->max_step_bytes);
		usage = read_usage(p);
		idle = usage < best - STEP_MIN / 4 ? 0 : idle + (r == -EAGAIN ? 3 : 1);
		best = MIN(best, usage);
		if (r < 0 && r != -EAGAIN && r != -EINTR) {
			res.outcome = OUTCOME_ERROR;
			res.error = -r;
			break;
		}
		if (usage <= req->target_bytes + STEP_MIN)
			break;
		if (is_cancelled(p) || clock_mono_ns() - start > req->timeout_ns)
			res.outcome = OUTCOME_TIMEOUT;
		else if (idle >= 9 || asked >= quota)
			res.outcome = OUTCOME_PARTIAL;
		else
			continue;
		break;
	}
	res.usage_bytes = usage;
	if (usage < 0) {
		res.outcome = OUTCOME_ERROR;
		res.error = -usage;
	}
	finish(p, req, &res);
	res.took_ns = clock_mono_ns() - start;
	res.cpu_ns = clock_process_cpu_ns();
	return res;
}

static void setup_signals(void)
{
	struct sigaction sa = {.sa_handler = on_stop}; /* no SA_RESTART: a write returns EINTR */
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN); /* the terminal's signals are the session's business */
	(void)sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void actuator_main(const struct cgroup *cg, const struct shared *shared, int sock,
				    pid_t parent)
{
	struct pump p = {.cg = cg, .shared = shared, .step = STEP_START};
	struct message m;

	(void)prctl(PR_SET_NAME, "analyzer-act");
	/* If analyzer dies while we are in a write, the guard must not wait for us, and we must
	 * not write a limit after it has put the old one back. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	setup_signals();
	p.current_fd = openat(cg->dirfd, "memory.current", O_RDONLY | O_CLOEXEC);
	p.reclaim_fd = openat(cg->dirfd, "memory.reclaim", O_WRONLY | O_CLOEXEC);
	while (recv(sock, &m, sizeof(m), 0) == sizeof(m)) {
		struct answer a = {.id = m.id};

		p.id = m.id;
		a.res = pump(&p, &m.req);
		if (send(sock, &a, sizeof(a), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* Keeps only what it works with: an inherited end of the guard's pipe would hide our death. */
static void close_all_but(int a, int b)
{
	int lo = MIN(a, b), hi = MAX(a, b);

	if (lo > 0)
		(void)close_range(0, lo - 1, 0);
	if (hi > lo + 1)
		(void)close_range(lo + 1, hi - 1, 0);
	(void)close_range(hi + 1, ~0U, 0);
}

/* -- the handle ---------------------------------------------------------------------------- */

static void release(struct actuator *a)
{
	close_fd(&a->sock);
	if (a->shared != MAP_FAILED)
		(void)munmap(a->shared, sizeof(*a->shared));
	free(a);
}

int actuator_start(struct actuator **ret, const struct cgroup *cg, struct err *err)
{
	struct actuator *a = calloc(1, sizeof(*a));
	pid_t parent = getpid();
	int fds[2] = {-1, -1}, r = 0;

	if (!a)
		return err_errno(err, -ENOMEM, "cannot start the actuator");
	a->shared = mmap(NULL, sizeof(*a->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->shared == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 || (a->pid = fork()) < 0)
		r = err_errno(err, -errno, "cannot start the actuator");
	if (r == 0 && a->pid == 0) {
		close_all_but(cg->dirfd, fds[1]);
		actuator_main(cg, a->shared, fds[1], parent);
	}
	close_fd(&fds[1]);
	a->sock = fds[0];
	if (r < 0) {
		release(a);
		return r;
	}
	*ret = a;
	return 0;
}

int actuator_fd(const struct actuator *a)
{
	return a->sock;
}

pid_t actuator_pid(const struct actuator *a)
{
	return a->pid;
}

bool actuator_is_busy(const struct actuator *a)
{
	return a->is_busy;
}

int actuator_reclaim(struct actuator *a, const struct actuator_request *req, struct err *err)
{
	struct message m = {.id = a->id + 1, .req = *req};

	if (a->is_busy)
		return err_set(err, -EBUSY, "the actuator is busy");
	if (send(a->sock, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return err_errno(err, -errno, "the actuator does not answer");
	a->id = m.id;
	a->is_busy = true;
	return 0;
}

int actuator_result(struct actuator *a, struct actuator_result *ret)
{
	struct answer ans;
	ssize_t n;

	n = recv(a->sock, &ans, sizeof(ans), MSG_DONTWAIT);
	if (n == sizeof(ans)) {
		a->cpu_ns = ans.res.cpu_ns;
		if (ans.id != a->id || !a->is_busy)
			return 2; /* of a cancelled request */
		a->is_busy = false;
		*ret = ans.res;
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	a->is_dead = true;
	return -EPIPE;
}

void actuator_cancel(struct actuator *a)
{
	if (!a->is_busy)
		return;
	a->shared->cancelled_id = a->id;
	if (!a->is_dead)
		(void)kill(a->pid, SIGUSR1);
	a->is_busy = false;
}

int64_t actuator_stop(struct actuator *a)
{
	int64_t cpu_ns;

	if (!a)
		return -1;
	cpu_ns = a->cpu_ns;
	/* Only while it is our child is the pid its own. It may sit in a reclaim for seconds:
	 * reaped by whoever waits for any child. */
	if (waitpid(a->pid, NULL, WNOHANG) == 0) {
		(void)kill(a->pid, SIGKILL);
		(void)waitpid(a->pid, NULL, WNOHANG);
	}
	release(a);
	return cpu_ns;
}
