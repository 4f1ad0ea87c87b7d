/* Law step against a small plant, and what holds for any sequence of observations. */
#include "tests/unit/law_fixture.h"

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
			assert_true(c->v.target_bytes >=
				    MAX(obs.floor_bytes, c->cfg.min_limit.bytes));
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
		.hot = 512,
		.cold = 512,
		.r = 0.33,
		.kernel = 32,
		.noise = noise,
		.limit = INFINITY,
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
		cmocka_unit_test(plant_converges),
		cmocka_unit_test(plant_phase),
		cmocka_unit_test(plant_min_and_release),
		cmocka_unit_test(any_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
