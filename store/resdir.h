/*
 * The results directory: made without races, owned by the person behind sudo, linked as
 * profile.latest beside it.
 *
 * Life: resdir_create → write files through dirfd → resdir_close.
 */
#pragma once

#include "base/err.h"

struct resdir {
	int dirfd;
	char path[512];
	uid_t uid; /* whose the files are to be; -1 = as they come */
	gid_t gid;
};

/*
 * path NULL: profile.<workload>.<YYYYMMDD-HHMMSS> in the current directory, with -2, -3 … when
 * taken. Else path must not exist; with `force` it may be empty or one of ours, of which only our
 * files are removed. workload is a command's path; only its last component counts.
 */
int resdir_create(struct resdir *ret, const char *path, bool force, const char *workload,
		  struct err *err);
void resdir_close(struct resdir *d);

/* Creates or replaces a file whole (written beside it, synced, renamed). */
int resdir_write_file(const struct resdir *d, const char *name, const char *data, size_t len,
		      struct err *err);

/* Opens a file for appending, created with the right owner. Returns the descriptor. */
int resdir_open_log(const struct resdir *d, const char *name, struct err *err);
