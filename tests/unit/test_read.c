/* The read side: what it reads, and in which state of a directory it still can. */
#include "results_fixture.h"

#include "store/read.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define RUN_SQL                                                                                \
	"INSERT INTO run (run_id, name, kind, policy, limit_bytes, command, duration_s,"       \
	" exit_code, end_reason, repeat_index, period_ns)"                                     \
	" VALUES (1, 'baseline', 'baseline', 'none', NULL, '[\"true\"]', 1.5, 0, 'exited', 0," \
	" 1000000000);"
#define SAMPLES_SQL                                                                                  \
	"INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_max, memory_stat_pgmajfault)" \
	" VALUES (1, 1, 0, 4096, 9223372036854775807, 0),"                                           \
	" (1, 2, 1000000000, 8192, 9223372036854775807, NULL),"                                      \
	" (1, 3, 2000000000, 12288, 16384, 7);"

static int count_samples(const char *dir, struct err *err)
{
	static const char *const names[] = {"memory_current"};
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct series s;
	int res = reader_open(&r, dir, err);
	int n;

	if (res == 0)
		res = reader_load_series(r, 1, names, 1, &s, err);
	if (res < 0)
		return res;
	n = (int)s.n;
	series_done(&s);
	return n;
}

static void assert_samples(const char *dir, int n)
{
	struct err err;
	int got = count_samples(dir, &err);

	if (got < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(got, n);
}

static void test_runs_and_series(void **state)
{
	static const char *const names[] = {"memory_max", "no_such_metric",
					    "memory_stat_pgmajfault"};
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct run_row *rows;
	struct fixture f;
	struct series s;
	struct err err;
	size_t n;

	(void)state;
	fixture_open(&f, "profile.x");
	fixture_sql(&f, RUN_SQL SAMPLES_SQL);
	fixture_finish(&f);
	assert_int_equal(reader_open(&r, f.dir, &err), 0);
	assert_int_equal(reader_load_runs(r, &rows, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].name, "baseline");
	assert_int_equal(rows[0].limit_bytes, READ_NULL);
	assert_null(rows[0].knob);
	assert_true(rows[0].duration_s == 1.5);
	assert_true(isnan(rows[0].tool_cpu_s));
	assert_int_equal(rows[0].exit_code, 0);
	assert_int_equal(rows[0].term_signal, READ_NULL);
	assert_int_equal(rows[0].period_ns, 1000000000);
	run_rows_free(rows, n);
	assert_int_equal(reader_load_series(r, 1, names, 3, &s, &err), 0);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.seq[2], 3);
	assert_int_equal(s.t_ns[1], 1000000000);
	assert_int_equal(s.cols[0][0], INT64_MAX);
	assert_int_equal(s.cols[0][2], 16384);
	assert_null(s.cols[1]);
	assert_int_equal(s.cols[2][1], READ_NULL);
	assert_int_equal(s.cols[2][2], 7);
	series_done(&s);
	assert_int_equal(reader_load_series(r, 99, names, 3, &s, &err), 0);
	assert_int_equal(s.n, 0);
	series_done(&s);
	fixture_remove(&f);
}

static void test_decisions_events_losses(void **state)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct decision_row *d;
	struct event_row *e;
	struct loss_row *l;
	struct fixture f;
	struct err err;
	size_t n;

	(void)state;
	fixture_open(&f, "profile.x");
	fixture_sql(&f, RUN_SQL
		    "INSERT INTO decision VALUES"
		    " (1, 20, 'hold', 'steady', 0.5, NULL, 0.25, NULL, 4096, 8192, 8192, NULL, 3),"
		    " (1, 10, 'tighten', 'idle', NULL, 0, 0, 0.1, 4096, 9223372036854775807, 8192,"
		    " 'ok', 5), (2, 1, 'relax', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
		    " 'error', 1);"
		    "INSERT INTO event VALUES (1, 7, 'warning', 'late'), (2, 1, 'oom_kill', NULL);"
		    "INSERT INTO loss VALUES (1, 'store queue', 3, 'full'), (1, 'x', NULL, NULL)");
	fixture_finish(&f);
	assert_int_equal(reader_open(&r, f.dir, &err), 0);
	assert_int_equal(reader_load_decisions(r, 1, &d, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(d[0].action, "tighten"); /* by time */
	assert_int_equal(d[0].limit_before, INT64_MAX);
	assert_true(isnan(d[0].fault_rate));
	assert_true(d[1].stall_full == 0.25);
	assert_null(d[1].outcome);
	decision_rows_free(d, n);
	assert_int_equal(reader_load_events(r, 1, &e, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(e[0].detail, "late");
	event_rows_free(e, n);
	assert_int_equal(reader_load_losses(r, 1, &l, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(l[0].count, 3);
	assert_int_equal(l[1].count, READ_NULL);
	loss_rows_free(l, n);
	fixture_remove(&f);
}

static void test_missing_columns_and_tables_are_null(void **state)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct run_row *rows;
	struct loss_row *l;
	struct fixture f;
	struct err err;
	size_t n;

	(void)state;
	fixture_open(&f, "profile.old");
	fixture_sql(&f, RUN_SQL
		    "DROP VIEW rate; DROP VIEW run_summary; DROP TABLE loss;"
		    "ALTER TABLE run DROP COLUMN period_ns; ALTER TABLE run DROP COLUMN duration_s;"
		    "ALTER TABLE run DROP COLUMN policy");
	fixture_finish(&f);
	assert_int_equal(reader_open(&r, f.dir, &err), 0);
	assert_int_equal(reader_load_runs(r, &rows, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].period_ns, READ_NULL);
	assert_true(isnan(rows[0].duration_s));
	assert_null(rows[0].policy);
	assert_string_equal(rows[0].end_reason, "exited");
	run_rows_free(rows, n);
	assert_int_equal(reader_load_losses(r, 1, &l, &n, &err), 0);
	assert_int_equal(n, 0);
	loss_rows_free(l, n);
	fixture_remove(&f);
}

static void test_newer_format_is_refused(void **state)
{
	struct reader *r = NULL;
	struct fixture f;
	struct err err;

	(void)state;
	fixture_open(&f, "profile.new");
	fixture_sql(&f, "PRAGMA user_version = 4");
	fixture_finish(&f);
	assert_int_equal(reader_open(&r, f.dir, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "profile.db has format 4, this analyzer reads up to "
					"format 3"));
	assert_null(r);
	fixture_remove(&f);
}

static void test_foreign_directories(void **state)
{
	struct reader *r = NULL;
	char path[160];
	struct fixture f;
	struct err err;
	FILE *file;

	(void)state;
	fixture_open(&f, "profile.x");
	fixture_finish(&f);
	assert_int_equal(reader_open(&r, "/nonexistent/dir", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/dir"));
	assert_int_equal(reader_open(&r, f.top, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "is not a results directory: it has no profile.db"));
	assert_false(reader_is_results_dir(f.top));
	assert_true(reader_is_results_dir(f.dir));
	(void)snprintf(path, sizeof(path), "%s/profile.db", f.dir);
	assert_int_equal(reader_open(&r, path, &err), -ENOTDIR);
	/* not a database */
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 500; i++)
		assert_true(fputs("hello, world; ", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(reader_open(&r, f.dir, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is not a database"));
	/* empty: killed before the first table */
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(reader_open(&r, f.dir, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "was not made by analyzer"));
	fixture_remove(&f);
}

static void test_while_it_is_written(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, "profile.live");
	fixture_sql(&f, "PRAGMA journal_mode = WAL");
	fixture_sql(&f, RUN_SQL SAMPLES_SQL);
	/* A transaction under way is not seen, and does not stand in the way. */
	fixture_sql(&f, "BEGIN IMMEDIATE; INSERT INTO sample (run_id, seq, t_ns)"
			" VALUES (1, 4, 3000000000)");
	assert_samples(f.dir, 3);
	fixture_sql(&f, "COMMIT");
	assert_samples(f.dir, 4);
	fixture_remove(&f);
}

/* A recorder that is killed: what is on disk is all that is left of it. */
static void record_and_die(struct fixture *f, const char *mode, const char *before,
			   const char *after)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		char path[160];
		sqlite3 *db;

		(void)snprintf(path, sizeof(path), "%s/profile.db", f->dir);
		if (sqlite3_open(path, &db) != SQLITE_OK ||
		    sqlite3_exec(db, mode, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, before, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, after, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_db_cacheflush(db) != SQLITE_OK)
			_exit(1);
		_exit(0); /* no sqlite3_close */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[192];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return access(path, F_OK) == 0;
}

static void remove_file(const struct fixture *f, const char *name)
{
	char path[192];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(unlink(path), 0);
}

/* Reads as somebody who may not write there (root may everywhere). */
static void assert_samples_as_other(const char *dir, int n)
{
	pid_t pid;
	int status;

	assert_int_equal(chmod(dir, 0555), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err;

		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(100);
		_exit(count_samples(dir, &err) == n ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(status, 0);
}

static void test_after_the_recorder_was_killed(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, "profile.killed");
	fixture_finish(&f);
	record_and_die(&f, "PRAGMA journal_mode = WAL", RUN_SQL SAMPLES_SQL, "SELECT 1");
	assert_true(exists(&f, "profile.db-wal"));
	assert_samples(f.dir, 3);
	assert_true(exists(&f, "profile.db-wal")); /* nothing was cleaned up */
	/* with the index that its recorder left, and without it (copied from elsewhere) */
	assert_samples_as_other(f.dir, 3);
	remove_file(&f, "profile.db-shm");
	assert_samples_as_other(f.dir, 3);
	assert_false(exists(&f, "profile.db-shm"));
	fixture_remove(&f);
}

static void test_after_a_kill_in_a_transaction(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, "profile.killed");
	fixture_finish(&f);
	record_and_die(&f, "PRAGMA journal_mode = TRUNCATE", RUN_SQL SAMPLES_SQL,
		       "BEGIN; DELETE FROM sample");
	assert_true(exists(&f, "profile.db-journal"));
	/* The deletion is in the file: only a roll back makes it readable. */
	assert_samples(f.dir, 3);
	assert_samples_as_other(f.dir, 3);
	assert_true(exists(&f, "profile.db-journal"));
	fixture_remove(&f);
}

static void test_read_only_directory(void **state)
{
	struct fixture f;

	(void)state;
	/* with the characters that mean something in a URI */
	fixture_open(&f, "profile.50%?x#y");
	fixture_sql(&f, RUN_SQL SAMPLES_SQL);
	fixture_finish(&f);
	assert_samples_as_other(f.dir, 3);
	/* finished, but still in WAL mode: the index cannot be made */
	record_and_die(&f, "PRAGMA journal_mode = WAL", "PRAGMA wal_checkpoint(TRUNCATE)",
		       "SELECT 1");
	remove_file(&f, "profile.db-shm");
	remove_file(&f, "profile.db-wal");
	assert_samples_as_other(f.dir, 3);
	fixture_remove(&f);
}

static int get_text(void *ret, int n, char **values, char **names)
{
	(void)names;
	if (n == 1)
		(void)snprintf(ret, 160, "%s", values[0] ? values[0] : "NULL");
	return 0;
}

static void assert_query(struct fixture *f, const char *sql, const char *expected)
{
	char got[160] = "no row";

	assert_int_equal(sqlite3_exec(f->db, sql, get_text, got, NULL), SQLITE_OK);
	assert_string_equal(got, expected);
}

static void test_schema_views(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, "profile.x");
	/* 100 in 1 s; a hole of 4 s; 50 in 0.5 s; a reset; a row that was lost before the last */
	fixture_sql(&f, RUN_SQL
		    "INSERT INTO sample (run_id, seq, t_ns, memory_current, memory_stat_pgmajfault)"
		    " VALUES (1, 1, 0, 5, 0), (1, 2, 1000000000, 9, 100),"
		    " (1, 3, 5000000000, 7, 200), (1, 4, 5500000000, 7, 250),"
		    " (1, 5, 6000000000, 7, 0), (1, 7, 7000000000, 7, 10)");
	assert_query(&f,
		     "SELECT group_concat(coalesce(memory_stat_pgmajfault, '-'), ' ')"
		     " FROM (SELECT * FROM rate ORDER BY seq)",
		     "- 100.0 - 100.0 - -");
	assert_query(&f,
		     "SELECT samples || ' ' || peak_bytes || ' ' || major_faults"
		     " FROM run_summary",
		     "6 9 250");
	assert_query(&f,
		     "SELECT kind || ' ' || unit || ' ' || scope FROM metric"
		     " WHERE name = 'memory_stat_pgmajfault'",
		     "counter faults group");
	assert_query(&f,
		     "SELECT count(*) = (SELECT count(*) - 3 FROM pragma_table_info('sample'))"
		     " FROM metric",
		     "1");
	assert_query(&f, "PRAGMA user_version", "3");
	/* STRICT: 'max' as text is refused */
	assert_int_equal(sqlite3_exec(f.db,
				      "INSERT INTO sample (run_id, seq, t_ns, memory_max)"
				      " VALUES (1, 9, 9, 'max')",
				      NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	fixture_remove(&f);
}

static void test_schema_create_leaves_nothing_after_an_error(void **state)
{
	struct fixture f;
	struct err err;

	(void)state;
	fixture_open(&f, "profile.x");
	/* the tables are there already */
	assert_true(schema_create(f.db, &err) < 0);
	assert_non_null(strstr(err.msg, "already exists"));
	assert_true(sqlite3_get_autocommit(f.db));
	fixture_remove(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_and_series),
		cmocka_unit_test(test_decisions_events_losses),
		cmocka_unit_test(test_missing_columns_and_tables_are_null),
		cmocka_unit_test(test_newer_format_is_refused),
		cmocka_unit_test(test_foreign_directories),
		cmocka_unit_test(test_while_it_is_written),
		cmocka_unit_test(test_after_the_recorder_was_killed),
		cmocka_unit_test(test_after_a_kill_in_a_transaction),
		cmocka_unit_test(test_read_only_directory),
		cmocka_unit_test(test_schema_views),
		cmocka_unit_test(test_schema_create_leaves_nothing_after_an_error),
	};

	return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
