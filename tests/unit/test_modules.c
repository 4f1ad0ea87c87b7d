/* Files by device and inode, and where a process has their code. */
#include "tracer/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/fake.h"

struct fixture {
	struct fake *fake;
	struct modules *modules;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;

	if (!f || modules_new(&f->modules, &err) < 0)
		return -1;
	f->fake = fake_new();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	modules_free(f->modules);
	fake_free(f->fake);
	free(f);
	return 0;
}

static struct module_file *add(struct fixture *f, const char *path)
{
	struct module_file *m;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	m = modules_add(f->modules, fd, path, false);
	close(fd);
	return m;
}

static void a_file_is_one_module_by_any_name(void **state)
{
	struct fixture *f = *state;
	char path[256], other[256];
	struct module_file *m;
	size_t n = modules_count(f->modules);

	fake_file(f->fake, "/lib.so", "text");
	(void)snprintf(path, sizeof(path), "%s/lib.so", fake_path(f->fake));
	(void)snprintf(other, sizeof(other), "%s/other.so", fake_path(f->fake));
	m = add(f, path);
	assert_non_null(m);
	assert_int_equal(m->m.id, n + 1);
	assert_int_equal(link(path, other), 0);
	assert_ptr_equal(add(f, other), m);
	assert_string_equal(m->m.path, path); /* as it was first seen */
	assert_int_equal(modules_count(f->modules), n + 1);
	assert_ptr_equal(modules_get(f->modules, m->m.id), m);
	assert_null(modules_get(f->modules, 0));
	assert_null(modules_get(f->modules, (uint32_t)n + 2));
}

/* The old one stays what it is, its inode is nobody else's. */
static void a_file_that_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct module_file *old;
	char path[256], text[8] = "";

	(void)snprintf(path, sizeof(path), "%s/lib.so", fake_path(f->fake));
	fake_file(f->fake, "/lib.so", "old");
	old = add(f, path);
	for (int i = 0; i < 20; i++) {
		fake_remove(f->fake, "/lib.so");
		fake_file(f->fake, "/lib.so", "new");
		assert_ptr_not_equal(add(f, path), old);
	}
	assert_int_equal(pread(old->fd, text, sizeof(text), 0), 3);
	assert_string_equal(text, "old");
}

/* Pointers given out stay valid however many come. */
static void many_files(void **state)
{
	struct fixture *f = *state;
	struct module_file *m[300];
	char name[32], path[256];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "/%d.so", i);
		(void)snprintf(path, sizeof(path), "%s%s", fake_path(f->fake), name);
		fake_file(f->fake, name, "text");
		m[i] = add(f, path);
		assert_non_null(m[i]);
	}
	for (int i = 0; i < 300; i++)
		assert_ptr_equal(modules_get(f->modules, m[i]->m.id), m[i]);
}

/* Some descriptors are left: the gate cannot answer without one, and the open would be refused. */
static void descriptors_are_left_to_others(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, few;
	struct module_file *m;
	char name[32], path[256];
	int taken = 0, spare[16], n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 120; i++) {
		(void)snprintf(name, sizeof(name), "/%d.so", i);
		(void)snprintf(path, sizeof(path), "%s%s", fake_path(f->fake), name);
		fake_file(f->fake, name, "text");
		m = add(f, path);
		taken += m != NULL;
	}
	for (n = 0; n < 16; n++) {
		spare[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (spare[n] < 0)
			break;
	}
	for (int i = 0; i < n; i++)
		close(spare[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(n, 16);
	assert_true(taken > 0 && taken < 100);
}

static const struct table_range *range_at(const struct table *t, const void *address)
{
	uint64_t a = (uintptr_t)address;

	for (uint32_t i = 0; i < t->n; i++) {
		if (a >= t->range[i].start && a < t->range[i].end)
			return &t->range[i];
	}
	return NULL;
}

static void own_code(void **state)
{
	static struct table t;
	static struct range ranges[TABLE_RANGES];
	struct fixture *f = *state;
	const struct table_range *here, *libc;

	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &t), 0);
	here = range_at(&t, (void *)(uintptr_t)own_code);
	libc = range_at(&t, (void *)(uintptr_t)strcspn);
	assert_non_null(here);
	assert_non_null(libc);
	assert_int_not_equal(here->module, libc->module);
	assert_non_null(
		strstr(modules_get(f->modules, (uint32_t)here->module)->m.path, "test_modules"));
	for (uint32_t i = 1; i < t.n; i++)
		assert_true(t.range[i].start >= t.range[i - 1].end);
	for (uint32_t i = t.n; i < TABLE_RANGES; i++)
		assert_true(t.range[i].start == UINT64_MAX);
	assert_int_equal(modules_ranges(&t, ranges), t.n);
	assert_true(ranges[0].start == t.range[0].start);
}

/* Code of no file: told so, and counted as the kernel counts: what can be written is data. */
static void code_of_no_file(void **state)
{
	static struct table before, after;
	struct fixture *f = *state;
	const struct table_range *r;
	void *code, *writable;

	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &before), 0);
	code = mmap(NULL, 3 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	writable = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &after), 0);
	r = range_at(&after, code);
	assert_non_null(r);
	assert_int_equal(r->module, MODULE_ANONYMOUS);
	assert_int_equal(r->bias, 0);
	assert_non_null(range_at(&after, writable));
	assert_int_equal(after.exec_pages, before.exec_pages + 3);
	munmap(code, 3 * 4096);
	munmap(writable, 5 * 4096);
}

/* More than the table holds: those of files, and the pages of all. */
static void more_ranges_than_fit(void **state)
{
	static struct table before, after;
	struct fixture *f = *state;
	uint8_t *area;

	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &before), 0);
	area = mmap(NULL, 1200 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 600; i++)
		assert_int_equal(mprotect(area + 2 * i * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &after), 0);
	assert_int_equal(after.exec_pages, before.exec_pages + 600);
	for (uint32_t i = 0; i < before.n; i++) {
		const struct table_range *r =
			range_at(&after, (void *)(uintptr_t)before.range[i].start);

		if (before.range[i].module == MODULE_ANONYMOUS)
			continue;
		assert_non_null(r);
		assert_int_equal(r->module, before.range[i].module);
		assert_int_equal(r->bias, before.range[i].bias);
	}
	assert_null(range_at(&after, area));
	munmap(area, 1200 * 4096);
}

/* A list that the kernel side had to end early is none. */
static void a_list_that_is_cut(void **state)
{
	static struct record_maps maps;
	static struct table t;
	struct fixture *f = *state;

	maps = (struct record_maps){.n = MAPS_MAX - 1, .exec_pages = 7};
	for (uint32_t i = 0; i < MAPS_MAX; i++)
		maps.entry[i] = (struct map_entry){.start = 4096 * (i + 1), .end = 4096 * (i + 2)};
	assert_int_equal(modules_from_maps(f->modules, &maps, &t), 0);
	assert_int_equal(t.n, MAPS_MAX - 1);
	maps.n = MAPS_MAX;
	assert_int_equal(modules_from_maps(f->modules, &maps, &t), -ENOSPC);
}

static void a_process_that_is_gone(void **state)
{
	static struct table t;
	struct fixture *f = *state;
	pid_t pid = fork();
	siginfo_t si;

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(modules_read_maps(f->modules, (uint32_t)pid, &t), -ESRCH); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(modules_read_maps(f->modules, (uint32_t)pid, &t), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_one_module_by_any_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(many_files, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_are_left_to_others, setup, teardown),
		cmocka_unit_test_setup_teardown(own_code, setup, teardown),
		cmocka_unit_test_setup_teardown(code_of_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(more_ranges_than_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_that_is_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
