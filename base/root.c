#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int root_open(struct root *r, const char *dir, struct err *err)
{
	int fd;

	if (!dir)
		dir = "/";
	if (strlen(dir) >= sizeof(r->prefix))
		return err_set(err, -ENAMETOOLONG, "--root %s: the path is too long", dir);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open the system root %s", dir);
	r->fd = fd;
	(void)snprintf(r->prefix, sizeof(r->prefix), "%s", strcmp(dir, "/") == 0 ? "" : dir);
	return 0;
}

void root_close(struct root *r)
{
	close_fd(&r->fd);
}

bool root_is_fake(const struct root *r)
{
	return r->prefix[0] != '\0';
}

int root_openat(const struct root *r, const char *path, int flags)
{
	int fd;

	while (*path == '/')
		path++;
	fd = openat(r->fd, *path ? path : ".", flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static ssize_t read_whole(int fd, char *buf, size_t size)
{
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (got == 0)
			break;
		n += got;
		if (n == size)
			return -E2BIG;
	}
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return n;
}

ssize_t read_file_at(int dirfd, const char *name, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_whole(fd, buf, size);
}

int write_file_at(int dirfd, const char *name, const char *value)
{
	/* O_TRUNC: kernel files ignore it, a plain file of a fake tree must not keep a tail. */
	_cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
	size_t len = strlen(value);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, value, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

ssize_t root_read(const struct root *r, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = root_openat(r, path, O_RDONLY);

	return fd < 0 ? fd : read_whole(fd, buf, size);
}

int root_write(const struct root *r, const char *path, const char *value)
{
	while (*path == '/')
		path++;
	return write_file_at(r->fd, path, value);
}
