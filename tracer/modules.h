/*
 * The files whose code the workload runs, and where each process has them.
 *
 * A file is known by device and inode, kept open from the moment it was first seen, so that it
 * stays readable when it is deleted or replaced, and its inode is not used anew. Files are added
 * from the gate's thread and from the reader's; everything else is the reader's alone.
 *
 * Life: modules_new → … → modules_free. Modules have ids 1, 2, …; pointers stay valid.
 */
#pragma once

#include "base/err.h"
#include "bpf/events.h"
#include "tracer/unwind.h"

#include <sys/stat.h>

struct modules;

struct module_file {
	struct module m;
	int fd;
	dev_t dev;
	ino_t ino;
	bool is_private;
	bool is_probed;  /* the gate has looked at it */
	struct cfi *cfi; /* the reader's; opened when first needed */
	bool has_no_cfi;
};

int modules_new(struct modules **ret, struct err *err);
void modules_free(struct modules *ms); /* NULL allowed */

/* The file behind fd, added when it is new (fd is then duplicated). path: where the workload has
 * it; copied. NULL: no memory, no descriptors left. */
struct module_file *modules_add(struct modules *ms, int fd, const char *path, bool is_private);

struct module_file *modules_get(struct modules *ms, uint32_t id);
size_t modules_count(struct modules *ms);

/* The file that the kernel names so (major << 20 | minor, inode); NULL = not added, or a file
 * system that tells user space other numbers. */
struct module_file *modules_find(struct modules *ms, uint64_t dev, uint64_t ino);

/* Unwind rows of a module, or NULL. */
struct cfi *modules_cfi(struct modules *ms, uint32_t id);

/* Executable ranges of a process from /proc/PID/maps, as a kernel table, but for its
 * generation. -ESRCH: it is gone. */
int modules_read_maps(struct modules *ms, uint32_t pid, struct table *ret);

/* What a process has mapped at an address: its path as /proc/PID/maps has it, in buf; NULL =
 * nothing of a name, or it is gone. */
const char *modules_mapped(uint32_t pid, uint64_t address, char *buf, size_t size);

/* The same from what the kernel side has listed. -ENOENT: a file is not known yet; the process, if
 * it lives, can be asked by modules_read_maps. */
int modules_from_maps(struct modules *ms, const struct record_maps *m, struct table *ret);

/* The same ranges for the unwinder. */
size_t modules_ranges(const struct table *t, struct range ret[TABLE_RANGES]);
