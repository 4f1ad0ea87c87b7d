/* debugfs through a detached mount; see debugfs.h. */
#include "cgroup/debugfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

/* The root of a detached mount of debugfs, or a negative errno. */
static int mount_detached(void)
{
	_cleanup_close_ int fs = fsopen("debugfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

int debugfs_openat(const struct root *root, const char *path, int flags)
{
	char full[256];
	int n;

	if (!root_is_fake(root)) {
		_cleanup_close_ int mnt = mount_detached();

		/* Files opened below keep the mount alive; closing its descriptor is enough. */
		if (mnt >= 0) {
			int fd = openat(mnt, path, flags | O_CLOEXEC);

			return fd < 0 ? -errno : fd;
		}
		if (mnt == -ENODEV)
			return mnt;
	}
	/* No right to mount: somebody may have mounted it readable for us. */
	n = snprintf(full, sizeof(full), "/sys/kernel/debug/%s", path);
	return (size_t)n < sizeof(full) ? root_openat(root, full, flags) : -ENAMETOOLONG;
}
