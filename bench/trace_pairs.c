/*
 * What tracing costs a pair of malloc and free, and what it costs a neighbour's.
 *
 *     trace_pairs [ROUNDS]            default 7; about 3 s each
 *     trace_pairs child PAIRS DEPTH   what is measured: prints ns per pair, CPU and elapsed
 *
 * In turns within each round, DEPTH frames down: untraced; under analyzer; in copies of libc under
 * memtrack.bpf.c, without and with stacks, probed as it is done the obvious way (a perf uprobe at
 * the entry and one at the return of every name, cfree's beside free's); in a copy with empty
 * programs at analyzer's own sites. The neighbour runs while analyzer traces a workload that
 * sleeps: its speed, and how often analyzer's programs ran meanwhile.
 *
 * Times are of the thread's CPU clock, which other load on the machine disturbs least; a pause of
 * the workload shows only in the elapsed time. A median, and the least and most of the rounds.
 */
#include "base/base.h"
#include "base/clock.h"
#include "base/num.h"
#include "bench/memtrack.skel.h"
#include "tracer/discover.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <bpf/bpf.h>

#define ROUNDS_MAX 31
#define UNTRACED_PAIRS 2000000
#define TRACED_PAIRS 30000
#define NEIGHBOUR_PAIRS 1000000
#define LINKS_MAX 64
#define PATH_BYTES 512

/* Of the kernel's interface, newer than the headers that Debian 12 has. */
#define ATTACH_UPROBE_MULTI 48
#define ATTACH_UPROBE_SESSION 57
#define UPROBE_MULTI_RETURN 1

struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

/* -- the child -----------------------------------------------------------------------------------
 */

static __attribute__((noinline)) void pairs(int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		void *p = malloc((size_t)(16 + i % 1024));

		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
}

static __attribute__((noinline)) void down(int64_t level, int64_t n)
{
	volatile int64_t keep = level;

	if (level > 0)
		down(level - 1, n);
	else
		pairs(n);
	(void)keep;
}

static int64_t thread_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int child(const char *pairs_text, const char *depth_text)
{
	int64_t n = 0, depth = 0, cpu, wall;

	if (num_parse_u63(pairs_text, &n) < 0 || n < 1 || num_parse_u63(depth_text, &depth) < 0)
		return 2;
	down(depth, n / 20 + 1); /* rows are learned, pages touched */
	cpu = thread_cpu_ns();
	wall = clock_mono_ns();
	down(depth, n);
	cpu = thread_cpu_ns() - cpu;
	wall = clock_mono_ns() - wall;
	printf("%.3f %.3f\n", (double)cpu / (double)n, (double)wall / (double)n);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* -- running it ----------------------------------------------------------------------------------
 */

enum scheme { UNTRACED, OURS, OBVIOUS, OBVIOUS_STACKS, EMPTY, SCHEMES };

struct bench {
	char self[PATH_BYTES], analyzer[PATH_BYTES], libc[PATH_BYTES];
	char dir[64];
	char lib_dir[SCHEMES][128]; /* "" = the system's libc */
	struct memtrack *memtrack[2];
	int links[LINKS_MAX];
	int n_links;
	pthread_t poller;
	bool is_polling, is_done;
	struct ring_buffer *rb;
};

static int fail(const char *what)
{
	fprintf(stderr, "trace_pairs: %s: %s\n", what, strerror(errno));
	return -1;
}

/* Forks; the child waits for the go, so that its pid can be put into a filter first. */
static pid_t start(struct bench *b, char **argv, const char *lib_dir, int out, int gate)
{
	pid_t pid = fork();
	char byte;

	(void)b;
	if (pid != 0)
		return pid;
	(void)dup2(out, 1);
	if (read(gate, &byte, 1) != 1)
		_exit(1);
	if (lib_dir[0])
		(void)setenv("LD_LIBRARY_PATH", lib_dir, 1);
	execv(argv[0], argv);
	_exit(127);
}

static int track(struct bench *b, pid_t pid, bool is_on)
{
	uint32_t key = (uint32_t)pid;
	uint8_t one = 1;

	for (int i = 0; i < 2; i++) {
		int fd = bpf_map__fd(b->memtrack[i]->maps.tracked);

		if (is_on ? bpf_map_update_elem(fd, &key, &one, BPF_ANY) < 0
			  : bpf_map_delete_elem(fd, &key) < 0)
			return fail("cannot set the filter");
	}
	return 0;
}

/* ns[2]: CPU and elapsed, of a pair. */
static int run(struct bench *b, enum scheme s, int64_t pairs_n, int depth, double ns[2])
{
	char n_text[32], depth_text[16], text[128] = "", dir[PATH_BYTES + 8];
	char *ours[] = {b->analyzer, "-q",    "-t",   "alloc",    "-o", dir,
			b->self,     "child", n_text, depth_text, NULL};
	int out[2], gate[2], status = -1, r = 0;
	ssize_t n = 0, got;
	pid_t pid;

	(void)snprintf(n_text, sizeof(n_text), "%" PRId64, pairs_n);
	(void)snprintf(depth_text, sizeof(depth_text), "%d", depth);
	(void)snprintf(dir, sizeof(dir), "%s/%" PRId64, b->dir, clock_mono_ns());
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return fail("pipe");
	pid = start(b, s == OURS ? ours : ours + 6, b->lib_dir[s], out[1], gate[0]);
	close(out[1]);
	close(gate[0]);
	if (pid < 0)
		return fail("fork");
	r = track(b, pid, true);
	(void)!write(gate[1], "", 1);
	close(gate[1]);
	while ((got = read(out[0], text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0 ||
	    sscanf(text, "%lf %lf", &ns[0], &ns[1]) != 2) {
		fprintf(stderr, "trace_pairs: a run ended with status %d: %s\n", status, text);
		r = -1;
	}
	(void)track(b, pid, false);
	return r;
}

/* -- figures -------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Of a/b, pair by pair of one round. */
static void print_ratio(const char *what, const double *a, const double *b, int n)
{
	double ratio[ROUNDS_MAX];
	double m;

	for (int i = 0; i < n; i++)
		ratio[i] = a[i] / b[i];
	m = median(ratio, n);
	printf("%-50s %8.3f   (%.3f .. %.3f)\n", what, m, ratio[0], ratio[n - 1]);
}

static void print_ns(const char *what, const double *cpu, const double *wall, int n)
{
	double sorted[ROUNDS_MAX], m;

	memcpy(sorted, wall, sizeof(*wall) * (size_t)n);
	m = median(sorted, n);
	memcpy(sorted, cpu, sizeof(*cpu) * (size_t)n);
	printf("%-42s %9.1f ns per pair ", what, median(sorted, n));
	printf("(%.1f .. %.1f); elapsed %.1f\n", sorted[0], sorted[n - 1], m);
}

/* -- probes --------------------------------------------------------------------------------------
 */

static int copy_file(const char *from, const char *to)
{
	_cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return fail(to);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);

		if (n <= 0)
			return fail(to);
		left -= n;
	}
	return 0;
}

static int keep_link(struct bench *b, int fd)
{
	if (fd < 0)
		return fail("cannot set a probe");
	if (b->n_links == LINKS_MAX) {
		close(fd);
		errno = ENOSPC;
		return fail("cannot set a probe");
	}
	b->links[b->n_links++] = fd;
	return 0;
}

static int attach_one(struct bench *b, struct bpf_program *prog, const char *path, uint64_t offset,
		      bool is_return, uint64_t cookie)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .config = is_return,
				       .config1 = (uintptr_t)path,
				       .config2 = offset};
	int fd, link;

	if (!f || fscanf(f, "%" SCNu32, &attr.type) != 1)
		return fail("no uprobes");
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fail("cannot set a probe");
	link = bpf_link_create(bpf_program__fd(prog), fd, BPF_PERF_EVENT, &opts);
	close(fd);
	return keep_link(b, link);
}

static int attach_name(struct bench *b, struct memtrack *m, const char *path,
		       const struct elf_file *elf, const struct elf_function *fn)
{
	static const char *const first[] = {"malloc", "calloc", "valloc", "pvalloc"};
	static const char *const second[] = {"realloc", "aligned_alloc", "memalign",
					     "posix_memalign"};
	static const char *const frees[] = {"free", "cfree"};
	uint64_t offset = (uint64_t)elf_file_offset(elf, fn->vaddr);
	size_t len = strcspn(fn->name, "@");
	int size_arg = -1;

	for (size_t i = 0; i < ARRAY_SIZE(frees); i++) {
		if (strlen(frees[i]) == len && memcmp(fn->name, frees[i], len) == 0)
			return attach_one(b, m->progs.free_enter, path, offset, false, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		if (strlen(first[i]) == len && memcmp(fn->name, first[i], len) == 0)
			size_arg = 0;
		else if (strlen(second[i]) == len && memcmp(fn->name, second[i], len) == 0)
			size_arg = 1;
	}
	if (size_arg < 0)
		return 0;
	if (attach_one(b, m->progs.alloc_leave, path, offset, true, 0) < 0)
		return -1;
	return attach_one(b, m->progs.alloc_enter, path, offset, false, (uint64_t)size_arg);
}

static int attach_obvious(struct bench *b, struct memtrack *m, const char *path,
			  const struct elf_file *elf)
{
	struct elf_cursor c = {0};
	struct elf_function fn;
	int before = b->n_links, r = 0;

	while (r == 0 && elf_file_next_function(elf, &c, &fn)) {
		if (fn.is_dynamic && !fn.is_local)
			r = attach_name(b, m, path, elf, &fn);
	}
	if (r == 0 && b->n_links - before < 4) {
		errno = ENOENT;
		return fail("no allocator in libc");
	}
	return r;
}

enum part { PART_ENTER, PART_LEAVE, PART_SESSION };

/* The sites of one part of analyzer's; -1: the kernel does not have this kind. */
static int attach_multi(struct bpf_program *prog, const char *path, const struct probes *probes,
			enum part part, bool has_session)
{
	uint64_t offsets[256];
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)bpf_program__fd(prog),
		.attach_type = part == PART_SESSION ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.multi_flags = part == PART_LEAVE ? UPROBE_MULTI_RETURN : 0};

	for (size_t i = 0; i < probes->n && attr.cnt < ARRAY_SIZE(offsets); i++) {
		bool is_whole = probes->p[i].has_return && has_session;

		if (part == PART_ENTER ? !is_whole : probes->p[i].has_return)
			offsets[attr.cnt++] = probes->p[i].offset;
	}
	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

/* As analyzer does it: entry and return in one where the kernel can. */
static int attach_empty(struct bench *b, struct memtrack *m, const char *path,
			const struct elf_file *elf)
{
	struct probes probes = {0};
	struct err err;
	bool has_session;
	int r = discover(&probes, elf, &err), fd;

	if (r < 0)
		return fail(path);
	fd = attach_multi(m->progs.empty_session, path, &probes, PART_SESSION, true);
	has_session = fd >= 0;
	if (!has_session)
		fd = attach_multi(m->progs.empty_leave, path, &probes, PART_LEAVE, false);
	r = keep_link(b, fd);
	if (r == 0)
		r = keep_link(b, attach_multi(m->progs.empty_enter, path, &probes, PART_ENTER,
					      has_session));
	probes_done(&probes);
	return r;
}

/* A directory with a copy of libc that this scheme's runs load, and its probes on that. */
static int prepare(struct bench *b, enum scheme s)
{
	struct memtrack *m = b->memtrack[s == OBVIOUS ? 0 : 1];
	char path[PATH_BYTES];
	_cleanup_close_ int fd = -1;
	struct elf_file *elf = NULL;
	struct err err;
	int r;

	(void)snprintf(b->lib_dir[s], sizeof(b->lib_dir[s]), "%s/lib%d", b->dir, s);
	(void)snprintf(path, sizeof(path), "%s/libc.so.6", b->lib_dir[s]);
	if (mkdir(b->lib_dir[s], 0755) < 0)
		return fail(b->lib_dir[s]);
	if (copy_file(b->libc, path) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file_open(&elf, fd, path, &err) < 0)
		return fail(path);
	r = s == EMPTY ? attach_empty(b, m, path, elf) : attach_obvious(b, m, path, elf);
	elf_file_close(elf);
	return r;
}

static int ignore(void *ctx, void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
	return 0;
}

static void *poll_rings(void *bench)
{
	struct bench *b = bench;

	while (!__atomic_load_n(&b->is_done, __ATOMIC_ACQUIRE))
		(void)ring_buffer__poll(b->rb, 10);
	return NULL;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, ap) : 0;
}

static int load(struct bench *b)
{
	(void)libbpf_set_print(quiet);
	for (int i = 0; i < 2; i++) {
		struct memtrack *m = b->memtrack[i] = memtrack__open();

		if (!m)
			return fail("cannot open the programs");
		m->rodata->with_stacks = i == 1;
		(void)bpf_program__set_expected_attach_type(m->progs.empty_enter,
							    ATTACH_UPROBE_MULTI);
		(void)bpf_program__set_expected_attach_type(m->progs.empty_leave,
							    ATTACH_UPROBE_MULTI);
		(void)bpf_program__set_expected_attach_type(m->progs.empty_session,
							    ATTACH_UPROBE_SESSION);
		if (memtrack__load(m) < 0)
			return fail("cannot load the programs");
	}
	b->rb = ring_buffer__new(bpf_map__fd(b->memtrack[0]->maps.events), ignore, NULL, NULL);
	if (!b->rb ||
	    ring_buffer__add(b->rb, bpf_map__fd(b->memtrack[1]->maps.events), ignore, NULL) < 0 ||
	    ring_buffer__add(b->rb, bpf_map__fd(b->memtrack[1]->maps.stacks), ignore, NULL) < 0)
		return fail("cannot read the rings");
	b->is_polling = pthread_create(&b->poller, NULL, poll_rings, b) == 0;
	return b->is_polling ? 0 : fail("no thread");
}

static int set_up(struct bench *b)
{
	ssize_t n = readlink("/proc/self/exe", b->self, sizeof(b->self) - 1);
	struct rlimit files = {65536, 65536};
	Dl_info libc;
	char *slash;

	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (n < 0 || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &libc) == 0)
		return fail("cannot find libc");
	(void)snprintf(b->libc, sizeof(b->libc), "%s", libc.dli_fname);
	(void)snprintf(b->analyzer, sizeof(b->analyzer), "%s", b->self);
	slash = strstr(b->analyzer, "/bench/trace_pairs");
	if (!slash)
		return fail("cannot find analyzer");
	(void)snprintf(slash, sizeof(b->analyzer) - (size_t)(slash - b->analyzer), "/analyzer");
	(void)snprintf(b->dir, sizeof(b->dir), "/tmp/analyzer-bench-XXXXXX");
	if (!mkdtemp(b->dir))
		return fail(b->dir);
	if (load(b) < 0)
		return -1;
	for (enum scheme s = OBVIOUS; s < SCHEMES; s++) {
		if (prepare(b, s) < 0)
			return -1;
	}
	return 0;
}

static void remove_dir(const char *dir)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

static void tear_down(struct bench *b)
{
	for (int i = 0; i < b->n_links; i++)
		close(b->links[i]);
	__atomic_store_n(&b->is_done, true, __ATOMIC_RELEASE);
	if (b->is_polling)
		(void)pthread_join(b->poller, NULL);
	ring_buffer__free(b->rb);
	for (int i = 0; i < 2; i++)
		memtrack__destroy(b->memtrack[i]);
	if (b->dir[0])
		remove_dir(b->dir);
}

/* -- the pairs -----------------------------------------------------------------------------------
 */

static int measure_pairs(struct bench *b, int rounds, int depth)
{
	static const char *const names[] = {"untraced", "analyzer", "the obvious way, no stacks",
					    "the obvious way, stacks",
					    "empty programs, analyzer's sites"};
	double cpu[SCHEMES][ROUNDS_MAX], wall[SCHEMES][ROUNDS_MAX], ns[2];

	for (int i = 0; i < rounds; i++) {
		for (enum scheme s = 0; s < SCHEMES; s++) {
			if (run(b, s, s == UNTRACED ? UNTRACED_PAIRS : TRACED_PAIRS, depth, ns) < 0)
				return -1;
			cpu[s][i] = ns[0];
			wall[s][i] = ns[1];
		}
	}
	printf("a pair of malloc and free, %d frames down\n", depth);
	for (enum scheme s = 0; s < SCHEMES; s++)
		print_ns(names[s], cpu[s], wall[s], rounds);
	print_ratio("analyzer / the obvious way with stacks", cpu[OURS], cpu[OBVIOUS_STACKS],
		    rounds);
	print_ratio("analyzer / the obvious way without      <= 0.5", cpu[OURS], cpu[OBVIOUS],
		    rounds);
	print_ratio("analyzer / empty programs               <= 1.3", cpu[OURS], cpu[EMPTY],
		    rounds);
	return 0;
}

/* -- the neighbour -------------------------------------------------------------------------------
 */

/* How often the programs that a process holds have run. */
static int64_t run_count(pid_t pid)
{
	char path[PATH_BYTES], line[128];
	int64_t sum = 0;
	DIR *dir;
	struct dirent *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		_cleanup_fclose_ FILE *f = NULL;
		struct bpf_prog_info info = {0};
		uint32_t id = 0, len = sizeof(info);
		bool is_link = false;
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, d->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			is_link = is_link || strncmp(line, "link_id:", 8) == 0;
			(void)sscanf(line, "prog_id: %" SCNu32, &id);
		}
		if (id == 0 || is_link)
			continue;
		fd = bpf_prog_get_fd_by_id(id);
		/* Those of the machine's tracepoints run for everybody. */
		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
		    strncmp(info.name, "call_", 5) == 0)
			sum += (int64_t)info.run_cnt;
		close(fd);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* The traced workload: pairs, the word "ready", and sleep until it is killed. */
static int sleeper(void)
{
	pairs(1000);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	for (;;)
		(void)pause();
}

static pid_t start_sleeper(struct bench *b)
{
	char dir[PATH_BYTES], byte;
	char *argv[] = {b->analyzer, "-q", "-t", "alloc", "-o", dir, b->self, "sleeper", NULL};
	int out[2], gate[2];
	pid_t pid;

	(void)snprintf(dir, sizeof(dir), "%s/%" PRId64, b->dir, clock_mono_ns());
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return fail("pipe");
	pid = start(b, argv, "", out[1], gate[0]);
	close(out[1]);
	close(gate[0]);
	(void)!write(gate[1], "", 1);
	close(gate[1]);
	if (read(out[0], &byte, 1) != 1)
		pid = fail("the workload has not started");
	close(out[0]);
	return pid;
}

static int measure_neighbour(struct bench *b, int rounds)
{
	double without[ROUNDS_MAX], with[ROUNDS_MAX], wall[2][ROUNDS_MAX], ns[2];
	int64_t before = 0, after = 0, programs_ran = 0;

	for (int i = 0; i < rounds; i++) {
		pid_t pid;

		if (run(b, UNTRACED, NEIGHBOUR_PAIRS, 5, ns) < 0)
			return -1;
		without[i] = ns[0];
		wall[0][i] = ns[1];
		pid = start_sleeper(b);
		if (pid < 0)
			return -1;
		before = run_count(pid);
		if (run(b, UNTRACED, NEIGHBOUR_PAIRS, 5, ns) < 0)
			return -1;
		after = run_count(pid);
		programs_ran += after - before;
		with[i] = ns[0];
		wall[1][i] = ns[1];
		(void)kill(pid, SIGTERM);
		(void)waitpid(pid, NULL, 0);
	}
	printf("a neighbour, %d mallocs in each of %d rounds, while a workload is traced\n",
	       NEIGHBOUR_PAIRS, rounds);
	print_ns("nothing traced", without, wall[0], rounds);
	print_ns("a workload traced", with, wall[1], rounds);
	print_ratio("traced / not traced", with, without, rounds);
	printf("%-50s %8" PRId64 "   of %" PRId64 " for the workload    = 0\n",
	       "runs of the programs for the neighbour", programs_ran, before);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	int64_t rounds = 7;
	int r;

	if (argc == 4 && strcmp(argv[1], "child") == 0)
		return child(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "sleeper") == 0)
		return sleeper();
	if (argc > 2 || (argc == 2 && (num_parse_u63(argv[1], &rounds) < 0 || rounds < 1 ||
				       rounds > ROUNDS_MAX))) {
		fprintf(stderr, "usage: trace_pairs [ROUNDS]\n");
		return 2;
	}
	r = set_up(&b);
	if (r == 0)
		r = measure_pairs(&b, (int)rounds, 5);
	if (r == 0)
		r = measure_pairs(&b, (int)rounds, 30);
	if (r == 0)
		r = measure_neighbour(&b, (int)rounds);
	tear_down(&b);
	return r < 0;
}
