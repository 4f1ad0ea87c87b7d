#include "tracer/reader.h"

#include "base/clock.h"
#include "base/map.h"
#include "tracer/order.h"
#include "tracer/pressure.h"
#include "tracer/processes.h"
#include "tracer/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

/* How often the rings are looked at when nobody wakes us: BPF wakes at a quarter. */
#define TICK_MS 2
#define FLUSH_NS NS_PER_S
/* Read of one ring before the next one has its turn, and the fill of all is looked at: some
 * captures, each of which takes longer to unwind than to send. */
#define PASS_BYTES (64 << 10)

#define READER_NICE (-15)

/* Told to the sink at once. */
#define FAULTS_MAX 256

struct ring_state {
	/* Records at or after this position were made after this time. */
	uint64_t mark_at;
	int64_t mark_ns;
	int64_t received;
	int64_t fill_peak;
};

struct reader {
	struct reader_opts opts;
	int cpus, epoll_fd, stop_fd;
	bool has_thread, is_stopping, has_aborted;
	bool has_more; /* some ring was not read to its end */
	pthread_t thread;
	pthread_mutex_t lock; /* of what is live, and what reader_stats reads */
	struct ring_state *rings;
	struct pressure *pressure; /* NULL: losing is allowed */
	struct order *order;
	struct live *live;
	struct stacks *stacks;
	struct processes *processes;
	struct faults *faults;
	struct fault told_faults[FAULTS_MAX]; /* not told yet */
	size_t n_faults;
	int64_t t0_mono_ns;
	struct map last_freed; /* tid → address */
	uint32_t told_stacks;  /* to the sink */
	uint8_t told_modules[65536 / 8];
	int64_t flushed_ns;
	struct reader_totals totals;
};

/* -- to the sink ---------------------------------------------------------------------------------
 */

static void tell_modules(struct reader *r, const struct frame_ref *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = frames[i].module;
		struct module_file *m = id ? modules_get(r->opts.modules, id) : NULL;

		if (!m || r->told_modules[id / 8] >> (id % 8) & 1)
			continue;
		r->told_modules[id / 8] |= (uint8_t)(1 << (id % 8));
		r->opts.sink->module(r->opts.sink->ctx, &m->m);
	}
}

static void tell_stacks(struct reader *r)
{
	while (r->told_stacks < stacks_count(r->stacks)) {
		enum stack_quality quality;
		uint32_t depth, id = ++r->told_stacks;
		const struct frame_ref *f = stacks_frames(r->stacks, id, &depth, &quality);

		tell_modules(r, f, depth);
		r->opts.sink->stack(r->opts.sink->ctx, id, quality, f, depth);
	}
}

static void count_quality(struct reader *r, const struct event *ev)
{
	enum stack_quality quality = STACK_NONE;
	uint32_t depth;

	if (ev->kind != EVENT_ALLOC && ev->kind != EVENT_MMAP)
		return;
	if (ev->stack)
		(void)stacks_frames(r->stacks, ev->stack, &depth, &quality);
	r->totals.quality[quality]++;
}

/* operator delete and the free that it calls are both seen: the block is gone at the first. */
static bool is_duplicate(struct reader *r, const struct event *ev)
{
	return map_get(&r->last_freed, ev->tid) == ev->address;
}

static void tell_faults(struct reader *r)
{
	if (r->n_faults > 0)
		r->opts.sink->faults(r->opts.sink->ctx, r->told_faults, r->n_faults);
	r->n_faults = 0;
}

/* On its way, size is the number that it is kept by. */
static void deliver_fault(struct reader *r, const struct event *kept)
{
	struct fault f = faults_take(r->faults, kept->size);
	struct event ev = *kept;
	const struct site *sites;

	f.site = r->opts.parts & TRACE_ALLOC ? live_fault(r->live, &f) : 0;
	(void)live_sites(r->live, &sites);
	ev.size = (uint64_t)MAX(f.duration_ns, INT64_C(0));
	ev.stack = f.site ? sites[f.site - 1].stack : 0;
	if (r->opts.history)
		history_fault(r->opts.history, f.pid, f.address, f.t_ns);
	r->totals.own_faults += f.is_own;
	r->totals.faults += !f.is_own;
	r->totals.recorded++;
	r->opts.sink->event(r->opts.sink->ctx, &ev);
	f.t_ns -= r->t0_mono_ns;
	r->told_faults[r->n_faults++] = f;
	if (r->n_faults == FAULTS_MAX)
		tell_faults(r);
}

static void deliver(struct reader *r, const struct event *ev)
{
	enum live_effect effect;

	if (ev->kind == EVENT_FAULT) {
		deliver_fault(r, ev);
		return;
	}
	effect = live_event(r->live, ev);
	if (ev->kind == EVENT_EXIT)
		stacks_exit(r->stacks, ev->pid);
	if (effect == LIVE_NOTHING)
		return;
	if (ev->kind == EVENT_FREE) {
		if (effect == LIVE_UNKNOWN && is_duplicate(r, ev)) {
			r->totals.duplicate_frees++;
			return;
		}
		(void)map_put(&r->last_freed, ev->tid, ev->address, NULL);
	}
	count_quality(r, ev);
	r->totals.recorded++;
	r->opts.sink->event(r->opts.sink->ctx, ev);
}

/* -- from the rings ------------------------------------------------------------------------------
 */

static void on_call(struct reader *r, int cpu, const struct record_call *c)
{
	struct event ev = {
		.t_ns = (int64_t)c->t_ns,
		.pid = c->pid,
		.tid = c->tid,
		.address = c->address,
		.size = c->size,
		.stack = stacks_refer(r->stacks, c->stack),
		.function = c->function,
		.kind = c->kind,
		.flags = c->flags,
	};

	r->rings[cpu].received++;
	if (order_push(r->order, cpu, &ev) < 0)
		r->rings[cpu].received--; /* counted as lost, then */
}

static void on_process(struct reader *r, int cpu, const struct record_process *p)
{
	struct event ev = {
		.t_ns = (int64_t)p->t_ns,
		.pid = p->kind == EVENT_FORK ? p->ppid : p->pid,
		.tid = p->kind == EVENT_FORK ? p->ppid : p->pid,
		.address = p->kind == EVENT_FORK ? p->pid : 0,
		.size = p->status,
		.kind = p->kind,
		.flags = p->flags,
	};

	r->rings[cpu].received++;
	if (p->kind != EVENT_EXIT)
		stacks_process(r->stacks, p->pid, p->kind == EVENT_FORK ? p->ppid : 0);
	processes_note(r->processes, p);
	if (p->kind == EVENT_EXEC && r->opts.gate)
		gate_follow(r->opts.gate, (pid_t)p->pid);
	if (order_push(r->order, cpu, &ev) < 0)
		r->rings[cpu].received--;
}

static void on_fault(struct reader *r, int cpu, const struct record_fault *f)
{
	struct event ev = {
		.t_ns = (int64_t)f->t_ns,
		.pid = f->pid,
		.tid = f->tid,
		.address = f->address,
		.size = faults_keep(r->faults, f),
		.kind = EVENT_FAULT,
	};

	if (ev.size == 0)
		return; /* no memory: it counts as lost */
	r->rings[cpu].received++;
	if (order_push(r->order, cpu, &ev) == 0)
		return;
	(void)faults_take(r->faults, ev.size);
	r->rings[cpu].received--;
}

/* The process is stopped: its memory is ours to repair. */
static void on_unwind(const struct record_unwind *u)
{
	_cleanup_close_ int fd = -1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%u/mem", u->pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < UNWIND_SLOTS; i++) {
		if (u->fix[i].address)
			(void)!pwrite(fd, &u->fix[i].address, sizeof(u->fix[i].address),
				      (off_t)u->fix[i].slot);
	}
}

static void on_record(struct reader *r, int cpu, const void *data)
{
	switch (*(const uint8_t *)data) {
	case RECORD_CALL:
		on_call(r, cpu, data);
		break;
	case RECORD_CHAIN:
		stacks_chain(r->stacks, data);
		break;
	case RECORD_CAPTURE:
		stacks_capture(r->stacks, data);
		break;
	case RECORD_MAPS:
		stacks_maps(r->stacks, data);
		break;
	case RECORD_UNWIND:
		on_unwind(data);
		break;
	case RECORD_BYTES:
		stacks_bytes(r->stacks, data);
		break;
	case RECORD_FAULT:
		on_fault(r, cpu, data);
		break;
	default:
		on_process(r, cpu, data);
	}
}

static void read_ring(struct reader *r, int cpu)
{
	struct ring *ring = kernel_ring(r->opts.kernel, cpu);
	struct ring_state *st = &r->rings[cpu];
	int64_t now = clock_mono_ns(); /* before the position: what comes later is later */
	uint64_t produced = ring_produced(ring), start = ring->at;
	const void *record;
	uint32_t len;

	kernel_cpu(r->opts.kernel, cpu)->woken = 0;
	st->fill_peak = MAX(st->fill_peak, (int64_t)(produced - ring->at));
	while (ring->at - start < PASS_BYTES && (record = ring_next(ring, &len)) != NULL)
		on_record(r, cpu, record);
	ring_release(ring);
	r->has_more |= ring->at - start >= PASS_BYTES;
	if (ring->at < st->mark_at)
		return; /* the old mark is not reached: a record before it is being written */
	order_mark(r->order, cpu, st->mark_ns);
	st->mark_at = produced;
	st->mark_ns = now;
	if (ring->at >= produced)
		order_mark(r->order, cpu, now);
}

static void read_all(struct reader *r)
{
	struct event ev;

	(void)pthread_mutex_lock(&r->lock);
	r->has_more = false;
	for (int i = 0; i < r->cpus; i++)
		read_ring(r, i);
	tell_stacks(r);
	while (order_pop(r->order, &ev)) {
		ev.stack = stacks_resolve(r->stacks, ev.stack);
		deliver(r, &ev);
	}
	(void)pthread_mutex_unlock(&r->lock);
}

/* -- pressure ------------------------------------------------------------------------------------
 */

static void check_abort(struct reader *r)
{
	if (r->opts.policy != POLICY_ABORT)
		return;
	for (int i = 0; i < r->cpus; i++) {
		if (kernel_cpu(r->opts.kernel, i)->lost > 0)
			__atomic_store_n(&r->has_aborted, true, __ATOMIC_RELEASE);
	}
}

/* -- the thread ----------------------------------------------------------------------------------
 */

static void tick(struct reader *r)
{
	struct stopped_process list[256];
	int64_t now = clock_mono_ns();
	size_t n;

	if (r->opts.delay_ms > 0) {
		struct timespec ts = {.tv_nsec = r->opts.delay_ms * NS_PER_MS};

		(void)nanosleep(&ts, NULL);
	}
	kernel_beat(r->opts.kernel, now);
	n = kernel_stopped(r->opts.kernel, list, ARRAY_SIZE(list));
	read_all(r);
	if (r->pressure)
		pressure_relieve(r->pressure);
	/* Not before what a process was stopped for has been read, and repaired. */
	for (size_t i = 0; i < n; i++) {
		if ((int64_t)list[i].since_ns > order_marked(r->order))
			list[i].since_ns = 0;
	}
	r->totals.continued += kernel_continue(r->opts.kernel, list, n);
	check_abort(r);
	if (now - r->flushed_ns >= FLUSH_NS) {
		r->flushed_ns = now;
		tell_faults(r);
		r->opts.sink->flush(r->opts.sink->ctx);
	}
}

static void *run(void *arg)
{
	struct reader *r = arg;
	struct timespec ts;

	(void)pthread_setname_np(pthread_self(), "reader");
	/* Whoever writes faster than we read is stopped: better to be first in line. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), READER_NICE);
	while (!__atomic_load_n(&r->is_stopping, __ATOMIC_ACQUIRE)) {
		struct epoll_event ev[8];

		(void)epoll_wait(r->epoll_fd, ev, ARRAY_SIZE(ev), r->has_more ? 0 : TICK_MS);
		tick(r);
	}
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	r->totals.cpu_ns = ts.tv_sec * NS_PER_S + ts.tv_nsec;
	return NULL;
}

static int watch(struct reader *r, int fd, struct err *err)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(err, -errno, "cannot watch the tracer's rings");
	return 0;
}

int reader_start(struct reader *r, int64_t t0_mono_ns, struct err *err)
{
	int ret = 0;

	r->t0_mono_ns = t0_mono_ns;
	processes_start(r->processes, t0_mono_ns);
	kernel_beat(r->opts.kernel, clock_mono_ns());
	if (r->opts.policy == POLICY_PAUSE)
		ret = pressure_start(&r->pressure, r->opts.kernel, r->opts.cg, err);
	if (ret < 0)
		return ret;
	if (pthread_create(&r->thread, NULL, run, r) != 0)
		return err_errno(err, -EAGAIN, "cannot start the tracer");
	r->has_thread = true;
	return 0;
}

/* What is lost is told by ring and time; counted from both ends, so that none can be missed. */
static void settle(struct reader *r)
{
	for (int i = 0; i < r->cpus; i++) {
		const struct cpu_state *cs = kernel_cpu(r->opts.kernel, i);
		int64_t lost = (int64_t)cs->seq - r->rings[i].received;

		r->totals.produced += (int64_t)cs->seq;
		r->totals.received += r->rings[i].received;
		r->totals.lost += lost;
		r->totals.hits += (int64_t)cs->hits;
		r->totals.stepped += (int64_t)cs->stepped;
		r->totals.returns += (int64_t)cs->returns;
		r->totals.program_ns += (int64_t)cs->program_ns;
		r->totals.outside += (int64_t)cs->outside;
		r->totals.nested += (int64_t)cs->nested;
		r->totals.stops += (int64_t)cs->stops;
		r->totals.faulted_pages += (int64_t)cs->faulted_pages;
		r->totals.skipped += (int64_t)cs->skipped;
		r->totals.captures_lost += (int64_t)cs->captures_lost;
		if (lost != 0)
			r->opts.sink->loss(r->opts.sink->ctx, i, (int64_t)cs->lost_from_ns,
					   (int64_t)cs->lost_to_ns, lost);
	}
}

void reader_stop(struct reader *r)
{
	struct pressure_totals pauses;
	uint64_t one = 1;

	if (!r || !r->has_thread)
		return;
	__atomic_store_n(&r->is_stopping, true, __ATOMIC_RELEASE);
	(void)!write(r->stop_fd, &one, sizeof(one));
	(void)pthread_join(r->thread, NULL);
	r->has_thread = false;
	pauses = pressure_stop(TAKE_PTR(r->pressure));
	r->totals.pauses = pauses.pauses;
	r->totals.paused_ns = pauses.paused_ns;
	do
		read_all(r);
	while (pressure_fill(r->opts.kernel) > 0);
	for (int i = 0; i < r->cpus; i++)
		order_mark(r->order, i, INT64_MAX);
	read_all(r);
	live_finish(r->live);
	tell_faults(r);
	settle(r);
	r->opts.sink->flush(r->opts.sink->ctx);
}

/* -- the object ----------------------------------------------------------------------------------
 */

static int set_up(struct reader *r, struct err *err)
{
	int ret = 0;

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->rings = calloc((size_t)r->cpus, sizeof(*r->rings));
	if (r->epoll_fd < 0 || r->stop_fd < 0 || !r->rings || order_new(&r->order, r->cpus) < 0 ||
	    live_new(&r->live) < 0 || processes_new(&r->processes) < 0)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	if (r->opts.parts & TRACE_FAULT)
		live_count_faults(r->live);
	ret = stacks_new(&r->stacks, r->opts.kernel, r->opts.modules, err);
	if (ret == 0 && faults_new(&r->faults, r->opts.modules, r->stacks) < 0)
		ret = err_errno(err, -ENOMEM, "cannot start the tracer");
	if (ret == 0)
		ret = watch(r, r->stop_fd, err);
	for (int i = 0; ret == 0 && i < r->cpus; i++)
		ret = watch(r, kernel_ring(r->opts.kernel, i)->fd, err);
	return ret;
}

int reader_new(struct reader **ret, const struct reader_opts *opts, struct err *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	r->opts = *opts;
	r->cpus = kernel_cpus(opts->kernel);
	r->epoll_fd = r->stop_fd = -1;
	(void)pthread_mutex_init(&r->lock, NULL);
	result = set_up(r, err);
	if (result < 0) {
		reader_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	reader_stop(r);
	close_fd(&r->epoll_fd);
	close_fd(&r->stop_fd);
	order_free(r->order);
	live_free(r->live);
	stacks_free(r->stacks);
	processes_free(r->processes);
	faults_free(r->faults);
	map_done(&r->last_freed);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->rings);
	free(r);
}

/* For a caller that must not be kept waiting: a scan's copy may take long. */
static bool lock_soon(struct reader *r)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NS_PER_MS;
	until.tv_sec += until.tv_nsec / NS_PER_S;
	until.tv_nsec %= NS_PER_S;
	return pthread_mutex_clocklock(&r->lock, CLOCK_MONOTONIC, &until) == 0;
}

int reader_stats(struct reader *r, struct tracer_stat *ret, int max)
{
	struct rusage ru;
	int n = MIN(max, r->cpus);
	struct pressure_totals pauses = pressure_totals(r->pressure);

	(void)getrusage(RUSAGE_SELF, &ru);
	if (!lock_soon(r))
		return 0;
	for (int i = 0; i < n; i++) {
		struct ring_state *st = &r->rings[i];

		ret[i] = (struct tracer_stat){
			.t_ns = clock_mono_ns(),
			.ring = i,
			.written = (int64_t)kernel_cpu(r->opts.kernel, i)->seq,
			.read = st->received,
			.fill_peak = st->fill_peak,
			.paused_ns = pauses.paused_ns,
			.backlog = order_backlog(r->order),
			.rss = ru.ru_maxrss * INT64_C(1024),
		};
		st->fill_peak = 0;
	}
	(void)pthread_mutex_unlock(&r->lock);
	return n;
}

bool reader_has_aborted(const struct reader *r)
{
	return __atomic_load_n(&r->has_aborted, __ATOMIC_ACQUIRE);
}

struct live *reader_lock(struct reader *r)
{
	(void)pthread_mutex_lock(&r->lock);
	return r->live;
}

void reader_unlock(struct reader *r)
{
	(void)pthread_mutex_unlock(&r->lock);
}

struct live *reader_live(struct reader *r)
{
	return r->live;
}

struct stacks *reader_stacks(struct reader *r)
{
	return r->stacks;
}

struct reader_totals reader_totals(struct reader *r)
{
	return r->totals;
}

struct faults *reader_faults(struct reader *r)
{
	return r->faults;
}

size_t reader_processes(struct reader *r, const struct process_info **ret)
{
	return processes_list(r->processes, ret);
}
