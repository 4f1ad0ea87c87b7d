/*
 * Reports from databases with known numbers: figures worked out by hand beside the rows, and the
 * whole text and JSON against golden files.
 */
#include "results_fixture.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/*
 * Run 1: a baseline of 4 s, samples at 0 ... 4 s.
 *   memory.current 0 100 200 200 0 MiB, memory.peak 210 MiB
 * Run 2: dynamic, 12 s, samples at 0 ... 12 s; squeezed from second 3 on.
 *   MiB       0    1    2    3    4    5 ... 11   12 s
 *   current   0  200  200  150  120  100 ... 100   0
 *   anon      0  150  150  100   80   70 ...  70   0
 *   file      0   40   40   40   30   20 ...  20   0   (shmem 10 throughout)
 *   kernel    0   10   10   20   25   30 ...  30   0
 *   zswap     0    0    0   10   15   20 ...  20   0
 *   zswapped  0    0    0   30   45   80 ...  80   0
 *   swap      0    0    0   30   50   90 ...  90   0
 *   swapcache 0    0    0    0    5   10 ...  10   0
 *   max       -    -    -  160  130  110 ... 110   -
 */
static void add_dynamic_rows(struct fixture *f)
{
	fixture_sql(
		f,
		"INSERT INTO run (run_id, name, kind, policy, knob, command, started_at, exec_t_ns,"
		" duration_s, exit_code, end_reason, repeat_index, run_order, tool_cpu_s,"
		" tool_rss_bytes, actuator_cpu_s, period_ns, environment) VALUES"
		" (1, 'baseline', 'baseline', 'none', NULL, '[\"./workload\",\"1\",\"10 s\"]',"
		" '2026-11-30T22:15:01Z', 0, 4.0, 0, 'exited', 0, 0, 0.01, 5242880, NULL,"
		" 1000000000, '{\"kernel\":\"6.1.0\",\"page_size\":4096,"
		"\"zswap\":{\"compressor\":\"zstd\"},"
		"\"features\":{\"psi\":true,\"damon\":\"not built in\"}}'),"
		" (2, 'dynamic', 'dynamic', 'step', 'memory.max',"
		" '[\"./workload\",\"1\",\"10 s\"]', '2026-11-30T22:15:06Z', 0, 11.5, 0, 'exited',"
		" 0, 1, 0.046, 6291456, 0.25, 1000000000, '{\"kernel\":\"6.1.0\","
		"\"page_size\":4096,\"zswap\":{\"compressor\":\"zstd\"},"
		"\"features\":{\"psi\":true,\"damon\":\"not built in\"}}');"
		"INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_peak, memory_max,"
		" memory_stat_anon, memory_stat_file, memory_stat_shmem, memory_stat_kernel,"
		" memory_stat_zswap, memory_stat_zswapped, memory_swap_current,"
		" memory_stat_swapcached, memory_stat_pgmajfault, memory_stat_pgsteal,"
		" memory_stat_pgscan, memory_stat_workingset_refault_anon,"
		" memory_stat_workingset_refault_file, memory_stat_zswpin,"
		" memory_pressure_some_total, memory_pressure_full_total, cpu_stat_usage_usec,"
		" memory_events_oom_kill)"
		" WITH v (run_id, seq, cur, peak, max, anon, file, kern, zswap, zswapped, swap,"
		"  cached, maj, steal, scan, refault, zin, some, full, cpu) AS (VALUES"
		" (1, 1,   0,   0, NULL,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),"
		" (1, 2, 100, 110, NULL, 60, 30, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 900000),"
		" (1, 3, 200, 210, NULL, 150, 40, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 1900000),"
		" (1, 4, 200, 210, NULL, 150, 40, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 2900000),"
		" (1, 5,   0, 210, NULL,  0,  0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 3800000),"
		" (2, 1,   0,   0, NULL,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),"
		" (2, 2, 200, 210, NULL, 150, 40, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 900000),"
		" (2, 3, 200, 210, NULL, 150, 40, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1800000),"
		" (2, 4, 150, 210, 160, 100, 40, 20, 10, 30, 30, 0, 500, 10000, 20000, 100, 400,"
		"  100000, 50000, 2700000),"
		" (2, 5, 120, 210, 130, 80, 30, 25, 15, 45, 50, 5, 1500, 15000, 30000, 1100, 1200,"
		"  400000, 200000, 3600000),"
		" (2, 6, 100, 210, 110, 70, 20, 30, 20, 80, 90, 10, 2000, 20000, 40000, 1200, 1500,"
		"  600000, 300000, 4500000))"
		" SELECT run_id, seq, (seq - 1) * 1000000000, cur * 1048576, peak * 1048576,"
		"  coalesce(max * 1048576, 9223372036854775807), anon * 1048576, file * 1048576,"
		"  10 * 1048576, kern * 1048576, zswap * 1048576, zswapped * 1048576,"
		"  swap * 1048576, cached * 1048576, maj, steal, scan, refault, 0, zin, some, full,"
		"  cpu, 0 FROM v");
}

static void make_dynamic(struct fixture *f)
{
	fixture_open(f, "profile.workload.20261130-221501");
	add_dynamic_rows(f);
	/* 7 ... 12 as 6, but for the time; 13 is after the end: gauges 0, counters stay. */
	for (int seq = 7; seq <= 13; seq++) {
		char sql[1600];

		(void)snprintf(
			sql, sizeof(sql),
			"CREATE TEMP TABLE one AS SELECT * FROM sample WHERE run_id = 2 AND seq = 6;"
			"UPDATE one SET seq = %d, t_ns = %d * 1000000000;"
			"INSERT INTO sample SELECT * FROM one; DROP TABLE one;",
			seq, seq - 1);
		fixture_sql(f, sql);
	}
	fixture_sql(
		f,
		"UPDATE sample SET memory_current = 0, memory_stat_anon = 0, memory_stat_file = 0,"
		" memory_stat_kernel = 0, memory_stat_zswap = 0, memory_stat_zswapped = 0,"
		" memory_swap_current = 0, memory_stat_swapcached = 0,"
		" memory_max = 9223372036854775807 WHERE run_id = 2 AND seq = 13;"
		"INSERT INTO decision (run_id, t_ns, action, outcome, took_ns) VALUES"
		" (2, 2500000000, 'tighten', 'ok', 30000000),"
		" (2, 3500000000, 'tighten', 'ok', 20000000),"
		" (2, 4500000000, 'tighten', 'timeout', 2000000000),"
		" (2, 6000000000, 'hold', 'ok', 1000), (2, 11600000000, 'release', 'ok', 2000);"
		"INSERT INTO event VALUES (2, 11600000000, 'limit_restored', 'memory.max is max'),"
		" (2, 5000000000, 'warning', 'a write of memory.max took 2.0 s')");
	fixture_finish(f);
}

static void check_baseline(const struct run_view *v)
{
	assert_fig(v, FIG_peak_bytes, 210 * MIB);
	assert_fig(v, FIG_used_max_bytes, 200 * MIB);
	/* weights 0.5 1 1 1 0.5 s: (100 + 200 + 200) / 4 */
	assert_fig(v, FIG_used_mean_bytes, 125 * MIB);
	/* 1 s at or below 0, 2 s at or below 100 of 4 s */
	assert_fig(v, FIG_used_median_bytes, 100 * MIB);
	assert_fig(v, FIG_major_faults, 10);
	assert_missing(v, FIG_floor_bytes, "nothing was reclaimed");
	assert_missing(v, FIG_limit_least_bytes, "no limit was set");
	assert_missing(v, FIG_zswap_ratio, "nothing was in zswap");
	assert_missing(v, FIG_stall_per_page_s, "nothing was swapped in");
	assert_fig(v, FIG_sampled_share, 1.25); /* 5 samples of 1 s for 4 s */
	assert_fig(v, FIG_tool_cpu_share, 0.0025);
}

static void check_squeezed(const struct run_view *v)
{
	/* memory: current - zswap is 200 at most; + swap - swapcached: 200 200 170 150 160 */
	assert_fig(v, FIG_resident_max_bytes, 200 * MIB);
	assert_fig(v, FIG_logical_max_bytes, 200 * MIB);
	assert_fig(v, FIG_physical_max_bytes, 200 * MIB);
	assert_fig(v, FIG_cache_max_bytes, 30 * MIB);
	assert_fig(v, FIG_kernel_max_bytes, 10 * MIB);
	assert_fig(v, FIG_swapped_max_bytes, 80 * MIB);
	assert_fig(v, FIG_swapped_share_max, 0.5); /* 80 of 160, at one instant */
	/* floor: 3 ... 8 s: 150 120 100 100 100 100; 1100 back of 10000 taken */
	assert_fig(v, FIG_floor_bytes, 100 * MIB);
	assert_fig(v, FIG_floor_share, 100.0 / 210);
	/* anon + file there: 140 110 90 90 90 90 */
	assert_fig(v, FIG_hot_bytes, 90 * MIB);
	assert_fig(v, FIG_limit_least_bytes, 110 * MIB);
	assert_fig(v, FIG_limit_least_t_s, 5);
	assert_fig(v, FIG_limit_last_bytes, 110 * MIB);
	assert_fig(v, FIG_limit_changes, 4);       /* at 3, 4, 5 and 12 s */
	assert_fig(v, FIG_limit_held_share, 0.75); /* 3 ... 12 of 12 s */
	assert_fig(v, FIG_refault_ratio, 0.06);    /* 1200 / 20000 */
	assert_fig(v, FIG_reclaim_efficiency, 0.5);
	/* cost: rates 0 0 500 1000 500 0 ... over 12 s */
	assert_fig(v, FIG_major_faults, 2000);
	assert_fig(v, FIG_major_faults_avg_per_s, 2000.0 / 12);
	assert_fig(v, FIG_major_faults_median_per_s, 0);
	assert_fig(v, FIG_major_faults_max_per_s, 1000);
	assert_fig(v, FIG_stalled_some_s, 0.6);
	assert_fig(v, FIG_stalled_some_share, 0.05);
	assert_fig(v, FIG_stalled_some_worst, 0.3);
	assert_fig(v, FIG_stalled_full_s, 0.3);
	assert_fig(v, FIG_stalled_full_worst, 0.15);
	assert_fig(v, FIG_stall_per_page_s, 0.0004); /* 0.6 s / 1500 */
	assert_fig(v, FIG_cpu_s, 4.5);
	/* saving: logical - current: 0 0 0 20 30 60 ... 60 0; weights 0.5 1 ... 1 0.5 of 12 s:
	 * 0 for 3 s, 20 and 30 for 1 s each, 60 for 7 s */
	assert_fig(v, FIG_saving_max_bytes, 60 * MIB);
	assert_fig(v, FIG_saving_max_share, 0.375);
	assert_fig(v, FIG_saving_median_bytes, 60 * MIB);
	/* ratio 3 3 4 4 ...: only between samples with something in zswap */
	assert_fig(v, FIG_zswap_ratio, 4);
	assert_fig(v, FIG_zswap_ratio_at_most, 4);
	assert_fig(v, FIG_oom_kills, 0);
	assert_missing(v, FIG_faults, "no pgfault in memory.stat");
	assert_missing(v, FIG_host_zram_max_bytes, "no zram");
}

static void test_dynamic(void **state)
{
	struct fixture f;
	struct report r;

	(void)state;
	make_dynamic(&f);
	fixture_load(&r, &f);
	assert_int_equal(r.n_runs, 2);
	assert_int_equal(r.n_groups, 2);
	assert_ptr_equal(r.baseline, &r.groups[0]);
	assert_ptr_equal(r.floor_run, &r.runs[1]);
	assert_string_equal(r.runs[0].command, "./workload 1 '10 s'");
	check_baseline(&r.runs[0]);
	check_squeezed(&r.runs[1]);
	assert_int_equal(r.runs[1].decisions.by[ACTION_TIGHTEN][OUTCOME_OK], 2);
	assert_int_equal(r.runs[1].decisions.by[ACTION_TIGHTEN][OUTCOME_TIMEOUT], 1);
	assert_int_equal(r.runs[1].decisions.longest_ns, 2000000000);
	report_done(&r);
	assert_report(&f, "report-dynamic", 120);
	fixture_remove(&f);
}

/*
 * A sweep, two repeats of each setting, run time r and r + 0.2 s:
 *   baseline 10.0 s, 200 MiB; 180 MiB 10.2 s; 160 MiB 10.4 s; 100 MiB 14.0 s, killed
 * Medians: 10.1, 10.3 (+2.0 %), 10.5 (+4.0 %), 14.1. Within 5 %: 160 MiB.
 */
static void make_sweep(struct fixture *f)
{
	fixture_open(f, "profile.sweep");
	fixture_sql(
		f,
		"CREATE TEMP TABLE level AS WITH v (id, name, kind, lim, dur, code, sig, why, mem,"
		" maj, oom) AS (VALUES"
		" (1, 'baseline', 'baseline', NULL, 10.0, 0, NULL, 'exited', 200, 10, 0),"
		" (2, 'limit 90 %', 'static', 180, 10.2, 0, NULL, 'exited', 180, 500, 0),"
		" (3, 'limit 80 %', 'static', 160, 10.4, 0, NULL, 'exited', 160, 4000, 0),"
		" (4, 'limit 50 %', 'static', 100, 14.0, NULL, 9, 'signalled', 100, 90000, 1))"
		" SELECT * FROM v;"
		"CREATE TEMP TABLE rep AS WITH v (k) AS (VALUES (0), (1)) SELECT * FROM v;"
		"INSERT INTO run (run_id, name, kind, policy, knob, limit_bytes, command,"
		" started_at, exec_t_ns, duration_s, exit_code, term_signal, end_reason,"
		" repeat_index, run_order, tool_cpu_s, tool_rss_bytes, period_ns)"
		" SELECT id + 4 * k, name, kind, iif(id = 1, 'none', 'static'),"
		"  iif(id = 1, NULL, 'memory.max'), lim * 1048576, '[\"./w\"]',"
		"  '2026-11-30T22:15:01Z', 0, dur + 0.2 * k, code, sig, why, k, id - 1 + 4 * k,"
		"  0.02, 5242880, 1000000000 FROM level, rep;"
		"INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_max,"
		" memory_stat_pgmajfault, memory_events_oom_kill, memory_pressure_some_total,"
		" memory_pressure_full_total, host_meminfo_swaptotal, host_meminfo_swapfree,"
		" memory_swap_current)"
		" WITH s (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM s WHERE seq < 11)"
		" SELECT id + 4 * k, seq, (seq - 1) * 1000000000,"
		"  iif(seq IN (1, 11), 0, (mem - k) * 1048576),"
		"  coalesce(lim * 1048576, 9223372036854775807),"
		"  (maj * (seq - 1)) / 10, iif(seq = 11, oom, 0), maj * (seq - 1) * 2,"
		"  maj * (seq - 1), 0, 0, 0 FROM level, rep, s;"
		"INSERT INTO loss VALUES (3, 'store queue', 2, 'the disk was slow');"
		"INSERT INTO event VALUES (4, 9000000000, 'oom_kill', 'pid 77 (w)'),"
		" (8, 9000000000, 'oom_kill', 'pid 91 (w)'), (2, 1, 'warning', 'no PSI')");
	fixture_finish(f);
}

static void test_sweep(void **state)
{
	struct fixture f;
	struct report r;

	(void)state;
	make_sweep(&f);
	fixture_load(&r, &f);
	assert_int_equal(r.n_runs, 8);
	assert_int_equal(r.n_groups, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(r.groups[i].n, 2);
	assert_true(fabs(r.groups[1].median[FIG_duration_s].v - 10.3) < 1e-9);
	assert_true(fabs(r.groups[1].min[FIG_duration_s].v - 10.2) < 1e-9);
	assert_true(fabs(r.groups[1].max[FIG_duration_s].v - 10.4) < 1e-9);
	assert_true(r.groups[0].median[FIG_used_max_bytes].v == 199.5 * MIB);
	assert_true(fabs(figure_change(&r.groups[2], r.baseline, FIG_duration_s) - 0.4 / 10.1) <
		    1e-9);
	assert_true(isnan(figure_change(&r.groups[2], r.baseline, FIG_floor_bytes)));
	assert_ptr_equal(r.best_limit, &r.groups[2]);
	assert_false(r.groups[3].has_ended_well);
	assert_missing(&r.runs[0], FIG_saving_max_bytes, "the host has no swap");
	report_done(&r);
	assert_report(&f, "report-sweep", 130);
	fixture_remove(&f);
}

/*
 * The recorder died 12.3 s in; a hole of 8 s, a sample that is missing, zram (60 MiB, this group
 * owns 40 of 80 MiB of used swap), a host that was stalled, no memory.stat worth the name.
 */
static void make_incomplete(struct fixture *f)
{
	fixture_open(f, "profile.died");
	fixture_sql(
		f, "INSERT INTO run (run_id, name, kind, policy, command, started_at, exec_t_ns,"
		   " repeat_index, run_order, period_ns, environment) VALUES (1, 'baseline',"
		   " 'baseline', 'none', '[\"sh\",\"-c\",\"echo it''s; sleep 9\"]',"
		   " '2026-11-30T22:15:01Z', 0, 0, 0, 1000000000, '{\"page_size\":4096,"
		   "\"features\":{\"memory.stat\":{\"ok\":false,\"why\":\"fixture\"}}}');"
		   "INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_swap_current,"
		   " zram_mm_stat_mem_used_total, zram_mm_stat_orig_data_size,"
		   " zram_mm_stat_huge_pages, host_meminfo_swaptotal, host_meminfo_swapfree,"
		   " host_pressure_memory_full_total, memory_stat_pgmajfault) VALUES"
		   " (1, 1, 0, 0, 0, 62914560, 209715200, 5120, 104857600, 20971520, 0, 0),"
		   " (1, 2, 1000000000, 104857600, 41943040, 62914560, 209715200, 5120, 104857600,"
		   "  20971520, 100000, 100),"
		   " (1, 3, 9000000000, 104857600, 41943040, 62914560, 209715200, 5120, 104857600,"
		   "  20971520, 200000, 900),"
		   " (1, 4, 10000000000, 104857600, 41943040, 62914560, 209715200, 5120, 104857600,"
		   "  20971520, 300000, 1000),"
		   " (1, 6, 12300000000, 104857600, 41943040, 62914560, 209715200, 5120, 104857600,"
		   "  20971520, 300000, 0)");
	fixture_finish(f);
}

static void test_incomplete(void **state)
{
	const struct run_view *v;
	struct fixture f;
	struct report r;

	(void)state;
	make_incomplete(&f);
	fixture_load(&r, &f);
	v = &r.runs[0];
	assert_int_equal(v->state, RUN_RECORDER_DIED);
	assert_true(v->last_sample_s == 12.3);
	assert_string_equal(v->command, "sh -c 'echo it'\\''s; sleep 9'");
	assert_fig(v, FIG_samples, 5);
	assert_fig(v, FIG_holes, 1);
	assert_fig(v, FIG_holes_s, 8);
	assert_fig(v, FIG_gap_max_s, 8);
	assert_fig(v, FIG_samples_missing, 1);
	assert_fig(v, FIG_period_mean_s, 1.433333333); /* (1 + 1 + 2.3) / 3, in ns */
	assert_fig(v, FIG_counter_resets, 1);
	assert_fig(v, FIG_major_faults, 1000);          /* the hole's 800 did happen */
	assert_fig(v, FIG_major_faults_avg_per_s, 100); /* 200 in 2 s */
	/* 40 of 80 MiB of swap: half of 60 MiB of zram */
	assert_fig(v, FIG_physical_max_bytes, 130 * MIB);
	assert_fig(v, FIG_logical_max_bytes, 140 * MIB);
	/* 0 - 0 at first: used swap is others' */
	assert_fig(v, FIG_saving_max_bytes, 10 * MIB);
	assert_fig(v, FIG_host_zram_incompressible, 0.1); /* 5120 * 4096 / 200 MiB */
	assert_fig(v, FIG_host_swap_ratio, 200.0 / 60);
	assert_missing(v, FIG_duration_s, "the run's end is not recorded");
	assert_missing(v, FIG_zswap_max_bytes, "no zswap in memory.stat");
	report_done(&r);
	assert_report(&f, "report-incomplete", 90);
	fixture_remove(&f);
}

/* One squeezed run without a baseline, on a kernel that tells everything. */
static void test_squeezed(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	make_dynamic(&f);
	fixture_reopen(&f);
	fixture_sql(
		&f,
		"DELETE FROM run WHERE run_id = 1; DELETE FROM sample WHERE run_id = 1;"
		"DELETE FROM event;"
		"UPDATE sample SET memory_high = memory_max, memory_stat_inactive_anon ="
		" memory_stat_anon / 2, memory_zswap_current = memory_stat_zswap,"
		" memory_stat_pgfault = 100000 * (seq - 1), memory_stat_zswpout ="
		" memory_stat_pgsteal / 2, memory_stat_pswpin = memory_stat_zswpin / 10,"
		" memory_stat_pswpout = memory_stat_pgsteal / 10, io_stat_rbytes = seq * 1048576,"
		" io_stat_wbytes = 0, memory_events_max = seq, memory_events_high = 0,"
		" zswap_pool_total_size = memory_stat_zswap * 2, zswap_stored_pages ="
		" memory_stat_zswapped / 4096, zswap_same_filled_pages = 1,"
		" zram_mm_stat_mem_used_total = 0, zram_mm_stat_orig_data_size = 0,"
		" zram_mm_stat_same_pages = 0, zram_mm_stat_huge_pages = 0,"
		" host_vmstat_pswpin = 7 * seq, host_vmstat_pswpout = 9 * seq,"
		" host_pressure_memory_full_total = memory_pressure_full_total,"
		" host_meminfo_memavailable = 1073741824, host_meminfo_swaptotal = 1073741824,"
		" host_meminfo_swapfree = 1073741824 - memory_swap_current");
	fixture_finish(&f);
	assert_report(&f, "report-squeezed", 90);
	fixture_report(&f, &text, &json);
	assert_has(&text, "The peak was 210.0 MiB; 100.0 MiB (47.6 % of it) was enough");
	assert_has(&text, "The least limit held was 110.0 MiB (memory.max), 52.4 % of the peak, "
			  "reached at 5.0 s.");
	assert_has(&text, "5 decisions: 3 tighten, 1 hold, 1 release; 1 timed out; longest 2.0 s");
	assert_has(&text, "analyzer -n 3 --limit 80% -- ./workload 1 '10 s'");
	assert_has_not(&text, "in memory.stat");
	fixture_remove(&f);
}

/* Three settings side by side, two of them with a long name, still are no book. */
static void test_columns(void **state)
{
	_cleanup_str_ struct str two = {0}, three = {0}, json = {0}, json2 = {0};
	struct fixture f;

	(void)state;
	make_sweep(&f);
	fixture_reopen(&f);
	fixture_sql(&f, "DELETE FROM run WHERE run_id IN (3, 7)");
	fixture_finish(&f);
	fixture_report(&f, &three, &json);
	assert_true(count_lines(&three) <= 130);
	assert_has(&three, "baseline limit 90 % limit 50 %\n");
	assert_has(&three, "peak 199.5 MiB 179.5 MiB 99.5 MiB\n");
	assert_has(&three, "n/a (no limit was set) in 'baseline': least limit held, limit held\n");
	fixture_reopen(&f);
	fixture_sql(&f, "DELETE FROM run WHERE run_id IN (4, 8);"
			"UPDATE run SET name = 'limit 90 % zstd' WHERE run_id IN (2, 6)");
	fixture_finish(&f);
	fixture_report(&f, &two, &json2);
	/* A column of 14 leaves room for 25: what is longer is defined in the end. */
	assert_has(&two, "baseline limit 90 % zs\n");
	assert_has(&two, "MiB of memory.current\n");
	assert_has(&two, "(peak: memory.peak, or largest sample; ");
	fixture_remove(&f);
}

/* The best limit must have been held: a run that merely asked for it proves nothing. */
static void test_limit_not_held(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;
	struct report r;

	(void)state;
	make_sweep(&f);
	fixture_reopen(&f);
	fixture_sql(&f, "UPDATE sample SET memory_max = 9223372036854775807 WHERE run_id = 7");
	fixture_finish(&f);
	fixture_load(&r, &f);
	assert_true(group_lacks_limit(&r.groups[2]));
	assert_false(group_lacks_limit(&r.groups[0])); /* asked for none */
	assert_ptr_equal(r.best_limit, &r.groups[1]);
	report_done(&r);
	fixture_report(&f, &text, &json);
	assert_has(&text, "\n~ 160.0 MiB ");
	assert_has(&text, "\n~ never held this limit");
	assert_has(&text, "With care: 1 limit was never held");
	fixture_remove(&f);
}

static void test_still_recording(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;
	struct err err;

	(void)state;
	fixture_open(&f, "profile.live");
	fixture_sql(&f,
		    "INSERT INTO run (run_id, name, kind, command, started_at, period_ns)"
		    " VALUES (1, 'baseline', 'baseline', '[\"w\"]',"
		    " strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-2 seconds'), 1000000000);"
		    "INSERT INTO sample (run_id, seq, t_ns) VALUES (1, 1, 0), (1, 2, 1000000000)");
	fixture_finish(&f);
	assert_int_equal(report_build(f.dir, &text, &json, &err), 0);
	assert_true(strncmp(text.data, "Ran w, still being recorded: 1.0 s so far\n", 42) == 0);
	assert_layout(&text);
	fixture_remove(&f);
}

/* Endings in the first line. */
static void test_opening(void **state)
{
	static const struct {
		const char *columns, *opening;
	} cases[] = {
		{"exit_code = 3, end_reason = 'exited'", "Ran w for 1m 12s, exit 3\n"},
		{"term_signal = 9, end_reason = 'signalled'",
		 "Ran w for 1m 12s, ended by signal 9 (SIGKILL)\n"},
		{"term_signal = 2, end_reason = 'interrupted'",
		 "Ran w for 1m 12s, interrupted, ended by signal 2 (SIGINT)\n"},
		{"term_signal = 9, end_reason = 'timeout'",
		 "Ran w for 1m 12s, ended by --timeout, ended by signal 9 (SIGKILL)\n"},
		{"exit_code = 127, end_reason = 'exec_failed', duration_s = NULL",
		 "Ran w, it could not be executed, exit 127\n"},
		{"exit_code = 0, end_reason = 'recording_failed'",
		 "Ran w for 1m 12s, incomplete: recording failed, exit 0\n"},
		{"duration_s = NULL", "Ran w, incomplete: the recorder died 0 s in\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		struct fixture f;
		struct err err;
		char sql[256];

		fixture_open(&f, "profile.x");
		fixture_sql(&f, "INSERT INTO run (run_id, name, kind, command, duration_s) VALUES"
				" (1, 'baseline', 'baseline', '[\"w\"]', 72.4)");
		(void)snprintf(sql, sizeof(sql), "UPDATE run SET %s", cases[i].columns);
		fixture_sql(&f, sql);
		fixture_finish(&f);
		assert_int_equal(report_build(f.dir, &text, &json, &err), 0);
		assert_layout(&text);
		text.data[strlen(cases[i].opening)] = '\0';
		assert_string_equal(text.data, cases[i].opening);
		fixture_remove(&f);
	}
}

static void test_no_runs(void **state)
{
	struct fixture f;
	struct report r;
	struct err err;

	(void)state;
	fixture_open(&f, "profile.x");
	fixture_finish(&f);
	assert_int_equal(report_load(&r, f.dir, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "has no runs"));
	fixture_remove(&f);
}

static void test_save(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;
	struct err err;
	char path[192], got[16] = "";
	FILE *file;

	(void)state;
	fixture_open(&f, "profile.x");
	fixture_finish(&f);
	str_add(&text, "text\n");
	str_add(&json, "{}\n");
	assert_int_equal(report_save(f.dir, &text, &json, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/report.txt", f.dir);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(got, sizeof(got), file));
	(void)fclose(file);
	assert_string_equal(got, "text\n");
	assert_true(report_save("/nonexistent", &text, &json, &err) < 0);
	fixture_remove(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dynamic),        cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_incomplete),     cmocka_unit_test(test_squeezed),
		cmocka_unit_test(test_limit_not_held), cmocka_unit_test(test_still_recording),
		cmocka_unit_test(test_opening),        cmocka_unit_test(test_no_runs),
		cmocka_unit_test(test_save),           cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
