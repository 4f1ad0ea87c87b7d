/* Strict numbers: what is accepted, with values worked out by hand, and what is not. */
#include "base/num.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define UNTOUCHED (-77)

/* value only where r is 0; a refusal must leave the result alone */
struct whole {
	const char *text;
	int r;
	int64_t value;
};

static void check(int (*parse)(const char *s, int64_t *ret), const struct whole *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v = UNTOUCHED, want = cases[i].r ? UNTOUCHED : cases[i].value;
		int r = parse(cases[i].text, &v);

		if (r != cases[i].r || v != want)
			fail_msg("\"%s\" gave %d, %lld, not %d, %lld", cases[i].text, r,
				 (long long)v, cases[i].r, (long long)want);
	}
}

/* What no number of ours may look like. */
static const char *const nonsense[] = {
	"",    " ",   " 1",  "1 ",  "+1",  "-1",   "-0",  "--1", "0x10",  "1e3",
	"1,5", "1_0", "nan", "inf", "NaN", "max ", "MAX", "1\n", "\t1",   "1..2",
	".",   "one", "%",   "s",   "K",   "-5%",  "1 M", "1MM", "1KiBx", "1%%",
};

static void nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		int64_t v = UNTOUCHED;
		double d = UNTOUCHED;

		assert_int_equal(num_parse_u63(nonsense[i], &v), -EINVAL);
		assert_int_equal(num_parse_limit(nonsense[i], &v), -EINVAL);
		assert_int_equal(num_parse_size(nonsense[i], &v), -EINVAL);
		assert_int_equal(num_parse_duration(nonsense[i], &v), -EINVAL);
		assert_int_equal(num_parse_percent(nonsense[i], &d), -EINVAL);
		assert_int_equal(num_parse_fraction(nonsense[i], &d), -EINVAL);
		assert_true(v == UNTOUCHED && d == UNTOUCHED);
	}
}

static void u63(void **state)
{
	static const struct whole cases[] = {
		{"0", 0, 0},
		{"007", 0, 7}, /* decimal, not octal */
		{"4096", 0, 4096},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999999", -ERANGE, 0},
		{"max", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"1K", -EINVAL, 0},
	};

	(void)state;
	check(num_parse_u63, cases, ARRAY_SIZE(cases));
}

static void limit(void **state)
{
	static const struct whole cases[] = {
		{"max", 0, INT64_MAX},
		{"0", 0, 0},
		{"536870912", 0, 536870912},
		{"maximum", -EINVAL, 0},
		{"ma", -EINVAL, 0},
		{"512M", -EINVAL, 0},
		{"9223372036854775808", -ERANGE, 0},
	};

	(void)state;
	check(num_parse_limit, cases, ARRAY_SIZE(cases));
}

static void size(void **state)
{
	static const struct whole cases[] = {
		{"0", 0, 0},
		{"1", 0, 1},
		{"1K", 0, 1024},
		{"1k", 0, 1024},
		{"1KB", 0, 1024},
		{"1KiB", 0, 1024},
		{"512M", 0, 536870912},
		{"1.5G", 0, 1610612736},
		{"0.5K", 0, 512},
		{".5K", 0, 512},
		{"1.K", 0, 1024},
		{"2T", 0, INT64_C(2199023255552)},
		{"max", 0, INT64_MAX},
		/* above 2^53, where a double would round */
		{"9007199254740993", 0, INT64_C(9007199254740993)},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"8388607T", 0, INT64_C(9223370937343148032)}, /* (2^23 - 1) × 2^40 */
		{"8388608T", -ERANGE, 0},                      /* 2^63 */
		{"99999999999999999999K", -ERANGE, 0},
		{"12Q", -EINVAL, 0},
		{"1m", -EINVAL, 0},
		{"1P", -EINVAL, 0},
		{"1.5", -EINVAL, 0}, /* half a byte */
		{"1B", -EINVAL, 0},
		{"1iB", -EINVAL, 0},
		{"1KI", -EINVAL, 0},
		{"80%", -EINVAL, 0},
	};

	(void)state;
	check(num_parse_size, cases, ARRAY_SIZE(cases));
}

static void duration(void **state)
{
	static const struct whole cases[] = {
		{"1", 0, 1000000000},
		{"0", 0, 0},
		{"0.25", 0, 250000000},
		{"10ms", 0, 10000000},
		{"1.5us", 0, 1500},
		{"7ns", 0, 7},
		{"2s", 0, 2000000000},
		{"3m", 0, INT64_C(180000000000)},
		{"1h", 0, INT64_C(3600000000000)},
		{"2562047h", 0, INT64_C(9223369200000000000)},
		{"2562048h", -ERANGE, 0},
		{"1d", -EINVAL, 0},
		{"1min", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"ms", -EINVAL, 0},
		{"max", -EINVAL, 0},
	};

	(void)state;
	check(num_parse_duration, cases, ARRAY_SIZE(cases));
}

static void fractions(void **state)
{
	static const struct {
		const char *text;
		int percent, fraction; /* results */
		double value;
	} cases[] = {
		{"80%", 0, -EINVAL, 80},       {"0%", 0, -EINVAL, 0},
		{"12.5%", 0, -EINVAL, 12.5},   {"100", -EINVAL, 0, 100},
		{"0.125", -EINVAL, 0, 0.125},  {"1000%", 0, -EINVAL, 1000},
		{"80 %", -EINVAL, -EINVAL, 0}, {"80%x", -EINVAL, -EINVAL, 0},
	};
	char huge[400];
	double v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		v = UNTOUCHED;
		assert_int_equal(num_parse_percent(cases[i].text, &v), cases[i].percent);
		assert_true(v == (cases[i].percent ? UNTOUCHED : cases[i].value));
		v = UNTOUCHED;
		assert_int_equal(num_parse_fraction(cases[i].text, &v), cases[i].fraction);
		assert_true(v == (cases[i].fraction ? UNTOUCHED : cases[i].value));
	}
	/* More digits than a double holds are no infinity. */
	memset(huge, '9', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	v = UNTOUCHED;
	assert_int_equal(num_parse_fraction(huge, &v), -ERANGE);
	huge[0] = '.';
	assert_int_equal(num_parse_fraction(huge, &v), -ERANGE);
	assert_true(v == UNTOUCHED);
}

/* A range that is not terminated: the digit behind it must not be read. */
static void scan(void **state)
{
	static const char text[] = {'1', '2', '3', ' ', '4', '5'};
	const char *end = NULL;
	int64_t v = UNTOUCHED;

	(void)state;
	assert_int_equal(num_scan_u63(text, text + 2, &v, &end), 0);
	assert_int_equal(v, 12);
	assert_ptr_equal(end, text + 2);
	assert_int_equal(num_scan_u63(text, text + 6, &v, &end), 0);
	assert_int_equal(v, 123);
	assert_ptr_equal(end, text + 3);
	v = UNTOUCHED;
	assert_int_equal(num_scan_u63(text + 3, text + 6, &v, &end), -EINVAL);
	assert_int_equal(num_scan_u63(text, text, &v, &end), -EINVAL);
	assert_int_equal(v, UNTOUCHED);
	assert_ptr_equal(end, text + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_else), cmocka_unit_test(u63),
		cmocka_unit_test(limit),        cmocka_unit_test(size),
		cmocka_unit_test(duration),     cmocka_unit_test(fractions),
		cmocka_unit_test(scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
