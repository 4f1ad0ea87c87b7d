/* Who is in a group. */
#include "cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

struct members {
	pid_t *list;
	size_t n, cap;
};

static int read_group(struct members *m, int dirfd)
{
	_cleanup_fclose_ FILE *f = NULL;
	int fd = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid;

	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	/* A threaded group cannot be read: its processes are in the one above. */
	while (fscanf(f, "%d", &pid) == 1) {
		if (m->n == m->cap) {
			size_t cap = m->cap ? 2 * m->cap : 64;
			pid_t *grown = realloc(m->list, cap * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			m->list = grown;
			m->cap = cap;
		}
		m->list[m->n++] = pid;
	}
	return 0;
}

static int read_tree(struct members *m, int dirfd)
{
	int r = read_group(m, dirfd), fd;
	const struct dirent *d;
	DIR *dir;

	if (r < 0)
		return r;
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		close_fd(&fd);
		return -errno;
	}
	while (r == 0 && (d = readdir(dir)) != NULL) {
		_cleanup_close_ int sub = -1;

		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		sub = openat(dirfd, d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0) /* else it was just removed */
			r = read_tree(m, sub);
	}
	(void)closedir(dir);
	return r == -ENODEV || r == -ENOENT ? 0 : r;
}

ssize_t cgroup_processes(const struct cgroup *cg, pid_t **list, size_t *cap)
{
	struct members m = {.list = *list, .cap = *cap};
	int r = read_tree(&m, cg->dirfd);

	*list = m.list;
	*cap = m.cap;
	return r < 0 ? r : (ssize_t)m.n;
}
