/* Law step: verdicts worked out by hand. */
#include "tests/unit/law_fixture.h"

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
	cases[n].obs = (struct observation){.usage_bytes = -1,
					    .growth_bytes = INT64_MAX,
					    .dt_s = NAN,
					    .fault_rate = NAN,
					    .stall_some = NAN};
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
		assert_int_equal(see(&c, &obs), ACTION_HOLD);    /* quiet for 1 s */
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* for 2 s: 1 % again */
		assert_int_equal(c.v.target_bytes, 990 * MIB);
		assert_int_equal(see(&c, &obs), ACTION_HOLD); /* failed again */
		for (int s = 1; s < 4; s++)
			assert_int_equal(see(&c, &obs), ACTION_HOLD);
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* after 4 s */
	}
}

/* A timeout also takes one delta off, but never the last one: it is no reason to wait. */
static void times_out(void **state)
{
	struct observation obs = quiet();
	struct ctx c = begin();

	(void)state;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 1 % */
	obs.has_last = true;
	obs.last = OUTCOME_OK;
	assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 2 % */
	obs.last = OUTCOME_TIMEOUT;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(see(&c, &obs), ACTION_TIGHTEN); /* 1 %, and stays there */
		assert_int_equal(c.v.target_bytes, 990 * MIB);
	}
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
		{0.05, 0.05, ACTION_TIGHTEN}, {0.051, 0, ACTION_RELAX},
		{0.04, 0.2, ACTION_TIGHTEN},  {NAN, 0.06, ACTION_RELAX},
		{NAN, NAN, ACTION_TIGHTEN},
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
	assert_string_equal(c.v.reason, "pages keep coming back (refault ratio 0.80): giving room");
	obs.limit_bytes = NUM_MAX;
	assert_int_equal(see(&c, &obs), ACTION_HOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),        cmocka_unit_test(holds),
		cmocka_unit_test(grows),        cmocka_unit_test(fails),
		cmocka_unit_test(times_out),    cmocka_unit_test(counts_once),
		cmocka_unit_test(skipped),      cmocka_unit_test(watermark),
		cmocka_unit_test(relax_target), cmocka_unit_test(stalls),
		cmocka_unit_test(growth),       cmocka_unit_test(early_limit),
		cmocka_unit_test(lowest),       cmocka_unit_test(knee),
		cmocka_unit_test(thrashing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
