/*
 * What is shown on stderr while a session runs.
 *
 * Modes: `line` rewrites one line, at most 5 times a second; `log` prints a plain line at each
 * change of phase and at most one per 10 s; `none` nothing. `auto` is line when stderr is a
 * terminal that the workload's stdout does not share, log when they share it, and only the
 * changes of phase when stderr is no terminal.
 */
#pragma once

#include "base/log.h"
#include "runner/session.h"

enum progress_mode { PROGRESS_LINE, PROGRESS_LOG, PROGRESS_PHASES, PROGRESS_NONE };

struct progress_view {
	struct log *log;
	enum progress_mode mode;
	int64_t last_ns; /* CLOCK_MONOTONIC of the last line; 0 = none yet */
	int last_run;
	char last_phase[32];
};

/* when: auto, line, log, none. -EINVAL for another word. */
int progress_init(struct progress_view *v, struct log *log, const char *when);

/* The session's callback; ctx is a struct progress_view. */
void progress_show(void *ctx, const struct progress *p);
