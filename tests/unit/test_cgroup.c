/* Where groups can be made: mount tables and group files as different systems have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "tests/unit/fake.h"

#include <errno.h>
#include <string.h>

/* Counts what is registered and put back; nothing is replayed. */
struct count_undo {
	struct undo undo;
	int added, run, dropped;
};

static int count_add(struct undo *u, const struct undo_entry *entry, struct err *err)
{
	(void)entry;
	(void)err;
	return ++((struct count_undo *)u)->added;
}

static int count_run(struct undo *u, int id, struct err *err)
{
	(void)id;
	(void)err;
	((struct count_undo *)u)->run++;
	return 0;
}

static void count_drop(struct undo *u, int id)
{
	(void)id;
	((struct count_undo *)u)->dropped++;
}

static const struct undo_ops count_ops = {count_add, count_run, count_drop};

static int setup(void **state)
{
	*state = fake_new();
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static void find(struct fake *f, struct cgroup_tree *t, const char *mounts, const char *self)
{
	struct err err;

	fake_file(f, "/proc/self/mountinfo", mounts);
	fake_file(f, "/proc/self/cgroup", self);
	assert_int_equal(cgroup_tree_find(t, fake_root(f), NULL, &err), 0);
}

static void test_unified(void **state)
{
	struct cgroup_tree t;

	find(*state, &t,
	     "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	     "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
	     "0::/user.slice/user-1000.slice/session-3.scope\n");
	assert_string_equal(t.mount, "/sys/fs/cgroup");
	assert_string_equal(t.self, "/user.slice/user-1000.slice/session-3.scope");
	assert_string_equal(t.memory_v1_mount, "");
}

static void test_hybrid(void **state)
{
	struct cgroup_tree t;

	find(*state, &t,
	     "31 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	     "33 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
	     "4:memory:/some/where\n0::/\n");
	assert_string_equal(t.mount, "/sys/fs/cgroup/unified");
	assert_string_equal(t.self, "");
	assert_string_equal(t.memory_v1_mount, "/sys/fs/cgroup/memory");
}

/* A container without a cgroup namespace sees a subtree only; a path may hold a blank. */
static void test_subtree_and_escapes(void **state)
{
	struct cgroup_tree t;

	find(*state, &t, "30 22 0:26 /box/7 /sys/fs/c\\040group rw - cgroup2 cgroup2 rw\n",
	     "0::/box/7/inner\n");
	assert_string_equal(t.mount, "/sys/fs/c group");
	assert_string_equal(t.self, "/inner");
}

static void test_none(void **state)
{
	struct cgroup_tree t;
	struct err err;

	fake_file(*state, "/proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw\n");
	fake_file(*state, "/proc/self/cgroup", "1:name=systemd:/\n");
	assert_int_equal(cgroup_tree_find(&t, fake_root(*state), NULL, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no cgroup v2"));
}

static void add_group(struct fake *f, const char *path, const char *controllers,
		      const char *subtree)
{
	char file[256];

	(void)snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
	fake_file(f, file, controllers);
	(void)snprintf(file, sizeof(file), "%s/cgroup.subtree_control", path);
	fake_file(f, file, subtree);
}

static void place(struct fake *f, const char *parent, struct cgroup_place *ret,
		  struct count_undo *u)
{
	static struct cgroup_tree t;
	struct err err;

	*u = (struct count_undo){.undo.ops = &count_ops};
	find(f, &t, "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "0::/a/b\n");
	assert_int_equal(cgroup_place_find(ret, &t, parent, &u->undo, &err), 0);
}

/* The nearest ancestor whose children have memory: nothing need be enabled there. */
static void test_place_nearest(void **state)
{
	struct cgroup_place p;
	struct count_undo u;

	add_group(*state, "/cg", "cpu io memory", "cpu io memory");
	add_group(*state, "/cg/a", "cpu io memory", "io memory");
	add_group(*state, "/cg/a/b", "cpu", "");
	place(*state, NULL, &p, &u);
	assert_string_equal(p.parent, "/cg/a");
	assert_true(p.has_memory);
	assert_int_equal(u.added, 0);
}

/* What is enabled is registered first, and can be put back. */
static void test_place_enables(void **state)
{
	struct cgroup_place p;
	struct count_undo u;
	char buf[64];

	add_group(*state, "/cg", "cpu io memory", "");
	add_group(*state, "/cg/a", "cpu", "");
	add_group(*state, "/cg/a/b", "cpu", "");
	place(*state, NULL, &p, &u);
	assert_string_equal(p.parent, "/cg");
	assert_true(p.has_memory);
	assert_int_equal(u.added, 2); /* memory and io */
	assert_true(root_read(fake_root(*state), "/cg/cgroup.subtree_control", buf, sizeof(buf)) >
		    0);
	assert_string_equal(buf, "+io"); /* the last write; the kernel would add it to the list */
	cgroup_place_undo(&p, &u.undo);
	assert_int_equal(u.run, 2);
}

static void test_place_without_memory(void **state)
{
	struct cgroup_place p;
	struct count_undo u;

	add_group(*state, "/cg", "hugetlb", "");
	add_group(*state, "/cg/a", "", "");
	add_group(*state, "/cg/a/b", "", "");
	place(*state, NULL, &p, &u);
	assert_string_equal(p.parent, "/cg/a/b");
	assert_false(p.has_memory);
}

static void test_place_given(void **state)
{
	struct cgroup_place p;
	struct count_undo u;

	add_group(*state, "/cg", "memory", "memory");
	add_group(*state, "/cg/x", "memory", "memory");
	place(*state, "x", &p, &u);
	assert_string_equal(p.parent, "/cg/x");
	place(*state, "/x", &p, &u);
	assert_string_equal(p.parent, "/cg/x");
	place(*state, "/cg/x", &p, &u);
	assert_string_equal(p.parent, "/cg/x");
}

static void test_names(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "a\nb"};
	struct cgroup_place p;
	struct count_undo u;
	struct cgroup_tree t;
	struct cgroup cg;
	struct err err;

	add_group(*state, "/cg", "memory", "memory");
	place(*state, "/cg", &p, &u);
	find(*state, &t, "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "0::/\n");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cgroup_create(&cg, &t, &p, bad[i], &u.undo, &err), -EINVAL);
	assert_int_equal(cgroup_create(&cg, &t, &p, "good", &u.undo, &err), 0);
	assert_string_equal(cg.path, "/cg/good");
	assert_int_equal(u.added, 1);
	cgroup_close(&cg);
	assert_int_equal(cgroup_create(&cg, &t, &p, NULL, &u.undo, &err), 0);
	assert_memory_equal(cg.path, "/cg/analyzer-", 13);
	assert_int_equal(cgroup_write_number(&cg, "memory.max", INT64_MAX), -ENOENT);
	cgroup_close(&cg);
}

static void test_processes(void **state)
{
	struct cgroup cg = {0};
	pid_t *list = NULL;
	size_t cap = 0;

	fake_file(*state, "/cg/x/cgroup.procs", "11\n12\n");
	fake_file(*state, "/cg/x/one/cgroup.procs", "");
	fake_file(*state, "/cg/x/one/two/cgroup.procs", "13\n");
	fake_file(*state, "/cg/y/cgroup.procs", "14\n");
	cg.dirfd = fake_opendir(*state, "/cg/x");
	assert_int_equal(cgroup_processes(&cg, &list, &cap), 3);
	assert_int_equal(list[0] + list[1] + list[2], 11 + 12 + 13);
	fake_file(*state, "/cg/x/cgroup.procs", "");
	assert_int_equal(cgroup_processes(&cg, &list, &cap), 1);
	assert_int_equal(list[0], 13);
	fake_remove(*state, "/cg/x/cgroup.procs");
	assert_int_equal(cgroup_processes(&cg, &list, &cap), -ENOENT);
	close(cg.dirfd);
	free(list);
}

static void test_cpu_ns(void **state)
{
	struct cgroup_place p;
	struct count_undo u;
	struct cgroup_tree t;
	struct cgroup cg;
	struct err err;

	add_group(*state, "/cg", "memory", "memory");
	place(*state, "/cg", &p, &u);
	find(*state, &t, "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "0::/\n");
	assert_int_equal(cgroup_create(&cg, &t, &p, "cpu", &u.undo, &err), 0);
	assert_int_equal(cgroup_cpu_ns(&cg), -1);
	fake_file(*state, "/cg/cpu/cpu.stat", "usage_usec 2500123\nuser_usec 7\nsystem_usec 3\n");
	assert_int_equal(cgroup_cpu_ns(&cg), 2500123000);
	fake_file(*state, "/cg/cpu/cpu.stat", "user_usec 7\n");
	assert_int_equal(cgroup_cpu_ns(&cg), -1);
	cgroup_close(&cg);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unified),
		TEST(test_hybrid),
		TEST(test_subtree_and_escapes),
		TEST(test_none),
		TEST(test_place_nearest),
		TEST(test_place_enables),
		TEST(test_place_without_memory),
		TEST(test_place_given),
		TEST(test_names),
		TEST(test_processes),
		TEST(test_cpu_ns),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
