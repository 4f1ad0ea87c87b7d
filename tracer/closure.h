/*
 * The files that a command will map: itself, its interpreter (of a script too), and the shared
 * libraries it needs, as ld.so would find them (LD_PRELOAD, LD_LIBRARY_PATH, RPATH and RUNPATH
 * with $ORIGIN, /etc/ld.so.conf's folders, the default ones). Best effort, nothing is executed:
 * what is missed is found when the workload opens it.
 */
#pragma once

#include "base/err.h"

struct closure {
	char **path; /* owned, absolute, resolved (no symbolic links), unique; the command first */
	size_t n;
};

/* command as for execvp(3), in this process's environment. -ENOENT, -EACCES: cannot be run. */
int closure_find(struct closure *ret, const char *command, struct err *err);
void closure_done(struct closure *c);
