/* The workload's processes as a whole. */
#pragma once

#include "cgroup/cgroup.h"

/*
 * Sends sig to every process of the group, as the terminal does to a process group, and to
 * main_pid (0 = it has ended), which may have left the group. Without a group (cg->dirfd < 0):
 * to our children but `except`; with a fake or removed one to main_pid alone.
 */
void children_signal(const struct cgroup *cg, pid_t main_pid, pid_t except, int sig);

/* True while this process has a child other than `except`: orphans of the workload come to us,
 * we are their subreaper. False where the kernel does not list children. */
bool children_exist(pid_t except);
