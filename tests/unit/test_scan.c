/* The arithmetic of the scan: when the next one is, and blocks in order. */
#include "tracer/scan.h"

#include "base/clock.h"
#include "tests/unit/events_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void period(void **state)
{
	(void)state;
	assert_int_equal(scan_period(NS_PER_S, 0), NS_PER_S);
	assert_int_equal(scan_period(NS_PER_S, 20 * NS_PER_MS), NS_PER_S);
	assert_int_equal(scan_period(NS_PER_S, 21 * NS_PER_MS), 1050 * NS_PER_MS);
	assert_int_equal(scan_period(10 * NS_PER_MS, 3 * NS_PER_S), 150 * NS_PER_S);
}

/* Deadlines do not drift; those that were missed are left out. */
static void deadline(void **state)
{
	(void)state;
	assert_int_equal(scan_deadline(1000, 200, 1030), 1200);
	assert_int_equal(scan_deadline(1000, 200, 1200), 1200);
	assert_int_equal(scan_deadline(1000, 200, 5000), 5000);
}

static void sorted(void **state)
{
	/* Below and above what a digit holds, and all of the width of an address. */
	static const uint64_t masks[] = {0x3f, 0x1ff0, UINT64_C(0xffffffff0),
					 UINT64_C(0x1ffffffffffffff)};
	struct live_block s[1000];
	uint64_t seed = 7;

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(masks); m++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < ARRAY_SIZE(s); i++) {
			uint64_t address = next_random(&seed) & masks[m];

			s[i] = (struct live_block){.address = address, .size = ~address, .site = i};
			sum += address;
		}
		scan_sort(s, ARRAY_SIZE(s));
		for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
			assert_true(i == 0 || s[i - 1].address <= s[i].address);
			assert_true(s[i].size == ~s[i].address);
			sum -= s[i].address;
		}
		assert_true(sum == 0);
	}
	scan_sort(s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(period),
		cmocka_unit_test(deadline),
		cmocka_unit_test(sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
