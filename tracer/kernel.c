#include "tracer/kernel.h"

#include "bpf/tracer.skel.h"
#include "tracer/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* Of the kernel's interface, newer than the headers that Debian 12 has. */
#define ATTACH_UPROBE_MULTI 48
#define ATTACH_UPROBE_SESSION 57
#define UPROBE_MULTI_RETURN 1

struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

struct kernel {
	struct tracer_bpf *skel;
	int cpus;
	size_t ring_bytes;
	struct ring *rings;
	int *ring_fds;
	struct cpu_state *cpu_states;
	struct control *control;
	bool has_multi, has_session;
	int perf_type;        /* of the uprobe PMU, without uprobe_multi */
	pthread_mutex_t lock; /* of links */
	int *links;
	size_t n_links;
};

/* -- what the kernel can -------------------------------------------------------------------------
 */

static int uprobe_multi_link(const struct uprobe_multi_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

/* Tried on a path that is no file: a kernel that knows the type says so, others do not. */
static bool can_multi(uint32_t attach_type)
{
	struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
				   {.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	uint64_t offset = 0;
	struct uprobe_multi_attr attr = {.attach_type = attach_type,
					 .path = (uintptr_t) "/",
					 .offsets = (uintptr_t)&offset,
					 .cnt = 1};
	int fd, r;

	opts.expected_attach_type = attach_type;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "probe", "GPL", insns, ARRAY_SIZE(insns), &opts);
	if (fd < 0)
		return false;
	attr.prog_fd = (uint32_t)fd;
	r = uprobe_multi_link(&attr);
	close(fd);
	if (r >= 0)
		close(r);
	return r == -EBADF;
}

static int uprobe_pmu(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -1;
	return type;
}

/* -- loading -------------------------------------------------------------------------------------
 */

/* The kernel's hold on something, until kernel_detach. */
static int keep_link(struct kernel *k, int fd)
{
	int *grown;

	(void)pthread_mutex_lock(&k->lock);
	grown = realloc(k->links, (k->n_links + 1) * sizeof(*k->links));
	if (grown) {
		k->links = grown;
		k->links[k->n_links++] = fd;
	}
	(void)pthread_mutex_unlock(&k->lock);
	if (grown)
		return 0;
	close(fd);
	return -ENOMEM;
}

static int load_error(int r, struct err *err)
{
	if (r == -EPERM || r == -EACCES) {
		(void)err_set(err, -EPERM, "the kernel does not let this user load BPF programs");
		return err_hint(err, "run as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, "
				     "CAP_SYS_PTRACE and CAP_CHOWN");
	}
	if (r == -ESRCH || r == -ENOENT) {
		(void)err_set(err, -ENOTSUP, "this kernel has no type information (BTF)");
		return err_hint(err, "a kernel built with CONFIG_DEBUG_INFO_BTF has "
				     "/sys/kernel/btf/vmlinux");
	}
	return err_errno(err, r, "cannot load the tracer's programs");
}

static void choose_programs(struct kernel *k)
{
	struct bpf_program *progs[] = {k->skel->progs.call_enter, k->skel->progs.call_leave,
				       k->skel->progs.call_unwind, k->skel->progs.code_changed};

	(void)bpf_program__set_autoload(k->skel->progs.call_session, k->has_session);
	(void)bpf_program__set_autoload(k->skel->progs.call_leave, !k->has_session);
	(void)bpf_program__set_expected_attach_type(k->skel->progs.call_session,
						    ATTACH_UPROBE_SESSION);
	for (size_t i = 0; k->has_multi && i < ARRAY_SIZE(progs); i++)
		(void)bpf_program__set_expected_attach_type(progs[i], ATTACH_UPROBE_MULTI);
}

static int load_programs(struct kernel *k, const struct kernel_opts *opts, struct err *err)
{
	int r;

	k->skel = tracer_bpf__open();
	if (!k->skel)
		return load_error(-errno, err);
	k->skel->rodata->scope_cgroup_id = opts->cgroup_id;
	k->skel->rodata->ring_bytes = (uint32_t)opts->ring_bytes;
	k->skel->rodata->policy = opts->policy;
	choose_programs(k);
	r = tracer_bpf__load(k->skel);
	return r < 0 ? load_error(r, err) : 0;
}

static int make_rings(struct kernel *k, struct err *err)
{
	k->rings = calloc((size_t)k->cpus, sizeof(*k->rings));
	k->ring_fds = malloc((size_t)k->cpus * sizeof(*k->ring_fds));
	if (!k->rings || !k->ring_fds)
		return err_errno(err, -ENOMEM, "cannot make the tracer's rings");
	for (int i = 0; i < k->cpus; i++)
		k->ring_fds[i] = -1;
	for (int i = 0; i < k->cpus; i++) {
		uint32_t key = (uint32_t)i;
		int r;

		k->ring_fds[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0,
						(uint32_t)k->ring_bytes, NULL);
		if (k->ring_fds[i] < 0 || bpf_map_update_elem(bpf_map__fd(k->skel->maps.rings),
							      &key, &k->ring_fds[i], BPF_ANY) < 0)
			return err_errno(err, -errno, "cannot make the tracer's rings");
		r = ring_open(&k->rings[i], k->ring_fds[i], k->ring_bytes, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static size_t cpu_states_bytes(const struct kernel *k)
{
	size_t entries = bpf_map__max_entries(k->skel->maps.cpus);

	return entries * ((sizeof(struct cpu_state) + 7) & ~(size_t)7);
}

static int map_shared(struct kernel *k, struct err *err)
{
	void *cpus = mmap(NULL, cpu_states_bytes(k), PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(k->skel->maps.cpus), 0);
	void *control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(k->skel->maps.control), 0);

	k->cpu_states = cpus == MAP_FAILED ? NULL : cpus;
	k->control = control == MAP_FAILED ? NULL : control;
	if (!k->cpu_states || !k->control)
		return err_errno(err, -errno, "cannot map the tracer's counters");
	return 0;
}

static int attach_tracepoints(struct kernel *k, struct err *err)
{
	struct bpf_program *progs[] = {k->skel->progs.process_fork, k->skel->progs.process_exec,
				       k->skel->progs.process_exit, k->skel->progs.signal_deliver,
				       k->skel->progs.signal_generate};

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		const char *name = bpf_program__section_name(progs[i]) + strlen("raw_tp/");
		int fd = bpf_raw_tracepoint_open(name, bpf_program__fd(progs[i]));

		if (fd < 0 || keep_link(k, fd) < 0)
			return err_errno(err, -errno, "cannot trace %s", name);
	}
	return 0;
}

/* -- major faults --------------------------------------------------------------------------------
 */

/* When a fault begins is a matter of tracepoints that a kernel need not have. */
static void time_faults(struct kernel *k)
{
	int user = bpf_raw_tracepoint_open("page_fault_user",
					   bpf_program__fd(k->skel->progs.fault_user));
	int kernel = bpf_raw_tracepoint_open("page_fault_kernel",
					     bpf_program__fd(k->skel->progs.fault_kernel));

	if (user >= 0)
		(void)keep_link(k, user);
	if (kernel >= 0)
		(void)keep_link(k, kernel);
}

static int count_faults(const struct kernel *k, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(k->skel->progs.fault_served)) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static bool is_online(int cpu)
{
	char path[64];
	int value = 1;
	_cleanup_fclose_ FILE *f = NULL;

	(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	f = fopen(path, "re"); /* a CPU that cannot be switched off has none */
	return !f || fscanf(f, "%d", &value) != 1 || value == 1;
}

int kernel_trace_faults(struct kernel *k, struct err *err)
{
	for (int i = 0; i < k->cpus; i++) {
		int fd = is_online(i) ? count_faults(k, i) : -ENODEV;

		if (fd >= 0)
			fd = keep_link(k, fd);
		if (fd < 0 && fd != -ENODEV) /* a CPU that is possible and not there */
			return err_errno(err, fd, "cannot trace major faults");
	}
	time_faults(k);
	return 0;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

static int load(struct kernel *k, const struct kernel_opts *opts, struct err *err)
{
	int r = load_programs(k, opts, err);

	if (r < 0)
		return r;
	r = make_rings(k, err);
	if (r == 0)
		r = map_shared(k, err);
	if (r == 0)
		r = attach_tracepoints(k, err);
	return r;
}

int kernel_load(struct kernel **ret, const struct kernel_opts *opts, struct err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return err_errno(err, -ENOMEM, "cannot load the tracer");
	(void)libbpf_set_print(quiet); /* its errors are told in our words */
	(void)pthread_mutex_init(&k->lock, NULL);
	k->cpus = libbpf_num_possible_cpus();
	k->ring_bytes = opts->ring_bytes;
	k->has_multi = can_multi(ATTACH_UPROBE_MULTI);
	k->has_session = k->has_multi && can_multi(ATTACH_UPROBE_SESSION);
	k->perf_type = k->has_multi ? -1 : uprobe_pmu();
	r = load(k, opts, err);
	if (r < 0) {
		kernel_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	kernel_detach(k);
	for (int i = 0; k->rings && i < k->cpus; i++)
		ring_close(&k->rings[i]);
	for (int i = 0; k->ring_fds && i < k->cpus; i++)
		close_fd(&k->ring_fds[i]);
	if (k->cpu_states)
		munmap(k->cpu_states, cpu_states_bytes(k));
	if (k->control)
		munmap(k->control, sizeof(struct control));
	tracer_bpf__destroy(k->skel);
	(void)pthread_mutex_destroy(&k->lock);
	free(k->rings);
	free(k->ring_fds);
	free(k->links);
	free(k);
}

/* -- programs ------------------------------------------------------------------------------------
 */

enum part { PART_LEAVE, PART_SESSION, PART_ENTER, PART_UNWIND, PART_LOADED, PARTS };

/* Is a probe to have that program? */
static bool takes(const struct kernel *k, const struct probe *p, enum part part)
{
	unsigned kind = p->cookie & 0xff;

	switch (part) {
	case PART_LEAVE:
		return p->has_return && !k->has_session;
	case PART_SESSION:
		return p->has_return && k->has_session;
	case PART_ENTER:
		return kind != CALL_UNWIND && kind != CALL_LOADED &&
		       !(p->has_return && k->has_session);
	case PART_UNWIND:
		return kind == CALL_UNWIND;
	case PART_LOADED:
	case PARTS:
		break;
	}
	return kind == CALL_LOADED;
}

static int program_fd(const struct kernel *k, enum part part)
{
	const struct bpf_program *progs[PARTS] = {
		[PART_LEAVE] = k->skel->progs.call_leave,
		[PART_SESSION] = k->skel->progs.call_session,
		[PART_ENTER] = k->skel->progs.call_enter,
		[PART_UNWIND] = k->skel->progs.call_unwind,
		[PART_LOADED] = k->skel->progs.code_changed,
	};

	return bpf_program__fd(progs[part]);
}

/* -- shared state --------------------------------------------------------------------------------
 */

int kernel_cpus(const struct kernel *k)
{
	return k->cpus;
}

struct ring *kernel_ring(struct kernel *k, int cpu)
{
	return &k->rings[cpu];
}

struct cpu_state *kernel_cpu(struct kernel *k, int cpu)
{
	return &k->cpu_states[cpu];
}

void kernel_beat(struct kernel *k, int64_t now_ns)
{
	__atomic_store_n(&k->control->heartbeat_ns, (uint64_t)now_ns, __ATOMIC_RELEASE);
}

uint32_t kernel_generation(struct kernel *k, uint32_t pid)
{
	uint32_t g = 0;

	(void)bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.generations), &pid, &g); /* none: 0 */
	return g;
}

int kernel_set_table(struct kernel *k, uint32_t pid, const struct table *table)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.tables), &pid, table, BPF_ANY);
}

int kernel_teach(struct kernel *k, uint64_t key, const struct row *row)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.rows), &key, row, BPF_ANY);
}

size_t kernel_stopped(struct kernel *k, struct stopped_process *ret, size_t max)
{
	int fd = bpf_map__fd(k->skel->maps.stopped);
	uint32_t pid, *prev = NULL;
	struct stopped st;
	size_t n = 0;

	while (n < max && bpf_map_get_next_key(fd, prev, &pid) == 0) {
		ret[n].pid = pid;
		prev = &ret[n].pid;
		/* Its signal may still be on the way: the next time, then. */
		ret[n].since_ns = bpf_map_lookup_elem(fd, &pid, &st) == 0 && !st.is_own_pending
					  ? st.since_ns
					  : 0;
		n++;
	}
	return n;
}

int kernel_continue(struct kernel *k, const struct stopped_process *list, size_t n)
{
	int fd = bpf_map__fd(k->skel->maps.stopped), continued = 0;

	for (size_t i = 0; i < n; i++) {
		struct stopped st;

		if (bpf_map_lookup_elem(fd, &list[i].pid, &st) < 0 ||
		    st.since_ns != list[i].since_ns)
			continue; /* stopped anew, for something that was not read yet */
		/* The program at the signal forgets it: in between it may be stopped anew. */
		if (st.is_foreign)
			(void)bpf_map_delete_elem(fd, &list[i].pid);
		else if (kill((pid_t)list[i].pid, SIGCONT) == 0)
			continued++;
	}
	return continued;
}

/* -- probes --------------------------------------------------------------------------------------
 */

static int attach_multi(struct kernel *k, const char *path, const struct probes *probes,
			enum part part)
{
	_cleanup_free_ uint64_t *offsets = calloc(probes->n, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(probes->n, sizeof(*cookies));
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)program_fd(k, part),
		.attach_type = part == PART_SESSION ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.multi_flags = part == PART_LEAVE ? UPROBE_MULTI_RETURN : 0,
	};
	int fd;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < probes->n; i++) {
		if (!takes(k, &probes->p[i], part))
			continue;
		offsets[attr.cnt] = probes->p[i].offset;
		cookies[attr.cnt++] = probes->p[i].cookie;
	}
	if (attr.cnt == 0)
		return 0;
	fd = uprobe_multi_link(&attr);
	return fd < 0 ? fd : keep_link(k, fd);
}

static int attach_perf(struct kernel *k, const char *path, const struct probe *p, enum part part)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)k->perf_type,
		.config = part == PART_LEAVE, /* bit 0 of the PMU's format: retprobe */
		.config1 = (uintptr_t)path,
		.config2 = p->offset,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = p->cookie);
	int fd, link;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	link = bpf_link_create(program_fd(k, part), fd, BPF_PERF_EVENT, &opts);
	if (link < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	close(fd); /* the link holds it, and has enabled it */
	return keep_link(k, link);
}

/* Returns before entries: no call may be seen to begin whose end is not. */
int kernel_attach(struct kernel *k, int fd, const struct probes *probes, struct err *err)
{
	char path[32];
	int r = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (enum part part = 0; r == 0 && part < PARTS; part++) {
		if (k->has_multi)
			r = attach_multi(k, path, probes, part);
		for (size_t i = 0; !k->has_multi && r == 0 && i < probes->n; i++) {
			if (takes(k, &probes->p[i], part))
				r = attach_perf(k, path, &probes->p[i], part);
		}
	}
	if (r < 0)
		return err_errno(err, r, "cannot set probes");
	return 0;
}

static void close_links(struct kernel *k)
{
	for (size_t i = 0; i < k->n_links; i++)
		close(k->links[i]);
	k->n_links = 0;
}

/* Of the links and the parent's pipe, the lowest that is not below from. */
static int lowest_kept(const struct kernel *k, int parent_fd, int from)
{
	int least = parent_fd >= from ? parent_fd : INT_MAX;

	for (size_t i = 0; i < k->n_links; i++) {
		if (k->links[i] >= from && k->links[i] < least)
			least = k->links[i];
	}
	return least;
}

/* Holds the links, and nothing else that somebody could wait for, until the parent has closed
 * its own; the grace periods are then spent here. */
static _Noreturn void hold_links(const struct kernel *k, int parent_fd)
{
	unsigned from = 0;
	char byte;

	(void)setsid();
	/* The limit of descriptors may be a billion: those in use are few. */
	for (int left = (int)k->n_links + 1; left > 0; left--) {
		unsigned keep = (unsigned)lowest_kept(k, parent_fd, (int)from);

		if (keep > from)
			(void)close_range(from, keep - 1, 0);
		from = keep + 1;
	}
	(void)close_range(from, ~0U, 0);
	(void)!read(parent_fd, &byte, 1);
	_exit(0);
}

void kernel_detach(struct kernel *k)
{
	int fds[2] = {-1, -1};

	if (k->n_links > 0 && pipe2(fds, O_CLOEXEC) == 0 && fork() == 0) {
		close(fds[1]);
		hold_links(k, fds[0]);
	}
	close_links(k);
	close_fd(&fds[0]);
	close_fd(&fds[1]);
}
