/* Statistics by time: values worked out by hand beside each case. */
#include "report/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S INT64_C(1000000000)

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b))))
		fail_msg("%.12g is not %.12g", a, b);
}

static void test_gauge_weighs_by_time(void **state)
{
	/* gaps 1, 2, 1 s: weights 0.5, 1.5, 1.5, 0.5 s of 4 s */
	static const int64_t t[] = {0, S, 3 * S, 4 * S};
	static const double v[] = {0, 10, 20, 100};
	struct timeline tl = {4, t, INT64_MAX};
	struct gauge_stats s;

	(void)state;
	assert_int_equal(stats_gauge(&tl, v, &s), 0);
	assert_int_equal(s.n, 4);
	/* (0 * 0.5 + 10 * 1.5 + 20 * 1.5 + 100 * 0.5) / 4 = 95 / 4 */
	assert_near(s.mean, 23.75);
	/* 0.5 s at or below 0, 2 s at or below 10: half of 4 s */
	assert_near(s.median, 10);
	assert_near(s.min, 0);
	assert_near(s.max, 100);
	assert_int_equal(s.min_at, 0);
	assert_int_equal(s.max_at, 3);
	assert_int_equal(s.covered_ns, 4 * S);
}

static void test_gauge_leaves_out_holes(void **state)
{
	/* gaps 1, 10 (a hole), 1 s: every sample stands for 0.5 s */
	static const int64_t t[] = {0, S, 11 * S, 12 * S};
	static const double v[] = {1, 2, 30, 40};
	struct timeline tl = {4, t, 3 * S};
	struct gauge_stats s;

	(void)state;
	assert_int_equal(stats_gauge(&tl, v, &s), 0);
	assert_near(s.mean, 18.25); /* 73 / 4 */
	assert_near(s.median, 2);   /* 1 s of 2 s at or below 2 */
	assert_int_equal(s.covered_ns, 2 * S);
}

static void test_gauge_leaves_out_missing_values(void **state)
{
	static const int64_t t[] = {0, S, 2 * S, 3 * S};
	const double v[] = {5, NAN, 7, 9};
	const double none[] = {NAN, NAN, NAN, NAN};
	struct timeline tl = {4, t, INT64_MAX};
	struct gauge_stats s;

	(void)state;
	assert_int_equal(stats_gauge(&tl, v, &s), 0);
	assert_int_equal(s.n, 3);
	assert_near(s.min, 5);  /* extremes need no neighbour ... */
	assert_near(s.mean, 8); /* ... but time does: only the last gap has both ends */
	assert_int_equal(s.covered_ns, S);
	assert_int_equal(stats_gauge(&tl, none, &s), 0);
	assert_int_equal(s.n, 0);
	assert_true(isnan(s.max) && isnan(s.mean) && isnan(s.median));
}

static void test_gauge_of_one_sample(void **state)
{
	static const int64_t t[] = {0};
	static const double v[] = {42};
	struct timeline tl = {1, t, INT64_MAX};
	struct gauge_stats s;

	(void)state;
	assert_int_equal(stats_gauge(&tl, v, &s), 0);
	assert_near(s.max, 42);
	assert_true(isnan(s.mean));
	tl.n = 0;
	assert_int_equal(stats_gauge(&tl, v, &s), 0);
	assert_int_equal(s.n, 0);
}

static void test_counter_divides_by_each_gap(void **state)
{
	/* gaps 1, 0.5, 2 s with 100, 100, 100: rates 100, 200, 50 per second */
	static const int64_t t[] = {0, S, S + S / 2, 3 * S + S / 2};
	static const double v[] = {1000, 1100, 1200, 1300};
	struct timeline tl = {4, t, INT64_MAX};
	struct rate_stats s;

	(void)state;
	assert_int_equal(stats_counter(&tl, v, &s), 0);
	assert_near(s.total, 300);
	assert_near(s.avg, 300 / 3.5);
	assert_near(s.median, 50); /* 2 s of 3.5 s */
	assert_near(s.max, 200);
	assert_int_equal(s.max_at, 2);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.resets, 0);
}

static void test_counter_over_a_hole(void **state)
{
	/* 10 in 1 s, 1000 in a hole of 10 s, 30 in 1 s */
	static const int64_t t[] = {0, S, 11 * S, 12 * S};
	static const double v[] = {0, 10, 1010, 1040};
	struct timeline tl = {4, t, 3 * S};
	struct rate_stats s;

	(void)state;
	assert_int_equal(stats_counter(&tl, v, &s), 0);
	assert_near(s.total, 1040); /* they did happen */
	assert_near(s.avg, 20);     /* 40 in 2 s */
	assert_near(s.max, 30);
	assert_int_equal(s.covered_ns, 2 * S);
}

static void test_counter_reset_and_gap(void **state)
{
	/* 5, then a reset, then 7, then unknown, then 4 over two gaps */
	static const int64_t t[] = {0, S, 2 * S, 3 * S, 4 * S, 5 * S};
	const double v[] = {100, 105, 0, 7, NAN, 11};
	struct timeline tl = {6, t, INT64_MAX};
	struct rate_stats s;

	(void)state;
	assert_int_equal(stats_counter(&tl, v, &s), 0);
	assert_int_equal(s.resets, 1);
	assert_near(s.total, 16);
	assert_near(s.avg, 6); /* 12 in the two gaps that have both ends */
	assert_near(s.max, 7);
}

static void test_gaps(void **state)
{
	static const int64_t t[] = {0, S, 3 * S, 13 * S, 14 * S};
	struct timeline tl = {5, t, 3 * S};
	struct gap_stats s;

	(void)state;
	stats_gaps(&tl, &s);
	assert_int_equal(s.span_ns, 14 * S);
	assert_int_equal(s.holes, 1);
	assert_int_equal(s.hole_ns, 10 * S);
	assert_int_equal(s.max_ns, 10 * S);
	assert_int_equal(s.mean_ns, 1333333333); /* (1 + 2 + 1) / 3 */
	tl.n = 0;
	stats_gaps(&tl, &s);
	assert_int_equal(s.span_ns, 0);
}

static bool accept_all(void *arg, size_t first, size_t last)
{
	++*(size_t *)arg;
	return first < last;
}

static bool accept_from_three(void *arg, size_t first, size_t last)
{
	(void)arg;
	(void)last;
	return first >= 3;
}

static void test_least_window(void **state)
{
	/* windows of 2 s: medians of {9,1,9} {1,9,5} {9,5,6} {5,6,2} {6,2,2} = 9 5 6 5 2 */
	static const int64_t t[] = {0, S, 2 * S, 3 * S, 4 * S, 5 * S, 6 * S};
	static const double v[] = {9, 1, 9, 5, 6, 2, 2};
	struct timeline tl = {7, t, 3 * S};
	struct window w;
	size_t n = 0;

	(void)state;
	assert_int_equal(stats_least_window(&tl, v, 0, 6, 2 * S, accept_all, &n, &w), 1);
	assert_near(w.median, 2);
	assert_int_equal(w.first, 4);
	assert_int_equal(w.last, 6);
	assert_int_equal(n, 3); /* asked only where it would be less */
	/* without the last two samples: 5, at its first place */
	assert_int_equal(stats_least_window(&tl, v, 0, 4, 2 * S, accept_all, &n, &w), 1);
	assert_near(w.median, 5);
	assert_int_equal(w.first, 1);
	/* only windows that begin at 3 or later, up to sample 5: {5,6,2} */
	assert_int_equal(stats_least_window(&tl, v, 0, 5, 2 * S, accept_from_three, NULL, &w), 1);
	assert_int_equal(w.first, 3);
	assert_near(w.median, 5);
	/* longer than all there is */
	assert_int_equal(stats_least_window(&tl, v, 0, 6, 7 * S, accept_all, &n, &w), 0);
}

static void test_least_window_is_broken_by_holes(void **state)
{
	/* a hole after the second sample, an unknown value at the sixth: only {4,6,8} is left */
	static const int64_t t[] = {0, S, 9 * S, 10 * S, 11 * S, 12 * S, 13 * S, 14 * S};
	const double v[] = {1, 1, 4, 6, 8, NAN, 1, 1};
	struct timeline tl = {8, t, 3 * S};
	struct window w;
	size_t n = 0;

	(void)state;
	assert_int_equal(stats_least_window(&tl, v, 0, 7, 2 * S, accept_all, &n, &w), 1);
	assert_near(w.median, 6);
	assert_int_equal(w.first, 2);
	assert_int_equal(w.last, 4);
}

static void test_least_window_with_a_long_period(void **state)
{
	/* a period above the window: two neighbours are a window, its median their mean */
	static const int64_t t[] = {0, 10 * S, 20 * S};
	static const double v[] = {8, 4, 2};
	struct timeline tl = {3, t, 30 * S};
	struct window w;
	size_t n = 0;

	(void)state;
	assert_int_equal(stats_least_window(&tl, v, 0, 2, 5 * S, accept_all, &n, &w), 1);
	assert_near(w.median, 3);
}

static void test_median(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};

	(void)state;
	assert_near(stats_median(odd, 3), 2);
	assert_near(stats_median(even, 4), 2.5);
	assert_near(stats_median(one, 1), 7);
}

/* Each case by hand: deviations of the ranks from their mean. */
static void test_rank_correlation(void **state)
{
	static const double up[] = {1, 2, 3, 4, 5, 6, 7, 8}, flat[8] = {0};
	static const double down[] = {80, 70, 60, 50, 40, 30, 20, 10};
	/* ranks 1.5 1.5 3 4 6 6 6 8 against 1 ... 8: deviations -3 -3 -1.5 -.5 1.5 1.5 1.5 3.5 and
	 * -3.5 ... 3.5. Products 10.5 7.5 2.25 .25 .75 2.25 3.75 12.25 = 39.5; squares 9 9 2.25
	 * .25 2.25 2.25 2.25 12.25 = 39.5, and 42. */
	static const double ties[] = {1, 1, 2, 3, 9, 9, 9, 10};
	const double holes[] = {1, NAN, 3, 4, 5, 6, 7, 8};
	struct rank_stats s;

	(void)state;
	assert_int_equal(stats_rank(up, up, 8, &s), 0);
	assert_near(s.rho, 1);
	assert_int_equal(s.n, 8);
	assert_int_equal(stats_rank(up, down, 8, &s), 0);
	assert_near(s.rho, -1);
	assert_int_equal(stats_rank(ties, up, 8, &s), 0);
	assert_near(s.rho, sqrt(39.5 / 42));
	assert_int_equal(stats_rank(up, flat, 8, &s), 0);
	assert_true(isnan(s.rho));
	assert_int_equal(stats_rank(up, up, 7, &s), 0); /* too few */
	assert_true(isnan(s.rho));
	assert_int_equal(s.n, 7);
	assert_int_equal(stats_rank(up, holes, 8, &s), 0); /* one pair less: too few */
	assert_true(isnan(s.rho));
	assert_int_equal(s.n, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_correlation),
		cmocka_unit_test(test_gauge_weighs_by_time),
		cmocka_unit_test(test_gauge_leaves_out_holes),
		cmocka_unit_test(test_gauge_leaves_out_missing_values),
		cmocka_unit_test(test_gauge_of_one_sample),
		cmocka_unit_test(test_counter_divides_by_each_gap),
		cmocka_unit_test(test_counter_over_a_hole),
		cmocka_unit_test(test_counter_reset_and_gap),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_least_window),
		cmocka_unit_test(test_least_window_is_broken_by_holes),
		cmocka_unit_test(test_least_window_with_a_long_period),
		cmocka_unit_test(test_median),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
