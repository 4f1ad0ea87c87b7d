#include "tracer/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* glibc 2.36 has wrappers, but its <sys/mount.h> and <linux/mount.h> exclude each other. */
#define MS_BIND_ 4096
#define MS_REC_SLAVE (16384 | (1 << 19))
#define MNT_DETACH_ 2

/* The tmpfs shows for a moment over a folder that every system has, until the copies are bound
 * from it. */
#define STAGE "/proc"

#define FILES_MAX 64

struct private
{
	int mount_fd; /* the tmpfs, attached nowhere */
	size_t n;
	int64_t bytes;
	struct private_file {
		char *path;     /* of the original */
		char stage[32]; /* of the copy, below STAGE */
		int fd;
	} files[FILES_MAX];
};

int mount(const char *source, const char *target, const char *type, unsigned long flags,
	  const void *data);
int umount2(const char *target, int flags);

static int detached_tmpfs(void)
{
	int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), fd;

	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
		int r = -errno;

		close(fs);
		return r;
	}
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	close(fs);
	return fd;
}

int private_new(struct private **ret, struct err *err)
{
	struct private *p = calloc(1, sizeof(*p));

	if (!p)
		return err_errno(err, -ENOMEM, "cannot copy libraries for the workload");
	p->mount_fd = detached_tmpfs();
	if (p->mount_fd < 0) {
		int r = err_errno(err, p->mount_fd, "cannot make a tmpfs for private libraries");

		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void private_free(struct private *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		close_fd(&p->files[i].fd);
		free(p->files[i].path);
	}
	close_fd(&p->mount_fd);
	free(p);
}

static int copy(int to, int from, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	off_t at = 0;

	while (at < st->st_size) {
		ssize_t n = sendfile(to, from, &at, (size_t)(st->st_size - at));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	/* As the original is, so that nobody sees a difference. */
	if (fchmod(to, st->st_mode & 07777) < 0 || futimens(to, times) < 0 ||
	    fchown(to, st->st_uid, st->st_gid) < 0)
		return -errno;
	return 0;
}

int private_add(struct private *p, const char *path, int *ret_fd, struct err *err)
{
	struct private_file *f = &p->files[p->n];
	_cleanup_close_ int from = -1, to = -1;
	struct stat st;
	char name[16];
	int r;

	if (p->n == FILES_MAX)
		return err_set(err, -ENOSPC, "more than %d libraries with allocators", FILES_MAX);
	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return err_errno(err, -errno, "cannot read %s", path);
	(void)snprintf(name, sizeof(name), "%zu", p->n);
	(void)snprintf(f->stage, sizeof(f->stage), STAGE "/%s", name);
	to = openat(p->mount_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	r = to < 0 ? -errno : copy(to, from, &st);
	if (r < 0)
		return err_errno(err, r, "cannot copy %s for the workload", path);
	/* Reopened: a file open for writing cannot be executed. */
	f->fd = openat(p->mount_fd, name, O_RDONLY | O_CLOEXEC);
	f->path = strdup(path);
	if (f->fd < 0 || !f->path) {
		close_fd(&f->fd);
		return err_errno(err, -ENOMEM, "cannot copy %s for the workload", path);
	}
	p->n++;
	p->bytes += st.st_size;
	*ret_fd = f->fd;
	return 0;
}

int private_enter(const struct private *p)
{
	int r = 0;

	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	/* Where / is shared, as with systemd, our binds would appear outside. */
	if (mount(NULL, "/", NULL, MS_REC_SLAVE, NULL) < 0)
		return -errno;
	if (syscall(SYS_move_mount, p->mount_fd, "", AT_FDCWD, STAGE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	for (size_t i = 0; i < p->n; i++) {
		if (mount(p->files[i].stage, p->files[i].path, NULL, MS_BIND_, NULL) < 0 && r == 0)
			r = -errno;
	}
	if (umount2(STAGE, MNT_DETACH_) < 0 && r == 0)
		r = -errno;
	return r;
}

int64_t private_bytes(const struct private *p)
{
	return p->bytes;
}
