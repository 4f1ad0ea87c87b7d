/* What a command will map, compared with ld.so --list, and with libraries put in odd places. */
#include "tracer/closure.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/fake.h"

#define LD_SO "/lib64/ld-linux-x86-64.so.2"

static int setup(void **state)
{
	*state = fake_new();
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LD_LIBRARY_PATH");
	return 0;
}

static int teardown(void **state)
{
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LD_LIBRARY_PATH");
	fake_free(*state);
	return 0;
}

/* Runs a shell command in the fake's folder. */
static void run(struct fake *f, const char *command)
{
	char line[2048];

	(void)snprintf(line, sizeof(line), "cd %s && %s", fake_path(f), command);
	if (system(line) != 0)
		fail_msg("%s", line);
}

static struct closure find(const char *command)
{
	struct closure c;
	struct err err;

	if (closure_find(&c, command, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < c.n; i++) {
		char *real = realpath(c.path[i], NULL);

		assert_non_null(real);
		assert_string_equal(c.path[i], real);
		free(real);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(c.path[i], c.path[k]);
	}
	return c;
}

static struct closure find_in(struct fake *f, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fake_path(f), name);
	return find(path);
}

static void expect_error(const char *command, int code, const char *text)
{
	struct closure c = {0};
	struct err err;

	assert_int_equal(closure_find(&c, command, &err), code);
	if (!strstr(err.msg, text))
		fail_msg("%s", err.msg);
	assert_int_equal(c.n, 0);
}

static bool has(const struct closure *c, const char *path)
{
	char *real = realpath(path, NULL);
	bool ret = false;

	for (size_t i = 0; real && i < c->n; i++)
		ret |= strcmp(c->path[i], real) == 0;
	free(real);
	return ret;
}

static bool has_in(const struct closure *c, struct fake *f, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fake_path(f), name);
	return has(c, path);
}

/* The program, its interpreter and what `ld.so --list` tells, and nothing else. */
static void compare(const char *command, const char *program)
{
	struct closure c = find(command);
	char line[1024];
	size_t n = 1;
	FILE *p;

	(void)snprintf(line, sizeof(line),
		       LD_SO " --list %s | sed -n 's/.* => \\(.*\\) (0x.*/\\1/p'", program);
	p = popen(line, "r");
	assert_non_null(p);
	assert_true(has(&c, program));
	assert_true(has(&c, LD_SO));
	while (fgets(line, sizeof(line), p)) {
		line[strcspn(line, "\n")] = '\0';
		if (!has(&c, line))
			fail_msg("%s: %s is missing", command, line);
		n++;
	}
	(void)pclose(p);
	assert_true(n > 1);
	/* ld.so lists itself where a library needs it. */
	assert_in_range(c.n, n, n + 1);
	closure_done(&c);
}

static void as_ld_so(void **state)
{
	static const char *const programs[] = {"/usr/bin/redis-server", "/usr/bin/python3",
					       "/usr/bin/git",          "/usr/bin/gdb",
					       "/usr/bin/clang",        "/bin/sh"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (access(programs[i], X_OK) == 0)
			compare(programs[i], programs[i]);
		else
			print_message("%s is not installed\n", programs[i]);
	}
	compare("sh", "/bin/sh");
}

static void scripts(void **state)
{
	struct fake *f = *state;
	struct closure c;
	char line[512];

	fake_file(f, "a", "#! /bin/sh -e\ntrue\n");
	fake_file(f, "env", "#!/usr/bin/env python3\n");
	fake_file(f, "plain", "echo\n");
	(void)snprintf(line, sizeof(line), "#!%s/a x\n", fake_path(f));
	fake_file(f, "b", line);
	(void)snprintf(line, sizeof(line), "#!%s/loop\n", fake_path(f));
	fake_file(f, "loop", line);
	fake_file(f, "lost", "#!/nonexistent/interpreter\n");
	run(f, "chmod +x *");
	c = find_in(f, "a");
	assert_true(has_in(&c, f, "a"));
	assert_string_equal(strrchr(c.path[0], '/'), "/a");
	assert_true(has(&c, "/bin/sh") && has(&c, LD_SO));
	assert_true(has(&c, "/lib/x86_64-linux-gnu/libc.so.6"));
	closure_done(&c);
	c = find_in(f, "b");
	assert_true(has_in(&c, f, "b") && has_in(&c, f, "a") && has(&c, "/bin/sh"));
	assert_string_equal(strrchr(c.path[0], '/'), "/b");
	closure_done(&c);
	c = find_in(f, "env");
	assert_true(has(&c, "/usr/bin/env") && has(&c, LD_SO));
	closure_done(&c);
	c = find_in(f, "plain"); /* execvp has the shell run it */
	assert_true(has(&c, "/bin/sh"));
	closure_done(&c);
	c = find_in(f, "loop");
	assert_int_equal(c.n, 1);
	closure_done(&c);
	(void)snprintf(line, sizeof(line), "%s/lost", fake_path(f));
	expect_error(line, -ENOENT, "its interpreter /nonexistent/interpreter");
}

static void cannot_be_run(void **state)
{
	struct fake *f = *state;
	char path[256], *before = strdup(getenv("PATH"));

	expect_error("", -ENOENT, "No such file");
	expect_error("/nonexistent/x", -ENOENT, "/nonexistent/x");
	expect_error("no-such-program-here", -ENOENT, "no-such-program-here");
	expect_error("/", -EACCES, "Permission denied");
	fake_file(f, "x/data", "no program\n");
	(void)snprintf(path, sizeof(path), "%s/x/data", fake_path(f));
	expect_error(path, -EACCES, "Permission denied");
	/* By PATH: what may not be run does not hide what may. */
	(void)snprintf(path, sizeof(path), "/nonexistent:%s/x:%s/y", fake_path(f), fake_path(f));
	(void)setenv("PATH", path, 1);
	expect_error("data", -EACCES, "Permission denied");
	fake_file(f, "y/data", "echo\n");
	(void)snprintf(path, sizeof(path), "%s/y/data", fake_path(f));
	assert_int_equal(chmod(path, 0755), 0);
	{
		struct closure c = find("data");

		assert_true(has(&c, path));
		closure_done(&c);
	}
	(void)setenv("PATH", before, 1);
	free(before);
}

/* main needs liba, liba needs libb; each folder of libb has its own. */
static void make_libraries(struct fake *f, const char *link_a, const char *link_main)
{
	char line[1024];

	fake_file(f, "a.c", "int b(void); int a(void) { return b(); }");
	fake_file(f, "b.c", "int b(void) { return 1; }");
	fake_file(f, "main.c", "int a(void); int main(void) { return a(); }");
	(void)snprintf(line, sizeof(line),
		       "mkdir -p one two three && gcc -shared -fPIC -Wl,-soname,libb.so.1 b.c "
		       "-o one/libb.so.1 && cp one/libb.so.1 two/ && cp one/libb.so.1 three/ && "
		       "gcc -shared -fPIC a.c -o one/liba.so one/libb.so.1 %s && "
		       "gcc main.c -Lone -la -Wl,-rpath-link,one %s -o main",
		       link_a, link_main);
	run(f, line);
}

static void origin(void **state)
{
	struct fake *f = *state;
	struct closure c;

	make_libraries(f, "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/../two'",
		       "-Wl,--enable-new-dtags,-rpath,'/nonexistent:${ORIGIN}/one'");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/liba.so") && has_in(&c, f, "two/libb.so.1"));
	assert_false(has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
	/* Through a link, a program's origin is where it really is. */
	run(f, "mkdir sub && ln -s ../main sub/link");
	c = find_in(f, "sub/link");
	assert_true(has_in(&c, f, "one/liba.so"));
	closure_done(&c);
}

static void runpath_is_not_inherited(void **state)
{
	struct fake *f = *state;
	struct closure c;

	make_libraries(f, "", "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/one'");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/liba.so"));
	assert_false(has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
	make_libraries(f, "", "-Wl,--disable-new-dtags,-rpath,'$ORIGIN/one'");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/liba.so") && has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
	/* A RUNPATH of its own, and RPATHs do not count for what it needs. */
	make_libraries(f, "-Wl,--enable-new-dtags,-rpath,/nonexistent",
		       "-Wl,--disable-new-dtags,-rpath,'$ORIGIN/one'");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/liba.so"));
	assert_false(has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
}

static void set_folder(struct fake *f, const char *variable, const char *format)
{
	char text[512];

	(void)snprintf(text, sizeof(text), format, fake_path(f), fake_path(f));
	(void)setenv(variable, text, 1);
}

/* RPATH, then LD_LIBRARY_PATH, then RUNPATH. */
static void library_path(void **state)
{
	struct fake *f = *state;
	struct closure c;
	char two[256], *before;

	make_libraries(f, "-Wl,--enable-new-dtags,-rpath,'$ORIGIN'",
		       "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/one'");
	set_folder(f, "LD_LIBRARY_PATH", "/nonexistent:%s/three;%s/two");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "three/libb.so.1") && has_in(&c, f, "one/liba.so"));
	assert_false(has_in(&c, f, "one/libb.so.1") || has_in(&c, f, "two/libb.so.1"));
	closure_done(&c);
	/* What is for another machine, or nothing at all, is passed over. */
	fake_file(f, "three/libb.so.1", "nothing\n");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "two/libb.so.1"));
	closure_done(&c);
	/* An empty folder is the current one, but no folders are none. */
	before = getcwd(NULL, 0);
	(void)snprintf(two, sizeof(two), "%s/two", fake_path(f));
	assert_int_equal(chdir(two), 0);
	(void)setenv("LD_LIBRARY_PATH", "", 1);
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
	(void)setenv("LD_LIBRARY_PATH", "/nonexistent:", 1);
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "two/libb.so.1"));
	closure_done(&c);
	assert_int_equal(chdir(before), 0);
	free(before);
	make_libraries(f, "-Wl,--disable-new-dtags,-rpath,'$ORIGIN'",
		       "-Wl,--disable-new-dtags,-rpath,'$ORIGIN/one'");
	set_folder(f, "LD_LIBRARY_PATH", "%s/two");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/libb.so.1"));
	assert_false(has_in(&c, f, "two/libb.so.1"));
	closure_done(&c);
}

static void preloaded(void **state)
{
	struct fake *f = *state;
	struct closure c;

	make_libraries(f, "-Wl,--enable-new-dtags,-rpath,'$ORIGIN'",
		       "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/one'");
	/* By path; libb.so.1 is then there already, by its soname. */
	set_folder(f, "LD_PRELOAD", "%s/two/libb.so.1 libm.so.6:/nonexistent/x.so");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "two/libb.so.1") && has_in(&c, f, "one/liba.so"));
	assert_false(has_in(&c, f, "one/libb.so.1"));
	assert_true(has(&c, "/lib/x86_64-linux-gnu/libm.so.6"));
	closure_done(&c);
	/* No ld.so, no libraries. */
	(void)unsetenv("LD_PRELOAD");
	run(f, "echo 'int main(void) { return 0; }' >s.c && gcc -static s.c -o s");
	set_folder(f, "LD_PRELOAD", "%s/two/libb.so.1");
	c = find_in(f, "s");
	assert_int_equal(c.n, 1);
	closure_done(&c);
}

static void missing(void **state)
{
	struct fake *f = *state;
	struct closure c;
	char path[256];

	make_libraries(f, "", "");
	c = find_in(f, "main"); /* ld.so would not find liba.so, either */
	assert_int_equal(c.n, 3);
	assert_true(has_in(&c, f, "main") && has(&c, LD_SO));
	assert_true(has(&c, "/lib/x86_64-linux-gnu/libc.so.6"));
	closure_done(&c);
	run(f, "gcc main.c -Lone -la -Wl,-rpath-link,one -Wl,--dynamic-linker=/nonexistent/ld.so "
	       "-o main");
	(void)snprintf(path, sizeof(path), "%s/main", fake_path(f));
	expect_error(path, -ENOENT, "its interpreter /nonexistent/ld.so");
	/* Two that need one another. */
	run(f, "gcc -shared -fPIC b.c -Wl,--no-as-needed -Lone -la -Wl,-soname,libb.so.1 "
	       "-Wl,--allow-shlib-undefined -o one/libb.so.1 && gcc main.c -Lone -la "
	       "-Wl,-rpath-link,one -Wl,--disable-new-dtags,-rpath,'$ORIGIN/one' -o main");
	c = find_in(f, "main");
	assert_true(has_in(&c, f, "one/liba.so") && has_in(&c, f, "one/libb.so.1"));
	closure_done(&c);
}

/* A folder that only a file of /etc/ld.so.conf.d names. */
static void configured(void **state)
{
	static const char library[] = "/usr/lib/x86_64-linux-gnu/libfakeroot/libfakeroot-sysv.so";
	struct closure c;

	(void)state;
	if (access(library, R_OK) < 0) {
		print_message("skipped: fakeroot is not installed\n");
		skip();
	}
	(void)setenv("LD_PRELOAD", "libfakeroot-sysv.so", 1);
	c = find("/bin/true");
	assert_true(has(&c, library));
	closure_done(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_ld_so),
		TEST(scripts),
		TEST(cannot_be_run),
		TEST(origin),
		TEST(runpath_is_not_inherited),
		TEST(library_path),
		TEST(preloaded),
		TEST(missing),
		TEST(configured),
	};

	return cmocka_run_group_tests_name("closure", tests, NULL, NULL);
}
