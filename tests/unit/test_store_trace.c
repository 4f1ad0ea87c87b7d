/* What a traced run leaves: the rows in the file, and what the reader makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/read_trace.h"
#include "store/store.h"
#include "tests/unit/fake.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>

struct ctx {
	struct fake *f;
	int dirfd;
	struct store *store;
};

static struct ctx begin(void)
{
	struct ctx c = {.f = fake_new()};
	struct err err;

	c.dirfd = open(fake_path(c.f), O_RDONLY | O_DIRECTORY);
	assert_int_equal(store_open(&c.store, c.dirfd, fake_path(c.f), -1, -1, &err), 0);
	return c;
}

static int64_t begin_run(struct ctx *c, const char *name)
{
	struct run_begin run = {.name = name, .limit_bytes = -1, .period_ns = 1000000000};
	struct err err;
	int64_t id;

	assert_int_equal(store_run_begin(c->store, &run, &id, &err), 0);
	return id;
}

static void write_trace(struct ctx *c, int64_t run_id, const struct trace_result *t)
{
	struct err err;

	if (store_write_trace(c->store, run_id, t, &err) < 0)
		fail_msg("%s", err.msg);
}

static void end(struct ctx *c)
{
	struct err err;

	assert_int_equal(store_close(c->store, &err), 0);
	close(c->dirfd);
}

/* All rows: columns joined by a blank, "-" for NULL, rows ended by ';'. */
static void assert_rows(struct ctx *c, const char *sql, const char *expected)
{
	char path[300], got[1024];
	sqlite3_stmt *st;
	sqlite3 *db;
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%s/profile.db", fake_path(c->f));
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(db), sql);
	got[0] = '\0';
	while (sqlite3_step(st) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const char *text = (const char *)sqlite3_column_text(st, i);

			len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s", i ? " " : "",
						text ? text : "-");
			assert_true(len < sizeof(got) - 2);
		}
		(void)snprintf(got + len++, 2, ";");
	}
	(void)sqlite3_finalize(st);
	(void)sqlite3_close(db);
	assert_string_equal(got, expected);
}

/* Two files; main() calls work(), into which grow() is inlined; code of no file calls work(). */
static const struct module modules[] = {
	{.id = 1, .path = (char *)"/bin/w", .build_id = {0xab, 0x01, 0xf0}, .build_id_len = 3},
	{.id = 2, .path = (char *)"/lib/libc.so.6"},
};
static const struct frame frames[] = {
	{{1, 0x1234}, "grow", "w.h", 7, true},       {{1, 0x1234}, "work", "w.c", 70, false},
	{{1, 0x2000}, "main", "w.c", 90, false},     {{2, 0x27249}, NULL, NULL, 0, false},
	{{0, 0x7f0000001000}, NULL, NULL, 0, false},
};
static const uint32_t first[] = {0, 1, 2, 3}, second[] = {0, 1, 4};
static const struct stack stacks[] = {
	{.id = 1, .frames = first, .depth = 4, .quality = STACK_FULL},
	{.id = 2, .frames = second, .depth = 3, .quality = STACK_GUESSED},
};
static const struct site sites[] = {
	{.id = 1,
	 .stack = 2,
	 .kind = SITE_MMAP,
	 .alloc_count = 11,
	 .free_count = 9,
	 .alloc_bytes = 1100,
	 .live_bytes = 1, /* not what is recorded */
	 .leaked_bytes = 200,
	 .leaked_count = 2,
	 .peak_live_bytes = 700,
	 .at_peak_bytes = 600,
	 .temporary_count = 4,
	 .failed_count = 3,
	 .major_faults = 13,
	 .fault_ns = 1300,
	 .max_swapped_bytes = 8192,
	 .size_log2 = {[6] = 10, [63] = 1},
	 .lifetime_log2 = {[0] = 2, [30] = 7}},
	{.id = 2,
	 .stack = 0,
	 .kind = SITE_MALLOC,
	 .alloc_count = 5,
	 .major_faults = -1,
	 .fault_ns = -1,
	 .max_swapped_bytes = -1},
};
static const struct process_info processes[] = {
	{.pid = 70, .ppid = 1, .end_t_ns = 99, .comm = "w", .exe = (char *)"/bin/w"},
	/* A name that fills its array has no NUL. */
	{.pid = 71,
	 .ppid = 70,
	 .start_t_ns = 5,
	 .end_t_ns = -1,
	 .exit_code = -1,
	 .comm = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'}},
};
static const struct coverage coverage[] = {
	{(char *)"/lib/libc.so.6", (char *)"glibc", 13, true, NULL},
	{(char *)"/bin/w", (char *)"", 0, false, (char *)"stripped"},
};
static const struct trace_result result = {
	.modules = modules,
	.n_modules = ARRAY_SIZE(modules),
	.frames = frames,
	.n_frames = ARRAY_SIZE(frames),
	.stacks = stacks,
	.n_stacks = ARRAY_SIZE(stacks),
	.sites = sites,
	.n_sites = ARRAY_SIZE(sites),
	.processes = processes,
	.n_processes = ARRAY_SIZE(processes),
	.coverage = coverage,
	.n_coverage = ARRAY_SIZE(coverage),
	.summary_json = "{\"events\":25}",
};

static void test_rows(void **state)
{
	struct ctx c = begin();
	int64_t run = begin_run(&c, "baseline");

	(void)state;
	write_trace(&c, run, &result);
	end(&c);
	assert_rows(&c, "SELECT trace FROM run", "{\"events\":25};");
	assert_rows(&c, "SELECT * FROM module ORDER BY module_id",
		    "1 1 /bin/w ab01f0;1 2 /lib/libc.so.6 -;");
	assert_rows(&c, "SELECT * FROM frame ORDER BY frame_id",
		    "1 /bin/w ab01f0 4660 grow w.h 7 1;2 /bin/w ab01f0 4660 work w.c 70 0;"
		    "3 /bin/w ab01f0 8192 main w.c 90 0;4 /lib/libc.so.6 - 160329 - - - 0;"
		    "5 - - 139637976731648 - - - 0;");
	assert_rows(&c, "SELECT * FROM stack ORDER BY stack_id", "1 4 full;2 3 guessed;");
	assert_rows(&c, "SELECT * FROM stack_frame ORDER BY stack_id, level",
		    "1 0 1;1 1 2;1 2 3;1 3 4;2 0 1;2 1 2;2 2 5;");
	assert_rows(&c, "SELECT * FROM site ORDER BY site_id",
		    "1 1 2 mmap 11 9 1100 700 600 200 2 4 3 13 1300 8192;"
		    "1 2 - malloc 5 0 0 0 0 0 0 0 0 - - -;");
	assert_rows(&c, "SELECT * FROM site_histogram ORDER BY kind, log2",
		    "1 1 lifetime 0 2;1 1 lifetime 30 7;1 1 size 6 10;1 1 size 63 1;");
	assert_rows(&c,
		    "SELECT pid, start_t_ns, ppid, exe, comm, end_t_ns, exit_code FROM process"
		    " ORDER BY pid",
		    "70 0 1 /bin/w w 99 0;71 5 70 - 0123456789abcdef - -;");
	assert_rows(&c, "SELECT * FROM coverage",
		    "1 /lib/libc.so.6 glibc 13 1 -;1 /bin/w  0 0 stripped;");
	assert_rows(&c, "SELECT site_id, level, function, line, module FROM site_stack ORDER BY 2",
		    "1 0 grow 7 /bin/w;1 1 work 70 /bin/w;1 2 - - -;");
	fake_free(c.f);
}

static void assert_stack(struct reader *r, int64_t id, const char *quality, size_t depth,
			 int64_t last_offset)
{
	_cleanup_free_ char *got = NULL;
	struct frame_row *rows;
	struct err err;
	size_t n;

	assert_int_equal(reader_load_quality(r, id, &got, &err), 0);
	assert_string_equal(got, quality);
	assert_int_equal(reader_load_frames(r, id, &rows, &n, &err), 0);
	assert_int_equal(n, depth);
	assert_string_equal(rows[0].function, "grow");
	assert_int_equal(rows[0].is_inline, 1);
	assert_int_equal(rows[1].line, 70);
	assert_int_equal(rows[n - 1].offset, last_offset);
	frame_rows_free(rows, n);
}

/* The tracer numbers every run's stacks from 1: in the file they must not meet. */
static void test_second_run_keeps_ids_apart(void **state)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct ctx c = begin();
	int64_t one = begin_run(&c, "baseline"), two;
	struct site_row *rows;
	char *quality = NULL;
	struct err err;
	size_t n;

	(void)state;
	write_trace(&c, one, &result);
	two = begin_run(&c, "limit");
	write_trace(&c, two, &result);
	end(&c);
	assert_rows(&c, "SELECT count(*), min(frame_id), max(frame_id) FROM frame",
		    "10 1 4294967301;");
	assert_rows(&c, "SELECT count(*), count(DISTINCT stack_id), max(stack_id) FROM stack",
		    "4 4 4294967298;");
	assert_rows(&c, "SELECT stack_id, group_concat(frame_id) FROM stack_frame GROUP BY 1",
		    "1 1,2,3,4;2 1,2,5;4294967297 4294967297,4294967298,4294967299,4294967300;"
		    "4294967298 4294967297,4294967298,4294967301;");
	assert_rows(&c, "SELECT run_id, site_id, stack_id FROM site ORDER BY 1, 2",
		    "1 1 2;1 2 -;2 1 4294967298;2 2 -;");
	assert_int_equal(reader_open(&r, fake_path(c.f), &err), 0);
	assert_int_equal(reader_load_sites(r, two, &rows, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].end_live_bytes, 200);
	assert_int_equal(rows[0].major_faults, 13);
	assert_int_equal(rows[1].major_faults, READ_NULL);
	assert_int_equal(rows[1].stack_id, READ_NULL);
	assert_stack(r, rows[0].stack_id, "guessed", 3, 0x7f0000001000);
	assert_stack(r, 1, "full", 4, 0x27249);
	site_rows_free(rows, n);
	assert_int_equal(reader_load_quality(r, 5, &quality, &err), 0);
	assert_null(quality);
	fake_free(c.f);
}

static void test_tracer_stat(void **state)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct ctx c = begin();
	int64_t one = begin_run(&c, "a"), two = begin_run(&c, "b");
	struct tracer_stat t = {.t_ns = 1000000000,
				.ring = 1,
				.written = 2,
				.read = 3,
				.fill_peak = 4,
				.paused_ns = 5,
				.backlog = 6,
				.encode_ns = 7,
				.write_ns = 8,
				.rss = 9};
	struct err err;
	bool has;

	(void)state;
	store_put_tracer_stat(c.store, two, &t);
	end(&c);
	assert_rows(&c, "SELECT * FROM tracer_stat", "2 1000000000 1 2 3 4 5 6 7 8 9;");
	assert_int_equal(reader_open(&r, fake_path(c.f), &err), 0);
	assert_int_equal(reader_has_tracer_stat(r, one, &has, &err), 0);
	assert_false(has);
	assert_int_equal(reader_has_tracer_stat(r, two, &has, &err), 0);
	assert_true(has);
	fake_free(c.f);
}

/* Rows of a run that goes on; the ids of its frames are known before it has written any. */
static void test_faults_and_scans(void **state)
{
	static const struct fault faults[] = {
		{.t_ns = 5,
		 .pid = 70,
		 .tid = 71,
		 .address = 0x7f0000001000,
		 .site = 1,
		 .mapping = FAULT_ANON,
		 .file_offset = -1,
		 .place = 3,
		 .duration_ns = 9000},
		{.t_ns = 6,
		 .pid = 70,
		 .tid = 70,
		 .address = 4096,
		 .mapping = FAULT_FILE,
		 .file = "/bin/w",
		 .file_offset = 8192,
		 .duration_ns = -1,
		 .is_own = true},
	};
	static const struct scan scan = {7, 1000, 20, 1, 2, 12288, 8192, -1};
	static const struct site_sample samples[] = {
		{1, 16384, 12288, 4096, 0, 4096, 0, 8192, 1},
		{2, 4096, 0, 4096, -1, 0, 4096, 0, -1},
	};
	struct ctx c = begin();
	int64_t one = begin_run(&c, "a"), two = begin_run(&c, "b");

	(void)state;
	store_put_faults(c.store, one, faults, 2);
	store_put_faults(c.store, two, faults, 1);
	store_put_scan(c.store, two, &scan, samples, 2);
	end(&c);
	assert_rows(&c, "SELECT * FROM fault ORDER BY run_id, t_ns",
		    "1 5 70 71 139637976731648 1 anon - - 3 9000 0;"
		    "1 6 70 70 4096 - file /bin/w 8192 - - 1;"
		    "2 5 70 71 139637976731648 1 anon - - 4294967299 9000 0;");
	assert_rows(&c, "SELECT * FROM scan", "2 7 1000 20 1 2 12288 8192 -;");
	assert_rows(&c, "SELECT * FROM site_sample",
		    "2 1 7 16384 12288 4096 0 4096 0 8192 1 20;"
		    "2 2 7 4096 0 4096 - 0 4096 0 - 20;");
	fake_free(c.f);
}

/* Samples that were put before are committed with it, and the run is known as traced. */
static void test_nothing_seen(void **state)
{
	static const struct trace_result nothing;
	static struct sample s;
	struct ctx c = begin();
	int64_t run = begin_run(&c, "a");

	(void)state;
	s.seq = 1;
	store_put_sample(c.store, run, &s);
	write_trace(&c, run, &nothing);
	assert_rows(&c, "SELECT count(*), (SELECT trace FROM run) FROM sample", "1 {};");
	end(&c);
	assert_rows(&c, "SELECT count(*) FROM site", "0;");
	fake_free(c.f);
}

/* One row that cannot be written: no half of a result stays, and the caller is told. */
static void test_all_or_nothing(void **state)
{
	static const struct site twice[] = {{.id = 1}, {.id = 1}};
	struct trace_result t = result;
	struct ctx c = begin();
	int64_t run = begin_run(&c, "a");
	struct err err;

	(void)state;
	t.sites = twice;
	assert_true(store_write_trace(c.store, run, &t, &err) < 0);
	assert_non_null(strstr(err.msg, "UNIQUE"));
	assert_true(store_failure(c.store, &err) < 0);
	(void)store_close(c.store, &err); /* the same failure */
	close(c.dirfd);
	assert_rows(&c,
		    "SELECT (SELECT count(*) FROM frame), (SELECT count(*) FROM site),"
		    " (SELECT count(*) FROM run WHERE trace IS NULL)",
		    "0 0 1;");
	fake_free(c.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_second_run_keeps_ids_apart),
		cmocka_unit_test(test_tracer_stat),
		cmocka_unit_test(test_faults_and_scans),
		cmocka_unit_test(test_nothing_seen),
		cmocka_unit_test(test_all_or_nothing),
	};

	return cmocka_run_group_tests_name("store trace", tests, NULL, NULL);
}
