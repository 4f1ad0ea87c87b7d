/*
 * Law `step`: a percentage of the usage is squeezed off at each tick; it grows by squeeze_delta
 * while squeezes succeed, shrinks while they do not, and falls to 0 when the fault rate passes
 * the watermark or tasks stall too long.
 *
 * By itself that rule circles at the knee for ever: it squeezes until the watermark is passed,
 * lets go, and squeezes again, and every lap costs as many faults. So it also stops where most
 * of what is reclaimed comes straight back, waits until that has been quiet for a while, and
 * tries once more with the least percentage; the while doubles as long as the try shows the same.
 */
#include "squeezer/law.h"

#include "base/clock.h"
#include "base/fmt.h"

#include <math.h>

/* More of the reclaimed pages than this came back at once: the knee. Reclaim takes some pages
 * that are in use anywhere, so a small share proves nothing; below QUIET it has passed. */
#define REFAULT_KNEE 0.5
#define REFAULT_QUIET 0.1
/* Where nothing was reclaimed there is no ratio; then this share of the watermark is quiet. */
#define FAULTS_QUIET 0.1

/* Two seconds outlast the refaults of a squeeze on most workloads; at thirty a try of 1 % costs
 * less than can be measured, and a set that became cold is still found soon. */
#define BACK_MIN_S 2.0
#define BACK_MAX_S 30.0
/* A knee within so many squeezes of the last one is the same knee. */
#define SAME_KNEE 2

#define HEADROOM_MIN (16 << 20) /* as the squeezer's own, where it is not known */
#define LEAST_SQUEEZE 4096      /* less than a page cannot be reclaimed */

enum { IS_WAITING, N_SQUEEZED, IS_TRIED, N_KNEE }; /* law_state.n */
enum { BACK_S, QUIET_S };                          /* law_state.x */

static void init(struct law_state *st, const struct squeezer_config *cfg)
{
	(void)cfg; /* the percentage starts at 0 whatever the configuration */
	*st = (struct law_state){0};
}

#define say(ret, ...) ((void)snprintf((ret)->reason, sizeof((ret)->reason), __VA_ARGS__))

static int64_t headroom(const struct observation *obs)
{
	return obs->headroom_bytes > 0 ? obs->headroom_bytes
				       : MAX(obs->usage_bytes / 50, (int64_t)HEADROOM_MIN);
}

static int64_t add_sat(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? NUM_MAX : sum;
}

/* Raises the limit: room for all that one squeeze may have taken, and never below what is held
 * (no limit stays no limit). */
static void relax(const struct squeezer_config *cfg, const struct observation *obs,
		  struct verdict *ret)
{
	int64_t back = (int64_t)(obs->usage_bytes * (cfg->squeeze_max_pct / 100));

	ret->action = ACTION_RELAX;
	ret->target_bytes =
		MAX(add_sat(obs->usage_bytes, MAX(back, headroom(obs))), obs->limit_bytes);
}

/* No squeezing until it has been quiet for a while. */
static void start_waiting(struct law_state *st)
{
	if (!st->n[IS_WAITING]) {
		bool is_same = st->x[BACK_S] > 0 && st->n[N_SQUEEZED] <= SAME_KNEE;

		st->x[BACK_S] = is_same ? MIN(st->x[BACK_S] * 2, BACK_MAX_S) : BACK_MIN_S;
		st->n[IS_WAITING] = 1;
		st->n[N_SQUEEZED] = 0;
	}
	st->x[QUIET_S] = 0;
	st->n[IS_TRIED] = 0;
	st->pct = 0;
}

/* What must be known for any verdict but hold. */
static bool is_known(const struct observation *obs, struct verdict *ret)
{
	if (obs->usage_bytes < 0)
		say(ret, "memory.current is not known");
	else if (obs->floor_bytes < 0)
		say(ret, "the size that cannot be reclaimed is not known");
	else if (!(obs->dt_s > 0))
		say(ret, "the first look: nothing to compare with yet");
	else
		return true;
	return false;
}

/* Before the time for squeezing has come. */
static bool is_early(const struct squeezer_config *cfg, const struct observation *obs,
		     struct verdict *ret)
{
	if (obs->t_ns < cfg->delay_s * NS_PER_S)
		say(ret, "in the delay of %.15g s", cfg->delay_s);
	else if (!obs->is_steady && cfg->limit_phase == PHASE_STEADY)
		say(ret, "warm-up: usage is still growing");
	else
		return false;
	return true;
}

/*
 * Demand: the usage grows by what the headroom would not stand for three ticks, or it came so
 * near to the limit that less than a headroom is left. Measured against the plain headroom: the
 * squeezer's grows with the growth itself.
 */
static bool guard_growth(struct law_state *st, const struct squeezer_config *cfg,
			 const struct observation *obs, struct verdict *ret)
{
	int64_t h = headroom(obs), plain = cfg->headroom.bytes;
	char a[FMT_MAX], b[FMT_MAX];

	if (plain <= 0)
		plain = MAX(obs->usage_bytes / 50, (int64_t)HEADROOM_MIN);
	if (obs->growth_bytes > MIN(h, plain) / 3) {
		say(ret, "usage grew by %s to %s", fmt_bytes(a, obs->growth_bytes),
		    fmt_bytes(b, obs->usage_bytes));
	} else if (obs->growth_bytes > 0 && obs->limit_bytes < cfg->max_limit.bytes &&
		   obs->limit_bytes < add_sat(obs->usage_bytes, h)) {
		say(ret, "usage %s came near to the limit %s", fmt_bytes(a, obs->usage_bytes),
		    fmt_bytes(b, obs->limit_bytes));
	} else {
		return false;
	}
	relax(cfg, obs, ret);
	st->n[IS_TRIED] = 0;
	st->pct = 0; /* more is needed than before: begin again gently */
	return true;
}

/* The budgets: major faults, and the share of time in which tasks stall on memory. */
static bool guard_cost(struct law_state *st, const struct squeezer_config *cfg,
		       const struct observation *obs, struct verdict *ret)
{
	/* `some` counts from the first waiting task on; a kernel without it may have `full`. */
	double stall = isnan(obs->stall_some) ? obs->stall_full : obs->stall_some;

	if (isnan(obs->fault_rate)) {
		say(ret, "the fault rate is not known");
		return true;
	}
	if (obs->fault_rate > cfg->pf_rate_watermark)
		say(ret, "fault rate %.0f/s is over the watermark %.0f/s", obs->fault_rate,
		    cfg->pf_rate_watermark);
	else if (stall > cfg->stall_budget) /* false for NAN: without PSI the faults must do */
		say(ret, "stalled %.1f %% of the time, the budget is %.1f %%", stall * 100,
		    cfg->stall_budget * 100);
	else
		return false;
	start_waiting(st);
	relax(cfg, obs, ret);
	return true;
}

/* Most of what was reclaimed came straight back. */
static bool guard_knee(struct law_state *st, const struct squeezer_config *cfg,
		       const struct observation *obs, struct verdict *ret)
{
	if (!(obs->refault_ratio > REFAULT_KNEE)) {
		st->n[N_KNEE] = 0;
		return false;
	}
	start_waiting(st);
	st->n[N_KNEE]++;
	/* One tick shows our own squeeze. When it goes on, the limit itself reclaims. */
	if (st->n[N_KNEE] > 1 && obs->limit_bytes != NUM_MAX) {
		relax(cfg, obs, ret);
		say(ret, "pages keep coming back (refault ratio %.2f): giving room",
		    obs->refault_ratio);
	} else {
		say(ret, "the knee: pages come straight back (refault ratio %.2f)",
		    obs->refault_ratio);
	}
	return true;
}

static bool is_waiting(struct law_state *st, const struct squeezer_config *cfg,
		       const struct observation *obs, struct verdict *ret)
{
	bool quiet = isnan(obs->refault_ratio)
			     ? obs->fault_rate <= cfg->pf_rate_watermark * FAULTS_QUIET
			     : obs->refault_ratio < REFAULT_QUIET;

	if (!st->n[IS_WAITING])
		return false;
	st->x[QUIET_S] = quiet ? st->x[QUIET_S] + obs->dt_s : 0;
	if (st->x[QUIET_S] >= st->x[BACK_S]) {
		st->n[IS_WAITING] = 0;
		return false;
	}
	say(ret, "quiet for %.1f s; squeezing again after %.1f s", st->x[QUIET_S], st->x[BACK_S]);
	return true;
}

/* The percentage of this tick; false when the last squeeze used it up. */
static bool next_pct(struct law_state *st, const struct squeezer_config *cfg,
		     const struct observation *obs, struct verdict *ret)
{
	/* An outcome counts once: a tick that squeezed nothing leaves none. */
	bool has_outcome = st->n[IS_TRIED] && obs->has_last;
	bool failed = has_outcome && obs->last != OUTCOME_OK && obs->last != OUTCOME_SKIPPED;

	st->n[IS_TRIED] = 0;
	if (failed)
		st->pct -= cfg->squeeze_delta_pct;
	/* A timeout is the pace of this machine, not the end of what can be had. */
	if (failed && obs->last == OUTCOME_TIMEOUT)
		st->pct = MAX(st->pct, cfg->squeeze_delta_pct);
	if (!has_outcome || obs->last == OUTCOME_OK || (!failed && st->pct <= 0))
		st->pct += cfg->squeeze_delta_pct;
	st->pct = MAX(MIN(st->pct, cfg->squeeze_max_pct), 0.0);
	if (st->pct > 0)
		return true;
	if (failed) {
		start_waiting(st);
		say(ret, "the last squeeze failed (%s), waiting", outcome_name(obs->last));
	} else {
		say(ret, "squeeze_max is 0: never squeeze");
	}
	return false;
}

static void squeeze(struct law_state *st, const struct squeezer_config *cfg,
		    const struct observation *obs, struct verdict *ret)
{
	int64_t usage = obs->usage_bytes, min = cfg->min_limit.bytes;
	int64_t lowest = MAX(obs->floor_bytes, min), target;
	const char *name = min > obs->floor_bytes ? "min_limit" : "what cannot be reclaimed,";
	char a[FMT_MAX], b[FMT_MAX];

	if (!next_pct(st, cfg, obs, ret))
		return;
	target = usage - (int64_t)(usage * (st->pct / 100));
	fmt_bytes(a, usage);
	if (usage - MAX(target, lowest) < LEAST_SQUEEZE) {
		if (target < lowest)
			say(ret, "usage %s is down to %s %s", a, name, fmt_bytes(b, lowest));
		else
			say(ret, "%.15g %% of the usage %s is less than a page", st->pct, a);
		return;
	}
	ret->action = ACTION_TIGHTEN;
	ret->target_bytes = MAX(target, lowest);
	if (target < lowest)
		say(ret, "squeezing %s down to %s %s", a, name, fmt_bytes(b, lowest));
	else
		say(ret, "squeezing %.15g %% off %s", st->pct, a);
	st->n[IS_TRIED] = 1;
	st->n[N_SQUEEZED]++;
}

static void step(struct law_state *st, const struct squeezer_config *cfg,
		 const struct observation *obs, struct verdict *ret)
{
	*ret = (struct verdict){.action = ACTION_HOLD};
	if (!is_known(obs, ret))
		return;
	/* While a limit is held, what it costs counts at any time. */
	if (obs->limit_bytes == NUM_MAX && is_early(cfg, obs, ret))
		return;
	if (guard_growth(st, cfg, obs, ret) || guard_cost(st, cfg, obs, ret) ||
	    is_early(cfg, obs, ret) || guard_knee(st, cfg, obs, ret) ||
	    is_waiting(st, cfg, obs, ret))
		return;
	squeeze(st, cfg, obs, ret);
}

const struct law law_step = {
	.name = "step",
	.help = "a percentage off the usage per sampling period, more while it goes well; stops "
		"where pages come back",
	.init = init,
	.step = step,
};
