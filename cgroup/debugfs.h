/*
 * debugfs without mounting it: the files are opened through a detached mount, which no mount
 * table shows and which goes away with the last descriptor, so there is nothing to undo. On an
 * alternative root they are plain files below /sys/kernel/debug.
 */
#pragma once

#include "base/root.h"

/*
 * openat(2) below debugfs, O_CLOEXEC added. path is relative: "zswap". Returns a descriptor or a
 * negative errno: -EPERM, -EACCES without the right, -ENODEV on a kernel without debugfs.
 */
int debugfs_openat(const struct root *root, const char *path, int flags);
