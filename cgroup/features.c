/* What this machine can do; see features.h. */
#include "cgroup/features.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fmt.h"
#include "base/num.h"
#include "cgroup/can_trace.h"
#include "cgroup/cgroup.h"
#include "cgroup/zswap.h"

static const struct {
	const char *name, *title;
	enum feature_group group;
} table[FEATURE_COUNT] = {
	[FEATURE_CGROUP2] = {"cgroup2", "cgroup v2", FEATURE_NEEDED},
	[FEATURE_MEMORY] = {"memory", "memory controller", FEATURE_NEEDED},
	[FEATURE_CREATE] = {"create", "may create groups", FEATURE_NEEDED},
	[FEATURE_MEMORY_MAX] = {"memory.max", "memory.max", FEATURE_SQUEEZING},
	[FEATURE_MEMORY_HIGH] = {"memory.high", "memory.high", FEATURE_SQUEEZING},
	[FEATURE_MEMORY_RECLAIM] = {"memory.reclaim", "memory.reclaim", FEATURE_SQUEEZING},
	[FEATURE_SWAP] = {"swap", "swap", FEATURE_SQUEEZING},
	[FEATURE_ZSWAP] = {"zswap", "zswap", FEATURE_SQUEEZING},
	[FEATURE_MEMORY_PEAK] = {"memory.peak", "memory.peak", FEATURE_OBSERVING},
	[FEATURE_PSI] = {"psi", "pressure (PSI)", FEATURE_OBSERVING},
	[FEATURE_ZSWAP_COUNTERS] = {"zswap-counters", "zswap counters", FEATURE_OBSERVING},
	[FEATURE_CLONE3] = {"clone3", "start inside the group", FEATURE_OBSERVING},
	[FEATURE_TRACER] = {"tracer", "allocation tracer", FEATURE_OBSERVING},
};

const char *feature_state_name(enum feature_state state)
{
	static const char *const names[] = {"no", "yes", "warn", "unknown"};

	return names[state];
}

const char *feature_group_name(enum feature_group group)
{
	static const char *const names[] = {"needed", "squeezing", "observing"};

	return names[group];
}

/* What the probes work on. */
struct probe {
	struct features *ret;
	const struct root *root;
	struct cgroup_tree tree;
	bool has_tree;
	bool has_memory;     /* the controller is on v2 */
	bool may_make_group; /* somewhere, with the controller or without */
};

static struct feature *set(struct probe *p, enum feature_id id, enum feature_state state,
			   const char *detail, ...) _printf_(4, 5);

static struct feature *set(struct probe *p, enum feature_id id, enum feature_state state,
			   const char *detail, ...)
{
	struct feature *f = &p->ret->f[id];
	va_list ap;

	f->state = state;
	va_start(ap, detail);
	(void)vsnprintf(f->detail, sizeof(f->detail), detail, ap);
	va_end(ap);
	return f;
}

static void explain(struct feature *f, const char *why, const char *fix)
{
	(void)snprintf(f->why, sizeof(f->why), "%s", why);
	(void)snprintf(f->fix, sizeof(f->fix), "%s", fix);
}

static bool is_root(void)
{
	return geteuid() == 0;
}

/* The word is in a list apart by blanks. */
static bool has_word(int dirfd, const char *file, const char *word)
{
	char buf[1024], *w, *rest = buf;

	if (read_file_at(dirfd, file, buf, sizeof(buf)) < 0)
		return false;
	while ((w = strsep(&rest, " \n"))) {
		if (strcmp(w, word) == 0)
			return true;
	}
	return false;
}

static int open_group(const struct probe *p, const char *path)
{
	return root_openat(p->root, path, O_RDONLY | O_DIRECTORY);
}

/* -- needed ----------------------------------------------------------------------------------- */

static void probe_tree(struct probe *p, const char *cgpath)
{
	struct err err;
	_cleanup_close_ int fd = -1;
	int r = cgroup_tree_find(&p->tree, p->root, cgpath, &err);

	if (r == 0)
		fd = open_group(p, p->tree.mount);
	/* A directory that somebody names need not be a cgroup. */
	p->has_tree = fd >= 0 && faccessat(fd, "cgroup.controllers", F_OK, 0) == 0;
	if (p->has_tree) {
		(void)set(p, FEATURE_CGROUP2, FEATURE_YES, "%.100s", p->tree.mount);
		p->has_memory = has_word(fd, "cgroup.controllers", "memory");
		return;
	}
	explain(set(p, FEATURE_CGROUP2, FEATURE_NO, "%.120s",
		    r < 0 ? err.msg : "no cgroup.controllers in its directory"),
		"without it the workload has no group of its own: no figures, no limits",
		"mount -t cgroup2 none /sys/fs/cgroup, or boot with "
		"systemd.unified_cgroup_hierarchy=1");
}

static void probe_memory(struct probe *p)
{
	char cmdline[4096] = "";
	struct feature *f;

	if (p->has_memory) {
		(void)set(p, FEATURE_MEMORY, FEATURE_YES, "on cgroup v2");
		return;
	}
	if (p->tree.memory_v1_mount[0]) {
		f = set(p, FEATURE_MEMORY, FEATURE_NO, "is on cgroup v1 at %.90s",
			p->tree.memory_v1_mount);
		explain(f, "limits and memory figures need it on cgroup v2",
			"boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=memory; or try "
			"a virtual machine: tools/vm -- COMMAND");
		return;
	}
	(void)root_read(p->root, "/proc/cmdline", cmdline, sizeof(cmdline));
	if (strstr(cmdline, "cgroup_disable=memory"))
		explain(set(p, FEATURE_MEMORY, FEATURE_NO, "switched off at boot"),
			"limits and memory figures need it",
			"boot without cgroup_disable=memory, or with cgroup_enable=memory");
	else
		explain(set(p, FEATURE_MEMORY, FEATURE_NO, "not in cgroup.controllers"),
			"limits and memory figures need it",
			"in a container: delegate the controller to it; else a kernel with "
			"CONFIG_MEMCG");
}

/*
 * Whether a child of this group gets memory, or would after a write that we may do. A group with
 * processes in it cannot pass controllers on, except the real root, which has no cgroup.events.
 */
static bool passes_memory(int fd)
{
	char procs[2];

	if (has_word(fd, "cgroup.subtree_control", "memory"))
		return true;
	if (!has_word(fd, "cgroup.controllers", "memory") ||
	    faccessat(fd, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
		return false;
	return faccessat(fd, "cgroup.events", F_OK, 0) < 0 ||
	       read_file_at(fd, "cgroup.procs", procs, sizeof(procs)) == 0;
}

static void probe_create(struct probe *p)
{
	char path[CGROUP_PATH_MAX * 2], any[CGROUP_PATH_MAX * 2] = "";
	size_t top = strlen(p->tree.mount);
	struct feature *f;
	int code = EACCES;

	(void)snprintf(path, sizeof(path), "%s%s", p->tree.mount, p->tree.self);
	for (; p->has_tree; *strrchr(path, '/') = '\0') {
		_cleanup_close_ int fd = open_group(p, path);
		bool may = fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) == 0;

		if (!may)
			code = fd < 0 ? -fd : errno;
		p->may_make_group |= may;
		if (may && (!p->has_memory || passes_memory(fd))) {
			(void)set(p, FEATURE_CREATE, FEATURE_YES, "in %.110s", path);
			return;
		}
		if (may && !any[0])
			(void)snprintf(any, sizeof(any), "%s", path);
		if (strlen(path) <= top)
			break;
	}
	if (!p->has_tree)
		f = set(p, FEATURE_CREATE, FEATURE_NO, "no cgroup v2");
	else if (any[0])
		f = set(p, FEATURE_CREATE, FEATURE_NO, "without memory only, in %.80s", any);
	else
		f = set(p, FEATURE_CREATE, FEATURE_NO, "%s",
			code == EROFS ? "the cgroup tree is mounted read-only" : "no right to");
	explain(f, "a run needs a group that gets the memory controller",
		!p->has_tree ? ""
			     : "run as root, or: systemd-run --user --scope -p Delegate=yes "
			       "analyzer ...");
}

/* -- squeezing: the files of a group with the controller --------------------------------------- */

static bool has_memory_files(int fd)
{
	return fd >= 0 && faccessat(fd, "memory.current", F_OK, 0) == 0;
}

/* A child of the tree's root that has them, or -1. */
static int find_child(const struct probe *p)
{
	int dir = open_group(p, p->tree.mount), found = -1;
	struct dirent *e;
	DIR *d = dir >= 0 ? fdopendir(dir) : NULL;

	if (!d) {
		close_fd(&dir);
		return -1;
	}
	while (found < 0 && (e = readdir(d))) {
		if (e->d_name[0] == '.' || e->d_type != DT_DIR)
			continue;
		found = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (!has_memory_files(found))
			close_fd(&found);
	}
	(void)closedir(d); /* only read from */
	return found;
}

/* An empty group made for the moment, its files still there for the asking. */
static int make_child(const struct probe *p, char *name, size_t size)
{
	_cleanup_close_ int dir = open_group(p, p->tree.mount);
	int fd;

	*name = '\0';
	if (dir < 0 || !is_root() || root_is_fake(p->root) ||
	    !has_word(dir, "cgroup.subtree_control", "memory"))
		return -1;
	(void)snprintf(name, size, "analyzer-check-%d", getpid());
	if (mkdirat(dir, name, 0755) < 0) {
		*name = '\0';
		return -1;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return has_memory_files(fd) ? fd : (close_fd(&fd), -1);
}

static void remove_child(const struct probe *p, const char *name)
{
	_cleanup_close_ int dir = open_group(p, p->tree.mount);

	if (*name && dir >= 0)
		(void)unlinkat(dir, name, AT_REMOVEDIR); /* empty, so it cannot be busy */
}

static const struct group_file {
	enum feature_id id;
	const char *file, *detail, *why, *fix;
} group_files[] = {
	{FEATURE_MEMORY_MAX, "memory.max", "", "no limit can be set", ""},
	{FEATURE_MEMORY_HIGH, "memory.high", "", "no tripwire above a held limit", ""},
	{FEATURE_MEMORY_RECLAIM, "memory.reclaim", "leaves no limit behind",
	 "finding the size takes limits, which can hurt", "a kernel that has it: 5.19 or later"},
	{FEATURE_MEMORY_PEAK, "memory.peak", "", "the peak is the largest sample, not exact",
	 "a kernel that has it: 5.19 or later"},
};

static void probe_group_files(struct probe *p)
{
	char path[CGROUP_PATH_MAX * 2], name[64] = "";
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s%s", p->tree.mount, p->tree.self);
	if (p->has_memory) {
		fd = open_group(p, path);
		if (!has_memory_files(fd)) {
			close_fd(&fd);
			fd = find_child(p);
		}
		if (fd < 0)
			fd = make_child(p, name, sizeof(name));
	}
	for (size_t i = 0; i < ARRAY_SIZE(group_files); i++) {
		const struct group_file *g = &group_files[i];

		if (!p->has_memory)
			(void)set(p, g->id, FEATURE_NO, "no memory controller on cgroup v2");
		else if (fd < 0)
			(void)set(p, g->id, FEATURE_UNKNOWN, "no group to look at yet");
		else if (faccessat(fd, g->file, F_OK, 0) == 0)
			(void)set(p, g->id, FEATURE_YES, "%s", g->detail);
		else
			explain(set(p, g->id, FEATURE_NO, "not in this kernel"), g->why, g->fix);
	}
	remove_child(p, name);
}

/* -- swap, zswap ------------------------------------------------------------------------------ */

/* "/dev/vda partition 1048572 0 -2": name, sizes in KiB. */
static bool parse_swap(char *line, const char **ret_name, int64_t *ret_size, int64_t *ret_used)
{
	char *rest = line, *f[5];

	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		while (rest && (*rest == ' ' || *rest == '\t'))
			rest++;
		f[i] = strsep(&rest, " \t");
		if (!f[i])
			return false;
	}
	*ret_name = f[0];
	return num_parse_u63(f[2], ret_size) == 0 && num_parse_u63(f[3], ret_used) == 0;
}

static void probe_swap(struct probe *p)
{
	char text[4096], size_text[FMT_MAX], free_text[FMT_MAX], *rest = text, *line;
	const char *name = "", *first = NULL;
	int64_t total = 0, unused = 0, size, used;
	struct feature *f;
	ssize_t r = root_read(p->root, "/proc/swaps", text, sizeof(text));

	if (r < 0 && r != -E2BIG) {
		(void)set(p, FEATURE_SWAP, r == -ENOENT ? FEATURE_WARN : FEATURE_UNKNOWN, "%s",
			  r == -ENOENT ? "this kernel has none" : "/proc/swaps cannot be read");
		return;
	}
	(void)strsep(&rest, "\n");
	while (rest && (line = strsep(&rest, "\n"))) {
		if (!parse_swap(line, &name, &size, &used))
			continue;
		total += size;
		unused += size - used;
		first = first ? first : name;
	}
	(void)fmt_bytes(size_text, total * 1024);
	(void)fmt_bytes(free_text, unused * 1024);
	if (total > 0 && unused >= total / 64) {
		(void)set(p, FEATURE_SWAP, FEATURE_YES, "%s on %.60s, %s free", size_text, first,
			  free_text);
		return;
	}
	if (total > 0)
		f = set(p, FEATURE_SWAP, FEATURE_WARN, "full: %s on %.60s", size_text, first);
	else
		f = set(p, FEATURE_SWAP, FEATURE_WARN, "none: anonymous memory cannot be squeezed");
	explain(f, "",
		"fallocate -l 4G /swapfile; chmod 600 /swapfile; mkswap /swapfile; "
		"swapon /swapfile");
}

static void probe_zswap(struct probe *p)
{
	char compressor[ZSWAP_VALUE_MAX] = "?", zpool[ZSWAP_VALUE_MAX] = "",
	     percent[ZSWAP_VALUE_MAX];
	struct feature *f;
	int on = zswap_is_enabled(p->root);

	if (on == -ENOENT) {
		explain(set(p, FEATURE_ZSWAP, FEATURE_WARN, "not in this kernel"),
			"swapped pages are not compressed in memory", "a kernel with CONFIG_ZSWAP");
		return;
	}
	if (on < 0) {
		(void)set(p, FEATURE_ZSWAP, FEATURE_UNKNOWN, "%s", strerror(-on));
		return;
	}
	(void)zswap_get(p->root, "compressor", compressor);
	if (zswap_get(p->root, "zpool", zpool) < 0) /* gone in 6.18: always zsmalloc */
		zpool[0] = '\0';
	if (zswap_get(p->root, "max_pool_percent", percent) < 0)
		(void)snprintf(percent, sizeof(percent), "?");
	f = set(p, FEATURE_ZSWAP, on ? FEATURE_YES : FEATURE_WARN, "%s: %.24s%s%.24s, pool %.3s %%",
		on ? "on" : "off", compressor, zpool[0] ? ", " : "", zpool, percent);
	if (!on)
		explain(f, "swapped pages are not compressed in memory",
			"echo Y > " ZSWAP_PARAMETERS "/enabled");
}

/* -- observing -------------------------------------------------------------------------------- */

static void probe_psi(struct probe *p)
{
	static const char why[] = "needed for \"how much did it hurt\"; the run works without";
	char text[512];
	ssize_t r = root_read(p->root, "/proc/pressure/memory", text, sizeof(text));

	if (r >= 0)
		(void)set(p, FEATURE_PSI, FEATURE_YES, "%s", "");
	else if (r == -ENOENT)
		explain(set(p, FEATURE_PSI, FEATURE_NO, "no /proc/pressure: off, or not built in"),
			why, "boot with psi=1; if that does not help: a kernel with CONFIG_PSI");
	else if (r == -EOPNOTSUPP)
		explain(set(p, FEATURE_PSI, FEATURE_NO, "file exists, reading says ENOTSUP"), why,
			"boot with psi=1");
	else
		explain(set(p, FEATURE_PSI, FEATURE_NO, "%s", strerror((int)-r)), why, "");
}

static void probe_zswap_counters(struct probe *p)
{
	_cleanup_close_ int fd = zswap_debugfs_open(p->root);
	int on = zswap_is_enabled(p->root);
	struct feature *f;

	if (fd >= 0) {
		(void)set(p, FEATURE_ZSWAP_COUNTERS, FEATURE_YES, "debugfs, whole host");
		return;
	}
	if (fd == -ENOENT && on < 0) {
		(void)set(p, FEATURE_ZSWAP_COUNTERS, FEATURE_WARN, "no zswap");
		return;
	}
	if (fd == -ENOENT && on == 0) {
		(void)set(p, FEATURE_ZSWAP_COUNTERS, FEATURE_WARN, "none before zswap is first on");
		return;
	}
	f = set(p, FEATURE_ZSWAP_COUNTERS, FEATURE_WARN, "%s",
		fd == -EACCES || fd == -EPERM ? "debugfs needs root" : strerror(-fd));
	explain(f, "host-wide pool size and refused pages stay unknown",
		is_root() ? "" : "run as root");
}

/*
 * Asks for a process in the group of a descriptor that is not open: EBADF shows that the kernel
 * knows the request, and nothing is started.
 */
static void probe_clone3(struct probe *p)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = INT_MAX,
	};
	long r;

	if (root_is_fake(p->root)) {
		(void)set(p, FEATURE_CLONE3, FEATURE_UNKNOWN, "not tried under another root");
		return;
	}
	r = syscall(SYS_clone3, &args, sizeof(args));
	if (r == 0)
		_exit(0); /* cannot be: it would have to be a child in no group */
	if (r < 0 && errno == EBADF)
		(void)set(p, FEATURE_CLONE3, FEATURE_YES, "clone3 into the group");
	else
		explain(set(p, FEATURE_CLONE3, FEATURE_WARN, "clone3 cannot: %s", strerror(errno)),
			"it is moved there before it starts, by a write to cgroup.procs", "");
}

static void probe_tracer(struct probe *p)
{
	static const char why[] =
		"which code allocates how much is not known then; a run works without";
	struct can_trace can;

	if (root_is_fake(p->root)) {
		(void)set(p, FEATURE_TRACER, FEATURE_UNKNOWN, "not tried under another root");
		return;
	}
	can_trace_probe(&can);
	if (!can.is_possible)
		explain(set(p, FEATURE_TRACER, can.lacks_rights ? FEATURE_WARN : FEATURE_NO, "%s",
			    can.lack),
			why, can.fix);
	else if (!p->may_make_group)
		explain(set(p, FEATURE_TRACER, FEATURE_NO, "no cgroup v2 that says whom to trace"),
			why, "analyzer check --feature create says how");
	else
		(void)set(p, FEATURE_TRACER, FEATURE_YES, "BPF, uprobes, fanotify");
}

void features_probe(struct features *ret, const struct root *root, const char *cgpath)
{
	struct probe p = {.ret = ret, .root = root};

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < FEATURE_COUNT; i++) {
		ret->f[i].name = table[i].name;
		ret->f[i].title = table[i].title;
		ret->f[i].group = table[i].group;
	}
	probe_tree(&p, cgpath);
	probe_memory(&p);
	probe_create(&p);
	probe_group_files(&p);
	probe_swap(&p);
	probe_zswap(&p);
	probe_psi(&p);
	probe_zswap_counters(&p);
	probe_clone3(&p);
	probe_tracer(&p);
}
