#include "tracer/gate.h"

#include "tracer/discover.h"
#include "tracer/elf.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include <linux/magic.h>

struct gate {
	struct kernel *kernel;
	struct modules *modules;
	int fan_fd, stop_fd;
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock; /* of coverage, and of probing the same file twice */
	struct coverage *coverage;
	size_t n_coverage;
};

#define GATE_NICE (-15)
#define WATCHED (FAN_OPEN_PERM | FAN_OPEN_EXEC_PERM)

/* -- one file ------------------------------------------------------------------------------------
 */

static void note(struct gate *g, const char *path, const struct probes *p, bool is_private,
		 const char *problem)
{
	struct coverage *grown = realloc(g->coverage, (g->n_coverage + 1) * sizeof(*g->coverage));

	if (!grown)
		return;
	g->coverage = grown;
	grown[g->n_coverage++] = (struct coverage){
		.path = strdup(path),
		.families = strdup(p ? p->families : ""),
		.probes = p ? (int)p->n : 0,
		.is_private = is_private,
		.problem = problem && *problem ? strdup(problem) : NULL,
	};
}

/* Executables and libraries; not object files, core dumps, data. */
static bool is_code(int fd)
{
	Elf64_Ehdr head; /* e_type lies at the same place in 32-bit files */

	return pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	       memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
	       (head.e_type == ET_EXEC || head.e_type == ET_DYN);
}

static int probe_new(struct gate *g, int fd, const char *path, bool is_private, struct err *err)
{
	struct elf_file *elf = NULL;
	struct probes probes = {0};
	int r;

	r = elf_file_open(&elf, fd, path, err);
	if (r < 0) {
		note(g, path, NULL, is_private, err->msg);
		return r == -ENOEXEC ? 0 : r;
	}
	r = discover(&probes, elf, err);
	elf_file_close(elf);
	if (r == 0 && probes.n > 0)
		r = kernel_attach(g->kernel, fd, &probes, err);
	if (r < 0)
		note(g, path, &probes, is_private, err->msg);
	else if (probes.n > 0 || probes.problem[0])
		note(g, path, &probes, is_private, probes.problem);
	probes_done(&probes);
	return r;
}

int gate_probe(struct gate *g, int fd, const char *path, bool is_private, struct err *err)
{
	struct module_file *m;
	int r = 0;

	if (!is_code(fd))
		return 0;
	(void)pthread_mutex_lock(&g->lock);
	/* The registry tells new from known, and keeps the inode from being used anew. */
	m = modules_add(g->modules, fd, path, is_private);
	if (m && !m->is_probed) {
		m->is_probed = true;
		r = probe_new(g, fd, path, is_private, err);
	}
	(void)pthread_mutex_unlock(&g->lock);
	return r;
}

size_t gate_coverage(struct gate *g, const struct coverage **ret)
{
	*ret = g->coverage;
	return g->n_coverage;
}

/* -- the kernel's questions ----------------------------------------------------------------------
 */

static void path_of(int fd, char *ret, size_t size)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size - 1);
	ret[MAX(n, 0)] = 0;
}

static void answer(struct gate *g, const struct fanotify_event_metadata *ev)
{
	struct fanotify_response response = {.fd = ev->fd, .response = FAN_ALLOW};
	char path[4096];
	struct err err;

	if (ev->fd < 0)
		return;
	path_of(ev->fd, path, sizeof(path));
	(void)gate_probe(g, ev->fd, path, false, &err); /* its failure is in the coverage */
	/* Not asked again, until somebody writes to it, or the kernel needs the inode's memory. */
	(void)fanotify_mark(g->fan_fd, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_EVICTABLE,
			    WATCHED, ev->fd, NULL);
	(void)!write(g->fan_fd, &response, sizeof(response));
	close(ev->fd);
}

static void answer_all(struct gate *g)
{
	char buf[8192] __attribute__((aligned(8)));
	ssize_t n = read(g->fan_fd, buf, sizeof(buf));
	struct fanotify_event_metadata *ev = (void *)buf;

	for (; FAN_EVENT_OK(ev, n); ev = FAN_EVENT_NEXT(ev, n))
		answer(g, ev);
}

static void *run(void *arg)
{
	struct gate *g = arg;
	struct pollfd fds[] = {{.fd = g->fan_fd, .events = POLLIN},
			       {.fd = g->stop_fd, .events = POLLIN}};

	(void)pthread_setname_np(pthread_self(), "gate");
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), GATE_NICE); /* somebody always waits */
	while (poll(fds, ARRAY_SIZE(fds), -1) >= 0 || errno == EINTR) {
		if (fds[1].revents)
			break;
		if (fds[0].revents)
			answer_all(g);
	}
	return NULL;
}

int gate_open(struct gate **ret, struct kernel *k, struct modules *ms, struct err *err)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	g->kernel = k;
	g->modules = ms;
	(void)pthread_mutex_init(&g->lock, NULL);
	g->stop_fd = eventfd(0, EFD_CLOEXEC);
	g->fan_fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_UNLIMITED_QUEUE |
					  FAN_UNLIMITED_MARKS,
				  O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NOATIME);
	if (g->fan_fd < 0 || g->stop_fd < 0) {
		(void)err_errno(err, -errno, "cannot watch what the workload opens");
		gate_close(g);
		gate_free(g);
		return err_hint(err, "that needs CAP_SYS_ADMIN and a kernel with "
				     "CONFIG_FANOTIFY_ACCESS_PERMISSIONS");
	}
	*ret = g;
	return 0;
}

/* Mount points of a process, as its namespace names them: field 5 of mountinfo, octal escapes. */
static bool mount_point(char *line, const char **ret)
{
	char *save = NULL, *field = strtok_r(line, " ", &save), *out;

	for (int i = 1; field && i < 5; i++)
		field = strtok_r(NULL, " ", &save);
	if (!field)
		return false;
	out = field;
	for (const char *in = field; *in; out++) {
		if (in[0] == '\\' && in[1] && in[2] && in[3]) {
			*out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = 0;
	*ret = field;
	return true;
}

/* Kernel interfaces hold no code, and asking about each of their files would only cost. */
static bool holds_files(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case DEVPTS_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case BPF_FS_MAGIC:
	case SECURITYFS_MAGIC:
		return false;
	default:
		return true;
	}
}

/* How many mounts are watched now; those that already are stay so. */
static int watch_mounts(struct gate *g, pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	const char *point;
	char path[4200];
	size_t cap = 0;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0) {
		if (!mount_point(line, &point))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/root%s", pid, point);
		if (holds_files(path) && fanotify_mark(g->fan_fd, FAN_MARK_ADD | FAN_MARK_MOUNT,
						       WATCHED, AT_FDCWD, path) == 0)
			n++;
	}
	return n;
}

int gate_watch(struct gate *g, pid_t pid, struct err *err)
{
	if (watch_mounts(g, pid) == 0)
		return err_errno(err, -errno, "cannot watch what the workload opens");
	if (pthread_create(&g->thread, NULL, run, g) != 0)
		return err_errno(err, -EAGAIN, "cannot start the tracer");
	g->has_thread = true;
	return 0;
}

static bool is_in_our_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &its) < 0 || stat("/proc/self/ns/mnt", &ours) < 0 ||
	       its.st_ino == ours.st_ino;
}

static bool came_through(struct gate *g, pid_t pid)
{
	_cleanup_close_ int fd = -1;
	struct module_file *m;
	char link[64], path[4096];
	bool is_probed;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* it has ended */
	path_of(fd, path, sizeof(path));
	(void)pthread_mutex_lock(&g->lock);
	m = modules_add(g->modules, fd, path, false);
	is_probed = !m || m->is_probed;
	(void)pthread_mutex_unlock(&g->lock);
	return is_probed;
}

static void probe_mapped(struct gate *g, pid_t pid)
{
	char path[4096], dir[64];
	struct dirent *d;
	struct err err;
	DIR *maps;

	(void)snprintf(dir, sizeof(dir), "/proc/%d/map_files", pid);
	maps = opendir(dir);
	while (maps && (d = readdir(maps)) != NULL) {
		_cleanup_close_ int fd =
			openat(dirfd(maps), d->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			continue;
		path_of(fd, path, sizeof(path));
		(void)gate_probe(g, fd, path, false, &err); /* its failure is in the coverage */
	}
	if (maps)
		(void)closedir(maps);
}

void gate_follow(struct gate *g, pid_t pid)
{
	if (came_through(g, pid) || is_in_our_namespace(pid))
		return;
	(void)watch_mounts(g, pid);
	probe_mapped(g, pid);
}

void gate_close(struct gate *g)
{
	uint64_t one = 1;

	if (!g)
		return;
	if (g->has_thread) {
		(void)!write(g->stop_fd, &one, sizeof(one));
		(void)pthread_join(g->thread, NULL);
		g->has_thread = false;
	}
	close_fd(&g->fan_fd); /* whoever waits goes on */
	close_fd(&g->stop_fd);
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_coverage; i++) {
		free(g->coverage[i].path);
		free(g->coverage[i].families);
		free(g->coverage[i].problem);
	}
	(void)pthread_mutex_destroy(&g->lock);
	free(g->coverage);
	free(g);
}
