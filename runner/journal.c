#include "runner/journal.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

static const char *const kind_names[] = {"write", "controller", "group", "continue"};

static int create_in(struct journal *j, const char *dir)
{
	const char *rel = dir + strspn(dir, "/");
	uint32_t rnd = 0;
	int fd;

	(void)getrandom(&rnd, sizeof(rnd), 0);
	if (mkdirat(j->root->fd, rel, 0755) < 0 && errno != EEXIST)
		return -errno;
	(void)snprintf(j->path, sizeof(j->path), "%s/%d-%08x", dir, getpid(), rnd);
	fd = root_openat(j->root, j->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
	if (fd >= 0)
		(void)flock(fd, LOCK_EX); /* the guard, and all else that we fork, share it */
	return fd;
}

bool journal_user_dir(char *ret, size_t size)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	return xdg && snprintf(ret, size, "%s/analyzer", xdg) < (int)size - 16;
}

int journal_create(struct journal *j, const struct root *root, struct err *err)
{
	char dir[200];

	*j = (struct journal){.root = root, .fd = -1};
	j->fd = create_in(j, JOURNAL_DIR);
	if (j->fd < 0 && journal_user_dir(dir, sizeof(dir)))
		j->fd = create_in(j, dir);
	if (j->fd >= 0)
		return 0;
	j->path[0] = '\0';
	j->fd = memfd_create("analyzer-journal", MFD_CLOEXEC);
	if (j->fd < 0)
		return err_errno(err, -errno, "cannot create the undo journal");
	return 0;
}

void journal_close(struct journal *j, bool remove)
{
	if (remove && j->path[0])
		(void)unlinkat(j->root->fd, j->path + strspn(j->path, "/"), 0);
	close_fd(&j->fd);
}

static int append(struct journal *j, const char *line, size_t len)
{
	/* memfd has no O_APPEND: only this process writes, so its own offset serves as well. */
	ssize_t n = write(j->fd, line, len);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

int journal_add(struct journal *j, const struct journal_entry *e, struct err *err)
{
	char line[1280];
	int n, r;

	n = snprintf(line, sizeof(line), "add %d %s %s %s\n", e->id, kind_names[e->kind],
		     e->value[0] ? e->value : "-", e->path);
	if (n >= (int)sizeof(line))
		return err_set(err, -ENAMETOOLONG, "the path is too long to be put back: %s",
			       e->path);
	r = append(j, line, n);
	return r < 0 ? err_errno(err, r, "cannot write the undo journal %s", j->path) : 0;
}

int journal_done(struct journal *j, int id)
{
	char line[32];

	return append(j, line, snprintf(line, sizeof(line), "done %d\n", id));
}

static bool parse_add(char *rest, struct journal_entry *e)
{
	char *id = strsep(&rest, " "), *kind = strsep(&rest, " "), *value = strsep(&rest, " ");
	int64_t n;

	if (!rest || num_parse_u63(id, &n) < 0 || strlen(value) >= sizeof(e->value) ||
	    strlen(rest) >= sizeof(e->path))
		return false;
	*e = (struct journal_entry){.id = n, .kind = ARRAY_SIZE(kind_names)};
	for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++) {
		if (strcmp(kind, kind_names[i]) == 0)
			e->kind = i;
	}
	memcpy(e->value, value, strlen(value) + 1);
	memcpy(e->path, rest, strlen(rest) + 1);
	return e->kind < ARRAY_SIZE(kind_names);
}

static void forget(struct journal_entry *list, int *n, const char *id_text)
{
	int64_t id;

	if (num_parse_u63(id_text, &id) < 0)
		return;
	for (int i = 0; i < *n; i++) {
		if (list[i].id == id) {
			memmove(list + i, list + i + 1, (*n - i - 1) * sizeof(*list));
			(*n)--;
			return;
		}
	}
}

/* A torn last line (the writer died in it) parses as nothing and is passed over. */
int journal_load(const struct journal *j, struct journal_entry ret[static JOURNAL_MAX])
{
	_cleanup_str_ struct str text = {0};
	char chunk[4096], *line, *rest;
	off_t at = 0;
	ssize_t got;
	int n = 0;

	while ((got = pread(j->fd, chunk, sizeof(chunk), at)) > 0) {
		str_addn(&text, chunk, got);
		at += got;
	}
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, "add ", 4) == 0 && n < JOURNAL_MAX &&
		    parse_add(line + 4, &ret[n]))
			n++;
		else if (strncmp(line, "done ", 5) == 0)
			forget(ret, &n, line + 5);
	}
	return n;
}

static bool is_stopped(const struct root *root, int pid)
{
	char path[64], buf[1024], *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (root_read(root, path, buf, sizeof(buf)) < 0)
		return false;
	p = strrchr(buf, ')'); /* the command's name may hold anything */
	return p && p[1] == ' ' && p[2] == 'T';
}

static int continue_group(const struct root *root, const struct journal_entry *e)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[sizeof(e->path) + 16];
	int fd, pid;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", e->path);
	fd = root_openat(root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	f = fdopen(fd, "r");
	while (f && fscanf(f, "%d", &pid) == 1) {
		if (pid > 0 && is_stopped(root, pid))
			(void)kill(pid, SIGCONT); /* gone meanwhile is fine */
	}
	return 0;
}

static bool has_children(int dirfd)
{
	struct stat st;

	/* A directory's link count is 2 + its sub-directories, on cgroup2 too. */
	return fstat(dirfd, &st) == 0 && st.st_nlink > 2;
}

static int disable_controller(const struct root *root, const struct journal_entry *e)
{
	char dir[sizeof(e->path)];
	_cleanup_close_ int fd = -1;

	memcpy(dir, e->path, sizeof(dir));
	*strrchr(dir, '/') = '\0';
	fd = root_openat(root, dir, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return 0;
	/* Somebody else's group would lose its files. */
	if (has_children(fd))
		return 0;
	return write_file_at(fd, "cgroup.subtree_control", e->value);
}

/* Groups that the workload made in its own, innermost first. */
static int remove_tree(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((d = readdir(dir))) {
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			(void)remove_tree(fd, d->d_name); /* the outer rmdir tells if it failed */
	}
	closedir(dir);
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* Waits for "populated 0" as the kernel announces it, then removes. */
static int remove_group(const struct root *root, const struct journal_entry *e, int wait_ms)
{
	const char *rel = e->path + strspn(e->path, "/");
	int64_t deadline = clock_mono_ns() + wait_ms * NS_PER_MS;
	char path[sizeof(e->path) + 32], buf[256];
	struct pollfd pfd = {.events = POLLPRI};
	_cleanup_close_ int fd = -1;

	if (root_is_fake(root))
		return 0; /* the fixture's own */
	(void)snprintf(path, sizeof(path), "%s/cgroup.events", e->path);
	fd = root_openat(root, path, O_RDONLY);
	if (fd < 0)
		return remove_tree(root->fd, rel);
	pfd.fd = fd;
	for (;;) {
		ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
		int64_t left = (deadline - clock_mono_ns()) / NS_PER_MS;
		int r = 0;

		if (n < 0)
			return errno == ENODEV ? 0 : -errno;
		buf[n] = '\0';
		if (!strstr(buf, "populated 1"))
			r = remove_tree(root->fd, rel);
		else
			r = -EBUSY;
		if (r != -EBUSY || (wait_ms >= 0 && left <= 0))
			return r;
		/* The kernel may hold an emptied group for some ms longer, without an event. */
		(void)poll(&pfd, 1, wait_ms < 0 ? 1000 : MIN(left, 50));
	}
}

int journal_put_back(const struct root *root, const struct journal_entry *e, int wait_ms,
		     struct err *err)
{
	int r = 0;

	switch (e->kind) {
	case UNDO_WRITE:
		r = root_write(root, e->path, e->value);
		break;
	case UNDO_CONTROLLER:
		r = disable_controller(root, e);
		break;
	case UNDO_GROUP:
		r = remove_group(root, e, wait_ms);
		break;
	case UNDO_CONTINUE:
		r = continue_group(root, e);
		break;
	}
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	if (r < 0)
		return err_errno(err, r, "cannot put back %s %s", e->path, e->value);
	return 0;
}
