/*
 * Laws decide, pure: (configuration, state, observation) → verdict; no I/O, no clock, no
 * allocation. One table names them, so that another law is one file and one row.
 *
 * The squeezer (squeezer.h) makes the observation, keeps the verdict within the limits that
 * hold for every law (never below usage, the floor or min_limit; raised at once on an event)
 * and has it carried out.
 */
#pragma once

#include "model/decision.h"
#include "squeezer/config.h"

/* What is known at one tick. Unknown figures are NAN (doubles) or -1 (integers). */
struct observation {
	int64_t t_ns;         /* since the run's first sample */
	double dt_s;          /* since the previous observation; 0 at the first */
	int64_t usage_bytes;  /* memory.current */
	int64_t growth_bytes; /* of usage since the previous observation; may be negative */
	int64_t limit_bytes;  /* held now; NUM_MAX = none */
	int64_t floor_bytes;  /* what reclaim cannot go below */
	int64_t headroom_bytes;
	double fault_rate; /* major faults per second, by the samples' own times */
	double stall_some; /* fraction of the interval */
	double stall_full;
	double refault_ratio; /* refaults / reclaimed pages of the interval */
	bool is_steady;       /* usage has stopped growing: the workload is past its warm-up */
	bool has_last;        /* an earlier tighten of this run has ended … */
	enum outcome last;    /* … like this */
};

/* What to do. The target is a usage for TIGHTEN (reclaim down to it) and the least limit for
 * RELAX; HOLD and RELEASE have none. */
struct verdict {
	enum action action;
	int64_t target_bytes;
	char reason[96];
};

struct law_state {
	double pct;   /* step: percent squeezed off per tick */
	int64_t n[4]; /* counters of a law's own */
	double x[4];
};

struct law {
	const char *name;
	const char *help; /* one line, for `analyzer list laws` */
	void (*init)(struct law_state *st, const struct squeezer_config *cfg);
	void (*step)(struct law_state *st, const struct squeezer_config *cfg,
		     const struct observation *obs, struct verdict *ret);
};

extern const struct law law_step;

/* NULL-terminated, in the order of preference. */
extern const struct law *const laws[];

/* The law of that name, or NULL. */
const struct law *law_find(const char *name);
