/* Numbers for people: each form at its borders. */
#include "base/fmt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct form {
	int64_t value;
	const char *text;
};

static void check(const char *(*fmt)(char buf[static FMT_MAX], int64_t v), const struct form *cases,
		  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char buf[FMT_MAX];

		memset(buf, 'x', sizeof(buf));
		assert_ptr_equal(fmt(buf, cases[i].value), buf);
		assert_string_equal(buf, cases[i].text);
	}
}

static void bytes(void **state)
{
	static const struct form cases[] = {
		{0, "0 B"},
		{512, "512 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{-1, "-1 B"},
		{-1536, "-1.5 KiB"},
		{1048524, "1023.9 KiB"}, /* 1023.949 */
		{1048525, "1.0 MiB"},    /* 1023.950 would print as 1024.0 */
		{1048576, "1.0 MiB"},
		{671088640, "640.0 MiB"},
		{INT64_C(1) << 30, "1.0 GiB"},
		{INT64_C(1) << 40, "1.0 TiB"},
		{INT64_C(1) << 50, "1.0 PiB"},
		{INT64_C(1) << 60, "1.0 EiB"},
		{INT64_MAX, "max"},
		{INT64_MAX - 1, "8.0 EiB"},
		{INT64_MIN, "-8.0 EiB"},
	};

	(void)state;
	check(fmt_bytes, cases, ARRAY_SIZE(cases));
}

static void bytes_short(void **state)
{
	static const struct form cases[] = {
		{0, "0.0K"},
		{1024, "1.0K"},
		{10137, "9.9K"}, /* 9.899 */
		{10240, "10K"},  /* 9.95 and more: no decimal */
		{671088640, "640M"},
		{1023410176, "976M"},
		{INT64_C(1) << 30, "1.0G"},
		{INT64_C(1047527424), "999M"}, /* 999 MiB */
		{INT64_C(1048051712), "1.0G"}, /* 999.5 MiB: three digits at most */
		{INT64_MAX, "max"},
		{INT64_MAX - 1, "8.0E"},
	};

	(void)state;
	check(fmt_bytes_short, cases, ARRAY_SIZE(cases));
}

static void times(void **state)
{
	static const struct form cases[] = {
		{0, "0.0 us"},
		{4200, "4.2 us"},
		{12300000, "12.3 ms"},
		{1000000, "1.0 ms"},
		{1000000000, "1.0 s"},
		{INT64_C(72400000000), "72.4 s"},
		{INT64_C(3600000000000), "3600.0 s"},
	};

	(void)state;
	check(fmt_ns, cases, ARRAY_SIZE(cases));
}

static void clock(void **state)
{
	static const struct form cases[] = {
		{0, "00:00"},
		{INT64_C(999999999), "00:00"}, /* a clock shows whole seconds that have passed */
		{INT64_C(42000000000), "00:42"},
		{INT64_C(3599000000000), "59:59"},
		{INT64_C(3600000000000), "1:00:00"},
		{INT64_C(3725000000000), "1:02:05"},
		{INT64_C(360000000000000), "100:00:00"},
	};

	(void)state;
	check(fmt_clock, cases, ARRAY_SIZE(cases));
}

static void count(void **state)
{
	static const struct form cases[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1 000"},
		{38412, "38 412"},
		{1234567, "1 234 567"},
		{-1, "-1"},
		{-100, "-100"},
		{-123456, "-123 456"},
		{-1234, "-1 234"},
		{INT64_MAX, "9 223 372 036 854 775 807"},
		{INT64_MIN, "-9 223 372 036 854 775 808"},
	};

	(void)state;
	check(fmt_count, cases, ARRAY_SIZE(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes), cmocka_unit_test(bytes_short), cmocka_unit_test(times),
		cmocka_unit_test(clock), cmocka_unit_test(count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
