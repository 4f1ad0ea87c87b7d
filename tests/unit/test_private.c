/* Private copies: same content and attributes, seen by the one process that enters, by nobody else.
 */
#include "tracer/private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/fake.h"

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

/* Not without root, and not in a chroot, whose / is no mount. */
static bool can_mount(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) < 0 ||
		      mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0);
	(void)waitpid(pid, &status, 0);
	if (status != 0)
		print_message("skipped: nothing can be mounted here\n");
	return status == 0;
}

#define NEED_MOUNTS               \
	do {                      \
		if (!can_mount()) \
			skip();   \
	} while (0)

static void path_in(const struct fake *f, const char *name, char ret[static 256])
{
	(void)snprintf(ret, 256, "%s/%s", fake_path(f), name);
}

static struct private *one_copy(struct fake *f, const char *name, char path[static 256])
{
	struct private *p;
	struct err err;
	int fd;

	fake_file(f, name, "library");
	path_in(f, name, path);
	assert_int_equal(private_new(&p, &err), 0);
	assert_int_equal(private_add(p, path, &fd, &err), 0);
	return p;
}

/* Runs what in a child; its status. */
static int in_child(int (*what)(const struct private *p, const char *path), struct private *p,
		    const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what(p, path));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	long n = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		(void)fclose(f);
	return n;
}

static void the_copy_is_like_the_original(void **state)
{
	static const struct timespec times[2] = {{1000, 5}, {2000, 7}};
	struct stat original, copy;
	struct private *p;
	char path[256], text[16] = "";
	struct err err;
	int fd;

	NEED_MOUNTS;
	fake_file(*state, "/lib.so", "library");
	path_in(*state, "lib.so", path);
	assert_int_equal(chmod(path, 0754), 0);
	assert_int_equal(chown(path, 12, 34), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(private_new(&p, &err), 0);
	assert_int_equal(private_add(p, path, &fd, &err), 0);
	assert_int_equal(stat(path, &original), 0);
	assert_int_equal(fstat(fd, &copy), 0);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 7);
	assert_string_equal(text, "library");
	assert_int_equal(copy.st_mode, original.st_mode);
	assert_int_equal(copy.st_uid, 12);
	assert_int_equal(copy.st_gid, 34);
	assert_int_equal(copy.st_mtim.tv_sec, 2000);
	assert_int_equal(copy.st_mtim.tv_nsec, 7);
	assert_true(copy.st_ino != original.st_ino || copy.st_dev != original.st_dev);
	assert_int_equal(private_bytes(p), 7);
	/* Open for writing nowhere: else it could not be executed. */
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	private_free(p);
}

static int sees_the_copy(const struct private *p, const char *path)
{
	struct stat before, now;

	if (stat(path, &before) < 0 || private_enter(p) < 0 || stat(path, &now) < 0)
		return 10;
	if (before.st_dev == now.st_dev)
		return 11;
	/* /proc is as it was: the copies were bound from over it. */
	return access("/proc/self/status", R_OK) == 0 ? 0 : 12;
}

static void who_enters_sees_the_copy(void **state)
{
	struct stat before, after;
	struct private *p;
	long n = mounts();
	char path[256];

	NEED_MOUNTS;
	p = one_copy(*state, "/lib.so", path);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(in_child(sees_the_copy, p, path), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_dev, before.st_dev);
	assert_int_equal(after.st_ino, before.st_ino);
	private_free(p);
	assert_int_equal(mounts(), n);
}

static void a_path_with_spaces(void **state)
{
	struct private *p;
	char path[256];

	NEED_MOUNTS;
	p = one_copy(*state, "/a b\tc/lib \\040.so", path);
	assert_int_equal(in_child(sees_the_copy, p, path), 0);
	private_free(p);
}

/* Under a / that is shared, as with systemd, a mount made in a new namespace appears outside. */
static int stays_inside(const struct private *p, const char *path)
{
	int ready[2], go[2], status;
	char byte = 0;
	long before;
	pid_t pid;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0 ||
	    pipe(ready) < 0 || pipe(go) < 0)
		return 20;
	before = mounts();
	pid = fork();
	if (pid == 0) {
		status = sees_the_copy(p, path);
		(void)!write(ready[1], &byte, 1);
		(void)!read(go[0], &byte, 1);
		_exit(status);
	}
	(void)!read(ready[0], &byte, 1);
	status = mounts() == before ? 0 : 21;
	(void)!write(go[1], &byte, 1);
	if (status == 0)
		(void)waitpid(pid, &status, 0);
	return status;
}

static void nothing_outside_under_a_shared_root(void **state)
{
	struct private *p;
	char path[256];

	NEED_MOUNTS;
	p = one_copy(*state, "/lib.so", path);
	assert_int_equal(in_child(stays_inside, p, path), 0);
	private_free(p);
}

static int others_are_bound(const struct private *p, const char *path)
{
	struct stat before, now;

	if (stat(path, &before) < 0)
		return 10;
	/* The first failure is told, what can be done is done. */
	if (private_enter(p) != -ENOENT)
		return 11;
	return stat(path, &now) == 0 && now.st_dev != before.st_dev ? 0 : 12;
}

static void one_that_is_gone(void **state)
{
	struct private *p;
	char path[256], other[256];
	struct err err;
	int fd;

	NEED_MOUNTS;
	p = one_copy(*state, "/gone.so", other);
	fake_file(*state, "/lib.so", "library");
	path_in(*state, "lib.so", path);
	assert_int_equal(private_add(p, path, &fd, &err), 0);
	fake_remove(*state, "/gone.so");
	assert_int_equal(in_child(others_are_bound, p, path), 0);
	private_free(p);
}

static void what_cannot_be_copied(void **state)
{
	struct private *p;
	char path[256];
	struct err err;
	int fd = -1;

	NEED_MOUNTS;
	assert_int_equal(private_new(&p, &err), 0);
	path_in(*state, "nothing", path);
	assert_int_equal(private_add(p, path, &fd, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	assert_int_equal(private_bytes(p), 0);
	fake_file(*state, "/lib.so", "library");
	path_in(*state, "lib.so", path);
	for (int i = 0; i < 64; i++)
		assert_int_equal(private_add(p, path, &fd, &err), 0);
	assert_int_equal(private_add(p, path, &fd, &err), -ENOSPC);
	private_free(p);
	private_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_copy_is_like_the_original, setup, teardown),
		cmocka_unit_test_setup_teardown(who_enters_sees_the_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(a_path_with_spaces, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_outside_under_a_shared_root, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_copied, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
