/*
 * cgroup v2 as directory descriptors: where groups can be made, and one group's life.
 *
 * Life of a group: cgroup_place (choose and prepare the parent) → cgroup_create → use its dirfd
 * → cgroup_remove. Every change to the machine is registered with the undo interface before it is
 * made. The same code works on a fake tree (--root): its files are plain files.
 */
#pragma once

#include "base/root.h"
#include "base/undo.h"

#define CGROUP_PATH_MAX 1024

/* The v2 hierarchy as this process sees it. */
struct cgroup_tree {
	const struct root *root;
	char mount[CGROUP_PATH_MAX]; /* absolute, as the machine has it: "/sys/fs/cgroup" */
	char self[CGROUP_PATH_MAX];  /* our own group below it: "" or "/user.slice/…" */
	/* Where the memory controller is instead of on v2; "" = on v2, or nowhere. */
	char memory_v1_mount[CGROUP_PATH_MAX];
};

/* Where a group will be made. */
struct cgroup_place {
	char parent[CGROUP_PATH_MAX]; /* absolute path */
	bool has_memory;              /* a child there gets the memory controller */
	int undo_ids[8];              /* controllers that we enabled there */
	size_t n_undo;
};

struct cgroup {
	int dirfd;
	/* cgroup.events, -1 on a fake tree. For polling (POLLPRI): the kernel calls it ready until
	 * this very descriptor has been read, which cgroup_is_populated does. */
	int events_fd;
	char path[CGROUP_PATH_MAX]; /* absolute */
	uint64_t id;                /* inode number = the kernel's cgroup id */
	int undo_id;
	bool is_fake; /* a fake tree: nothing behind the files acts */
};

/*
 * Finds the v2 mount (cgpath NULL: from mountinfo) and our own place in it (/proc/self/cgroup,
 * line 0::). -ENOENT: no cgroup v2 is mounted; memory_v1_mount is filled even then.
 */
int cgroup_tree_find(struct cgroup_tree *ret, const struct root *root, const char *cgpath,
		     struct err *err);

/*
 * Chooses the parent: the nearest ancestor of our own group in which a child gets the memory
 * controller (enabled there if need be), else the nearest one we may write to, with has_memory
 * false. parent_path (absolute, or below the mount) overrides the choice, not the enabling.
 * -EACCES: no writable group at all.
 */
int cgroup_place_find(struct cgroup_place *ret, const struct cgroup_tree *tree,
		      const char *parent_path, struct undo *undo, struct err *err);

/* Disables again what cgroup_place_find enabled, unless somebody else's group uses it by now. */
void cgroup_place_undo(struct cgroup_place *place, struct undo *undo);

/*
 * Makes the group `name` (NULL: analyzer-<pid>-<hex>, unique) and registers its removal.
 * -EEXIST: a group of that name is there and not ours: refused, nobody in it is touched.
 */
int cgroup_create(struct cgroup *ret, const struct cgroup_tree *tree,
		  const struct cgroup_place *place, const char *name, struct undo *undo,
		  struct err *err);

/* Closes the descriptors; does not remove. */
void cgroup_close(struct cgroup *cg);

/* Reads or writes one of the group's files; negative errno, no message. */
ssize_t cgroup_read(const struct cgroup *cg, const char *file, char *buf, size_t size);
int cgroup_write(const struct cgroup *cg, const char *file, const char *value);

/* A file that holds one number or "max" (= NUM_MAX). Negative errno, no message. */
int cgroup_read_number(const struct cgroup *cg, const char *file, int64_t *ret);
int cgroup_write_number(const struct cgroup *cg, const char *file, int64_t value);

/* CPU time of all that was in it so far; -1 = not known. */
int64_t cgroup_cpu_ns(const struct cgroup *cg);

/* 1: processes live in it or below; 0: none; -ENODEV/-ENOENT: removed. A fake group: 0. */
int cgroup_is_populated(const struct cgroup *cg);

/* The processes in it and in the groups below it, without order. The list is the caller's, to be
 * freed after the last call. Returns how many, or a negative errno, no message. */
ssize_t cgroup_processes(const struct cgroup *cg, pid_t **list, size_t *cap);

/* SIGKILL to all in it: cgroup.kill, else pid by pid. */
int cgroup_kill(const struct cgroup *cg, struct err *err);

/* Removes the empty group now; retries for up to 2 s while dying processes keep it busy. */
int cgroup_remove(struct cgroup *cg, struct undo *undo, struct err *err);
