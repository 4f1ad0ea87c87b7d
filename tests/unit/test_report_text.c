/*
 * The text report's parts: what fits into a line, what is said where there is no figure, and
 * figures that are told from more than the samples.
 */
#include "results_fixture.h"

#include "report/environment.h"
#include "report/text_internal.h"
#include "report/text_layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A baseline on a host that has the memory controller on cgroup v1. */
static void test_bare(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	fixture_open(&f, "profile.sh.20261130-221501");
	fixture_sql(
		&f,
		"INSERT INTO run (run_id, name, kind, policy, command, started_at, exec_t_ns,"
		" duration_s, exit_code, end_reason, tool_cpu_s, tool_rss_bytes, period_ns,"
		" environment) VALUES (1, 'baseline', 'baseline', 'none',"
		" '[\"sh\",\"-c\",\"sleep 2\"]', '2026-11-30T22:15:01Z', 0, 2.5, 0, 'exited', 0.003,"
		" 4823449, 1000000000, '{\"kernel\":\"6.18.44\",\"page_size\":4096,\"cpus\":2,"
		"\"memory_bytes\":25276510208,\"zswap\":{\"enabled\":\"N\",\"compressor\":\"lzo\"},"
		"\"swap_devices\":[],\"thp\":\"madvise\",\"swappiness\":60,\"page_cluster\":3,"
		"\"features\":{\"cgroup2\":true,\"memory\":\"is on cgroup v1\",\"memory.max\":\"no\","
		"\"memory.high\":\"no\",\"memory.reclaim\":\"no\",\"swap\":\"none\",\"zswap\":"
		"\"off\",\"memory.peak\":\"no\",\"psi\":true,\"zswap-counters\":\"none before\","
		"\"tracer\":\"not part of this build\"}}');"
		"INSERT INTO sample (run_id, seq, t_ns, memory_pressure_some_total,"
		" memory_pressure_full_total, cpu_stat_usage_usec, zram_mm_stat_mem_used_total,"
		" host_vmstat_pswpin, host_vmstat_pswpout, host_pressure_memory_full_total,"
		" host_meminfo_memavailable, host_meminfo_swaptotal, host_meminfo_swapfree)"
		" WITH s (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM s WHERE seq < 4)"
		" SELECT 1, seq, (seq - 1) * 833000000, 0, 0, seq * 900, 0, 0, 0, 0, 22870589440,"
		"  0, 0 FROM s");
	fixture_finish(&f);
	assert_report(&f, "report-bare", 45);
	fixture_report(&f, &text, &json);
	assert_has(&text, "how little is enough?\nn/a (no memory controller on cgroup v2)\n\nWhat");
	assert_has(&text, "not available here: memory controller, swap, zswap, zswap-counters");
	/* Once in each of the two blocks that lack something. */
	assert_null(strstr(strstr(strstr(text.data, "n/a (no memory controller") + 1,
				  "n/a (no memory controller") +
				   1,
			   "n/a (no memory controller"));
	assert_has_not(&text, "--limit 80% --"); /* which could not be held here */
	fixture_remove(&f);
}

static void load_run(const char *columns, const char *rows, struct fixture *f, struct report *r)
{
	char sql[512];

	fixture_open(f, "profile.x");
	fixture_sql(f, "INSERT INTO run (run_id, name, kind, policy, knob, command, started_at,"
		       " duration_s, exit_code, end_reason, tool_cpu_s, period_ns) VALUES (1,"
		       " 'dynamic', 'dynamic', 'pulse', 'memory.max', '[\"w\"]',"
		       " '2026-11-30T22:15:01Z', 10, 0, 'exited', 0.1, 1000000000);"
		       "INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_max,"
		       " memory_high) WITH s (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM s"
		       " WHERE seq < 11) SELECT 1, seq, (seq - 1) * 1000000000, 104857600,"
		       " 9223372036854775807, 9223372036854775807 FROM s");
	(void)snprintf(sql, sizeof(sql), "UPDATE run SET %s", columns);
	fixture_sql(f, sql);
	fixture_sql(f, rows);
	fixture_finish(f);
	fixture_load(r, f);
}

#define DECISION "INSERT INTO decision (run_id, t_ns, action, limit_after, outcome) VALUES "

/* A limit that came and went between two samples is known from the decisions alone. */
static void test_limits(void **state)
{
	static const struct {
		const char *knob, *rows;
		double least, least_t_s, last; /* MiB; NAN = none */
		const char *why, *why_share;
	} cases[] = {
		{"memory.max",
		 DECISION "(1, 2500000000, 'tighten', 94371840, 'ok'),"
			  "(1, 4500000000, 'tighten', 83886080, 'timeout'),"
			  "(1, 5500000000, 'tighten', 1048576, 'error'),"
			  "(1, 6000000000, 'tighten', 2097152, 'skipped'),"
			  "(1, 6500000000, 'tighten', 89128960, 'partial'),"
			  "(1, 7500000000, 'release', 9223372036854775807, 'ok')",
		 80, 4.5, 85, NULL, "held between samples only"},
		/* The samples have 90 MiB at 3 and 4 s: the decision's 95 is not the least ... */
		{"memory.high",
		 "UPDATE sample SET memory_high = 94371840 WHERE seq IN (4, 5);" DECISION
		 "(1, 2500000000, 'tighten', 99614720, 'ok')",
		 90, 3, 90, NULL, NULL},
		/* ... but 70 is, with the last limit as the samples saw it. */
		{"memory.high",
		 "UPDATE sample SET memory_high = 94371840 WHERE seq IN (4, 5);" DECISION
		 "(1, 3500000000, 'tighten', 73400320, 'ok')",
		 70, 3.5, 90, NULL, NULL},
		{"memory.reclaim", DECISION "(1, 2500000000, 'tighten', 94371840, 'ok')", NAN, NAN,
		 NAN, "memory.reclaim holds no limit", "memory.reclaim holds no limit"},
		/* 2^50 is the configuration's word for none. */
		{"memory.max", DECISION "(1, 1, 'hold', 1125899906842624, 'ok')", NAN, NAN, NAN,
		 "no limit was set", "no limit was set"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;
		struct report r;
		char columns[64];

		(void)snprintf(columns, sizeof(columns), "knob = '%s'", cases[i].knob);
		load_run(columns, cases[i].rows, &f, &r);
		if (cases[i].why) {
			assert_missing(&r.runs[0], FIG_limit_least_bytes, cases[i].why);
		} else {
			assert_fig(&r.runs[0], FIG_limit_least_bytes, cases[i].least * MIB);
			assert_fig(&r.runs[0], FIG_limit_least_t_s, cases[i].least_t_s);
			assert_fig(&r.runs[0], FIG_limit_last_bytes, cases[i].last * MIB);
		}
		if (cases[i].why_share)
			assert_missing(&r.runs[0], FIG_limit_held_share, cases[i].why_share);
		else
			assert_fig(&r.runs[0], FIG_limit_held_share, 0.2); /* 3 ... 5 of 10 s */
		report_done(&r);
		fixture_remove(&f);
	}
}

/* Shares of nearly nothing say nothing. */
static void test_short(void **state)
{
	static const struct {
		const char *columns, *why_sampled, *why_tool;
	} cases[] = {
		{"duration_s = 0.004", "run shorter than two periods", "run shorter than 1 s"},
		{"duration_s = 1.9", "run shorter than two periods", NULL},
		{"duration_s = 2", NULL, NULL},
		{"duration_s = 0.9, period_ns = 100000000", NULL, "run shorter than 1 s"},
		{"duration_s = 0.9, period_ns = NULL", "period not recorded",
		 "run shorter than 1 s"},
		{"duration_s = NULL", "run time not known", "not recorded"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		struct fixture f;
		struct report r;

		load_run(cases[i].columns, "", &f, &r);
		if (cases[i].why_sampled)
			assert_missing(&r.runs[0], FIG_sampled_share, cases[i].why_sampled);
		else
			assert_null(r.runs[0].fig[FIG_sampled_share].why);
		if (cases[i].why_tool)
			assert_missing(&r.runs[0], FIG_tool_cpu_share, cases[i].why_tool);
		else
			assert_null(r.runs[0].fig[FIG_tool_cpu_share].why);
		report_done(&r);
		fixture_report(&f, &text, &json);
		if (i == 0)
			assert_has(&text, "sampled n/a (run shorter than two periods)");
		fixture_remove(&f);
	}
}

/* Commands to copy are never wrapped and name the directory as it was given. */
static void test_next(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	char expected[512];
	struct fixture f;
	struct err err;

	(void)state;
	fixture_open(&f, "profile of mine");
	fixture_sql(&f,
		    "INSERT INTO run (run_id, name, kind, command, duration_s, exit_code,"
		    " end_reason, environment) VALUES (1, 'dynamic', 'dynamic', '[\"w\",\"x y\"]',"
		    " 10, 0, 'exited', '{\"features\":{\"tracer\":\"no\"}}')");
	fixture_finish(&f);
	assert_int_equal(report_build(f.dir, &text, &json, &err), 0);
	(void)snprintf(expected, sizeof(expected),
		       "\nNext:\n  analyzer report '%s' --format json\n"
		       "  analyzer check                                    "
		       "# why, and how to fix it\n"
		       "  analyzer -n 3 --limit 80%% -- w 'x y'              "
		       "# baseline and 80 %% of it\n",
		       f.dir);
	assert_true(text.len > strlen(expected));
	assert_string_equal(text.data + text.len - strlen(expected), expected);
	fixture_remove(&f);
}

static void test_layout(void **state)
{
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	(void)state;
	text_para(&s, 4, "%s", "one two");
	assert_string_equal(s.data, "    one two\n");
	str_done(&s);
	s = (struct str){0};
	/* 75 + 1 + 4 does not fit into 79; a word of 160 is broken at the margin */
	text_para(
		&s, 0, "%.75s four %.160s",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
	assert_layout(&s);
	str_done(&s);
	s = (struct str){0};
	/* A number stays with its unit and with its thousands. */
	text_para(
		&s, 0, "%.70s 12.3 %%, %.66s 38 412, %.77s 7 apples",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc");
	assert_has(&s, "a 12.3 %,\n");
	assert_layout(&s);
	assert_string_equal(text_duration(buf, 0.0123), "12.3 ms");
	assert_string_equal(text_duration(buf, 59.9), "59.9 s");
	assert_string_equal(text_duration(buf, 59.96), "1m 00s");
	assert_string_equal(text_duration(buf, 72.4), "1m 12s");
	assert_string_equal(text_duration(buf, 3725), "1h 02m");
	assert_string_equal(text_change(buf, 0.0312), "+3.1 %");
	assert_string_equal(text_change(buf, -0.1), "-10.0 %");
	assert_string_equal(text_change(buf, -0.0001), "0.0 %");
	assert_string_equal(text_change(buf, NAN), "");
}

static void collect(void *arg, const char *name, const char *value)
{
	str_addf(arg, "%s=%s;", name, value);
}

static void test_environment(void **state)
{
	static const char json[] =
		"{\"page_size\":16384,\"thp\":\"never\",\"zswap\":{\"enabled\":\"Y\"},\"x\":null,"
		"\"features\":{\"a\":true,\"b\":false,\"c\":\"yes\",\"d\":\"no root\","
		"\"e\":{\"ok\":true},\"f\":{\"ok\":false,\"why\":\"old\"},\"g\":7}}";
	_cleanup_str_ struct str s = {0}, m = {0}, c = {0};

	(void)state;
	assert_true(environment_page_size(json) == 16384);
	assert_true(isnan(environment_page_size(NULL)));
	assert_true(isnan(environment_page_size("[1]")));
	assert_true(isnan(environment_page_size("{\"page_size\":")));
	environment_missing(json, collect, &m);
	assert_string_equal(m.data, "b=;d=no root;f=old;");
	environment_machine(&s, json);
	assert_string_equal(s.data, "16 KiB pages; zswap on; THP never");
	command_line(&c, "[\"a b\",\"\",\"c\\u0007\",\"d/e-1\",\"*\"]");
	assert_string_equal(c.data, "'a b' '' 'c?' d/e-1 '*'");
}

static void test_machine(void **state)
{
	static const struct {
		const char *json, *expected;
	} cases[] = {
		{"{\"kernel\":\"6.12.95\",\"cpus\":1,\"memory_bytes\":1073741824,"
		 "\"page_size\":4096,\"swap_devices\":[{\"path\":\"/dev/vda\","
		 "\"size_bytes\":536870912},{\"path\":\"/s\"},{}],\"zswap\":{\"enabled\":\"Y\","
		 "\"compressor\":\"zstd\",\"zpool\":\"zsmalloc\",\"max_pool_percent\":\"20\"},"
		 "\"thp\":\"madvise\",\"swappiness\":60,\"page_cluster\":3}",
		 "Linux 6.12.95; 1 CPU; 1.0 GiB of memory; 4 KiB pages; swap /dev/vda of "
		 "512.0 MiB; swap /s; swap ?; zswap on (zstd, zsmalloc, pool 20 % at most); "
		 "THP madvise; swappiness 60; page-cluster 3 (8 pages)"},
		{"{\"swap_devices\":[],\"zswap\":{\"enabled\":\"N\",\"compressor\":\"lzo\"},"
		 "\"swappiness\":0,\"page_cluster\":0}",
		 "no swap; zswap off; swappiness 0; page-cluster 0 (1 page)"},
		{"{\"cpus\":null,\"page_cluster\":77,\"zswap\":7,\"swap_devices\":{}}", ""},
		{"[]", ""},
		{NULL, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str s = {0};

		environment_machine(&s, cases[i].json);
		assert_string_equal(s.data ? s.data : "", cases[i].expected);
	}
}

/* Every figure is told what it is, in one line of a terminal: no empty text, no name twice. */
static void test_figure_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIG_COUNT; i++) {
		assert_true(figure_infos[i].definition[0] && figure_infos[i].label[0]);
		if (strlen(figure_infos[i].label) > TEXT_LABEL ||
		    strlen(figure_infos[i].definition) > 31)
			fail_msg("%s: label or definition is too long", figure_infos[i].name);
		/* Labels are listed with commas between them. */
		assert_null(strchr(figure_infos[i].label, ','));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(figure_infos[i].name, figure_infos[j].name);
	}
}

/* What a value may reasonably need. */
static size_t widest(enum figure_unit unit)
{
	static const char *const values[] = {
		[UNIT_BYTES] = "1023.9 MiB", [UNIT_SECONDS] = "999.9 ms",
		[UNIT_RATE] = "999 999/s",   [UNIT_COUNT] = "123 456 789",
		[UNIT_SHARE] = "100.0 %",    [UNIT_RATIO] = "999.99",
	};

	return strlen(values[unit]);
}

/* Every figure but those about recording has its one place, and the line stays one line. */
static void test_lines(void **state)
{
	size_t n_seen[FIG_COUNT] = {0};

	(void)state;
	for (size_t i = 0; i < n_text_lines; i++) {
		const struct text_line *line = &text_lines[i];
		size_t len = line->lead ? strlen(line->lead) : 0;

		n_seen[line->id]++;
		for (size_t j = 0; j < TEXT_ALSO_MAX && line->also[j].text; j++) {
			const struct text_also *also = &line->also[j];

			n_seen[also->id]++;
			assert_non_null(strchr(also->text, '@'));
			len += (len > 0 ? 2 : 0) + strlen(also->text) - 1 +
			       widest(figure_infos[also->id].unit);
		}
		if (len > TEXT_DEFINITION)
			fail_msg("%s: its line needs %zu", figure_infos[line->id].name, len);
	}
	for (size_t i = 0; i < FIG_COUNT; i++) {
		if (n_seen[i] != (figure_infos[i].section == SEC_TRUST ? 0 : 1))
			fail_msg("%s is in %zu lines", figure_infos[i].name, n_seen[i]);
	}
	assert_true(TEXT_INDENT + TEXT_LABEL + TEXT_CELL + 2 + TEXT_DEFINITION <= TEXT_WIDTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bare),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_short),   cmocka_unit_test(test_next),
		cmocka_unit_test(test_layout),  cmocka_unit_test(test_environment),
		cmocka_unit_test(test_machine), cmocka_unit_test(test_figure_table),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests_name("report text", tests, NULL, NULL);
}
