/* One site's life, on the run of pressure_fixture.h. */
#include "pressure_fixture.h"
#include "report/site_life.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_site_text(void **state)
{
	_cleanup_str_ struct str text = {0};
	struct site_life life;
	struct fixture f;
	struct err err;

	(void)state;
	open_pressed(&f, "");
	if (site_life_load(&life, f.dir, READ_NULL, 2, &err) < 0)
		fail_msg("%s", err.msg);
	site_life_text(&life, &text);
	site_life_done(&life);
	assert_layout(&text);
	assert_golden("report-site.txt", text.data, text.len);
	assert_has(&text, "site 2 (mmap), run 1 (dynamic): cache_open (cache.c:20)");
	assert_has(&text, "6.0 s 20.0 MiB 16.0 MiB 4.0 MiB 2.0 MiB 4.0 MiB 11\n");
	assert_has(&text, "3.0 s 6 ###");
	assert_has(&text, "9 (64.3 %) in cache_get (cache.c:55)");
	assert_has(&text, "12.0 MiB at 3.2 s; 10 major faults of it in the next 2.5 s");
	assert_has(&text, "4.0 MiB at 6.5 s; 3 major faults of it in the next 2.5 s");
	fixture_remove(&f);
}

static void test_site_json(void **state)
{
	_cleanup_str_ struct str json = {0};
	struct json_object *o;
	struct site_life life;
	struct fixture f;
	struct err err;

	(void)state;
	open_pressed(&f, "");
	assert_int_equal(site_life_load(&life, f.dir, 1, 1, &err), 0);
	site_life_json(&life, &json);
	site_life_done(&life);
	o = json_tokener_parse(json.data);
	assert_json_text(o, "schema", SITE_SCHEMA);
	assert_json_int(json_at(o, "site"), "alloc_count", 400);
	assert_json_text(json_at(o, "place"), "function", "table_insert");
	assert_json_plain(json_at(o, "sizes"),
			  "[{\"log2\":16,\"count\":300},{\"log2\":17,\"count\":100}]");
	assert_json_plain(json_at(o, "lifetimes"), "[{\"log2\":30,\"count\":7}]");
	assert_int_equal(json_object_array_length(json_at(o, "samples")), 4);
	assert_json_int(json_nth(json_at(o, "samples"), 2), "cold_bytes", 26 * (int64_t)MIB);
	assert_json_plain(json_at(o, "faults_by_second"),
			  "[{\"second\":2,\"faults\":2},{\"second\":3,\"faults\":2},"
			  "{\"second\":4,\"faults\":2}]");
	assert_json_int(json_nth(json_at(o, "decisions"), 0), "taken_bytes", 30 * (int64_t)MIB);
	(void)json_object_put(o);
	fixture_remove(&f);
}

/* Of many changes and seconds some rows are shown, the first and the last among them. */
static void test_site_of_many(void **state)
{
	_cleanup_str_ struct str text = {0};
	struct site_life life;
	struct fixture f;
	struct err err;

	(void)state;
	open_pressed(&f,
		     "DELETE FROM site_sample; DELETE FROM fault;"
		     "WITH s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100)"
		     " INSERT INTO site_sample SELECT 1, 2, i * 1000000000, i * 1024, 0, 0, 0, 0,"
		     " 0, 0, 0, 1 FROM s;"
		     "WITH s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100)"
		     " INSERT INTO fault SELECT 1, i * 1000000000, 1, 1, 1, 2, 'anon', NULL,"
		     " NULL, NULL, NULL, 0 FROM s;");
	assert_int_equal(site_life_load(&life, f.dir, READ_NULL, 2, &err), 0);
	site_life_text(&life, &text);
	site_life_done(&life);
	assert_has(&text, "1.0 s 1.0 KiB");
	assert_has(&text, "1m 40s 100.0 KiB");
	assert_has(&text, "20 of 100 changes; --format json has all.");
	/* 1 ... 100 in twenties: (100 - 1) / 20 + 1 = 5 s each */
	assert_has(&text, "Each line: major faults of 5 s.");
	assert_has(&text, "1.0 s 5 ###");
	fixture_remove(&f);
}

/* The tracer's own faults are not the site's. */
static void test_site_without_faults(void **state)
{
	_cleanup_str_ struct str text = {0};
	struct site_life life;
	struct fixture f;
	struct err err;

	(void)state;
	open_pressed(&f, "");
	assert_int_equal(site_life_load(&life, f.dir, READ_NULL, 3, &err), 0);
	site_life_text(&life, &text);
	site_life_done(&life);
	assert_has(&text, "When it faulted\n It never did.");
	assert_has_not(&text, "Which code faulted");
	fixture_remove(&f);
}

static void test_site_errors(void **state)
{
	static const struct {
		int64_t run, site;
		const char *sql, *msg;
	} cases[] = {
		{READ_NULL, 6, "", "run 1 has no site 6: its sites are 1 to 5"},
		{READ_NULL, 0, "", "run 1 has no site 0: its sites are 1 to 5"},
		{9, 1, "", "has no run 9: its runs are 1 to 1"},
		{1, 1, "DELETE FROM site", "has no sites: it was not traced to its end"},
		{READ_NULL, 1, "DELETE FROM site", "has no sites: no run was traced to its end"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct site_life life;
		struct fixture f;
		struct err err;

		open_pressed(&f, cases[i].sql);
		assert_int_equal(site_life_load(&life, f.dir, cases[i].run, cases[i].site, &err),
				 -ENOENT);
		if (!strstr(err.msg, cases[i].msg))
			fail_msg("\"%s\" is not in: %s", cases[i].msg, err.msg);
		fixture_remove(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site_text),    cmocka_unit_test(test_site_json),
		cmocka_unit_test(test_site_of_many), cmocka_unit_test(test_site_without_faults),
		cmocka_unit_test(test_site_errors),
	};

	return cmocka_run_group_tests_name("site life", tests, NULL, NULL);
}
