/* Law step: verdicts worked out by hand, a small plant, and what holds for any observation. */
#include "squeezer/law.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB INT64_C(1048576)
#define S INT64_C(1000000000)

static struct squeezer_config config(void)
{
	struct squeezer_config cfg;

	config_init_default(&cfg, MODE_DYNAMIC);
	return cfg;
}

/* A quiet second of a steady workload of 1000 MiB without a limit; headroom 20 MiB (2 %). */
static struct observation quiet(void)
{
	return (struct observation){
		.t_ns = 100 * S,
		.dt_s = 1,
		.usage_bytes = 1000 * MIB,
		.limit_bytes = NUM_MAX,
		.floor_bytes = 10 * MIB,
		.headroom_bytes = 20 * MIB,
		.stall_some = 0,
		.stall_full = 0,
		.refault_ratio = NAN,
		.is_steady = true,
	};
}

/* A law and its last verdict. */
struct ctx {
	struct squeezer_config cfg;
	struct law_state st;
	struct verdict v;
};

static struct ctx begin(void)
{
	struct ctx c = {.cfg = config()};

	law_step.init(&c.st, &c.cfg);
	return c;
}

static enum action see(struct ctx *c, const struct observation *obs)
{
	memset(&c->v, 0x5a, sizeof(c->v));
	law_step.step(&c->st, &c->cfg, obs, &c->v);
	return c->v.action;
}

static void table(void **state)
{
	(void)state;
	assert_ptr_equal(law_find("step"), &law_step);
	assert_null(law_find("adaptive"));
	assert_null(law_find(""));
	assert_ptr_equal(laws[0], &law_step);
}

/* What is not known, or too early: hold, and say why. */
static void holds(void **state)
{
	struct hold {
		struct observation obs;
		double delay;
		const char *reason;
	} cases[8];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cases[i] = (struct hold){.obs = quiet()};
	cases[n].obs.usage_bytes = -1;
	cases[n++].reason = "memory.current is not known";
	cases[n].obs.floor_bytes = -1;
	cases[n++].reason = "the size that cannot be reclaimed is not known";
	cases[n].obs.dt_s = 0;
	cases[n++].reason = "the first look: nothing to compare with yet";
	cases[n].obs.fault_rate = NAN;
	cases[n++].reason = "the fault rate is not known";
	cases[n].obs.is_steady = false;
	cases[n++].reason = "warm-up: usage is still growing";
	cases[n].delay = 100.5;
	cases[n++].reason = "in the delay of 100.5 s";
	/* Without a limit nothing that happens in the warm-up is ours. */
	cases[n].obs.is_steady = false;
	cases[n].obs.fault_rate = 1e6;
	cases[n++].reason = "warm-up: usage is still growing";
	/* An even worse look: nothing is a number. */
	cases[n].obs = (struct observation){.usage_bytes = -1, .growth_bytes = INT64_MAX,
					    .dt_s = NAN, .fault_rate = NAN, .stall_some = NAN};
	cases[n++].reason = "memory.current is not known";
	for (size_t i = 0; i < n; i++) {
		struct ctx x = begin();

		x.cfg.delay_s = cases[i].delay;
		assert_int_equal(see(&x, &cases[i].obs), ACTION_HOLD);
		assert_string_equal(x.v.reason, cases[i].reason);
		assert_true(x.st.pct == 0);
	}
}

/* 1 % more at each tick: of 1000 MiB 10, 20, 30 … MiB, at most 100. */
static void grows(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	for (int i = 1; i <= 12; i++) {
		int pct = i < 10 ? i : 10;

		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
		assert_int_equal(c.v.target_bytes, (1000 - 10 * pct) * MIB);
		obs.has_last = true;
		obs.last = OUTCOME_OK;
	}
	assert_string_equal(c.v.reason, "squeezing 10 % off 1000.0 MiB");
}

/* A failure takes one delta off; used up, it waits: 2 s, then 4 s. */
static void fails(void **state)
{
	static const enum outcome failures[] = {OUTCOME_ERROR, OUTCOME_PARTIAL};
	struct observation obs = quiet();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		struct ctx c = begin();

		obs.has_last = false;
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 1 % */
		obs.has_last = true;
		obs.last = OUTCOME_OK;
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 2 % */
		obs.last = failures[i];
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
		assert_int_equal(c.v.target_bytes, 990 * MIB); /* 1 % */
		assert_int_equal(see(&c, &obs), ACTION_HOLD);
		assert_true(c.st.pct == 0);
		assert_memory_equal(c.v.reason, "the last squeeze failed (", 25);
		/* The old outcome is still shown; it must not count twice. */
		assert_int_equal(see(&c, &obs), ACTION_HOLD);	 /* quiet for 1 s */
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* for 2 s: 1 % again */
		assert_int_equal(c.v.target_bytes, 990 * MIB);
		assert_int_equal(see(&c, &obs), ACTION_HOLD); /* failed again */
		for (int s = 1; s < 4; s++)
			assert_int_equal(see(&c, &obs), ACTION_HOLD);
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* after 4 s */
	}
}

/* A timeout also takes one delta off, but is no reason to wait: one tick, then again. */
static void times_out(void **state)
{
	struct observation obs = quiet();
	struct ctx c = begin();

	(void)state;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 1 % */
	obs.has_last = true;
	obs.last = OUTCOME_TIMEOUT;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_string_equal(c.v.reason, "the last squeeze failed (timeout), waiting");
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	assert_int_equal(c.v.target_bytes, 990 * MIB);
}

/* An outcome counts once, also when the tick that saw it ended in a hold for another reason. */
static void counts_once(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 1, 2, 3 % */
	obs.has_last = true;
	obs.last = OUTCOME_ERROR;
	obs.floor_bytes = obs.usage_bytes;
	assert_int_equal(see(&c, &obs), ACTION_HOLD); /* 2 % */
	obs.floor_bytes = 10 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 3 % again, not 1 */
	assert_int_equal(c.v.target_bytes, 970 * MIB);
}

/* What the squeezer left undone changes nothing. */
static void skipped(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	obs.has_last = true;
	obs.last = OUTCOME_SKIPPED;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	assert_int_equal(c.v.target_bytes, 990 * MIB);
}

/* Watermark 10000: that many are accepted, one more is not. 10 % of 1000 MiB is more than the
 * headroom, so the limit goes to 1100 MiB at least. */
static void watermark(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.limit_bytes = 1080 * MIB;
	obs.fault_rate = 10000;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	obs.fault_rate = 12003;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 1100 * MIB);
	assert_true(c.st.pct == 0);
	assert_string_equal(c.v.reason, "fault rate 12003/s is over the watermark 10000/s");
	/* Back to normal: first quiet, then the least percentage. */
	obs.fault_rate = 0;
	obs.limit_bytes = 1100 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	assert_int_equal(c.v.target_bytes, 990 * MIB);
}

static void relax_target(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.fault_rate = 20000;
	/* The headroom where it is more, the limit where that is. */
	obs.limit_bytes = 1001 * MIB;
	obs.headroom_bytes = 300 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 1300 * MIB);
	obs.limit_bytes = 5000 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 5000 * MIB);
	/* No limit stays no limit; an unknown headroom is 2 % or 16 MiB. */
	obs.limit_bytes = NUM_MAX;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_true(c.v.target_bytes == NUM_MAX);
	obs.limit_bytes = obs.usage_bytes = 100 * MIB;
	obs.headroom_bytes = -1;
	c.cfg.squeeze_max_pct = 5;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 116 * MIB);
	obs.limit_bytes = obs.usage_bytes = INT64_MAX - 5;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_true(c.v.target_bytes == NUM_MAX);
}

/* Budget 5 %; `full` only where `some` is not known; neither known: the faults must do. */
static void stalls(void **state)
{
	static const struct {
		double some, full;
		enum action action;
	} cases[] = {
		{0.05, 0.05, ACTION_TIGHTEN}, {0.051, 0, ACTION_RELAX}, {0.04, 0.2, ACTION_TIGHTEN},
		{NAN, 0.06, ACTION_RELAX},    {NAN, NAN, ACTION_TIGHTEN},
	};
	struct observation obs = quiet();
	struct ctx c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		c = begin();
		obs.stall_some = cases[i].some;
		obs.stall_full = cases[i].full;
		assert_int_equal(see(&c, &obs), cases[i].action);
	}
	c = begin();
	obs.stall_some = 0.123;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_string_equal(c.v.reason, "stalled 12.3 % of the time, the budget is 5.0 %");
}

/* A third of the headroom, 20 MiB, is 6.67 MiB. */
static void growth(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.limit_bytes = 1080 * MIB;
	obs.growth_bytes = 6 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	obs.growth_bytes = 7 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_string_equal(c.v.reason, "usage grew by 7.0 MiB to 1000.0 MiB");
	assert_true(c.st.pct == 0);
	/* The squeezer's headroom follows the growth (3 × 300 MiB); it must not hide it. */
	obs.growth_bytes = 300 * MIB;
	obs.headroom_bytes = 900 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 1900 * MIB);
	obs.limit_bytes = 3000 * MIB; /* far enough not to be near */
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	/* Growth is safe to act upon even when the faults are not known. */
	obs.fault_rate = NAN;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);

	/* Slow growth that has come near the limit: 1000 + 20 > 1015. */
	c = begin();
	obs = quiet();
	obs.growth_bytes = 1;
	obs.limit_bytes = 1015 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_string_equal(c.v.reason, "usage 1000.0 MiB came near to the limit 1015.0 MiB");
	obs.limit_bytes = 1020 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	/* The user's own maximum cannot be raised: no relax at every tick. */
	obs.limit_bytes = c.cfg.max_limit.bytes = 1015 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
}

/* A limit that is held in the warm-up (after init_limit) is raised all the same. */
static void early_limit(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.is_steady = false;
	obs.limit_bytes = 1080 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	obs.fault_rate = 10001;
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	/* limit_phase start does not wait for a steady usage, but for the delay. */
	c = begin();
	c.cfg.limit_phase = PHASE_START;
	obs.fault_rate = 0;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	c.cfg.delay_s = 200;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
}

/* Not below what cannot be reclaimed, nor below min_limit; there it stays. */
static void lowest(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.floor_bytes = 995 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	assert_int_equal(c.v.target_bytes, 995 * MIB);
	assert_string_equal(c.v.reason,
			    "squeezing 1000.0 MiB down to what cannot be reclaimed, 995.0 MiB");
	c.cfg.min_limit.bytes = 997 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	assert_int_equal(c.v.target_bytes, 997 * MIB);
	obs.usage_bytes = 997 * MIB + 4095;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_string_equal(c.v.reason, "usage 997.0 MiB is down to min_limit 997.0 MiB");
	c.cfg.min_limit.bytes = NUM_MAX;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	c = begin();
	obs.usage_bytes = obs.floor_bytes = 0;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	c.cfg.squeeze_max_pct = 0;
	obs = quiet();
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_string_equal(c.v.reason, "squeeze_max is 0: never squeeze");
}

/* Half of the pages back is still the way; more is the knee: hold, and wait 2 s, 4 s, 8 s,
 * 16 s, 30 s, 30 s as long as a try shows the same. */
static void knee(void **state)
{
	static const int waits[] = {2, 4, 8, 16, 30, 30};
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.refault_ratio = 0.5;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	obs.has_last = true;
	obs.last = OUTCOME_OK;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		obs.refault_ratio = 0.51;
		assert_int_equal(see(&c, &obs), ACTION_HOLD);
		assert_string_equal(c.v.reason,
				    "the knee: pages come straight back (refault ratio 0.51)");
		obs.refault_ratio = 0.2; /* not quiet yet */
		assert_int_equal(see(&c, &obs), ACTION_HOLD);
		obs.refault_ratio = 0.09;
		for (int s = 1; s < waits[i]; s++)
			assert_int_equal(see(&c, &obs), ACTION_HOLD);
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
		assert_int_equal(c.v.target_bytes, 990 * MIB); /* the least percentage again */
	}
	/* Three good squeezes: what comes then is another knee. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
	obs.refault_ratio = 0.9;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	obs.refault_ratio = NAN; /* nothing reclaimed: few faults are quiet, 1001 are not */
	obs.fault_rate = 1000;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	obs.fault_rate = 1001;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	obs.fault_rate = 1000;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN);
}

/* Pages that go on coming back are not our squeeze any more: the held limit is too low. */
static void thrashing(void **state)
{
	struct ctx c = begin();
	struct observation obs = quiet();

	(void)state;
	obs.refault_ratio = 0.8;
	obs.limit_bytes = 1010 * MIB;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
	assert_int_equal(see(&c, &obs), ACTION_RELAX);
	assert_int_equal(c.v.target_bytes, 1100 * MIB);
	assert_string_equal(c.v.reason,
			    "pages keep coming back (refault ratio 0.80): giving room");
	obs.limit_bytes = NUM_MAX;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
}

/* -- a plant: hot pages come back within the next second, cold ones never --------------------- */

struct plant {
	double hot, cold;           /* resident MiB */
	double hot_out, cold_out;   /* swapped MiB */
	double r, kernel, noise;    /* compressed share; fixed MiB; share of hot pages in a steal */
	double limit;               /* MiB; INFINITY = none */
	double stolen, back, total; /* MiB in this tick; of all ticks */
	int n_squeezed;
};

static double usage(const struct plant *p)
{
	return p->hot + p->cold + p->r * (p->hot_out + p->cold_out) + p->kernel;
}

static void steal(struct plant *p, double mib)
{
	double hot = MIN(mib * p->noise, p->hot), cold = MIN(mib - hot, p->cold);

	hot = MIN(mib - cold, p->hot); /* what is not cold any more is taken from the hot ones */
	p->hot -= hot;
	p->cold -= cold;
	p->hot_out += hot;
	p->cold_out += cold;
	p->stolen += hot + cold;
}

static void reclaim_to(struct plant *p, double target)
{
	if (usage(p) > target)
		steal(p, (usage(p) - target) / (1 - p->r));
}

/* One second: what was evicted of the hot set is faulted in, the limit does its work. */
static void plant_tick(struct plant *p)
{
	p->back = p->hot_out;
	p->total += p->back;
	p->hot += p->hot_out;
	p->hot_out = 0;
	reclaim_to(p, p->limit);
}

static struct observation observe_plant(struct plant *p, double before, int tick)
{
	struct observation obs = quiet();

	obs.t_ns = tick * S;
	obs.usage_bytes = (int64_t)(usage(p) * MIB);
	obs.growth_bytes = (int64_t)((usage(p) - before) * MIB);
	obs.limit_bytes = isinf(p->limit) ? NUM_MAX : (int64_t)(p->limit * MIB);
	obs.floor_bytes = (int64_t)(p->kernel * MIB);
	obs.headroom_bytes = MAX(obs.usage_bytes / 50, 16 * MIB);
	obs.fault_rate = p->back * 256;
	obs.refault_ratio = p->stolen > 0 ? p->back / p->stolen : NAN;
	obs.has_last = p->n_squeezed > 0;
	p->stolen = 0;
	return obs;
}

/* Runs the plant under the law; the squeezer's part: held limit = usage + 4 × headroom. */
static void run_plant(struct plant *p, struct ctx *c, int from, int to)
{
	double before = usage(p);

	for (int tick = from; tick < to; tick++) {
		struct observation obs;

		plant_tick(p);
		obs = observe_plant(p, before, tick);
		before = usage(p);
		switch (see(c, &obs)) {
		case ACTION_TIGHTEN:
			assert_true(c->v.target_bytes >= MAX(obs.floor_bytes,
							     c->cfg.min_limit.bytes));
			reclaim_to(p, (double)c->v.target_bytes / MIB);
			p->limit = usage(p) + 4.0 * obs.headroom_bytes / MIB;
			p->n_squeezed++;
			break;
		case ACTION_RELAX:
			if (!isinf(p->limit))
				p->limit = (double)c->v.target_bytes / MIB;
			break;
		default:
			break;
		}
	}
}

/* 1 GiB, half of it cold, compressed to a third: 512 + 0.33 × 512 + 32 = 713 MiB at the least. */
static struct plant gigabyte(double noise)
{
	return (struct plant){
		.hot = 512, .cold = 512, .r = 0.33, .kernel = 32, .noise = noise, .limit = INFINITY,
	};
}

static void plant_converges(void **state)
{
	static const double noises[] = {0, 0.01, 0.05};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(noises); i++) {
		struct plant p = gigabyte(noises[i]);
		struct ctx c = begin();
		double at_60;
		int squeezed_60;

		run_plant(&p, &c, 0, 60);
		assert_true(usage(&p) < 713 * 1.06 && usage(&p) > 713 * 0.94);
		at_60 = p.total;
		squeezed_60 = p.n_squeezed;
		/* One step past the knee costs at most 10 % of the usage, three times that as pages
		 * because the compressed ones stay charged; no circling may follow. */
		assert_true(at_60 < 200);
		run_plant(&p, &c, 60, 660);
		assert_true(usage(&p) < 713 * 1.06);
		/* In 600 s: a try of 1 % (7 MiB, 11 MiB of pages) each 30 s and its wait. */
		assert_in_range(p.n_squeezed - squeezed_60, 1, 22);
		assert_true(p.total - at_60 < 22 * 11);
	}
}

/* The demand rises by 256 MiB that were cold: room is made, and the new knee is found. */
static void plant_phase(void **state)
{
	struct plant p = gigabyte(0.01);
	struct ctx c = begin();
	double moved;

	(void)state;
	run_plant(&p, &c, 0, 60);
	moved = MIN(256, p.cold_out);
	p.hot_out += moved;
	p.cold_out -= moved;
	run_plant(&p, &c, 60, 64);
	assert_true(p.hot > 512 + 256 - 20); /* all of it was let back in */
	run_plant(&p, &c, 64, 200);
	/* 768 + 0.33 × 256 + 32 = 884 */
	assert_true(usage(&p) > 884 * 0.94 && usage(&p) < 884 * 1.06);
}

static void plant_min_and_release(void **state)
{
	struct plant p = gigabyte(0.01);
	struct ctx c = begin();

	(void)state;
	c.cfg.min_limit.bytes = 900 * MIB;
	run_plant(&p, &c, 0, 200);
	assert_true(usage(&p) >= 899.9 && usage(&p) < 910);
	/* Released: without a limit, in a workload that is not to be squeezed, the law asks for
	 * none, whatever happens. */
	p.limit = INFINITY;
	c.cfg.min_limit.bytes = NUM_MAX;
	p.hot_out += p.cold_out;
	p.cold_out = 0;
	run_plant(&p, &c, 200, 260);
	assert_true(isinf(p.limit));
	assert_true(p.hot_out == 0);
}

/* -- any sequence of observations ------------------------------------------------------------ */

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* True once in n times. */
static bool one_in(uint64_t *s, unsigned int n)
{
	return rnd(s) % n == 0;
}

/* Any figure may be anything, but not all at once: else nothing but holds would come of it. */
static struct observation random_observation(uint64_t *s)
{
	const int64_t sizes[] = {-1, 0, 4095, 5 * MIB, 800 * MIB, INT64_MAX / 3, INT64_MAX - 1};
	struct observation obs = quiet();

	obs.usage_bytes = one_in(s, 8) ? sizes[rnd(s) % 7] : (int64_t)(rnd(s) % (2000 * MIB));
	obs.t_ns = (int64_t)(rnd(s) % 300) * S;
	obs.dt_s = (double)(rnd(s) % 20) / 4;
	obs.growth_bytes = (int64_t)(rnd(s) % (32 * MIB)) - 24 * MIB;
	if (one_in(s, 2))
		obs.limit_bytes = obs.usage_bytes / 2 + (int64_t)(rnd(s) % (1500 * MIB));
	obs.floor_bytes = one_in(s, 12) ? -1 : (int64_t)(rnd(s) % (500 * MIB));
	obs.headroom_bytes = one_in(s, 12) ? -1 : (int64_t)(rnd(s) % (64 * MIB));
	obs.fault_rate = one_in(s, 12) ? NAN : (double)(rnd(s) % 11000);
	obs.stall_some = one_in(s, 4) ? NAN : (double)(rnd(s) % 55) / 1000;
	obs.stall_full = one_in(s, 4) ? NAN : (double)(rnd(s) % 55) / 1000;
	obs.refault_ratio = one_in(s, 4) ? NAN : (double)(rnd(s) % 1000) / 9000;
	if (one_in(s, 8))
		obs.refault_ratio *= 9000;
	obs.is_steady = !one_in(s, 8);
	obs.has_last = !one_in(s, 8);
	obs.last = one_in(s, 4) ? rnd(s) % 5 : OUTCOME_OK;
	return obs;
}

static void check_any(const struct ctx *c, const struct observation *obs)
{
	assert_true(c->st.pct >= 0 && c->st.pct <= c->cfg.squeeze_max_pct);
	assert_non_null(memchr(c->v.reason, '\0', sizeof(c->v.reason)));
	assert_true(c->v.reason[0] != '\0');
	switch (c->v.action) {
	case ACTION_TIGHTEN:
		assert_true(obs->usage_bytes > 0 && obs->dt_s > 0 && obs->is_steady);
		assert_true(obs->fault_rate <= c->cfg.pf_rate_watermark);
		assert_true(obs->limit_bytes == NUM_MAX || obs->growth_bytes < 16 * MIB);
		assert_false(obs->refault_ratio > 0.5 || obs->stall_some > c->cfg.stall_budget);
		assert_true(c->v.target_bytes < obs->usage_bytes);
		assert_true(c->v.target_bytes >= obs->floor_bytes && obs->floor_bytes >= 0);
		assert_true(c->v.target_bytes >= c->cfg.min_limit.bytes);
		assert_true(c->v.target_bytes >= obs->usage_bytes * 0.8999);
		break;
	case ACTION_RELAX:
		assert_true(c->v.target_bytes > obs->usage_bytes);
		assert_true(c->v.target_bytes >= obs->limit_bytes);
		assert_true(obs->usage_bytes >= 0);
		break;
	default:
		assert_int_equal(c->v.action, ACTION_HOLD); /* it never releases by itself */
		assert_int_equal(c->v.target_bytes, 0);
	}
}

static void any_sequence(void **state)
{
	uint64_t seed = 88172645463325252u;
	int seen[4] = {0};

	(void)state;
	for (int run = 0; run < 500; run++) {
		struct ctx c = begin();

		c.cfg.min_limit.bytes = run % 3 ? 0 : 100 * MIB;
		c.cfg.squeeze_delta_pct = 1 + run % 7;
		for (int i = 0; i < 200; i++) {
			struct observation obs = random_observation(&seed);

			seen[see(&c, &obs)]++;
			check_any(&c, &obs);
		}
	}
	/* The sequences did reach all there is. */
	assert_true(seen[ACTION_HOLD] > 1000 && seen[ACTION_TIGHTEN] > 1000);
	assert_true(seen[ACTION_RELAX] > 1000 && seen[ACTION_RELEASE] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table), cmocka_unit_test(holds),
		cmocka_unit_test(grows), cmocka_unit_test(fails), cmocka_unit_test(times_out),
		cmocka_unit_test(counts_once), cmocka_unit_test(skipped),
		cmocka_unit_test(watermark), cmocka_unit_test(relax_target),
		cmocka_unit_test(stalls), cmocka_unit_test(growth),
		cmocka_unit_test(early_limit), cmocka_unit_test(lowest),
		cmocka_unit_test(knee), cmocka_unit_test(thrashing),
		cmocka_unit_test(plant_converges), cmocka_unit_test(plant_phase),
		cmocka_unit_test(plant_min_and_release), cmocka_unit_test(any_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
