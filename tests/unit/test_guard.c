/* The guard and its journal: what is registered is put back, however the owner ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "runner/guard.h"
#include "runner/journal.h"
#include "tests/unit/fake.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define GROUP "/sys/fs/cgroup/work"

static int setup(void **state)
{
	struct fake *f = fake_new();

	fake_file(f, GROUP "/memory.max", "max\n");
	fake_file(f, GROUP "/memory.high", "max\n");
	fake_file(f, "/run/analyzer/.keep", "");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static void assert_file(struct fake *f, const char *path, const char *text)
{
	char buf[256];

	assert_true(root_read(fake_root(f), path, buf, sizeof(buf)) >= 0);
	assert_string_equal(buf, text);
}

/* Waits up to 10 s of a busy machine for a file's content. */
static bool becomes(struct fake *f, const char *path, const char *text)
{
	int64_t end = clock_mono_ns() + 10 * NS_PER_S;
	char buf[256] = "";

	while (clock_mono_ns() < end) {
		if (root_read(fake_root(f), path, buf, sizeof(buf)) >= 0 && strcmp(buf, text) == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
	}
	return false;
}

static int journal_files(struct fake *f)
{
	char path[512], cmd[600];
	FILE *p;
	int n = -1;

	(void)snprintf(path, sizeof(path), "%s/run/analyzer", fake_root(f)->prefix);
	(void)snprintf(cmd, sizeof(cmd), "ls %s | wc -l", path);
	p = popen(cmd, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

static struct guard *start(struct fake *f)
{
	struct guard *g = NULL;
	struct err err;

	assert_int_equal(guard_start(&g, fake_root(f), &err), 0);
	return g;
}

static int change(struct fake *f, struct guard *g, const char *path, const char *value)
{
	struct undo_entry e = {.kind = UNDO_WRITE, .path = path, .value = "max"};
	struct err err;
	int id = undo_add(guard_undo(g), &e, &err);

	assert_true(id > 0);
	assert_int_equal(root_write(fake_root(f), path, value), 0);
	return id;
}

static void test_stop_puts_back(void **state)
{
	struct guard *g = start(*state);
	struct err err;

	change(*state, g, GROUP "/memory.max", "1000");
	change(*state, g, GROUP "/memory.high", "900");
	assert_int_equal(journal_files(*state), 1);
	assert_int_equal(guard_stop(g, &err), 0);
	assert_file(*state, GROUP "/memory.max", "max");
	assert_file(*state, GROUP "/memory.high", "max");
	assert_int_equal(journal_files(*state), 0);
}

static void test_dropped_stays(void **state)
{
	struct guard *g = start(*state);
	struct err err;

	undo_drop(guard_undo(g), change(*state, g, GROUP "/memory.max", "1000"));
	assert_int_equal(guard_stop(g, &err), 0);
	assert_file(*state, GROUP "/memory.max", "1000");
}

/* A process that holds limits, and ends in the way that the test sends it. */
static pid_t holder(struct fake *f)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct guard *g = start(f);

		change(f, g, GROUP "/memory.max", "1000");
		undo_drop(guard_undo(g), change(f, g, GROUP "/memory.high", "900"));
		guard_beat(g);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_killed_owner(void **state)
{
	pid_t pid = holder(*state);

	assert_file(*state, GROUP "/memory.max", "1000");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(becomes(*state, GROUP "/memory.max", "max"));
	/* What was dropped is meant to stay. */
	assert_file(*state, GROUP "/memory.high", "900");
}

/* A stopped owner beats no more: the limit goes, and the guard still sees its end later. */
static void test_stopped_owner(void **state)
{
	pid_t pid = holder(*state);

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_true(becomes(*state, GROUP "/memory.max", "max"));
	assert_int_equal(root_write(fake_root(*state), GROUP "/memory.max", "1000"), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(becomes(*state, GROUP "/memory.max", "max"));
}

static pid_t stopped_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)raise(SIGSTOP);
		_exit(5);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* A group is any folder with a cgroup.procs: who is listed there runs on, others stay stopped. */
static void test_continue_group(void **state)
{
	char dir[] = "/tmp/analyzer-test-XXXXXX";
	struct journal_entry e = {.kind = UNDO_CONTINUE};
	pid_t inside = stopped_child(), outside = stopped_child();
	struct root real;
	struct err err;
	char path[64];
	int status;
	FILE *f;

	(void)state;
	assert_int_equal(root_open(&real, NULL, &err), 0);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fprintf(f, "%d\n", inside);
	(void)fclose(f);
	(void)snprintf(e.path, sizeof(e.path), "%s", dir);
	assert_int_equal(journal_put_back(&real, &e, 0, &err), 0);
	assert_int_equal(waitpid(inside, &status, 0), inside);
	assert_int_equal(WEXITSTATUS(status), 5);
	assert_int_equal(waitpid(outside, &status, WNOHANG | WCONTINUED), 0);
	(void)kill(outside, SIGKILL);
	assert_int_equal(waitpid(outside, &status, 0), outside);
	(void)unlink(path);
	(void)rmdir(dir);
	root_close(&real);
}

static void test_journal_round_trip(void **state)
{
	struct journal_entry in[] = {
		{.id = 1, .kind = UNDO_WRITE, .path = "/sys/a b/memory.max", .value = "max"},
		{.id = 2, .kind = UNDO_GROUP, .path = "/sys/fs/cgroup/x"},
		{.id = 3, .kind = UNDO_CONTINUE, .path = "/sys/fs/cgroup/y"},
		{.id = 4,
		 .kind = UNDO_CONTROLLER,
		 .path = "/c/cgroup.subtree_control",
		 .value = "-memory"},
	};
	static struct journal_entry out[JOURNAL_MAX];
	struct journal j;
	struct err err;

	assert_int_equal(journal_create(&j, fake_root(*state), &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		assert_int_equal(journal_add(&j, &in[i], &err), 0);
	assert_int_equal(journal_done(&j, 2), 0);
	/* What a writer that died in the middle of a line leaves. */
	assert_int_equal(write(j.fd, "add 9 wri", 9), 9);
	assert_int_equal(journal_load(&j, out), 3);
	assert_string_equal(out[0].path, "/sys/a b/memory.max");
	assert_string_equal(out[0].value, "max");
	assert_int_equal(out[1].kind, UNDO_CONTINUE);
	assert_string_equal(out[1].path, "/sys/fs/cgroup/y");
	assert_int_equal(out[2].kind, UNDO_CONTROLLER);
	assert_string_equal(out[2].value, "-memory");
	journal_close(&j, true);
	assert_int_equal(journal_files(*state), 0);
}

static void test_missing_file_needs_nothing(void **state)
{
	struct journal_entry e = {.kind = UNDO_WRITE, .path = "/gone/memory.max", .value = "max"};
	struct err err;

	assert_int_equal(journal_put_back(fake_root(*state), &e, 0, &err), 0);
}

static void test_controller_in_use_stays(void **state)
{
	struct journal_entry e = {.kind = UNDO_CONTROLLER,
				  .path = "/sys/fs/cgroup/cgroup.subtree_control",
				  .value = "-memory"};
	struct err err;

	/* GROUP is a child: somebody uses the controller. */
	fake_file(*state, "/sys/fs/cgroup/cgroup.subtree_control", "memory\n");
	assert_int_equal(journal_put_back(fake_root(*state), &e, 0, &err), 0);
	assert_file(*state, "/sys/fs/cgroup/cgroup.subtree_control", "memory");
	fake_file(*state, "/lone/cgroup.subtree_control", "memory\n");
	(void)snprintf(e.path, sizeof(e.path), "/lone/cgroup.subtree_control");
	assert_int_equal(journal_put_back(fake_root(*state), &e, 0, &err), 0);
	assert_file(*state, "/lone/cgroup.subtree_control", "-memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stop_puts_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_journal_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_file_needs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_controller_in_use_stays, setup, teardown),
		cmocka_unit_test(test_continue_group),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
