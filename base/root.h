/*
 * A rooted directory handle: every access to /proc, /sys and the cgroup tree goes through one,
 * so that a recorded or scripted tree can stand in for the machine (--root DIR, tests).
 *
 * Paths are absolute as the machine has them ("/proc/vmstat"); the handle resolves them below
 * its directory. Life: root_open → use → root_close. Not copied; borrowed by everything that
 * reads the system, so it must outlive them.
 */
#pragma once

#include "base/err.h"

struct root {
	int fd;
	char prefix[256]; /* "" for the real system; for messages */
};

/* dir NULL or "/" is the real system. Errors: as open(2). */
int root_open(struct root *r, const char *dir, struct err *err);
void root_close(struct root *r);

/* True for an alternative tree: plain files that nothing behind them updates. */
bool root_is_fake(const struct root *r);

/* openat(2) below the root, O_CLOEXEC added. Returns the descriptor or a negative errno, no
 * message: what a missing file means is known to the caller only. */
int root_openat(const struct root *r, const char *path, int flags);

/* Reads a small file whole, at most size - 1 bytes, NUL added, one trailing newline removed.
 * Returns the length or a negative errno (-E2BIG when it does not fit). */
ssize_t root_read(const struct root *r, const char *path, char *buf, size_t size);

/* Writes a short value in one write(2). Returns 0 or a negative errno. */
int root_write(const struct root *r, const char *path, const char *value);

/* As root_read and root_write, by directory descriptor and file name. */
ssize_t read_file_at(int dirfd, const char *name, char *buf, size_t size);
int write_file_at(int dirfd, const char *name, const char *value);
