/* How much a run was slowed, from what its probes cost. */
#include "tracer/cost.h"

#include "model/site.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_slowdown(void **state)
{
	(void)state;
	assert_float_equal(cost_slowdown(0, 1000), 0, 1e-9);
	assert_float_equal(cost_slowdown(0, 0), 0, 1e-9);
	assert_float_equal(cost_slowdown(200, 1000), 0.25, 1e-9);
	assert_float_equal(cost_slowdown(500, 1000), 1, 1e-9);
	assert_float_equal(cost_slowdown(790, 1000), 790.0 / 210, 1e-9);
}

/* An estimate may even be more than all that was used. */
static void test_bound(void **state)
{
	(void)state;
	assert_float_equal(cost_slowdown(800, 1000), TRACE_SLOWDOWN_MAX, 1e-9);
	assert_float_equal(cost_slowdown(999, 1000), TRACE_SLOWDOWN_MAX, 1e-9);
	assert_float_equal(cost_slowdown(1000, 1000), TRACE_SLOWDOWN_MAX, 1e-9);
	assert_float_equal(cost_slowdown(1200, 1000), TRACE_SLOWDOWN_MAX, 1e-9);
}

static void test_unknown(void **state)
{
	(void)state;
	assert_true(isnan(cost_slowdown(-1, 1000)));
	assert_true(isnan(cost_slowdown(100, -1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slowdown),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
