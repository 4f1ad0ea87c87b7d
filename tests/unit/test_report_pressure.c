/* What pressure did to sites: classes, faults and their cost, tightenings. The expected values are
 * worked out in pressure_fixture.h. */
#include "pressure_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b))))
		fail_msg("%.12g is not %.12g", a, b);
}

static void assert_classes(const int64_t bytes[N_CLASSES], int hot, int cold, int returned,
			   int thrashing)
{
	assert_int_equal(bytes[CLASS_HOT], hot * (int64_t)MIB);
	assert_int_equal(bytes[CLASS_COLD], cold * (int64_t)MIB);
	assert_int_equal(bytes[CLASS_RETURNED], returned * (int64_t)MIB);
	assert_int_equal(bytes[CLASS_THRASHING], thrashing * (int64_t)MIB);
}

static const struct pressure_site *get(const struct pressure_view *p, int64_t site_id)
{
	const struct pressure_site *s = pressure_find(p, site_id);

	assert_non_null(s);
	return s;
}

static void test_classes(void **state)
{
	const struct pressure_view *p;
	struct report r;
	struct fixture f;

	(void)state;
	open_pressed(&f, "");
	fixture_load(&r, &f);
	p = &r.runs[0].pressure;
	assert_null(p->why_no_scans);
	assert_true(p->was_swapped);
	assert_int_equal(p->n_scans, 5);
	assert_int_equal(p->scan.t_ns, INT64_C(8000000000));
	assert_near(p->scan_s, 0.05);
	assert_classes(p->total, 29, 37, 8, 6);
	assert_int_equal(p->n_sites, 5);
	assert_classes(get(p, 1)->bytes, 10, 26, 4, 0);
	assert_classes(get(p, 2)->bytes, 8, 2, 4, 6);
	assert_classes(get(p, 3)->bytes, 10, 0, 0, 0);
	assert_classes(get(p, 4)->bytes, 0, 8, 0, 0);
	assert_classes(get(p, 5)->bytes, 1, 1, 0, 0);
	assert_int_equal(pressure_site_class(get(p, 1)), CLASS_COLD);
	assert_int_equal(pressure_site_class(get(p, 2)), CLASS_THRASHING);
	assert_int_equal(pressure_site_class(get(p, 3)), CLASS_HOT);
	assert_int_equal(pressure_site_class(get(p, 4)), CLASS_COLD);
	assert_int_equal(p->n_cold_owners, 2);
	assert_int_equal(p->cold_owned, 34 * (int64_t)MIB);
	assert_int_equal(p->sites[p->top[BY_COLD][0]].site.row.site_id, 1);
	assert_int_equal(p->sites[p->top[BY_COLD][1]].site.row.site_id, 4);
	assert_int_equal(p->n_top[BY_COLD], 4); /* none of 0 */
	/* Known by who called the wrapper. */
	assert_string_equal(get(p, 1)->place->function, "table_insert");
	assert_int_equal(get(p, 5)->n_place, 0);
	report_done(&r);
	fixture_remove(&f);
}

/* More than a quarter of what was swapped, and enough of it. */
static void test_thrashing_is_defined(void **state)
{
	const int64_t k = 1024;
	static const struct {
		int cold, returned, thrashing; /* KiB; hot: 1 MiB */
		enum site_class expected;
	} cases[] = {
		{512, 256, 256, CLASS_HOT},                               /* a quarter exactly */
		{512, 252, 260, CLASS_THRASHING}, {0, 0, 255, CLASS_HOT}, /* too little */
		{0, 0, 256, CLASS_THRASHING},     {2048, 0, 512, CLASS_COLD},
		{256, 2048, 512, CLASS_RETURNED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pressure_site s = {.bytes = {1024 * k, cases[i].cold * k,
							  cases[i].returned * k,
							  cases[i].thrashing * k}};

		if (pressure_site_class(&s) != cases[i].expected)
			fail_msg("case %zu: %s", i, site_class_name(pressure_site_class(&s)));
	}
}

static const struct pressure_mapping *get_mapping(const struct pressure_view *p,
						  const char *mapping)
{
	for (size_t i = 0; i < p->n_mappings; i++) {
		if (strcmp(p->mappings[i].mapping, mapping) == 0)
			return &p->mappings[i];
	}
	fail_msg("no mapping %s", mapping);
	return NULL;
}

static void test_faults(void **state)
{
	const struct pressure_view *p;
	struct report r;
	struct fixture f;

	(void)state;
	open_pressed(&f, "");
	fixture_load(&r, &f);
	p = &r.runs[0].pressure;
	assert_null(p->why_no_faults);
	assert_int_equal(p->faults.faults, 23);
	assert_int_equal(p->attributed, 20);
	assert_int_equal(p->own_faults, 2);
	assert_int_equal(p->n_top[BY_FAULTS], 2); /* own ones are no faults of site 3 */
	assert_int_equal(p->sites[p->top[BY_FAULTS][0]].site.row.site_id, 2);
	assert_int_equal(get(p, 2)->cost.faults, 14);
	assert_int_equal(get(p, 1)->cost.faults, 6);
	assert_int_equal(p->n_mappings, 2);
	assert_string_equal(get_mapping(p, "file")->file, "/lib/libz.so.1");
	assert_int_equal(get_mapping(p, "file")->cost.faults, 2);
	assert_int_equal(get_mapping(p, "stack")->cost.faults, 1);
	assert_int_equal(p->cost, COST_ESTIMATED);
	assert_near(get(p, 2)->cost.seconds, 0.65);
	assert_near(get(p, 1)->cost.seconds, 0.3);
	assert_near(get(p, 3)->cost.seconds, 0);
	assert_near(get_mapping(p, "file")->cost.seconds, 0.1);
	assert_near(get_mapping(p, "stack")->cost.seconds, 0.05);
	assert_near(p->faults.seconds, 1.1);
	/* 9 in cache_get, 5 not known */
	assert_int_equal(get(p, 2)->n_places, 2);
	assert_int_equal(get(p, 2)->places[0].faults, 9);
	assert_string_equal(get(p, 2)->places[0].at.function, "cache_get");
	assert_int_equal(get(p, 2)->places[1].faults, 5);
	assert_int_equal(get(p, 2)->places[1].at.offset, READ_NULL);
	assert_int_equal(get(p, 2)->with_stall.n, 10);
	assert_near(get(p, 2)->with_stall.rho, 52.75 / 65);
	assert_near(get(p, 1)->with_stall.rho, 47.5 / sqrt(65 * 52.5));
	assert_true(isnan(get(p, 3)->with_stall.rho));
	report_done(&r);
	fixture_remove(&f);
}

/* Measured times stand before the estimate, also when they are not those of all faults. */
static void test_cost(void **state)
{
	static const struct {
		const char *sql;
		enum cost_source source;
		double site_2_s, all_s;
		const char *text;
	} cases[] = {
		{"UPDATE fault SET duration_ns = 2000000 * (1 + is_own)", COST_MEASURED, 0.028,
		 0.046, "Time: measured, fault by fault."},
		{"UPDATE fault SET duration_ns = 2000000 WHERE site_id = 2", COST_MEASURED, 0.028,
		 0.028, "Time: measured, for 14 of them."},
		{"UPDATE sample SET memory_pressure_some_total = NULL", COST_UNKNOWN, NAN, NAN,
		 "Time: n/a (no memory.pressure)."},
		{"UPDATE sample SET memory_pressure_some_total = 7", COST_UNKNOWN, NAN, NAN,
		 "Time: n/a (not measured, and no stall was counted)."},
		{"", COST_ESTIMATED, 0.65, 1.1,
		 "Time: estimated (~), not measured: the stall (PSI some)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		const struct pressure_view *p;
		struct report r;
		struct fixture f;

		open_pressed(&f, cases[i].sql);
		fixture_load(&r, &f);
		p = &r.runs[0].pressure;
		assert_int_equal(p->cost, cases[i].source);
		if (isnan(cases[i].all_s)) {
			assert_false(pressure_has_cost(p, &p->faults));
		} else {
			assert_near(get(p, 2)->cost.seconds, cases[i].site_2_s);
			assert_near(p->faults.seconds, cases[i].all_s);
		}
		report_done(&r);
		fixture_report(&f, &text, &json);
		assert_has(&text, cases[i].text);
		fixture_remove(&f);
	}
}

static void assert_amounts(const struct amounts *a, int64_t total, size_t n,
			   const int64_t expected[][2])
{
	assert_int_equal(a->total, total);
	assert_int_equal(a->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(a->top[i].site_id, expected[i][0]);
		assert_int_equal(a->top[i].amount, expected[i][1]);
	}
}

static void test_time(void **state)
{
	const int64_t m = (int64_t)MIB;
	const struct pressure_view *p;
	struct report r;
	struct fixture f;

	(void)state;
	open_pressed(&f, "");
	fixture_load(&r, &f);
	p = &r.runs[0].pressure;
	assert_int_equal(p->n_tighten, 2);
	assert_int_equal(p->n_decisions, 2);
	assert_int_equal(p->decisions[0].from_ns, INT64_C(2000000000));
	assert_int_equal(p->decisions[0].to_ns, INT64_C(4000000000));
	assert_amounts(&p->decisions[0].taken, 51 * m, 3,
		       (const int64_t[][2]){{1, 30 * m}, {2, 12 * m}, {4, 8 * m}});
	assert_int_equal(p->decisions[0].aftermath_ns, INT64_C(2500000000));
	assert_amounts(&p->decisions[0].faulted, 16, 2, (const int64_t[][2]){{2, 10}, {1, 4}});
	assert_int_equal(p->decisions[1].from_ns, INT64_C(6000000000));
	assert_int_equal(p->decisions[1].to_ns, INT64_C(8000000000));
	assert_amounts(&p->decisions[1].taken, 4 * m, 1, (const int64_t[][2]){{2, 4 * m}});
	assert_amounts(&p->decisions[1].faulted, 4, 1, (const int64_t[][2]){{2, 3}});
	/* .3 and .1 are slopes of .5 */
	assert_int_equal(p->n_peaks, 2);
	assert_near(p->peaks[0].share, 0.5);
	assert_int_equal(p->peaks[0].from_ns, INT64_C(3000000000));
	assert_amounts(&p->peaks[0].faulted, 10, 2, (const int64_t[][2]){{2, 6}, {1, 2}});
	assert_near(p->peaks[1].share, 0.2);
	assert_int_equal(p->peaks[1].to_ns, INT64_C(8000000000));
	assert_amounts(&p->peaks[1].faulted, 4, 1, (const int64_t[][2]){{2, 3}});
	report_done(&r);
	fixture_remove(&f);
}

/* A decision before the first scan, and one after the last, have nothing to compare; nothing else
 * cuts the aftermath at five seconds. */
static void test_time_without_scans_around(void **state)
{
	struct report r;
	struct fixture f;

	(void)state;
	open_pressed(&f, "UPDATE decision SET t_ns = 1000000000 WHERE t_ns = 3200000000;"
			 "UPDATE decision SET t_ns = 9600000000 WHERE t_ns = 9200000000;"
			 "UPDATE decision SET outcome = 'ok';"
			 "DELETE FROM decision WHERE action = 'hold' OR action = 'relax';"
			 "DELETE FROM fault WHERE t_ns > 7000000000");
	fixture_load(&r, &f);
	assert_int_equal(r.runs[0].pressure.n_tighten, 3);
	assert_int_equal(r.runs[0].pressure.n_decisions, 2); /* the last moved nothing */
	assert_int_equal(r.runs[0].pressure.decisions[0].from_ns, READ_NULL);
	assert_int_equal(r.runs[0].pressure.decisions[0].taken.total, 0);
	assert_int_equal(r.runs[0].pressure.decisions[0].aftermath_ns, AFTERMATH_NS);
	/* (1, 6]: all but those after 7 s */
	assert_int_equal(r.runs[0].pressure.decisions[0].faulted.total, 19);
	assert_int_equal(r.runs[0].pressure.decisions[1].taken.total, 4 * (int64_t)MIB);
	report_done(&r);
	fixture_remove(&f);
}

/* A decision is over when its outcome is there: at 4.2 s, so that the scan at 6 s is the first
 * after it. Site 2: 20 -> 16; 30 + 4 + 8 + 1 = 43. */
static void test_time_of_outcome(void **state)
{
	const int64_t m = (int64_t)MIB;
	struct report r;
	struct fixture f;

	(void)state;
	open_pressed(&f, "UPDATE decision SET took_ns = 1000000000 WHERE t_ns = 3200000000");
	fixture_load(&r, &f);
	assert_int_equal(r.runs[0].pressure.decisions[0].to_ns, INT64_C(6000000000));
	assert_amounts(&r.runs[0].pressure.decisions[0].taken, 43 * m, 3,
		       (const int64_t[][2]){{1, 30 * m}, {4, 8 * m}, {2, 4 * m}});
	report_done(&r);
	fixture_remove(&f);
}

static void test_text(void **state)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct fixture f;

	(void)state;
	open_pressed(&f, "");
	assert_report(&f, "report-pressure", 140);
	fixture_report(&f, &text, &json);
	assert_has(&text, "At 8.0 s, the last of 5 scans that found anything; period then 2.0 s; "
			  "50.0 ms CPU in all (0.5 % of one).");
	assert_has(&text, "37.0 MiB of 80.0 MiB (46.2 %) are cold: 2 stacks own 90 %.");
	assert_has(&text, "site 2 (mmap), cache_open (cache.c:20), thrashes: it does not fit; 6.0 "
			  "MiB of 12.0 MiB that were ever swapped of it (50.0 %) came back more "
			  "than once.");
	assert_has(&text, "60.9 % of the major faults hit one stack: cache_open (cache.c:20).");
	assert_has(&text, "site 2 (mmap) (above) 14 60.9 % ~650.0 ms +0.81\n");
	assert_has(&text, "faulted in cache_get (cache.c:55) 64.3 %, unknown code 35.7 %");
	assert_has(&text, "/lib/libz.so.1 2 8.7 % ~100.0 ms\n");
	assert_has(&text, "thread's stack 1 4.3 % ~50.0 ms\n");
	assert_has(&text, "A fault may bring in more than its page: THP never; page-cluster 3 (8 "
			  "pages).");
	assert_has(&text, "tightened at 3.2 s to 60.0 MiB: 51.0 MiB no more resident: 30.0 MiB of "
			  "site 1 (table_insert), 12.0 MiB of site 2 (cache_open), 8.0 MiB of site "
			  "4 (index_add); in the next 2.5 s 16 major faults: 10 of site 2 "
			  "(cache_open), 4 of site 1 (table_insert)");
	assert_has(&text, "stalled 50.0 % of the time from 3.0 s to 4.0 s: 10 major faults: 6 of "
			  "site 2 (cache_open), 2 of site 1 (table_insert)");
	assert_has(&text, "faults 20 hit a site, 3 something else, 2 met by the tracer reading "
			  "stacks: 25 recorded; the group counted 27 (pgmajfault), difference 2");
	fixture_remove(&f);
}

static void assert_real(struct json_object *o, const char *key, double expected)
{
	assert_near(json_object_get_double(json_at(o, key)), expected);
}

static struct json_object *site_of(struct json_object *pressure, int64_t id)
{
	struct json_object *sites = json_at(pressure, "sites");

	for (size_t i = 0; i < json_object_array_length(sites); i++) {
		struct json_object *o = json_object_array_get_idx(sites, i);

		if (json_object_get_int64(json_at(o, "id")) == id)
			return o;
	}
	fail_msg("no site %lld", (long long)id);
	return NULL;
}

static void test_json(void **state)
{
	struct json_object *o, *p, *site, *faults, *found;
	struct fixture f;

	(void)state;
	open_pressed(&f, "");
	o = fixture_json(&f);
	p = json_at(json_nth(json_at(o, "runs"), 0), "pressure");
	assert_null(json_at(json_nth(json_at(o, "runs"), 0), "pressure_missing"));
	assert_json_int(json_at(p, "scans"), "t_s", 8);
	assert_json_int(p, "cold_bytes", 37 * (int64_t)MIB);
	assert_json_int(p, "hot_bytes", 29 * (int64_t)MIB);
	assert_json_plain(json_at(p, "cold_owner_ids"), "[1,4]");
	assert_json_plain(json_at(p, "fault_site_ids"), "[2,1]");
	faults = json_at(p, "faults");
	assert_json_int(faults, "count", 23);
	assert_json_int(faults, "attributed", 20);
	assert_json_int(faults, "not_attributed", 3);
	assert_json_int(faults, "own", 2);
	assert_json_int(faults, "counted", 27);
	assert_json_int(faults, "difference", 2);
	assert_json_text(faults, "time_source", "estimated");
	assert_real(faults, "time_s", 1.1);
	site = site_of(p, 2);
	assert_json_text(site, "class", "thrashing");
	assert_json_int(site, "thrashing_bytes", 6 * (int64_t)MIB);
	assert_real(site, "stall_correlation", 0.811538462);
	assert_json_text(json_at(site, "place"), "function", "cache_open");
	assert_json_int(json_nth(json_at(site, "faulted_in"), 0), "faults", 9);
	site = site_of(p, 3);
	assert_null(json_at(site, "stall_correlation"));
	assert_non_null(json_at(site, "stall_correlation_missing"));
	assert_true(json_object_get_boolean(json_at(site_of(p, 5), "is_allocator")));
	assert_json_plain(json_at(json_nth(json_at(p, "decisions"), 1), "taken"),
			  "[{\"site_id\":2,\"bytes\":4194304}]");
	assert_json_plain(json_at(json_nth(json_at(p, "stall_peaks"), 1), "faulted"),
			  "[{\"site_id\":2,\"faults\":3}]");
	found = json_at(json_at(o, "findings"), "pressure");
	assert_int_equal(json_object_array_length(json_at(found, "sentences")), 3);
	assert_string_equal(json_object_get_string(json_nth(json_at(found, "sentences"), 1)),
			    "60.9 % of the major faults hit one stack: cache_open (cache.c:20).");
	(void)json_object_put(o);
	fixture_remove(&f);
}

/* What is said where there is nothing. */
static void test_missing(void **state)
{
	static const struct {
		const char *sql, *text, *key, *why; /* key: null in `pressure`, for this reason */
	} cases[] = {
		{"DELETE FROM scan; DELETE FROM site_sample",
		 "Which stacks are cold?\n n/a (the pages of sites were not scanned)", "scans",
		 "the pages of sites were not scanned"},
		{"DELETE FROM fault; UPDATE site SET major_faults = NULL",
		 "Where did the major faults come from?\n n/a (faults of sites were not recorded)",
		 "faults", "faults of sites were not recorded"},
		{"DELETE FROM fault; UPDATE site SET major_faults = 0",
		 "Where did the major faults come from?\n There were none.", NULL, NULL},
		{"UPDATE scan SET swapped_bytes = 0; UPDATE site SET max_swapped_bytes = 0;"
		 "UPDATE site_sample SET swapped_bytes = 0, cold_bytes = 0, returned_bytes = 0,"
		 " thrashing_bytes = 0",
		 "Nothing was ever swapped out, so that nothing tells hot from cold", NULL, NULL},
		/* As version 2 had it. */
		{"DROP VIEW site_pressure; DROP VIEW site_place; DROP VIEW run_summary;"
		 "DROP TABLE fault; DROP TABLE scan; DROP TABLE site_sample;"
		 "UPDATE site SET major_faults = NULL, max_swapped_bytes = NULL;"
		 "ALTER TABLE site DROP COLUMN fault_ns; PRAGMA user_version = 2",
		 "Which stacks are cold?\n n/a (the pages of sites were not scanned)", "scans",
		 "the pages of sites were not scanned"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_str_ struct str text = {0}, json = {0};
		struct json_object *o, *p;
		char key[64];
		struct fixture f;

		open_pressed(&f, cases[i].sql);
		fixture_report(&f, &text, &json);
		assert_has(&text, cases[i].text);
		o = json_tokener_parse(json.data);
		p = json_at(json_nth(json_at(o, "runs"), 0), "pressure");
		if (cases[i].key) {
			(void)snprintf(key, sizeof(key), "%s_missing", cases[i].key);
			assert_null(json_at(p, cases[i].key));
			assert_json_text(p, key, cases[i].why);
		}
		(void)json_object_put(o);
		fixture_remove(&f);
	}
}

/* -- the views ---------------------------------------------------------------------------------
 */

/* All rows: columns joined by a blank, "-" for NULL, rows ended by ';'. */
static void assert_rows(struct fixture *f, const char *sql, const char *expected)
{
	_cleanup_str_ struct str got = {0};
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(f->db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(f->db), sql);
	while (sqlite3_step(st) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const char *text = (const char *)sqlite3_column_text(st, i);

			str_addf(&got, "%s%s", i ? " " : "", text ? text : "-");
		}
		str_add(&got, ";");
	}
	(void)sqlite3_finalize(st);
	assert_string_equal(got.data, expected);
}

static void test_views(void **state)
{
	struct fixture f;

	(void)state;
	open_pressed(&f, "DELETE FROM site_sample WHERE t_ns > 9000000000;"
			 "DELETE FROM scan WHERE t_ns > 9000000000");
	fixture_reopen(&f);
	assert_rows(&f,
		    "SELECT rank, site_id, kind, major_faults, round(fault_share, 4), fault_ns,"
		    " max_swapped_bytes / 1048576, scan_t_ns / 1000000000,"
		    " resident_bytes / 1048576, swapped_bytes / 1048576, cold_bytes / 1048576,"
		    " returned_bytes / 1048576, thrashing_bytes / 1048576, function, line"
		    " FROM site_pressure WHERE run_id = 1 ORDER BY rank",
		    "1 2 mmap 14 0.6087 - 12 8 12 8 2 4 6 cache_open 20;"
		    "2 1 malloc 6 0.2609 - 30 8 14 26 26 4 0 table_insert 88;"
		    "3 4 malloc 0 0.0 - 8 4 0 8 8 0 0 index_add 30;"
		    "4 5 other 0 0.0 - 1 4 1 1 1 0 0 - -;"
		    "5 3 malloc 0 0.0 - 0 2 10 0 0 0 0 log_line 7;");
	assert_rows(&f,
		    "SELECT major_faults, swapped_bytes / 1048576, cold_bytes / 1048576,"
		    " faults_attributed FROM run_summary",
		    "27 43 37 20;");
	fixture_remove(&f);
}

/* Whom a name passes an allocation on for: no more than that. */
static void test_wrappers(void **state)
{
	static const struct {
		const char *function;
		bool is_wrapper;
	} cases[] = {
		{"xmalloc", true},
		{"zmalloc_usable", true},
		{"g_realloc", true},
		{"xcalloc", true},
		{"pool_alloc", true},
		{"aligned_alloc", true},
		{"block_allocate", true},
		{"xstrdup", true},
		{"operator new(unsigned long)", true},
		{"std::allocator<int>::allocate(unsigned long)", true},
		{"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)", true},
		{"allocate_hot_half", false},
		{"table_insert", false},
		{"std::map<int, int>::insert(int)", false},
		{"renewal", false},
		{"alloc_count", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;
		char sql[256];

		(void)snprintf(sql, sizeof(sql),
			       "UPDATE frame SET function = '%s' WHERE frame_id = 1",
			       cases[i].function);
		open_pressed(&f, sql);
		fixture_reopen(&f);
		(void)snprintf(sql, sizeof(sql), "%s;",
			       cases[i].is_wrapper ? "table_insert" : cases[i].function);
		assert_rows(&f, "SELECT function FROM site_place WHERE site_id = 1", sql);
		fixture_remove(&f);
	}
}

/* Of wrappers alone the innermost; without a name a frame is none. */
static void test_places(void **state)
{
	struct fixture f;

	(void)state;
	open_pressed(&f, "UPDATE frame SET function = 'my_malloc';"
			 "UPDATE frame SET function = NULL WHERE frame_id = 4");
	fixture_reopen(&f);
	assert_rows(&f, "SELECT site_id, function, line FROM site_place",
		    "1 my_malloc 9;2 - 20;3 my_malloc 7;4 my_malloc 30;");
	fixture_remove(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_thrashing_is_defined),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_time_without_scans_around),
		cmocka_unit_test(test_time_of_outcome),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_wrappers),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests_name("report pressure", tests, NULL, NULL);
}
