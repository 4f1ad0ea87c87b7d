#include "tracer/pressure.h"

#include "base/clock.h"
#include "tracer/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define PRESSURE_NICE (-20) /* before the reader: it only ever runs for a moment */

struct pressure {
	struct kernel *kernel;
	const struct cgroup *cg;
	int epoll_fd, stop_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	bool is_frozen, is_stopping;
	int64_t since_ns;
	struct pressure_totals totals;
};

uint64_t pressure_fill(struct kernel *k)
{
	uint64_t most = 0;

	for (int i = 0; i < kernel_cpus(k); i++) {
		const struct ring *ring = kernel_ring(k, i);
		uint64_t fill = ring_produced(ring) - ring_consumed(ring);

		most = MAX(most, fill);
	}
	return most;
}

static size_t ring_size(const struct pressure *p)
{
	return kernel_ring(p->kernel, 0)->size;
}

static void set_frozen(struct pressure *p, bool on)
{
	int64_t now = clock_mono_ns();

	if (p->is_frozen == on || cgroup_write(p->cg, "cgroup.freeze", on ? "1" : "0") < 0)
		return;
	p->is_frozen = on;
	p->totals.pauses += on;
	p->totals.paused_ns += on ? 0 : now - p->since_ns;
	p->since_ns = now;
}

struct pressure_totals pressure_totals(struct pressure *p)
{
	struct pressure_totals totals = {0};

	if (!p)
		return totals;
	(void)pthread_mutex_lock(&p->lock);
	totals = p->totals;
	(void)pthread_mutex_unlock(&p->lock);
	return totals;
}

void pressure_relieve(struct pressure *p)
{
	(void)pthread_mutex_lock(&p->lock);
	if (p->is_frozen && pressure_fill(p->kernel) <= ring_size(p) / 8)
		set_frozen(p, false);
	(void)pthread_mutex_unlock(&p->lock);
}

static void *run(void *arg)
{
	struct pressure *p = arg;
	struct epoll_event ev[8];

	(void)pthread_setname_np(pthread_self(), "pressure");
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), PRESSURE_NICE);
	while (!__atomic_load_n(&p->is_stopping, __ATOMIC_ACQUIRE)) {
		(void)epoll_wait(p->epoll_fd, ev, ARRAY_SIZE(ev), -1);
		(void)pthread_mutex_lock(&p->lock);
		if (!p->is_stopping && pressure_fill(p->kernel) > ring_size(p) / 2)
			set_frozen(p, true);
		(void)pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

static int watch(struct pressure *p, int fd, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(err, -errno, "cannot watch the tracer's rings");
	return 0;
}

static void pressure_free(struct pressure *p)
{
	close_fd(&p->epoll_fd);
	close_fd(&p->stop_fd);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

int pressure_start(struct pressure **ret, struct kernel *k, const struct cgroup *cg,
		   struct err *err)
{
	struct pressure *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	p->kernel = k;
	p->cg = cg;
	(void)pthread_mutex_init(&p->lock, NULL);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = watch(p, p->stop_fd, err);
	for (int i = 0; r == 0 && i < kernel_cpus(k); i++)
		r = watch(p, kernel_ring(k, i)->fd, err);
	if (r == 0 && pthread_create(&p->thread, NULL, run, p) != 0)
		r = err_errno(err, -EAGAIN, "cannot start the tracer");
	if (r < 0) {
		pressure_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct pressure_totals pressure_stop(struct pressure *p)
{
	struct pressure_totals totals = {0};
	uint64_t one = 1;

	if (!p)
		return totals;
	__atomic_store_n(&p->is_stopping, true, __ATOMIC_RELEASE);
	(void)!write(p->stop_fd, &one, sizeof(one));
	(void)pthread_join(p->thread, NULL);
	set_frozen(p, false);
	totals = p->totals;
	pressure_free(p);
	return totals;
}
