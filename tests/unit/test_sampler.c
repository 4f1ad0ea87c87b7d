/* The sampler over fake trees: what kernels 6.1, 6.12 and 6.18 write, and broken variants. */
#include "sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "sampler/input.h"
#include "tests/unit/fake.h"
#include "tests/unit/recorded.h"

#define GROUP "/sys/fs/cgroup/g"

struct fixture {
	struct fake *fake;
	int dirfd;
	struct sampler *sampler;
	struct sample sample;
};

static int set_up(void **state)
{
	struct fixture *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->fake = fake_new();
	fake_dir(t->fake, GROUP);
	t->dirfd = fake_opendir(t->fake, GROUP);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *t = *state;

	sampler_free(t->sampler);
	close_fd(&t->dirfd);
	fake_free(t->fake);
	free(t);
	return 0;
}

static void start(struct fixture *t)
{
	struct err err;

	assert_int_equal(sampler_new(&t->sampler, fake_root(t->fake), t->dirfd, &err), 0);
}

static void take(struct fixture *t)
{
	struct err err;

	/* What an earlier sample left must not shine through. */
	memset(&t->sample, 0xa5, sizeof(t->sample));
	assert_int_equal(sampler_take(t->sampler, &t->sample, &err), 0);
}

static void expect(const struct fixture *t, enum metric_id id, int64_t value)
{
	if (!t->sample.has[id])
		fail_msg("%s is not had", metrics[id].name);
	if (t->sample.v[id] != value)
		fail_msg("%s is %lld, not %lld", metrics[id].name, (long long)t->sample.v[id],
			 (long long)value);
}

static void expect_none(const struct fixture *t, enum metric_id id)
{
	if (t->sample.has[id])
		fail_msg("%s is had", metrics[id].name);
}

static int64_t extra(const struct fixture *t, const char *key)
{
	for (size_t i = 0; i < t->sample.n_extra; i++) {
		if (strcmp(t->sample.extra[i].key, key) == 0)
			return t->sample.extra[i].value;
	}
	return -1;
}

static int count_had(const struct fixture *t)
{
	int n = 0;

	for (int i = 0; i < METRIC_COUNT; i++)
		n += t->sample.has[i];
	return n;
}

static int count_lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Every key of three kernels has its column: as many values as lines, nothing left over. */
static void no_key_is_unknown(void **state)
{
	static const char *const texts[] = {memory_stat_6_1, memory_stat_6_12, memory_stat_6_18};
	struct fixture *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fake_file(t->fake, GROUP "/memory.stat", texts[i]);
		sampler_free(t->sampler);
		start(t);
		take(t);
		assert_int_equal(t->sample.n_extra, 0);
		assert_int_equal(count_had(t), count_lines(texts[i]));
		assert_int_equal(sampler_file_count(t->sampler), 1);
	}
}

static void kernel_6_1(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.stat", memory_stat_6_1);
	start(t);
	take(t);
	expect(t, M_memory_stat_anon, 56053760);
	expect(t, M_memory_stat_zswapped, 16785408);
	expect(t, M_memory_stat_slab, 163432);
	expect(t, M_memory_stat_pgmajfault, 8184);
	expect(t, M_memory_stat_thp_collapse_alloc, 0);
	expect_none(t, M_memory_stat_zswpwb);
	expect_none(t, M_memory_stat_pgscan_khugepaged);
}

static void kernel_6_18(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.stat", memory_stat_6_18);
	start(t);
	take(t);
	expect(t, M_memory_stat_anon, 1);
	expect(t, M_memory_stat_hugetlb, 28);
	expect(t, M_memory_stat_pgdemote_proactive, 39);
	expect(t, M_memory_stat_pswpin, 43);
	expect(t, M_memory_stat_pgscan_proactive, 48);
	expect(t, M_memory_stat_numa_hint_faults, 71);
}

/* kB are 1024 bytes: 990508 × 1024 = 1014280192, 883776 × 1024 = 904986624. */
static void kernel_6_12_whole(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.current", "62042112\n");
	fake_file(t->fake, GROUP "/memory.max", "62914560\n");
	fake_file(t->fake, GROUP "/memory.high", "max\n");
	fake_file(t->fake, GROUP "/memory.stat", memory_stat_6_12);
	fake_file(t->fake, GROUP "/memory.events", memory_events_6_12);
	fake_file(t->fake, GROUP "/memory.events.local", memory_events_6_12);
	fake_file(t->fake, GROUP "/memory.swap.events", memory_swap_events_6_12);
	fake_file(t->fake, GROUP "/memory.swap.peak", "146194432\n");
	fake_file(t->fake, GROUP "/memory.zswap.writeback", "1\n");
	fake_file(t->fake, GROUP "/memory.pressure", memory_pressure_6_12);
	fake_file(t->fake, GROUP "/cpu.stat", cpu_stat_6_12);
	fake_file(t->fake, GROUP "/io.stat", io_stat_6_12);
	fake_file(t->fake, GROUP "/cgroup.stat",
		  "nr_descendants 0\nnr_subsys_memory 1\nnr_dying_descendants 3\n");
	fake_file(t->fake, "/proc/vmstat", vmstat_6_12);
	fake_file(t->fake, "/proc/meminfo", meminfo_6_12);
	fake_file(t->fake, "/proc/pressure/memory", memory_pressure_6_12);
	start(t);
	assert_int_equal(sampler_file_count(t->sampler), 16);
	for (int i = 0; i < 3; i++) {
		take(t);
		expect(t, M_memory_current, 62042112);
		expect(t, M_memory_max, 62914560);
		expect(t, M_memory_high, INT64_MAX);
		expect(t, M_memory_stat_pgmajfault, 8498);
		expect(t, M_memory_stat_workingset_refault_anon, 62288);
		expect(t, M_memory_events_max, 1797);
		expect(t, M_memory_events_local_max, 1797);
		expect(t, M_memory_swap_events_fail, 0);
		expect(t, M_memory_swap_peak, 146194432);
		expect(t, M_memory_zswap_writeback, 1);
		expect(t, M_memory_pressure_some_total, 10120891);
		expect(t, M_memory_pressure_full_total, 10120891);
		expect(t, M_cpu_stat_usage_usec, 39233363);
		expect(t, M_cpu_stat_nice_usec, 0);
		expect(t, M_io_stat_rbytes, 64172032);
		expect(t, M_io_stat_wios, 25601);
		expect(t, M_cgroup_stat_nr_dying_descendants, 3);
		expect(t, M_host_vmstat_pgsteal_direct, 94322);
		expect(t, M_host_vmstat_swap_ra_hit, 3921);
		expect(t, M_host_pressure_memory_full_total, 10120891);
		expect(t, M_host_meminfo_memtotal, 1014280192);
		expect(t, M_host_meminfo_memavailable, 904986624);
		expect_none(t, M_memory_low);
		expect_none(t, M_host_pressure_io_some_total);
		assert_int_equal(t->sample.n_extra, 0); /* nr_subsys_* are not wanted */
	}
}

static void nothing_there(void **state)
{
	struct fixture *t = *state;

	start(t);
	take(t);
	assert_int_equal(count_had(t), 0);
	assert_int_equal(t->sample.n_extra, 0);
	assert_int_equal(sampler_file_count(t->sampler), 0);
}

static void host_only(void **state)
{
	struct fixture *t = *state;
	struct err err;

	fake_file(t->fake, GROUP "/memory.current", "1\n");
	fake_file(t->fake, "/proc/vmstat", vmstat_6_12);
	assert_int_equal(sampler_new(&t->sampler, fake_root(t->fake), -1, &err), 0);
	take(t);
	expect(t, M_host_vmstat_pswpin, 15839);
	expect_none(t, M_memory_current);
}

static void keys_move(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.stat", "anon 1\nfile 2\nkernel 3\nshmem 4\n");
	start(t);
	take(t);
	fake_file(t->fake, GROUP "/memory.stat", "shmem 40\nkernel 30\nanon 10\nfile 20\n");
	take(t);
	expect(t, M_memory_stat_anon, 10);
	expect(t, M_memory_stat_file, 20);
	expect(t, M_memory_stat_kernel, 30);
	expect(t, M_memory_stat_shmem, 40);
	fake_file(t->fake, GROUP "/memory.stat", "file 200\n"); /* and go */
	take(t);
	expect(t, M_memory_stat_file, 200);
	expect_none(t, M_memory_stat_anon);
}

/* "anon" is a beginning of "anon_thp": neither may be taken for the other. */
static void keys_that_begin_alike(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.stat", "anon_thp 7\nanon 1\nano 9\n");
	start(t);
	take(t);
	expect(t, M_memory_stat_anon, 1);
	expect(t, M_memory_stat_anon_thp, 7);
	assert_int_equal(extra(t, "memory.stat:ano"), 9);
}

static void unknown_keys(void **state)
{
	struct fixture *t = *state;
	const char *name;

	fake_file(t->fake, GROUP "/memory.stat", "anon 1\nbrand_new 2\nfile 3\n");
	fake_file(t->fake, GROUP "/memory.events", "max 1\nbrand_new 5\n");
	start(t);
	take(t);
	assert_int_equal(t->sample.n_extra, 2);
	assert_int_equal(extra(t, "memory.stat:brand_new"), 2);
	assert_int_equal(extra(t, "memory.events:brand_new"), 5);
	name = t->sample.extra[0].key;
	/* One more, in the middle, while we run. */
	fake_file(t->fake, GROUP "/memory.stat", "anon 1\nnewer 8\nbrand_new 20\nfile 3\n");
	for (int i = 0; i < 2; i++) {
		take(t);
		assert_int_equal(t->sample.n_extra, 3);
		assert_int_equal(extra(t, "memory.stat:newer"), 8);
		assert_int_equal(extra(t, "memory.stat:brand_new"), 20);
		expect(t, M_memory_stat_file, 3);
	}
	fake_file(t->fake, GROUP "/memory.stat", "brand_new 21\n");
	take(t);
	assert_ptr_equal(t->sample.extra[0].key, name); /* one string for the sampler's life */
	assert_int_equal(t->sample.n_extra, 2);
	assert_int_equal(sampler_lost_keys(t->sampler), 0);
}

/* 300 unknown keys: 192 find room, 108 are counted once. */
static void too_many_unknown_keys(void **state)
{
	struct fixture *t = *state;
	_cleanup_str_ struct str text = {0};

	for (int i = 0; i < 300; i++)
		str_addf(&text, "key%d %d\n", i, i);
	str_add(&text, "anon 5\n");
	fake_file(t->fake, GROUP "/memory.stat", text.data);
	start(t);
	for (int i = 0; i < 2; i++) {
		take(t);
		assert_int_equal(t->sample.n_extra, SAMPLE_EXTRA_MAX);
		assert_int_equal(extra(t, "memory.stat:key191"), 191);
		expect(t, M_memory_stat_anon, 5);
		assert_int_equal(sampler_lost_keys(t->sampler), 108);
	}
}

/* More new keys than room was set aside for in this file: they are lost, not the known ones. */
static void many_keys_appear(void **state)
{
	struct fixture *t = *state;
	_cleanup_str_ struct str text = {0};

	fake_file(t->fake, GROUP "/memory.stat", "anon 1\nfile 2\n");
	start(t);
	for (int i = 0; i < 5000; i++)
		str_addf(&text, "key%d %d\n", i, i);
	str_add(&text, "file 6\nanon 5\n");
	fake_file(t->fake, GROUP "/memory.stat", text.data);
	take(t);
	expect(t, M_memory_stat_anon, 5);
	expect(t, M_memory_stat_file, 6);
	assert_true(sampler_lost_keys(t->sampler) > 0);
}

static void broken_fields(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/memory.stat",
		  "anon 1\nfile\nkernel 99999999999999999999\nshmem -3\nsock 4x\nslab 5");
	fake_file(t->fake, GROUP "/memory.current", "8884224");
	fake_file(t->fake, GROUP "/memory.peak", "\n");
	fake_file(t->fake, GROUP "/memory.max", "9223372036854775808\n");
	fake_file(t->fake, GROUP "/memory.swap.max", "9223372036854775807\n");
	fake_file(t->fake, GROUP "/memory.pressure", "some avg10=0.00 total=7\nfull avg10=");
	start(t);
	take(t);
	expect(t, M_memory_stat_anon, 1);
	expect_none(t, M_memory_stat_file);
	expect_none(t, M_memory_stat_kernel);
	expect_none(t, M_memory_stat_shmem);
	expect_none(t, M_memory_stat_sock);
	expect(t, M_memory_stat_slab, 5);
	expect(t, M_memory_current, 8884224);
	expect_none(t, M_memory_peak);
	expect_none(t, M_memory_max);
	expect(t, M_memory_swap_max, INT64_MAX);
	expect(t, M_memory_pressure_some_total, 7);
	expect_none(t, M_memory_pressure_full_total);
}

/* The last line that fits may be cut in the middle of its number, and is not used. */
static void a_file_beyond_the_buffer(void **state)
{
	struct fixture *t = *state;
	_cleanup_str_ struct str text = {0};

	str_add(&text, "anon 1\n");
	while (text.len < INPUT_TEXT_MAX - 7)
		str_add(&text, "x 1\n");
	text.len = INPUT_TEXT_MAX - 8; /* "file 123" is cut behind "file 1" */
	text.data[text.len - 1] = '\n';
	str_add(&text, "\nfile 123\n");
	fake_file(t->fake, GROUP "/memory.stat", text.data);
	start(t);
	take(t);
	expect(t, M_memory_stat_anon, 1);
	expect_none(t, M_memory_stat_file);
}

static void io_of_all_devices(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/io.stat", "");
	start(t);
	take(t);
	expect(t, M_io_stat_rbytes, 0); /* no I/O yet: a true 0 */
	expect(t, M_io_stat_dios, 0);
	fake_file(t->fake, GROUP "/io.stat",
		  "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.usage=5\n"
		  "7:0 \n"
		  "253:0 rbytes=1000 wbytes=512 rios=2 wios=1 dbytes=0 dios=0 cost.usage=6\n");
	take(t);
	expect(t, M_io_stat_rbytes, 5096);
	expect(t, M_io_stat_wbytes, 512);
	expect(t, M_io_stat_rios, 3);
	assert_int_equal(extra(t, "io.stat:cost.usage"), 11);
	assert_int_equal(t->sample.n_extra, 1);
}

static void io_sums_that_overflow(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, GROUP "/io.stat",
		  "1:0 rbytes=9223372036854775807 wbytes=1 a=9223372036854775807 b=2\n"
		  "2:0 rbytes=1 wbytes=2 a=1 b=3\n"
		  "3:0 rbytes=1 wbytes=3 a=1 b=4\n");
	start(t);
	take(t);
	expect_none(t, M_io_stat_rbytes);
	expect(t, M_io_stat_wbytes, 6);
	assert_int_equal(t->sample.n_extra, 1);
	assert_int_equal(extra(t, "io.stat:b"), 9);
}

static void zram_devices(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, "/sys/block/zram0/mm_stat", "  4096  100  8192  0  8192  1  0  2  3\n");
	fake_file(t->fake, "/sys/block/zram12/mm_stat",
		  "  1000   50  4096  0  4096  4  0  5\n"); /* older: eight columns */
	fake_file(t->fake, "/sys/block/zramx/mm_stat", " 7 7 7 7 7 7 7 7 7\n");
	fake_file(t->fake, "/sys/block/vda/stat", "1\n");
	start(t);
	assert_int_equal(sampler_file_count(t->sampler), 2);
	for (int i = 0; i < 2; i++) {
		take(t);
		expect(t, M_zram_mm_stat_orig_data_size, 5096);
		expect(t, M_zram_mm_stat_compr_data_size, 150);
		expect(t, M_zram_mm_stat_huge_pages, 7);
		expect(t, M_zram_mm_stat_huge_pages_since, 3);
		assert_int_equal(extra(t, "zram0/mm_stat:orig_data_size"), 4096);
		assert_int_equal(extra(t, "zram12/mm_stat:orig_data_size"), 1000);
		assert_int_equal(extra(t, "zram0/mm_stat:huge_pages_since"), 3);
		assert_int_equal(extra(t, "zram12/mm_stat:huge_pages_since"), -1);
		assert_int_equal(t->sample.n_extra, 17);
	}
}

static void zswap(void **state)
{
	struct fixture *t = *state;

	fake_file(t->fake, "/sys/kernel/debug/zswap/pool_total_size", "3248128\n");
	fake_file(t->fake, "/sys/kernel/debug/zswap/reject_compress_poor", "17\n");
	fake_file(t->fake, "/sys/module/zswap/parameters/enabled", "Y\n");
	fake_file(t->fake, "/sys/module/zswap/parameters/shrinker_enabled", "N\n");
	fake_file(t->fake, "/sys/module/zswap/parameters/max_pool_percent", "20\n");
	fake_file(t->fake, "/sys/module/zswap/parameters/compressor", "lzo\n");
	start(t);
	take(t);
	expect(t, M_zswap_pool_total_size, 3248128);
	expect(t, M_zswap_reject_compress_poor, 17);
	expect(t, M_zswap_parameters_enabled, 1);
	expect(t, M_zswap_parameters_shrinker_enabled, 0);
	expect(t, M_zswap_parameters_max_pool_percent, 20);
	assert_int_equal(count_had(t), 5);
}

/* The interval's peak takes a write to memory.peak: never to a plain file. */
static void peak_is_not_written(void **state)
{
	struct fixture *t = *state;
	char text[64];

	fake_file(t->fake, GROUP "/memory.peak", "62967808\n");
	start(t);
	take(t);
	take(t);
	expect(t, M_memory_peak, 62967808);
	expect_none(t, M_memory_peak_interval);
	assert_int_equal(read_file_at(t->dirfd, "memory.peak", text, sizeof(text)), 8);
	assert_string_equal(text, "62967808");
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(no_key_is_unknown),
		test(kernel_6_1),
		test(kernel_6_12_whole),
		test(kernel_6_18),
		test(nothing_there),
		test(host_only),
		test(keys_move),
		test(keys_that_begin_alike),
		test(unknown_keys),
		test(too_many_unknown_keys),
		test(many_keys_appear),
		test(broken_fields),
		test(a_file_beyond_the_buffer),
		test(io_of_all_devices),
		test(io_sums_that_overflow),
		test(zram_devices),
		test(zswap),
		test(peak_is_not_written),
	};

	return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
