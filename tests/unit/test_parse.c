/* The kernel's text formats: each field's value, and what a broken field costs. */
#include "cgroup/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef bool scan_fn(struct scan *s, struct field *ret);

static void expect(scan_fn *next, struct scan *s, const char *key, int64_t value)
{
	struct field f;

	assert_true(next(s, &f));
	assert_int_equal(f.key_len, strlen(key));
	assert_memory_equal(f.key, key, strlen(key));
	assert_true(f.ok);
	assert_int_equal(f.value, value);
}

static void expect_lost(scan_fn *next, struct scan *s, const char *key)
{
	struct field f;

	assert_true(next(s, &f));
	assert_int_equal(f.key_len, strlen(key));
	assert_memory_equal(f.key, key, strlen(key));
	assert_false(f.ok);
}

static void expect_end(scan_fn *next, struct scan *s)
{
	struct field f;

	assert_false(next(s, &f));
}

static struct scan text(const char *t)
{
	return scan_text(t, strlen(t));
}

static void flat(void **state)
{
	struct scan s = text("anon 4096\nfile 0\nlast 18");

	(void)state;
	expect(scan_flat, &s, "anon", 4096);
	expect(scan_flat, &s, "file", 0);
	expect(scan_flat, &s, "last", 18); /* no newline at the end */
	expect_end(scan_flat, &s);
}

static void flat_extremes(void **state)
{
	struct scan s = text("a 9223372036854775807\nb 9223372036854775808\n"
			     "c 18446744073709551615\nd -1\ne max\nf\ng \nh 12x\ni 7\n");

	(void)state;
	expect(scan_flat, &s, "a", INT64_MAX);
	expect_lost(scan_flat, &s, "b");
	expect_lost(scan_flat, &s, "c");
	expect_lost(scan_flat, &s, "d");
	expect(scan_flat, &s, "e", INT64_MAX);
	expect_lost(scan_flat, &s, "f");
	expect_lost(scan_flat, &s, "g");
	expect_lost(scan_flat, &s, "h");
	expect(scan_flat, &s, "i", 7);
	expect_end(scan_flat, &s);
}

static void flat_nothing(void **state)
{
	struct scan s = text("");

	(void)state;
	expect_end(scan_flat, &s);
	s = text("\n\nx 1\n");
	expect_lost(scan_flat, &s, "");
	expect_lost(scan_flat, &s, "");
	expect(scan_flat, &s, "x", 1);
}

/* 24684092 kB are 24684092 × 1024 = 25276510208 bytes. */
static void meminfo(void **state)
{
	struct scan s = text("MemTotal:       24684092 kB\nHugePages_Total:       3\n"
			     "Big:   9223372036854775807 kB\nOdd:  5 MB\n");

	(void)state;
	expect(scan_flat, &s, "MemTotal", INT64_C(25276510208));
	expect(scan_flat, &s, "HugePages_Total", 3);
	expect_lost(scan_flat, &s, "Big");
	expect_lost(scan_flat, &s, "Odd");
	expect_end(scan_flat, &s);
}

static void nested(void **state)
{
	struct scan s = text("254:0 rbytes=4096 wbytes=1 cost.vrate=100.00\n253:1 \n"
			     "7:3 rbytes=5 dios=");

	(void)state;
	expect(scan_nested, &s, "rbytes", 4096);
	expect(scan_nested, &s, "wbytes", 1);
	expect_lost(scan_nested, &s, "cost.vrate");
	expect(scan_nested, &s, "rbytes", 5);
	expect_lost(scan_nested, &s, "dios");
	expect_end(scan_nested, &s);
}

static void psi(void **state)
{
	struct scan s = text("some avg10=0.47 avg60=0.17 avg300=0.03 total=154984\n"
			     "full avg10=0.00 avg60=0.00 avg300=0.00 total=148074\n");

	(void)state;
	expect(scan_psi, &s, "some", 154984);
	expect(scan_psi, &s, "full", 148074);
	expect_end(scan_psi, &s);
	s = text("some avg10=0.47 avg60\nfull avg10=1.00 total=9");
	expect_lost(scan_psi, &s, "some");
	expect(scan_psi, &s, "full", 9);
	expect_end(scan_psi, &s);
}

static void columns(void **state)
{
	struct scan s = text("       1        22   0  x 5\n");

	(void)state;
	expect(scan_column, &s, "", 1);
	expect(scan_column, &s, "", 22);
	expect(scan_column, &s, "", 0);
	expect_lost(scan_column, &s, "");
	expect(scan_column, &s, "", 5);
	expect_end(scan_column, &s);
}

static void one_value(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} cases[] = {
		{"8884224\n", 0, 8884224},
		{"8884224", 0, 8884224},
		{"max\n", 0, INT64_MAX},
		{"Y\n", 0, 1},
		{"N\n", 0, 0},
		{"", -EINVAL, 0},
		{"\n", -EINVAL, 0},
		{"lzo\n", -EINVAL, 0},
		{"1 2\n", -EINVAL, 0},
		{"maximum\n", -EINVAL, 0},
		{"9223372036854775808\n", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t v = 0;

		assert_int_equal(parse_value(cases[i].text, strlen(cases[i].text), &v),
				 cases[i].result);
		assert_int_equal(v, cases[i].value);
	}
}

static void one_key(void **state)
{
	static const char t[] = "pgscan_direct 3\npgscan 12\nbad x\n";
	int64_t v = 0;

	(void)state;
	assert_int_equal(parse_flat_key(t, strlen(t), "pgscan", &v), 0);
	assert_int_equal(v, 12);
	assert_int_equal(parse_flat_key(t, strlen(t), "pgsteal", &v), -ENOENT);
	assert_int_equal(parse_flat_key(t, strlen(t), "bad", &v), -EINVAL);
}

/* Every prefix of every format, in a block of its own size, so that a sanitiser sees overreads. */
static void every_cut(void **state)
{
	static const char all[] = "254:0 rbytes=4096 wbytes=1\nsome avg10=0.47 total=154984\n"
				  "MemTotal:   24684092 kB\nanon 4096\nx max\n 1  2 3\n";
	static scan_fn *const scanners[] = {scan_flat, scan_nested, scan_psi, scan_column};
	struct field f;

	(void)state;
	for (size_t n = 0; n < sizeof(all); n++) {
		_cleanup_free_ char *copy = malloc(n ? n : 1);

		assert_non_null(copy);
		memcpy(copy, all, n);
		for (size_t i = 0; i < ARRAY_SIZE(scanners); i++) {
			struct scan s = scan_text(copy, n);

			while (scanners[i](&s, &f)) {
				assert_true(f.key >= copy && f.key + f.key_len <= copy + n);
				assert_true(!f.ok || f.value >= 0);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat),         cmocka_unit_test(flat_extremes),
		cmocka_unit_test(flat_nothing), cmocka_unit_test(meminfo),
		cmocka_unit_test(nested),       cmocka_unit_test(psi),
		cmocka_unit_test(columns),      cmocka_unit_test(one_value),
		cmocka_unit_test(one_key),      cmocka_unit_test(every_cut),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
