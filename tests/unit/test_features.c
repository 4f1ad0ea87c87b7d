/* Features on fake trees, what `check` says about them, and a run's environment. */
#include "cgroup/features.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cgroup/can_trace.h"
#include "cli/cli.h"
#include "tests/unit/fake.h"
#include "tests/unit/recorded.h"

#define MOUNT_V2 "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_HYBRID                                                                          \
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                          \
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n" \
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
#define SWAPS "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static void add_group(struct fake *f, const char *path, const char *const *files)
{
	char name[256];

	for (; *files; files++) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, *files);
		fake_file(f, name, "0\n");
	}
}

/* A machine that has everything: memory on v2, swap, zswap, PSI, kernel 6.12. */
static struct fake *good_machine(void)
{
	static const char *const files[] = {"memory.current", "memory.max",  "memory.high",
					    "memory.reclaim", "memory.peak", NULL};
	struct fake *f = fake_new();

	fake_file(f, "/proc/self/mountinfo", MOUNT_V2);
	fake_file(f, "/proc/self/cgroup", "0::/\n");
	fake_file(f, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
	fake_file(f, "/sys/fs/cgroup/cgroup.subtree_control", "");
	fake_file(f, "/sys/fs/cgroup/cgroup.procs", "1\n");
	add_group(f, "/sys/fs/cgroup/some.slice", files);
	fake_file(f, "/proc/sys/kernel/osrelease", "6.12.95+deb12-amd64\n");
	fake_file(f, "/sys/devices/system/cpu/online", "0-1,4\n");
	fake_file(f, "/proc/meminfo", meminfo_6_12);
	fake_file(f, "/proc/swaps", SWAPS "/dev/vda   partition\t1048572\t\t39688\t\t-2\n");
	fake_file(f, "/proc/pressure/memory", memory_pressure_6_12);
	fake_file(f, "/sys/module/zswap/parameters/enabled", "Y\n");
	fake_file(f, "/sys/module/zswap/parameters/compressor", "zstd\n");
	fake_file(f, "/sys/module/zswap/parameters/zpool", "zsmalloc\n");
	fake_file(f, "/sys/module/zswap/parameters/max_pool_percent", "40\n");
	fake_file(f, "/sys/kernel/debug/zswap/stored_pages", "0\n");
	return f;
}

static struct features probe(const struct fake *f)
{
	struct features ret;

	features_probe(&ret, fake_root(f), NULL);
	return ret;
}

static void expect(const struct features *all, enum feature_id id, enum feature_state state,
		   const char *detail)
{
	const struct feature *f = &all->f[id];

	if (f->state != state)
		fail_msg("%s is %s (%s), not %s", f->name, feature_state_name(f->state), f->detail,
			 feature_state_name(state));
	if (detail)
		assert_string_equal(f->detail, detail);
}

/* 1048572 KiB are 1.0 GiB; 39688 KiB less are 985.2 MiB. */
static void everything(void **state)
{
	struct fake *f = good_machine();
	struct features all = probe(f);

	(void)state;
	expect(&all, FEATURE_CGROUP2, FEATURE_YES, "/sys/fs/cgroup");
	expect(&all, FEATURE_MEMORY, FEATURE_YES, NULL);
	expect(&all, FEATURE_CREATE, FEATURE_YES, "in /sys/fs/cgroup");
	expect(&all, FEATURE_MEMORY_MAX, FEATURE_YES, NULL);
	expect(&all, FEATURE_MEMORY_RECLAIM, FEATURE_YES, NULL);
	expect(&all, FEATURE_MEMORY_PEAK, FEATURE_YES, NULL);
	expect(&all, FEATURE_SWAP, FEATURE_YES, "1.0 GiB on /dev/vda, 985.2 MiB free");
	expect(&all, FEATURE_ZSWAP, FEATURE_YES, "on: zstd, zsmalloc, pool 40 %");
	expect(&all, FEATURE_PSI, FEATURE_YES, NULL);
	expect(&all, FEATURE_ZSWAP_COUNTERS, FEATURE_YES, NULL);
	expect(&all, FEATURE_CLONE3, FEATURE_UNKNOWN, NULL);
	expect(&all, FEATURE_TRACER, FEATURE_UNKNOWN, "not tried under another root");
	fake_free(f);
}

static void memory_on_v1(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_file(f, "/proc/self/mountinfo", MOUNT_HYBRID);
	fake_file(f, "/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
	all = probe(f);
	expect(&all, FEATURE_CGROUP2, FEATURE_YES, "/sys/fs/cgroup/unified");
	expect(&all, FEATURE_MEMORY, FEATURE_NO, "is on cgroup v1 at /sys/fs/cgroup/memory");
	assert_non_null(strstr(all.f[FEATURE_MEMORY].fix,
			       "systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=memory"));
	expect(&all, FEATURE_CREATE, FEATURE_YES, "in /sys/fs/cgroup/unified");
	expect(&all, FEATURE_MEMORY_MAX, FEATURE_NO, NULL);
	fake_free(f);
}

static void memory_off_at_boot(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_file(f, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n");
	fake_file(f, "/proc/cmdline", "quiet cgroup_disable=memory\n");
	all = probe(f);
	expect(&all, FEATURE_MEMORY, FEATURE_NO, "switched off at boot");
	fake_free(f);
}

static void no_cgroup_v2(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_file(f, "/proc/self/mountinfo", "31 23 0:28 / / rw - ext4 /dev/vda rw\n");
	all = probe(f);
	expect(&all, FEATURE_CGROUP2, FEATURE_NO, NULL);
	expect(&all, FEATURE_MEMORY, FEATURE_NO, NULL);
	expect(&all, FEATURE_CREATE, FEATURE_NO, "no cgroup v2");
	features_probe(&all, fake_root(f), "/proc"); /* a directory that is no cgroup */
	expect(&all, FEATURE_CGROUP2, FEATURE_NO, NULL);
	features_probe(&all, fake_root(f), "/sys/fs/cgroup");
	expect(&all, FEATURE_CGROUP2, FEATURE_YES, NULL);
	fake_free(f);
}

static void no_group_to_look_at(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_remove(f, "/sys/fs/cgroup/some.slice/memory.current");
	all = probe(f);
	expect(&all, FEATURE_MEMORY_MAX, FEATURE_UNKNOWN, "no group to look at yet");
	expect(&all, FEATURE_MEMORY_PEAK, FEATURE_UNKNOWN, NULL);
	fake_free(f);
}

static void older_group_files(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_remove(f, "/sys/fs/cgroup/some.slice/memory.reclaim");
	fake_remove(f, "/sys/fs/cgroup/some.slice/memory.peak");
	all = probe(f);
	expect(&all, FEATURE_MEMORY_MAX, FEATURE_YES, NULL);
	expect(&all, FEATURE_MEMORY_RECLAIM, FEATURE_NO, "not in this kernel");
	expect(&all, FEATURE_MEMORY_PEAK, FEATURE_NO, "not in this kernel");
	fake_free(f);
}

/* Our own group has processes and cannot pass memory on; the root above it can. */
static void own_group_is_passed_by(void **state)
{
	static const char *const files[] = {"cgroup.procs", "cgroup.events", "memory.current",
					    "memory.max", NULL};
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_file(f, "/proc/self/cgroup", "4:memory:/x\n0::/user.slice/me\n");
	add_group(f, "/sys/fs/cgroup/user.slice/me", files);
	fake_file(f, "/sys/fs/cgroup/user.slice/me/cgroup.controllers", "memory\n");
	fake_file(f, "/sys/fs/cgroup/user.slice/me/cgroup.subtree_control", "");
	fake_file(f, "/sys/fs/cgroup/user.slice/cgroup.controllers", "memory pids\n");
	fake_file(f, "/sys/fs/cgroup/user.slice/cgroup.events", "populated 1\n");
	fake_file(f, "/sys/fs/cgroup/user.slice/cgroup.procs", "");
	fake_file(f, "/sys/fs/cgroup/user.slice/cgroup.subtree_control", "memory\n");
	all = probe(f);
	expect(&all, FEATURE_CREATE, FEATURE_YES, "in /sys/fs/cgroup/user.slice");
	expect(&all, FEATURE_MEMORY_MAX, FEATURE_YES, NULL);
	expect(&all, FEATURE_MEMORY_HIGH, FEATURE_NO, NULL); /* its own files are looked at */
	fake_free(f);
}

static void swap_and_zswap(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_file(f, "/proc/swaps", SWAPS);
	fake_file(f, "/sys/module/zswap/parameters/enabled", "N\n");
	fake_remove(f, "/sys/module/zswap/parameters/zpool"); /* 6.18 */
	all = probe(f);
	expect(&all, FEATURE_SWAP, FEATURE_WARN, "none: anonymous memory cannot be squeezed");
	assert_non_null(strstr(all.f[FEATURE_SWAP].fix, "swapon"));
	expect(&all, FEATURE_ZSWAP, FEATURE_WARN, "off: zstd, pool 40 %");
	fake_file(f, "/proc/swaps",
		  SWAPS "/dev/vda partition 1000 1000 -2\n/swap\\040file file 1000 990 -3\n");
	all = probe(f);
	expect(&all, FEATURE_SWAP, FEATURE_WARN, "full: 2.0 MiB on /dev/vda");
	fake_remove(f, "/proc/swaps");
	all = probe(f);
	expect(&all, FEATURE_SWAP, FEATURE_WARN, "this kernel has none");
	fake_free(f);
}

static void pressure_off(void **state)
{
	struct fake *f = good_machine();
	struct features all;

	(void)state;
	fake_remove(f, "/proc/pressure/memory");
	all = probe(f);
	expect(&all, FEATURE_PSI, FEATURE_NO, "no /proc/pressure: off, or not built in");
	assert_non_null(strstr(all.f[FEATURE_PSI].fix, "psi=1"));
	fake_free(f);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	assert_true(json_object_object_get_ex(o, key, &v));
	return v;
}

static void environment(void **state)
{
	struct fake *f = good_machine();
	_cleanup_str_ struct str s = {0};
	struct json_object *o, *swap, *psi;

	(void)state;
	fake_file(f, "/proc/sys/vm/swappiness", "100\n");
	fake_file(f, "/proc/sys/vm/page-cluster", "3\n");
	fake_file(f, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	fake_remove(f, "/proc/pressure/memory");
	features_to_json(fake_root(f), &s);
	assert_false(s.failed);
	o = json_tokener_parse(s.data);
	assert_non_null(o);
	assert_string_equal(json_object_get_string(member(o, "kernel")), "6.12.95+deb12-amd64");
	assert_int_equal(json_object_get_int64(member(o, "page_size")), sysconf(_SC_PAGESIZE));
	assert_int_equal(json_object_get_int64(member(o, "cpus")), 3);
	assert_int_equal(json_object_get_int64(member(o, "memory_bytes")), 1014280192);
	assert_int_equal(json_object_get_int64(member(o, "swappiness")), 100);
	assert_int_equal(json_object_get_int64(member(o, "page_cluster")), 3);
	assert_string_equal(json_object_get_string(member(o, "thp")), "never");
	assert_string_equal(json_object_get_string(member(member(o, "zswap"), "compressor")),
			    "zstd");
	swap = json_object_array_get_idx(member(o, "swap_devices"), 0);
	assert_string_equal(json_object_get_string(member(swap, "path")), "/dev/vda");
	assert_int_equal(json_object_get_int64(member(swap, "size_bytes")), 1073737728);
	assert_int_equal(json_object_get_int64(member(swap, "used_bytes")), 40640512);
	assert_string_equal(json_object_get_string(member(swap, "priority")), "-2");
	psi = member(member(o, "features"), "psi");
	assert_false(json_object_get_boolean(member(psi, "ok")));
	assert_string_equal(json_object_get_string(member(psi, "state")), "no");
	assert_true(json_object_get_boolean(
		member(member(member(o, "features"), "memory.reclaim"), "ok")));
	(void)json_object_put(o);
	fake_free(f);
}

/* `analyzer check …` on the fake tree: exit status, and what it printed. */
static int check(const struct fake *f, char *text, size_t size, const char *option,
		 const char *value)
{
	char *argv[] = {(char *)"check", (char *)option, (char *)value, NULL};
	int argc = !option ? 1 : !value ? 2 : 3, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct log log;
	struct cli cli = {.log = &log, .root_dir = fake_path(f), .color = "never"};
	int out = memfd_create("out", MFD_CLOEXEC), saved = dup(STDOUT_FILENO), r;
	ssize_t n;

	assert_true(out >= 0 && saved >= 0 && null >= 0);
	log_init(&log, LOG_NOTE);
	log.term_fd = null;
	(void)fflush(stdout);
	(void)dup2(out, STDOUT_FILENO);
	r = cmd_check(&cli, argc, argv);
	(void)dup2(saved, STDOUT_FILENO);
	log_done(&log);
	n = pread(out, text, size - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close_fd(&out);
	close_fd(&saved);
	close_fd(&null);
	return r;
}

static void expect_narrow(const char *text)
{
	for (const char *p = text; *p; p += strcspn(p, "\n") + 1) {
		if (strcspn(p, "\n") > 79)
			fail_msg("too wide: %.*s", (int)strcspn(p, "\n"), p);
	}
}

static void screen(void **state)
{
	struct fake *f = good_machine();
	char text[8192];

	(void)state;
	assert_int_equal(check(f, text, sizeof(text), NULL, NULL), 0);
	expect_narrow(text);
	assert_non_null(strstr(text, "on Linux 6.12.95+deb12-amd64, 3 CPUs, 967.3 MiB, "));
	assert_non_null(
		strstr(text, "\nNeeded\n  ok    cgroup v2                 /sys/fs/cgroup\n"));
	assert_non_null(strstr(text, "\n0 problems, 0 warnings. "));

	fake_file(f, "/proc/self/mountinfo", MOUNT_HYBRID);
	fake_file(f, "/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
	fake_file(f, "/proc/swaps", SWAPS);
	fake_remove(f, "/proc/pressure/memory");
	assert_int_equal(check(f, text, sizeof(text), NULL, NULL), 1);
	expect_narrow(text);
	assert_non_null(strstr(text, "\n  FAIL  memory controller         is on cgroup v1"));
	assert_non_null(strstr(text, "\n          fix: boot with "));
	/* memory, its three knobs and memory.peak, PSI; swap */
	assert_non_null(strstr(text, "\n6 problems, 1 warning. A run would work without "));
	fake_free(f);
}

static void one_feature(void **state)
{
	struct fake *f = good_machine();
	char text[8192];

	(void)state;
	assert_int_equal(check(f, text, sizeof(text), "--feature", "psi"), 0);
	assert_string_equal(text, "  ok    pressure (PSI)\n");
	assert_int_equal(check(f, text, sizeof(text), "--feature", "tracer"), 1);
	assert_int_equal(check(f, text, sizeof(text), "--feature", "nosuch"), 2);
	assert_string_equal(text, "");
	assert_int_equal(check(f, text, sizeof(text), "--feature", NULL), 2);
	assert_int_equal(check(f, text, sizeof(text), "--nosuch", NULL), 2);
	fake_free(f);
}

static void as_json(void **state)
{
	struct fake *f = good_machine();
	struct json_object *o, *first;
	char text[16384];

	(void)state;
	assert_int_equal(check(f, text, sizeof(text), "--json", NULL), 0);
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_true(json_object_get_boolean(member(o, "ok")));
	assert_int_equal(json_object_get_int64(member(o, "problems")), 0);
	assert_int_equal(json_object_array_length(member(o, "features")), FEATURE_COUNT);
	first = json_object_array_get_idx(member(o, "features"), 0);
	assert_string_equal(json_object_get_string(member(first, "name")), "cgroup2");
	assert_string_equal(json_object_get_string(member(first, "group")), "needed");
	assert_string_equal(json_object_get_string(member(first, "state")), "yes");
	(void)json_object_put(o);
	fake_free(f);
}

/* Gives up rights, of 64, in the calling process. */
static void drop_rights(uint64_t drop)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		_exit(99);
	data[0].effective &= ~(uint32_t)drop;
	data[1].effective &= ~(uint32_t)(drop >> 32);
	if (syscall(SYS_capset, &head, data) < 0)
		_exit(99);
}

/* What tracing lacks in a process without these rights; "" = nothing. */
static void lack_without(uint64_t drop, char *ret, size_t size)
{
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct can_trace can;

		drop_rights(drop);
		can_trace_probe(&can);
		(void)!write(fds[1], can.lack, strlen(can.lack));
		_exit(can.is_possible * 2 + can.lacks_rights);
	}
	close(fds[1]);
	n = read(fds[0], ret, size - 1);
	close(fds[0]);
	ret[n < 0 ? 0 : n] = '\0';
	assert_int_equal(waitpid(pid, &fds[0], 0), pid);
	assert_int_equal(WEXITSTATUS(fds[0]), 1); /* not possible, for lack of rights */
}

static void rights_to_trace(void **state)
{
	char lack[128];

	(void)state;
	lack_without(UINT64_MAX, lack, sizeof(lack));
	assert_string_equal(lack,
			    "no CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_CHOWN");
	lack_without(1ULL << CAP_SYS_PTRACE, lack, sizeof(lack));
	assert_non_null(strstr(lack, "CAP_SYS_PTRACE"));
	/* CAP_BPF is asked for by itself only where CAP_SYS_ADMIN lacks. */
	lack_without(1ULL << CAP_BPF | 1ULL << CAP_SYS_ADMIN, lack, sizeof(lack));
	assert_non_null(strstr(lack, "CAP_BPF"));
	lack_without(1ULL << CAP_BPF | 1ULL << CAP_CHOWN, lack, sizeof(lack));
	if (geteuid() == 0 && !strstr(lack, "CAP_SYS_ADMIN"))
		assert_null(strstr(lack, "CAP_BPF"));
}

/* What the real machine is, whatever it is: nothing hangs, nothing is left, the screen fits. */
static void this_machine(void **state)
{
	struct features all;
	struct root root;
	struct err err;

	(void)state;
	assert_int_equal(root_open(&root, NULL, &err), 0);
	features_probe(&all, &root, NULL);
	for (size_t i = 0; i < FEATURE_COUNT; i++) {
		assert_non_null(all.f[i].name);
		assert_true(strlen(all.f[i].title) <= 25);
	}
	root_close(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(memory_on_v1),
		cmocka_unit_test(memory_off_at_boot),
		cmocka_unit_test(no_cgroup_v2),
		cmocka_unit_test(no_group_to_look_at),
		cmocka_unit_test(older_group_files),
		cmocka_unit_test(own_group_is_passed_by),
		cmocka_unit_test(swap_and_zswap),
		cmocka_unit_test(pressure_off),
		cmocka_unit_test(environment),
		cmocka_unit_test(screen),
		cmocka_unit_test(one_feature),
		cmocka_unit_test(as_json),
		cmocka_unit_test(rights_to_trace),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests_name("features", tests, NULL, NULL);
}
