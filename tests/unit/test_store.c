/* The write side of profile.db: what is put in comes out, integer-exact, and losses are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/num.h"
#include "store/store.h"
#include "tests/unit/fake.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

struct ctx {
	struct fake *f;
	int dirfd;
	struct store *store;
	int64_t run_id;
};

static struct ctx begin(void)
{
	struct ctx c = {.f = fake_new()};
	struct run_begin run = {
		.name = "baseline",
		.policy = "none",
		.command_json = "[\"x\"]",
		.started_at = "2026-11-30T22:15:01Z",
		.limit_bytes = -1,
		.period_ns = 1000000000,
	};
	struct err err;

	c.dirfd = open(fake_path(c.f), O_RDONLY | O_DIRECTORY);
	assert_int_equal(store_open(&c.store, c.dirfd, fake_path(c.f), -1, -1, &err), 0);
	assert_int_equal(store_run_begin(c.store, &run, &c.run_id, &err), 0);
	return c;
}

static void end(struct ctx *c)
{
	struct run_end e = {.exec_t_ns = 5,
			    .group_empty_t_ns = -1,
			    .duration_ns = 1500000000,
			    .exit_code = -1,
			    .term_signal = 9,
			    .reason = END_SIGNALLED,
			    .actuator_cpu_ns = -1};
	struct err err;

	assert_int_equal(store_run_end(c->store, c->run_id, &e, &err), 0);
	assert_int_equal(store_close(c->store, &err), 0);
	close(c->dirfd);
}

/* The first column of the first row as text; "NULL" and "" told apart. */
static void query(struct ctx *c, const char *sql, char *buf, size_t size)
{
	char path[300];
	sqlite3_stmt *st;
	sqlite3 *db;
	const char *text;

	(void)snprintf(path, sizeof(path), "%s/profile.db", fake_path(c->f));
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	text = (const char *)sqlite3_column_text(st, 0);
	(void)snprintf(buf, size, "%s", text ? text : "NULL");
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static void assert_sql(struct ctx *c, const char *sql, const char *expected)
{
	char buf[256];

	query(c, sql, buf, sizeof(buf));
	assert_string_equal(buf, expected);
}

static void test_round_trip(void **state)
{
	static struct sample s;
	struct ctx c = begin();
	struct decision d = {.t_ns = 42,
			     .action = ACTION_TIGHTEN,
			     .reason = "why",
			     .fault_rate = 1.5,
			     .stall_some = NAN,
			     .stall_full = 0,
			     .refault_ratio = NAN,
			     .usage_bytes = -1,
			     .limit_before = NUM_MAX,
			     .limit_after = 7,
			     .outcome = OUTCOME_PARTIAL,
			     .took_ns = 3};

	(void)state;
	s.seq = 1;
	s.v[M_memory_max] = NUM_MAX;
	s.has[M_memory_max] = true;
	s.has[M_memory_stat_pgmajfault] = true; /* a true 0 */
	s.extra[0] = (struct sample_extra){"memory.stat:new", 9};
	s.n_extra = 1;
	store_put_sample(c.store, c.run_id, &s);
	store_put_decision(c.store, c.run_id, &d);
	store_put_event(c.store, c.run_id, 11, "oom_kill", "one");
	end(&c);
	assert_sql(&c, "SELECT memory_max FROM sample", "9223372036854775807");
	assert_sql(&c, "SELECT memory_stat_pgmajfault FROM sample", "0");
	assert_sql(&c, "SELECT memory_current FROM sample", "NULL");
	assert_sql(&c, "SELECT key || '=' || value FROM sample_extra", "memory.stat:new=9");
	assert_sql(&c, "SELECT action || outcome || limit_before FROM decision",
		   "tightenpartial9223372036854775807");
	assert_sql(&c, "SELECT stall_some FROM decision", "NULL");
	assert_sql(&c, "SELECT usage_bytes FROM decision", "NULL");
	assert_sql(&c, "SELECT detail FROM event WHERE kind = 'oom_kill' AND t_ns = 11", "one");
	assert_sql(&c, "SELECT exit_code FROM run", "NULL");
	assert_sql(&c, "SELECT term_signal || end_reason || duration_s FROM run", "9signalled1.5");
	assert_sql(&c, "SELECT actuator_cpu_s FROM run", "NULL");
	assert_sql(&c, "SELECT limit_bytes FROM run", "NULL");
	fake_free(c.f);
}

/* More rows than the queue takes between two commits: those that are missing are counted. */
static void test_overflow_is_a_loss(void **state)
{
	static struct sample s;
	struct ctx c = begin();

	(void)state;
	for (int i = 1; i <= 5000; i++) {
		s.seq = i;
		store_put_sample(c.store, c.run_id, &s);
	}
	end(&c);
	assert_sql(&c, "SELECT (SELECT count(*) FROM sample) + (SELECT sum(count) FROM loss)",
		   "5000");
	assert_sql(&c, "SELECT source FROM loss", "store");
	fake_free(c.f);
}

static void test_stands_alone(void **state)
{
	struct ctx c = begin();

	(void)state;
	end(&c);
	assert_int_equal(root_openat(fake_root(c.f), "/profile.db-wal", O_RDONLY), -2);
	assert_sql(&c, "PRAGMA journal_mode", "delete");
	assert_sql(&c, "PRAGMA user_version", "3");
	fake_free(c.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_overflow_is_a_loss),
		cmocka_unit_test(test_stands_alone),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
