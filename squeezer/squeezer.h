/*
 * Adjusts one group's limit: observation → law → verdict → actuator → decision.
 *
 * Life: squeezer_new (reads and registers the limits found) → squeezer_start (the run's time 0)
 * → squeezer_observe per sample, squeezer_dispatch when squeezer_fd is readable → squeezer_release
 * → squeezer_free. Used from the event loop; nothing in it blocks: what may block is the
 * actuator's. What holds for every law lives here: the limit is never written below usage or
 * the reclaimable floor, it is raised at once on a new `high` or `max` event, it is not held
 * while swap is nearly full, and the limits found at the start are put back at the end.
 */
#pragma once

#include "cgroup/cgroup.h"
#include "model/sample.h"
#include "squeezer/config.h"
#include "squeezer/law.h"

struct squeezer;

struct squeezer_opts {
	const struct squeezer_config *cfg; /* resolved: no percentages left; borrowed */
	const struct cgroup *cg;           /* borrowed */
	struct undo *undo;
	bool is_dry_run; /* decide and record, write nothing */
	/* Told of each decision when its outcome is known. */
	void (*on_decision)(void *ctx, const struct decision *d);
	void *ctx;
};

/* -ENOTSUP: the group has no memory controller or not the file that the knob names. */
int squeezer_new(struct squeezer **ret, const struct squeezer_opts *opts, struct err *err);

/* t0_mono_ns: CLOCK_MONOTONIC of the run's first sample. Applies what limit_phase `start` asks
 * for; to be called before the workload's exec. */
int squeezer_start(struct squeezer *s, int64_t t0_mono_ns, struct err *err);

/* The workload runs since now: `delay` counts from here. */
void squeezer_executed(struct squeezer *s);

/* Readable when squeezer_dispatch has work: a memory event or the actuator's answer. */
int squeezer_fd(const struct squeezer *s);
void squeezer_dispatch(struct squeezer *s);

/* Another sample; decides and acts. */
void squeezer_observe(struct squeezer *s, const struct sample *now);

/* Gives the limits found at the start back, at once, for the rest of the run. */
void squeezer_release(struct squeezer *s, const char *reason);

/* The same until squeezer_resume, which does nothing once squeezer_release was called. */
void squeezer_pause(struct squeezer *s, const char *reason);
void squeezer_resume(struct squeezer *s);

/* The limit held now; NUM_MAX = none. */
int64_t squeezer_limit(const struct squeezer *s);

/* The actuator's pid, to tell it from the workload's processes when reaping; 0 = none. */
pid_t squeezer_actuator_pid(const struct squeezer *s);

/* Releases, ends the actuator, frees; NULL allowed. Returns the actuator's CPU time in ns, -1
 * when there was none. */
int64_t squeezer_free(struct squeezer *s);
