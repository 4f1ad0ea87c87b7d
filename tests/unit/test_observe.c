/* From two samples to an observation: figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "squeezer/observe.h"

#include <math.h>
#include <string.h>

#define MIB INT64_C(1048576)

static void set(struct sample *s, enum metric_id id, int64_t v)
{
	s->v[id] = v;
	s->has[id] = true;
}

static void test_rates(void **state)
{
	static struct sample a, b; /* large */
	struct observation o;

	(void)state;
	a.t_ns = 1000000000;
	b.t_ns = 1500000000; /* half a second, whatever the period was */
	set(&a, M_memory_current, 100 * MIB);
	set(&b, M_memory_current, 90 * MIB);
	set(&a, M_memory_stat_pgmajfault, 1000);
	set(&b, M_memory_stat_pgmajfault, 1300);
	set(&a, M_memory_pressure_some_total, 0);
	set(&b, M_memory_pressure_some_total, 100000);
	set(&a, M_memory_stat_pgsteal, 50);
	set(&b, M_memory_stat_pgsteal, 250);
	set(&a, M_memory_stat_workingset_refault_anon, 7);
	set(&b, M_memory_stat_workingset_refault_anon, 47);
	set(&a, M_memory_stat_workingset_refault_file, 0);
	set(&b, M_memory_stat_workingset_refault_file, 10);
	observe(&o, &a, &b);
	assert_true(o.dt_s == 0.5);
	assert_int_equal(o.usage_bytes, 90 * MIB);
	assert_int_equal(o.growth_bytes, -10 * MIB);
	assert_true(o.fault_rate == 600);             /* 300 in half a second */
	assert_true(fabs(o.stall_some - 0.2) < 1e-9); /* 0.1 s of 0.5 s */
	assert_true(isnan(o.stall_full));             /* no such counter */
	assert_true(o.refault_ratio == 0.25);         /* 50 of 200 */
}

static void test_reset_and_nothing(void **state)
{
	static struct sample a, b;
	struct observation o;

	(void)state;
	b.t_ns = 1000000000;
	set(&a, M_memory_stat_pgmajfault, 1000);
	set(&b, M_memory_stat_pgmajfault, 999); /* went backwards: not a rate */
	set(&a, M_memory_stat_pgsteal, 50);
	set(&b, M_memory_stat_pgsteal, 50); /* nothing reclaimed: no ratio */
	observe(&o, &a, &b);
	assert_true(isnan(o.fault_rate));
	assert_true(isnan(o.refault_ratio));
	assert_int_equal(o.usage_bytes, -1);
}

/* unevictable 5 + (kernel 20 - zswap 8) + (anon 100 + shmem 10 - free swap 60) + min 3 = 70 */
static void test_floor(void **state)
{
	static struct sample s;

	(void)state;
	set(&s, M_memory_stat_unevictable, 5 * MIB);
	set(&s, M_memory_stat_kernel, 20 * MIB);
	set(&s, M_memory_stat_zswap, 8 * MIB);
	set(&s, M_memory_stat_anon, 100 * MIB);
	set(&s, M_memory_stat_shmem, 10 * MIB);
	set(&s, M_memory_min, 3 * MIB);
	set(&s, M_host_meminfo_swapfree, 60 * MIB);
	assert_int_equal(observe_floor(&s), 70 * MIB);
	/* The group may use 30 MiB of swap and uses 20: 10 are left for it. */
	set(&s, M_memory_swap_max, 30 * MIB);
	set(&s, M_memory_swap_current, 20 * MIB);
	assert_int_equal(observe_swap_free(&s), 10 * MIB);
	assert_int_equal(observe_floor(&s), 120 * MIB);
	/* Swap enough for all of it. */
	set(&s, M_memory_swap_max, NUM_MAX);
	set(&s, M_host_meminfo_swapfree, 1000 * MIB);
	assert_int_equal(observe_floor(&s), 20 * MIB);
	/* No swap file known at all: nothing anonymous can go. */
	s.has[M_host_meminfo_swapfree] = false;
	assert_int_equal(observe_swap_free(&s), -1);
	assert_int_equal(observe_floor(&s), 130 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_reset_and_nothing),
		cmocka_unit_test(test_floor),
	};

	return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
