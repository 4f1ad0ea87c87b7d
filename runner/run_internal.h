/*
 * What the files of one run share: run.c (start, loop, end), run_sample.c (what a sample means),
 * run_signals.c (how a run is brought to its end).
 */
#pragma once

#include "runner/run.h"

#include "runner/spawn.h"
#include "runner/trace.h"
#include "sampler/sampler.h"
#include "squeezer/squeezer.h"

enum source {
	SRC_SIGNAL,
	SRC_SAMPLE,  /* timer */
	SRC_BEAT,    /* timer */
	SRC_TIMEOUT, /* timer: --timeout, then the grace period */
	SRC_EXEC,
	SRC_GROUP, /* cgroup.events */
	SRC_SQUEEZER,
	SRC_STORE,
	SRC_COUNT
};

struct run {
	const struct run_env *env;
	const struct run_spec *spec;
	int64_t run_id, t0_mono_ns;
	int64_t beat_mono_ns; /* of the last beat to the guard */
	struct cgroup cg;
	struct sampler *sampler;
	struct squeezer *squeezer;
	struct trace *trace;
	struct spawned child;
	int fd[SRC_COUNT]; /* -1 = not open; some are borrowed */
	int epoll_fd;
	struct sample prev, now;
	int64_t peak_bytes;
	uint32_t end_signal; /* the last that asked to end, and when */
	int64_t end_mono_ns;
	int64_t start_cpu_ns;
	struct run_end end;
	int exit_status; /* of the main process, -1 = not known yet */
	int empty_beats; /* with the main process alive and nobody in its group */
	bool has_child, is_child_reaped;
	bool is_over;      /* nothing of the workload is left */
	bool is_recording; /* samples are taken */
	bool is_ending;    /* asked to end: the grace period runs */
	bool was_killed;
	struct err no_trace; /* why not; code 0 = it is, or is not to be */
	bool has_timed_out;
	struct err failure; /* the group is gone, the recording failed */
};

/* ns since the run's first sample. */
int64_t run_elapsed(const struct run *run);
void run_note_event(struct run *run, const char *kind, const char *detail);

/* -- run_sample.c */

void run_show_progress(const struct run *run);
void run_check_oom(struct run *run);
/* The group was removed by somebody else: recording is over. */
void run_group_removed(struct run *run);
/* 0, or -ENODEV: the group is gone. */
int run_take_sample(struct run *run);
void run_on_sample_timer(struct run *run);

/* -- run_signals.c */

void run_signal_workload(const struct run *run, int sig);
void run_arm(struct run *run, enum source timer, int64_t first_ns, int64_t interval_ns);
/* The limit goes at once, the workload is asked to end, and killed when it does not. */
void run_ask_to_end(struct run *run, int sig, bool forward);
void run_on_timeout(struct run *run);
void run_on_signal(struct run *run);
void run_check_over(struct run *run);
void run_check_escaped(struct run *run);
void run_beat(struct run *run);
