/*
 * cgroup v2 as directory descriptors: where groups can be made, and one group's life.
 *
 * Life of a group: cgroup_place (choose and prepare the parent) → cgroup_create → use its dirfd
 * → cgroup_remove. Every change to the machine is registered with the undo interface before it is made.
 * The same code works on a fake tree (--root): its files are plain files.
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
	char path[CGROUP_PATH_MAX]; /* absolute */
	uint64_t id;                /* inode number = the kernel's cgroup id */
	int undo_id;
	bool is_fake; /* a fake tree: nothing behind the files acts */
};
