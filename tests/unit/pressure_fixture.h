/*
 * A traced run under pressure, as SQL; every figure that tests expect of it is worked out here.
 *
 * Samples at 0 ... 10 s. Stall (PSI some) of the ten intervals: 0 0 .1 .5 .3 0 0 .2 0 0 s.
 *
 * Scans at 2, 4, 6, 8 s, and at 9.5 s when all was gone: 8 s counts. Sites then, in MiB:
 *
 *   site                        hot  cold  returned  thrashing   all
 *   1 table_insert (xmalloc)     10    26         4          0    40   resident 14, swapped 26
 *   2 cache_open, mmap            8     2         4          6    20   12, 8
 *   3 log_line                   10     0         0          0    10   10, 0; last row at 2 s
 *   4 index_add                   0     8         0          0     8   0, 8; last row at 4 s
 *   5 the allocator's             1     1         0          0     2   1, 1; last row at 4 s
 *   all                          29    37         8          6    80
 *
 * Cold: 37 of 80 = 46.25 %; 90 % of 37 = 33.3 <= 26 + 8: sites 1 and 4. Site 2: 6 of 12 swapped
 * ones thrash = 50 %.
 *
 * Major faults by interval, of site 2, site 1, a file, a stack: (2,3] 0 2 0 0; (3,4] 6 2 2 0;
 * (4,5] 4 2 0 0; (5,6] 1 0 0 0; (7,8] 3 0 0 1; and two of the tracer's own at site 3. Sums 14, 6,
 * 2, 1: 23, of which 20 hit a site; 25 with the tracer's; the group counted 27.
 *
 * Estimated: .1 s / 2, .5 / 10, .3 / 6, .2 / 4 are all .05 s a fault; that in (5,6] costs nothing.
 * Site 2: 13 * .05 = .65; site 1: .3; file .1; stack .05; together 1.1 s.
 *
 * Ranks of the stall: six zeros at 3.5, then 7 (.1), 8 (.2), 9 (.3), 10 (.5); less the mean 5.5:
 * -2 (6 times), 1.5, 2.5, 3.5, 4.5; squares 65. Site 2's faults 0 0 0 6 4 1 0 3 0 0: the same
 * ranks, with the 1 in interval 6 in place of 3: products 5 * 4 - 3 - 3 + 6.25 + 12.25 + 20.25 =
 * 52.75; rho 52.75 / 65. Site 1's 0 0 2 2 2 0 ...: -1.5 (7 times), 3.5 (3 times), squares 52.5;
 * products 3.5 * (1.5 + 4.5 + 3.5) + -1.5 * -9.5 = 47.5; rho 47.5 / sqrt(65 * 52.5).
 *
 * Tightenings: at 3.2 s, taking .3 s: scans at 2 and 4 s, resident 40 -> 10, 20 -> 8, 8 -> 0 and
 * 2 -> 1: 51 MiB; until the next decision 2.5 s later 16 faults, 10 of site 2 and 4 of site 1. At
 * 6.5 s: scans at 6 and 8 s, site 2 16 -> 12, site 1 gains; 4 faults in 2.5 s, 3 of site 2. The
 * third was skipped.
 */
#pragma once

#include "results_fixture.h"

/* clang-format off */
#define MB "1048576"

#define PRESSURE_RUN_SQL                                                                           \
	"INSERT INTO run (run_id, name, kind, policy, command, started_at, exec_t_ns, duration_s,"  \
	" exit_code, end_reason, period_ns, run_order, environment, trace) VALUES (1, 'dynamic',"   \
	" 'dynamic', 'step', '[\"w\"]', '2026-11-30T22:15:01Z', 0, 10, 0, 'exited', 1000000000, 0," \
	" '{\"thp\":\"never\",\"page_cluster\":3}', '{\"events\":50,\"recorded\":50,\"lost\":0}');" \
	"INSERT INTO sample (run_id, seq, t_ns, memory_stat_pgmajfault, memory_pressure_some_total)" \
	" VALUES (1, 1, 0, 3, 7), (1, 2, 1000000000, 3, 7), (1, 3, 2000000000, 3, 7),"              \
	" (1, 4, 3000000000, 5, 100007), (1, 5, 4000000000, 16, 600007),"                           \
	" (1, 6, 5000000000, 22, 900007), (1, 7, 6000000000, 24, 900007),"                          \
	" (1, 8, 7000000000, 24, 900007), (1, 9, 8000000000, 30, 1100007),"                         \
	" (1, 10, 9000000000, 30, 1100007), (1, 11, 10000000000, 30, 1100007);"                     \
	"INSERT INTO process (run_id, pid, start_t_ns) VALUES (1, 100, 1), (1, 101, 2);"            \
	"INSERT INTO decision (run_id, t_ns, action, limit_before, limit_after, outcome, took_ns)"  \
	" VALUES (1, 3200000000, 'tighten', 9223372036854775807, 62914560, 'ok', 300000000),"       \
	" (1, 5700000000, 'hold', 62914560, 62914560, NULL, NULL),"                                 \
	" (1, 6500000000, 'tighten', 62914560, 58720256, 'partial', 100000000),"                    \
	" (1, 9000000000, 'relax', 58720256, 62914560, 'ok', 1000),"                                \
	" (1, 9200000000, 'tighten', 62914560, 58720256, 'skipped', 0);"

#define PRESSURE_SITES_SQL                                                                         \
	"INSERT INTO frame VALUES"                                                                  \
	" (1, '/usr/bin/w', 'ab01', 4660, 'xmalloc', 'src/util.c', 9, 0),"                          \
	" (2, '/usr/bin/w', 'ab01', 4700, 'table_insert', 'src/table.c', 88, 0),"                   \
	" (3, '/usr/bin/w', 'ab01', 8192, 'main', 'src/main.c', 44, 0),"                            \
	" (4, '/usr/bin/w', 'ab01', 5000, 'cache_open', 'src/cache.c', 20, 0),"                     \
	" (5, '/usr/bin/w', 'ab01', 6000, 'log_line', 'src/log.c', 7, 0),"                          \
	" (6, '/usr/bin/w', 'ab01', 7000, 'index_add', 'src/index.c', 30, 0),"                      \
	" (7, '/usr/bin/w', 'ab01', 5100, 'cache_get', 'src/cache.c', 55, 0),"                      \
	" (8, '/usr/bin/w', 'ab01', 4800, 'table_find', 'src/table.c', 120, 0);"                    \
	"INSERT INTO stack VALUES (1, 3, 'full'), (2, 2, 'full'), (3, 2, 'full'), (4, 2, 'full');"  \
	"INSERT INTO stack_frame VALUES (1, 0, 1), (1, 1, 2), (1, 2, 3), (2, 0, 4), (2, 1, 3),"     \
	" (3, 0, 5), (3, 1, 3), (4, 0, 6), (4, 1, 3);"                                              \
	"INSERT INTO site (run_id, site_id, stack_id, kind, alloc_count, free_count, alloc_bytes,"  \
	" peak_live_bytes, at_peak_bytes, end_live_bytes, end_live_count, temporary_count,"         \
	" failed_count, major_faults, fault_ns, max_swapped_bytes) VALUES"                          \
	" (1, 1, 1, 'malloc', 400, 0, 40*" MB ", 40*" MB ", 40*" MB ", 0, 0, 0, 0, 6, NULL, 30*" MB "),"   \
	" (1, 2, 2, 'mmap', 1, 0, 20*" MB ", 20*" MB ", 20*" MB ", 0, 0, 0, 0, 14, NULL, 12*" MB "),"      \
	" (1, 3, 3, 'malloc', 100, 0, 10*" MB ", 10*" MB ", 10*" MB ", 0, 0, 0, 0, 0, NULL, 0),"           \
	" (1, 4, 4, 'malloc', 80, 0, 8*" MB ", 8*" MB ", 8*" MB ", 0, 0, 0, 0, 0, NULL, 8*" MB "),"        \
	" (1, 5, NULL, 'other', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, " MB ");"                       \
	"INSERT INTO site_histogram VALUES (1, 1, 'size', 16, 300), (1, 1, 'size', 17, 100),"       \
	" (1, 1, 'lifetime', 30, 7);"

/* In MiB; live_bytes as well. */
#define PRESSURE_SCANS_SQL                                                                         \
	"INSERT INTO scan VALUES (1, 2000000000, 2000000000, 10000000, 2, 9, 80*" MB ", 0, NULL),"  \
	" (1, 4000000000, 2000000000, 10000000, 2, 9, 29*" MB ", 51*" MB ", NULL),"                  \
	" (1, 6000000000, 2000000000, 10000000, 2, 9, 37*" MB ", 43*" MB ", NULL),"                  \
	" (1, 8000000000, 2000000000, 10000000, 2, 9, 37*" MB ", 43*" MB ", NULL),"                  \
	" (1, 9500000000, 2000000000, 10000000, 0, 0, 0, 0, NULL);"                                 \
	"INSERT INTO site_sample (run_id, site_id, t_ns, live_bytes, resident_bytes,"               \
	" swapped_bytes, cold_bytes, returned_bytes, thrashing_bytes, major_faults, scan_ns)"       \
	" SELECT 1, column1, column2 * 1000000000, column3*" MB ", column4*" MB ", column5*" MB ","  \
	" column6*" MB ", column7*" MB ", column8*" MB ", column9, 10000000 FROM (VALUES"            \
	" (1, 2, 40, 40, 0, 0, 0, 0, 0), (2, 2, 20, 20, 0, 0, 0, 0, 0),"                            \
	" (3, 2, 10, 10, 0, 0, 0, 0, 0), (4, 2, 8, 8, 0, 0, 0, 0, 0), (5, 2, 0, 2, 0, 0, 0, 0, 0)," \
	" (1, 4, 40, 10, 30, 30, 0, 0, 4), (2, 4, 20, 8, 12, 12, 0, 0, 6),"                         \
	" (4, 4, 8, 0, 8, 8, 0, 0, 0), (5, 4, 0, 1, 1, 1, 0, 0, 0),"                                \
	" (2, 6, 20, 16, 4, 2, 6, 4, 11), (1, 8, 40, 14, 26, 26, 4, 0, 6),"                         \
	" (2, 8, 20, 12, 8, 2, 4, 6, 14));"                                                         \
	"INSERT INTO site_sample SELECT 1, site_id, 9500000000, 0, 0, 0, NULL, 0, 0, 0,"            \
	" major_faults, 10000000 FROM site;"

/* Groups of equal faults: how many, of a site at a time. */
#define PRESSURE_FAULTS_SQL                                                                        \
	"WITH RECURSIVE g (n, t, pid, site, mapping, file, ip, own) AS (VALUES"                     \
	" (2, 2500, 100, 1, 'anon', NULL, 8, 0), (6, 3500, 101, 2, 'anon', NULL, 7, 0),"            \
	" (2, 3500, 100, 1, 'anon', NULL, 8, 0),"                                                   \
	" (2, 3500, 100, NULL, 'file', '/lib/libz.so.1', 3, 0),"                                    \
	" (3, 4500, 101, 2, 'anon', NULL, 7, 0), (1, 4500, 101, 2, 'anon', NULL, NULL, 0),"         \
	" (2, 4500, 100, 1, 'anon', NULL, 8, 0), (1, 5900, 101, 2, 'anon', NULL, NULL, 0),"         \
	" (3, 7500, 101, 2, 'anon', NULL, NULL, 0), (1, 7500, 100, NULL, 'stack', NULL, 3, 0),"     \
	" (2, 7500, 100, 3, 'anon', NULL, NULL, 1)),"                                               \
	" e AS (SELECT * FROM g UNION ALL SELECT n - 1, t, pid, site, mapping, file, ip, own"       \
	" FROM e WHERE n > 1) INSERT INTO fault SELECT 1, t * 1000000, pid, pid, 4096 * n, site,"   \
	" mapping, file, CASE WHEN file IS NOT NULL THEN 4096 * n END, ip, NULL, own FROM e;"
/* clang-format on */

#define PRESSURE_SQL PRESSURE_RUN_SQL PRESSURE_SITES_SQL PRESSURE_SCANS_SQL PRESSURE_FAULTS_SQL

static inline void open_pressed(struct fixture *f, const char *more_sql)
{
	fixture_open(f, "profile.w.20261130-221501");
	fixture_sql(f, PRESSURE_SQL);
	fixture_sql(f, more_sql);
	fixture_finish(f);
}
