/* The report of a traced run: sites, stacks, what was lost and what tracing cost. */
#include "results_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Two runs of 10 s at 0.5 CPUs; the first is the traced one. */
#define RUNS_SQL                                                                                   \
	"INSERT INTO run (run_id, name, kind, policy, command, started_at, exec_t_ns, duration_s," \
	" exit_code, end_reason, tool_cpu_s, tool_rss_bytes, period_ns, run_order) VALUES"         \
	" (1, 'baseline', 'baseline', 'none', '[\"w\"]', '2026-11-30T22:15:01Z', 0, 10, 0,"        \
	"  'exited', 0.1, 4194304, 1000000000, 0),"                                                \
	" (2, 'limit 80 %', 'static', 'static', '[\"w\"]', '2026-11-30T22:15:21Z', 0, 10, 0,"      \
	"  'exited', 0.1, 4194304, 1000000000, 1);"                                                \
	"INSERT INTO sample (run_id, seq, t_ns, cpu_stat_usage_usec)"                              \
	" WITH s (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM s WHERE seq < 11)"               \
	" SELECT r, seq, (seq - 1) * 1000000000, (seq - 1) * 500000 FROM s,"                       \
	" (SELECT 1 AS r UNION ALL SELECT 2);"

/*
 * Seven sites. Live at the peak: 60 + 32 + 4 + 3 + 1 = 100 MiB. Allocations: 1000 + 1 + 50 000
 * + 2000 + 30 + 1 + 500 = 53 532. Not freed: 10 + 32 = 42 MiB in 100 + 1 blocks. Temporary: 10
 * + 49 000 + 490 = 49 500.
 */
#define SITES_SQL                                                                                  \
	"INSERT INTO frame VALUES"                                                                 \
	" (1, '/usr/bin/w', 'ab01', 4660, 'grow', 'src/table.h', 12, 1),"                          \
	" (2, '/usr/bin/w', 'ab01', 4660, 'table_insert', 'src/table.c', 88, 0),"                  \
	" (3, '/usr/bin/w', 'ab01', 8192, 'main', 'src/main.c', 44, 0),"                           \
	" (4, '/lib/libc.so.6', NULL, 160329, NULL, NULL, NULL, 0),"                               \
	" (5, NULL, NULL, 139637976731648, NULL, NULL, NULL, 0),"                                  \
	" (6, '/lib/libx.so.1', NULL, 256, 'x_open', NULL, NULL, 0),"                              \
	" (7, '/usr/bin/w', 'ab01', 512, 'std::vector<std::pair<std::string, unsigned long>"       \
	", std::allocator<std::pair<std::string, unsigned long> > >::_M_realloc_insert',"          \
	"  '/usr/include/c++/12/bits/vector.tcc', 435, 0);"                                        \
	"INSERT INTO stack VALUES (1, 4, 'full'), (2, 2, 'full'), (3, 8, 'cut'), (4, 2,"           \
	" 'guessed'), (6, 2, 'full'), (7, 1, 'full');"                                             \
	"INSERT INTO stack_frame VALUES (1, 0, 1), (1, 1, 2), (1, 2, 3), (1, 3, 4), (2, 0, 6),"    \
	" (2, 1, 3), (3, 0, 2), (3, 1, 2), (3, 2, 2), (3, 3, 2), (3, 4, 2), (3, 5, 2), (3, 6, 2)," \
	" (3, 7, 2), (4, 0, 7), (4, 1, 3), (6, 0, 5), (6, 1, 3), (7, 0, 3);"                       \
	"INSERT INTO site (run_id, site_id, stack_id, kind, alloc_count, free_count,"              \
	" alloc_bytes, peak_live_bytes, at_peak_bytes, end_live_bytes, end_live_count,"            \
	" temporary_count, failed_count, major_faults, max_swapped_bytes) VALUES"                  \
	" (1, 1, 1, 'malloc', 1000, 900, 104857600, 67108864, 62914560, 10485760, 100, 10, 0,"     \
	"  NULL, NULL),"                                                                           \
	" (1, 2, 2, 'mmap', 1, 0, 33554432, 33554432, 33554432, 33554432, 1, 0, 0, NULL, NULL),"   \
	" (1, 3, 3, 'malloc', 50000, 50000, 5242880, 5242880, 4194304, 0, 0, 49000, 0, NULL,"      \
	"  NULL),"                                                                                 \
	" (1, 4, 4, 'malloc', 2000, 2000, 209715200, 4194304, 3145728, 0, 0, 0, 0, NULL, NULL),"   \
	" (1, 5, NULL, 'malloc', 30, 30, 1048576, 1048576, 1048576, 0, 0, 0, 0, NULL, NULL),"      \
	" (1, 6, 6, 'brk', 1, 1, 131072, 131072, 0, 0, 0, 0, 0, NULL, NULL),"                      \
	" (1, 7, 7, 'malloc', 500, 500, 1024, 1024, 0, 0, 0, 490, 3, NULL, NULL);"                 \
	"INSERT INTO coverage VALUES (1, '/lib/libc.so.6', 'glibc', 13, 1, NULL),"                 \
	" (1, '/usr/bin/w', 'c++', 4, 0, NULL), (1, '/opt/y', '', 0, 1, 'stripped');"              \
	"INSERT INTO loss VALUES (1, 'ring 0', 7, 'between 1.0 s and 1.1 s');"

#define TRACE_SQL                                                                                 \
	"UPDATE run SET trace = '{\"events\":107000,\"allocs\":53532,\"frees\":53431,"            \
	"\"recorded\":107000,\"bytes_written\":321000,\"peak_live_bytes\":104857600,"             \
	"\"peak_t_ns\":3200000000,\"processes\":2,\"sites\":7,\"stacks\":6,"                      \
	"\"stack_definitions\":3,\"stacks_full\":1502,\"stacks_cut\":50000,"                      \
	"\"stacks_guessed\":2000,\"stacks_none\":30,\"checked\":400,\"mismatched\":2,\"lost\":7," \
	"\"pauses\":3,\"paused_ns\":45000000,\"stops\":2,\"hits\":107064,\"trap_ns\":5000,"       \
	"\"program_ns\":250000000,\"tracer_cpu_ns\":1500000000,\"tracer_rss_bytes\":125829120,"   \
	"\"unknown_frees\":4,\"failed_allocs\":3,\"faulted_pages\":12,"                           \
	"\"copies_bytes\":3145728,\"of_a_newer_recorder\":1}' WHERE run_id = 1;"

static void open_traced(struct fixture *f, const char *more_sql)
{
	fixture_open(f, "profile.w.20261130-221501");
	fixture_sql(f, RUNS_SQL SITES_SQL TRACE_SQL);
	fixture_sql(f, more_sql);
	fixture_finish(f);
}

static void test_text(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	open_traced(&f, "");
	assert_report(&f, "report-traced", 130);
	fixture_report(&f, &text, &json);
	assert_has(&text, "baseline: 53 532 allocations of 338.1 MiB at 7 sites; at most 100.0 MiB "
			  "were live at once, at 3.2 s; 42.0 MiB in 101 blocks not freed at the "
			  "end; 3 failed allocations.");
	assert_has(&text, "slowdown n/a (hits, cost of a trap or CPU time not recorded)");
	/* Of 53 532 each. */
	assert_has(&text, "2.8 % full, 93.4 % cut, 3.7 % guessed, 0.1 % none of all allocations; "
			  "400 checked, 2 wrong");
	assert_has(&text, "With care: 1 loss, 7 lost events, 2 wrong stacks, 1 file problem");
	assert_has(&text, "baseline: 107 000 events of 2 processes, 7 lost; all in events.zst "
			  "(313.5 KiB); 4 frees of unknown blocks; held 3 times for 45.0 ms in "
			  "all; 2 stops by SIGSTOP");
	assert_has(&text, "17 in 2 files; on shared inodes, where other processes pay too: "
			  "/usr/bin/w");
	assert_has(&text, "/opt/y: stripped");
	assert_has_not(&text, "nothing was lost");
	fixture_remove(&f);
}

static void assert_ids(struct json_object *ranking, int64_t total, const char *ids)
{
	struct json_object *list = json_at(ranking, "site_ids");

	assert_json_int(ranking, "total", total);
	assert_string_equal(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN), ids);
}

static void test_json(void **state)
{
	struct json_object *o, *trace, *sites, *site, *stack, *found;
	struct fixture f;

	(void)state;
	open_traced(&f, "");
	o = fixture_json(&f);
	trace = json_at(json_nth(json_at(o, "runs"), 0), "trace");
	assert_null(json_at(json_nth(json_at(o, "runs"), 1), "trace"));
	assert_json_int(trace, "events", 107000);
	assert_json_int(trace, "mismatched", 2);
	assert_json_int(trace, "paused_ns", 45000000);
	assert_json_int(trace, "site_count", 7);
	assert_null(json_at(trace, "slowdown")); /* was not recorded */
	assert_false(json_object_object_get_ex(trace, "of_a_newer_recorder", NULL));
	sites = json_at(trace, "sites");
	assert_int_equal(json_object_array_length(sites), 7);
	site = json_nth(sites, 0);
	assert_json_int(site, "id", 1);
	assert_json_text(site, "kind", "malloc");
	assert_json_int(site, "free_count", 900);
	assert_json_int(site, "peak_live_bytes", 67108864);
	assert_json_int(site, "end_live_count", 100);
	assert_null(json_at(site, "major_faults"));
	stack = json_at(site, "stack");
	assert_int_equal(json_object_array_length(stack), 4);
	assert_json_text(json_nth(stack, 0), "function", "grow");
	assert_true(json_object_get_boolean(json_at(json_nth(stack, 0), "inline")));
	assert_json_int(json_nth(stack, 1), "line", 88);
	assert_false(json_object_get_boolean(json_at(json_nth(stack, 1), "inline")));
	assert_null(json_at(json_nth(stack, 3), "function"));
	assert_json_text(json_nth(stack, 3), "module", "/lib/libc.so.6");
	assert_json_int(json_nth(stack, 3), "offset", 160329);
	assert_int_equal(json_object_array_length(json_at(json_nth(sites, 2), "stack")), 8);
	assert_json_text(json_nth(sites, 3), "quality", "guessed");
	assert_json_text(json_nth(sites, 4), "quality", "none");
	assert_int_equal(json_object_array_length(json_at(json_nth(sites, 4), "stack")), 0);
	assert_json_text(json_nth(json_at(trace, "coverage"), 2), "problem", "stripped");
	found = json_at(json_at(o, "findings"), "allocation_stacks");
	assert_json_int(found, "run_id", 1);
	assert_ids(json_at(found, "at_peak_bytes"), 104857600, "[1,2,3,4,5]");
	assert_ids(json_at(found, "alloc_bytes"), 354550784, "[4,1,2,3,5,6,7]");
	assert_ids(json_at(found, "alloc_count"), 53532, "[3,4,1,7,5,2,6]"); /* 2 and 6 alike */
	assert_ids(json_at(found, "end_live_bytes"), 44040192, "[2,1]");
	assert_ids(json_at(found, "temporary_count"), 49500, "[3,7,1]");
	(void)json_object_put(o);
	fixture_remove(&f);
}

/* 20 of each ranking are kept, every site once; ties go to the first. */
static void test_many_sites(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct json_object *o, *trace;
	struct report r;
	struct fixture f;

	(void)state;
	/* 100 sites: the peak grows with the id, the calls fall with it, all leak alike. */
	open_traced(
		&f,
		"DELETE FROM site;"
		"INSERT INTO site (run_id, site_id, stack_id, kind, alloc_count, free_count,"
		" alloc_bytes, peak_live_bytes, at_peak_bytes, end_live_bytes, end_live_count,"
		" temporary_count, failed_count, major_faults, max_swapped_bytes) WITH s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s"
		" WHERE i < 100) SELECT 1, i, 1, 'malloc', 1000 - i, 0, 8, i, i, 5, 1, 0, 0,"
		" NULL, NULL FROM s;");
	fixture_load(&r, &f);
	assert_int_equal(r.runs[0].trace.n_all, 100);
	assert_int_equal(r.runs[0].trace.total[ORDER_AT_PEAK], 5050);
	assert_int_equal(r.runs[0].trace.n_top[ORDER_AT_PEAK], 20);
	assert_int_equal(r.runs[0].trace.n_top[ORDER_TEMPORARY], 0);
	/* 1 ... 20 by calls, bytes and leaks, 81 ... 100 at the peak */
	assert_int_equal(r.runs[0].trace.n_sites, 40);
	assert_int_equal(r.runs[0].trace.sites[20].row.site_id, 81);
	report_done(&r);
	o = fixture_json(&f);
	trace = json_at(json_nth(json_at(o, "runs"), 0), "trace");
	assert_json_int(trace, "site_count", 100);
	assert_int_equal(json_object_array_length(json_at(trace, "sites")), 40);
	(void)json_object_put(o);
	fixture_report(&f, &text, &json);
	assert_has(&text, "site 100 100 B 2.0 % 900\n"); /* of 5050 */
	assert_has(&text, "site 96 96 B 1.9 % 904\n");
	assert_has_not(&text, "site 95 ");
	assert_has_not(&text, "temporary");
	fixture_remove(&f);
}

/* What stands where there are no sites. */
static void test_none(void **state)
{
	static const struct {
		const char *sql, *text, *trust;
	} cases[] = {
		{"UPDATE run SET trace = NULL", "n/a (not traced)\n", NULL},
		{"UPDATE run SET trace = NULL, environment ="
		 " '{\"features\":{\"tracer\":\"needs root\",\"psi\":true}}'",
		 "n/a (not traced: needs root)\n", NULL},
		{"UPDATE run SET trace = '{\"not_traced\":\"-t none\"}', environment ="
		 " '{\"features\":{\"tracer\":\"needs root\"}}'",
		 "n/a (not traced: -t none)\n", NULL},
		{"UPDATE run SET trace = '{}'", "n/a (traced, but no allocation was seen)\n",
		 "events not counted, losses not known"},
		/* A recorder that was killed. */
		{"UPDATE run SET trace = NULL, end_reason = NULL;"
		 "INSERT INTO tracer_stat (run_id, t_ns, ring) VALUES (1, 1, 0)",
		 "n/a (sites are written at the end of a run, and this one's was not recorded)\n",
		 "baseline: without an end: no figures, no sites"},
		{"UPDATE run SET trace = NULL, end_reason = NULL,"
		 " started_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-10 seconds');"
		 "INSERT INTO tracer_stat (run_id, t_ns, ring) VALUES (1, 1, 0)",
		 "n/a (sites are written at the end of a run)\n",
		 "baseline: without an end: no figures, no sites"},
		/* No number where one is expected, and no JSON at all. */
		{"UPDATE run SET trace = '{\"lost\":\"7\",\"not_traced\":null}'",
		 "n/a (traced, but no allocation was seen)\n", "losses not known"},
		{"UPDATE run SET trace = '{'", "n/a (traced, but no allocation was seen)\n",
		 "losses not known"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		struct fixture f;

		open_traced(&f, "DELETE FROM site; DELETE FROM coverage");
		fixture_reopen(&f);
		fixture_sql(&f, cases[i].sql);
		fixture_finish(&f);
		fixture_report(&f, &text, &json);
		assert_has(&text, cases[i].text);
		if (cases[i].trust)
			assert_has(&text, cases[i].trust);
		else
			assert_has_not(&text, " trace ");
		fixture_remove(&f);
	}
}

/* A directory of before there were traces. */
static void test_schema_1(void **state)
{
	struct json_object *o;
	struct report r;
	struct fixture f;

	(void)state;
	open_traced(&f, "DROP VIEW site_stack; DROP VIEW site_place; DROP VIEW site_pressure;"
			"DROP VIEW run_summary; DROP TABLE fault; DROP TABLE scan;"
			"DROP TABLE site_sample; DROP TABLE module; DROP TABLE frame;"
			"DROP TABLE stack; DROP TABLE stack_frame; DROP TABLE site;"
			"DROP TABLE site_histogram; DROP TABLE coverage; DROP TABLE tracer_stat;"
			"ALTER TABLE run DROP COLUMN trace; PRAGMA user_version = 1");
	fixture_load(&r, &f);
	assert_int_equal(r.n_runs, 2);
	assert_int_equal(r.runs[0].trace.state, TRACE_ABSENT);
	assert_fig(&r.runs[0], FIG_duration_s, 10);
	assert_fig(&r.runs[0], FIG_cpu_s, 5);
	report_done(&r);
	o = fixture_json(&f);
	assert_null(json_at(json_nth(json_at(o, "runs"), 0), "trace"));
	assert_null(json_at(json_at(o, "findings"), "allocation_stacks"));
	(void)json_object_put(o);
	fixture_remove(&f);
}

/* Names and paths come from outside: one printable line each, however long. */
static void test_frames(void **state)
{
	static const struct {
		const char *values, *line;
	} cases[] = {
		{"'/a/w', NULL, 16, NULL, NULL, NULL, 0", "    w+0x10\n"},
		{"NULL, NULL, 16, NULL, NULL, NULL, 0", "    0x10\n"},
		{"'/a/w', NULL, 16, 'f', NULL, NULL, 0", "    f  w\n"},
		{"NULL, NULL, 16, 'f', NULL, NULL, 1", "    f (inlined)\n"},
		{"'/a/w', NULL, 16, NULL, 'a.c', 3, 0", "    w+0x10  a.c:3\n"},
		{"'/a/w', NULL, 16, 'f' || char(27) || '[m', 'a.c', NULL, 0", "    f?[m  a.c\n"},
		/* 4 + 5 + 2 + 68 = 79 fits, one more does not: then the last part of the path */
		{"'/a/w', NULL, 16, 'fffff', printf('/%0.62d/ab.c', 0), NULL, 0",
		 "    fffff  /00000000000000000000000000000000000000000000000000000000000000/ab.c\n"},
		{"'/a/w', NULL, 16, 'ffffff', printf('/%0.62d/ab.c', 0), NULL, 0",
		 "    ffffff  ab.c\n"},
		/* 75 - 2 - 6 = 67 for the name, with three dots */
		{"'/a/w', NULL, 16, printf('%0.99d', 0), 'ab.c', 7, 0",
		 "    0000000000000000000000000000000000000000000000000000000000000000...  "
		 "ab.c:7\n"},
		/* 24 for the name at least, 49 for the place */
		{"'/a/w', NULL, 16, printf('%0.99d', 0), printf('%0.99d', 1), NULL, 0",
		 "    000000000000000000000...  "
		 "0000000000000000000000000000000000000000000000...\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		struct fixture f;
		char sql[512];

		(void)snprintf(sql, sizeof(sql),
			       "DELETE FROM site WHERE site_id != 7; DELETE FROM frame;"
			       "INSERT INTO frame VALUES (3, %s)",
			       cases[i].values);
		open_traced(&f, sql);
		fixture_report(&f, &text, &json);
		if (!strstr(text.data, cases[i].line))
			fail_msg("%s: not in\n%s", cases[i].line, text.data);
		fixture_remove(&f);
	}
}

/* Nothing to complain about: that is said too. Several traced runs: the text tells of one. */
static void test_clean(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	open_traced(&f, "DELETE FROM loss; DELETE FROM coverage WHERE path != '/lib/libc.so.6';"
			"UPDATE site SET major_faults = 0;"
			"UPDATE run SET trace = '{\"events\":9,\"recorded\":8,\"processes\":1,"
			"\"lost\":0,\"pauses\":0,\"checked\":5,\"mismatched\":0,"
			"\"slowdown\":0.25,\"tracer_cpu_ns\":1000000}'");
	fixture_report(&f, &text, &json);
	assert_has(&text, "Yes: nothing was lost, and there are no warnings.");
	assert_has(&text, "baseline: 9 events of 1 process, none lost; 8 in events.zst; never "
			  "paused\n");
	assert_has(&text, "limit 80 %: 9 events of 1 process, none lost");
	assert_has(&text, "their quality was not recorded; 5 checked, none wrong");
	assert_has(&text, "13 in 1 file, all of them copies of the workload's own\n");
	assert_has(&text, "tracer 1.0 ms CPU\n");
	assert_has(&text, "about 25.0 %, estimated");
	assert_has(&text, "1 other run was traced too: --format json has the sites of each.");
	assert_has(&text, "Where did the major faults come from?\n There were none.");
	fixture_remove(&f);
}

/* So slow that the estimate is only a bound. */
static void test_slow(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	open_traced(&f, "UPDATE run SET trace = '{\"events\":9,\"slowdown\":4.0}'");
	fixture_report(&f, &text, &json);
	assert_has(&text, "slowdown more than 400.0 %, estimated");
	fixture_remove(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),       cmocka_unit_test(test_json),
		cmocka_unit_test(test_many_sites), cmocka_unit_test(test_none),
		cmocka_unit_test(test_schema_1),   cmocka_unit_test(test_frames),
		cmocka_unit_test(test_clean),      cmocka_unit_test(test_slow),
	};

	return cmocka_run_group_tests_name("report sites", tests, NULL, NULL);
}
