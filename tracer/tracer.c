#include "tracer/tracer.h"

#include "base/clock.h"
#include "tracer/closure.h"
#include "tracer/cost.h"
#include "tracer/discover.h"
#include "tracer/gate.h"
#include "tracer/private.h"
#include "tracer/reader.h"
#include "tracer/result.h"
#include "tracer/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* All rings together; each is a power of two within bounds. */
#define RINGS_BYTES (64u << 20)
#define RING_MIN (512u << 10)
#define RING_MAX (8u << 20)
/* Pages whose history is kept: of 8 GiB, in at most 128 MiB. */
#define HISTORY_MAX (2u << 20)

struct tracer {
	struct tracer_opts opts;
	struct kernel *kernel;
	struct modules *modules;
	struct private *private;
	struct gate *gate;
	struct reader *reader;
	struct history *history;
	struct scanner *scanner;
	struct result *result;
	int64_t t0_mono_ns;
	struct rlimit files;  /* as they were, and are for the workload */
	struct err no_faults; /* why they are not traced; code 0 = they are */
	struct cost cost;
	bool has_stopped;
};

static size_t ring_bytes(const struct tracer_opts *opts)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = RING_MAX;

	if (opts->ring_bytes)
		return opts->ring_bytes;
	while (size > RING_MIN && size * (size_t)cpus > RINGS_BYTES)
		size /= 2;
	return size;
}

static int load(struct tracer *t, struct err *err)
{
	struct kernel_opts ko = {.ring_bytes = ring_bytes(&t->opts), .policy = t->opts.policy};
	struct rlimit files = t->files;
	struct stat st;

	if (fstat(t->opts.cg->dirfd, &st) < 0)
		return err_errno(err, -errno, "cannot look at %s", t->opts.cg->path);
	ko.cgroup_id = st.st_ino; /* a cgroup's id is its directory's inode number */
	/* A descriptor for every file that the workload maps. */
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	return kernel_load(&t->kernel, &ko, err);
}

/* A library of the command that holds allocators gets its copy; executables are probed where they
 * are, and what is not found here is when it is opened. */
static int copy_library(struct tracer *t, const char *path, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = NULL;
	struct probes probes = {0};
	struct err ignored;
	int copy, r = 0;

	if (fd < 0 || elf_file_open(&elf, fd, path, &ignored) < 0)
		return 0;
	if (discover(&probes, elf, err) == 0 && probes.n > 0) {
		r = private_add(t->private, path, &copy, err);
		if (r == 0)
			r = gate_probe(t->gate, copy, path, true, err);
	}
	probes_done(&probes);
	elf_file_close(elf);
	return r;
}

static int copy_libraries(struct tracer *t, struct err *err)
{
	struct closure closure = {0};
	int r = private_new(&t->private, err);

	if (r < 0 || closure_find(&closure, t->opts.command, err) < 0)
		return r; /* what cannot be run is told when it is */
	for (size_t i = 1; r == 0 && i < closure.n; i++)
		r = copy_library(t, closure.path[i], err);
	closure_done(&closure);
	return r;
}

static void tell_functions(const struct tracer *t)
{
	for (unsigned i = 1; i <= probe_function_count(); i++)
		t->opts.sink->function(t->opts.sink->ctx, (uint16_t)i, probe_function_name(i));
}

static int set_up_probes(struct tracer *t, struct err *err)
{
	int r = gate_open(&t->gate, t->kernel, t->modules, err);

	if (r == 0)
		r = copy_libraries(t, err);
	cost_measure(&t->cost, t->kernel);
	for (int i = 0; i < kernel_cpus(t->kernel); i++)
		kernel_cpu(t->kernel, i)->outside = 0; /* that was us */
	return r;
}

/* Without allocations there is nobody whose memory is where. */
static int set_up_scanner(struct tracer *t, struct err *err)
{
	struct scanner_opts so = {
		.reader = t->reader,
		.history = t->history,
		.cg = t->opts.cg,
		.sink = t->opts.sink,
		.period_ns = t->opts.scan_period_ns,
	};

	return scanner_new(&t->scanner, &so, err);
}

static int set_up(struct tracer *t, struct err *err)
{
	struct reader_opts ro = {
		.cg = t->opts.cg,
		.sink = t->opts.sink,
		.policy = t->opts.policy,
		.delay_ms = t->opts.reader_delay_ms,
	};
	int r = load(t, err);

	if (r == 0)
		r = modules_new(&t->modules, err);
	if (r == 0 && t->opts.parts & TRACE_ALLOC)
		r = set_up_probes(t, err);
	if (r < 0)
		return r;
	ro.parts = t->opts.parts;
	if (ro.parts & TRACE_FAULT && kernel_trace_faults(t->kernel, &t->no_faults) < 0)
		ro.parts &= ~(unsigned)TRACE_FAULT;
	ro.kernel = t->kernel;
	ro.modules = t->modules;
	ro.gate = t->gate;
	tell_functions(t);
	if (history_new(&t->history, HISTORY_MAX) < 0)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	ro.history = t->history;
	r = reader_new(&t->reader, &ro, err);
	return r < 0 || !(ro.parts & TRACE_ALLOC) ? r : set_up_scanner(t, err);
}

int tracer_new(struct tracer **ret, const struct tracer_opts *opts, struct err *err)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	t->opts = *opts;
	t->cost.emulated_ns = -1;
	(void)getrlimit(RLIMIT_NOFILE, &t->files);
	r = set_up(t, err);
	if (r < 0) {
		tracer_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

int tracer_enter(const struct tracer *t)
{
	(void)setrlimit(RLIMIT_NOFILE, &t->files);
	return t->private ? private_enter(t->private) : 0;
}

int tracer_start(struct tracer *t, pid_t pid, int64_t t0_mono_ns, struct err *err)
{
	int r = t->gate ? gate_watch(t->gate, pid, err) : 0;

	t->t0_mono_ns = t0_mono_ns;
	if (r == 0)
		r = reader_start(t->reader, t0_mono_ns, err);
	return r < 0 || !t->scanner ? r : scanner_start(t->scanner, t0_mono_ns, err);
}

int tracer_no_faults(const struct tracer *t, struct err *err)
{
	*err = t->no_faults;
	return t->no_faults.code;
}

bool tracer_has_aborted(const struct tracer *t)
{
	return reader_has_aborted(t->reader);
}

int tracer_stats(struct tracer *t, struct tracer_stat *ret, int max)
{
	return reader_stats(t->reader, ret, max);
}

void tracer_stop(struct tracer *t)
{
	if (t->has_stopped)
		return;
	t->has_stopped = true;
	gate_close(t->gate);
	scanner_stop(t->scanner);
	reader_stop(t->reader);
	kernel_detach(t->kernel);
}

double tracer_slowdown(const struct tracer *t, int64_t cpu_ns)
{
	return cost_slowdown(cost_so_far(&t->cost, t->kernel), cpu_ns);
}

int tracer_result(struct tracer *t, struct tracer_run run,
		  void (*on_progress)(void *ctx, double done), void *ctx, struct trace_result *ret,
		  struct err *err)
{
	struct result_in in = {
		.reader = t->reader,
		.scans = t->scanner ? scanner_totals(t->scanner)
				    : (struct scanner_totals){.period_ns = -1},
		.history_forgotten = history_forgotten(t->history),
		.modules = t->modules,
		.cost_ns = cost_so_far(&t->cost, t->kernel),
		.run = run,
		.t0_mono_ns = t->t0_mono_ns,
		.copied_bytes = t->private ? private_bytes(t->private) : -1,
		.has_faults = t->opts.parts & TRACE_FAULT && t->no_faults.code == 0,
		.on_progress = on_progress,
		.ctx = ctx,
	};
	int r;

	if (t->gate)
		in.n_coverage = gate_coverage(t->gate, &in.coverage);
	r = result_new(&t->result, &in, err);
	if (r == 0)
		*ret = *result_get(t->result);
	return r;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	result_free(t->result);
	scanner_free(t->scanner);
	reader_free(t->reader);
	history_free(t->history);
	gate_close(t->gate);
	kernel_free(t->kernel);
	gate_free(t->gate);
	private_free(t->private);
	modules_free(t->modules);
	(void)setrlimit(RLIMIT_NOFILE, &t->files); /* later runs are children of ours too */
	free(t);
}
