/* The workload's processes as a whole. */
#pragma once

#include "cgroup/cgroup.h"

/*
 * Sends sig to every process of the group, as the terminal does to a process group. Without a
 * group (cg->dirfd < 0, or a fake one): to main_pid, 0 = nobody.
 */
void children_signal(const struct cgroup *cg, pid_t main_pid, int sig);

/* True while this process has a child other than `except`: orphans of the workload come to us,
 * we are their subreaper. False where the kernel does not list children. */
bool children_exist(pid_t except);
