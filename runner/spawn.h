/*
 * Starts the workload in its group, held at a gate before exec.
 *
 * Life: spawn_gated (the child exists, in the group, waiting) → first sample, limits →
 * spawn_open_gate → spawn_exec_result when exec_fd is readable → reap the pid. Closing the gate
 * unopened, or dying, ends the child before exec. The workload stays in our process group and
 * session, so that terminals and shells treat it as if it had been started without us.
 */
#pragma once

#include "cgroup/cgroup.h"

#include <signal.h>

/* Signals whose disposition analyzer changes for itself: the child gets them as we were started. */
extern const int spawn_dispositions[3];

struct spawn_opts {
	char *const *argv;
	const struct cgroup *cg; /* NULL: no group */
	const char *user;        /* NULL: ours */
	const char *stdin_path;  /* NULL: ours */
	sigset_t sigmask;        /* the mask that the child shall have */
	sigset_t ignored;        /* of those that analyzer sets: ignored when we were started */
	/* Called in the child while it still has our rights; 0 or a negative errno, which
	 * spawn_gated gives back as *prepared and which does not end the child. NULL: nothing to
	 * do. */
	int (*prepare)(void *ctx);
	void *prepare_ctx;
};

struct spawned {
	pid_t pid;
	int gate_fd;  /* one byte opens it */
	int exec_fd;  /* readable: exec succeeded (end of file) or failed (an errno) */
	int prepared; /* what opts.prepare gave */
};

int spawn_gated(struct spawned *ret, const struct spawn_opts *opts, struct err *err);

void spawn_open_gate(struct spawned *s);

/* 0: the command runs. Negative: exec failed; *ret_status is 126 or 127, the message names the
 * command; 125 when its stdin or user was at fault. To be called when exec_fd is readable; closes
 * it. */
int spawn_exec_result(struct spawned *s, const struct spawn_opts *opts, int *ret_status,
		      struct err *err);

/* Closes what is open; a child still at the gate then ends by itself. */
void spawn_close(struct spawned *s);
