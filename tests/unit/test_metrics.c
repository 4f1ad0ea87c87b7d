/* The table of metrics: names derived again from file and key, rows complete and in order. */
#include "model/sample.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *without_prefix(const char *file)
{
	static const char *const prefixes[] = {"/proc/", "/sys/kernel/debug/", "/sys/module/",
					       "/sys/block/"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(file, prefixes[i], strlen(prefixes[i])) == 0)
			return file + strlen(prefixes[i]);
	}
	return file;
}

static void derive(const struct metric *m, char *buf, size_t size)
{
	char raw[256];
	size_t n = 0;

	(void)snprintf(raw, sizeof(raw), "%s%s%s", without_prefix(m->file), *m->key ? "_" : "",
		       m->key);
	if (m->scope == METRIC_HOST && strncmp(raw, "zswap/", 6) != 0 &&
	    strncmp(raw, "zram", 4) != 0)
		n = snprintf(buf, size, "host_");
	for (const char *p = raw; *p && n + 1 < size; p++) {
		if (*p != '*')
			buf[n++] =
				isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
	}
	buf[n] = '\0';
}

static void names_follow_the_rule(void **state)
{
	char name[256];

	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		derive(&metrics[i], name, sizeof(name));
		assert_string_equal(metrics[i].name, name);
		assert_int_equal(metric_find(name), i); /* the first of that name: unique */
	}
	assert_int_equal(metric_find("memory_stat_nothing"), -1);
}

static void rows_are_complete(void **state)
{
	static const char *const units[] = {"bytes", "us",     "ns",  "pages",
					    "count", "faults", "ops", "percent"};

	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric *m = &metrics[i];
		bool known = false;

		for (size_t u = 0; u < ARRAY_SIZE(units); u++)
			known |= strcmp(units[u], m->unit) == 0;
		assert_true(known);
		assert_true(strlen(m->help) > 2);
		assert_null(strchr(m->help, '\n'));
		assert_true(m->help[strlen(m->help) - 1] != '.');
		assert_int_equal(m->scope == METRIC_HOST, m->file[0] == '/');
	}
}

/* The sampler opens one file for each such stretch. */
static void rows_of_a_file_stand_together(void **state)
{
	(void)state;
	for (int i = 1; i < METRIC_COUNT; i++) {
		if (strcmp(metrics[i].file, metrics[i - 1].file) == 0)
			continue;
		for (int j = 0; j < i - 1; j++)
			assert_string_not_equal(metrics[i].file, metrics[j].file);
	}
}

/* Columns that other programs and our own reports name literally. */
static void published_names(void **state)
{
	static const char *const names[] = {
		"memory_current",
		"memory_stat_anon",
		"memory_stat_pgmajfault",
		"memory_swap_current",
		"memory_pressure_full_total",
		"memory_events_oom_kill",
		"host_vmstat_pswpin",
		"host_pressure_memory_full_total",
		"host_meminfo_memavailable",
		"memory_peak_interval",
		"io_stat_rbytes",
		"zswap_pool_total_size",
		"zram_mm_stat_orig_data_size",
		"cgroup_stat_nr_dying_descendants",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(metric_find(names[i]) >= 0);
}

static void deltas(void **state)
{
	static struct sample a, b;
	int64_t d = -7;

	(void)state;
	a.has[M_memory_stat_pgfault] = b.has[M_memory_stat_pgfault] = true;
	a.v[M_memory_stat_pgfault] = 40;
	b.v[M_memory_stat_pgfault] = 42;
	assert_true(sample_delta(&a, &b, M_memory_stat_pgfault, &d));
	assert_int_equal(d, 2);
	assert_false(sample_delta(&b, &a, M_memory_stat_pgfault, &d)); /* went backwards */
	assert_false(sample_delta(&a, &b, M_memory_current, &d));      /* not had */
	assert_int_equal(d, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_follow_the_rule),
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(rows_of_a_file_stand_together),
		cmocka_unit_test(published_names),
		cmocka_unit_test(deltas),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
