#include "results_fixture.h"

#include "store/schema.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

void fixture_open(struct fixture *f, const char *name)
{
	char path[160];
	struct err err;

	memset(f, 0, sizeof(*f));
	(void)snprintf(f->top, sizeof(f->top), "/tmp/analyzer-test-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	/* Others may look in: tests read as another user. */
	assert_int_equal(chmod(f->top, 0755), 0);
	(void)snprintf(f->dir, sizeof(f->dir), "%s/%s", f->top, name);
	assert_int_equal(mkdir(f->dir, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/profile.db", f->dir);
	assert_int_equal(sqlite3_open(path, &f->db), SQLITE_OK);
	if (schema_create(f->db, &err) < 0)
		fail_msg("%s", err.msg);
}

void fixture_sql(struct fixture *f, const char *sql)
{
	char *msg = NULL;

	if (sqlite3_exec(f->db, sql, NULL, NULL, &msg) != SQLITE_OK)
		fail_msg("%s: %s", msg, sql);
}

void fixture_finish(struct fixture *f)
{
	assert_int_equal(sqlite3_close(f->db), SQLITE_OK);
	f->db = NULL;
}

void fixture_reopen(struct fixture *f)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/profile.db", f->dir);
	assert_null(f->db);
	assert_int_equal(sqlite3_open(path, &f->db), SQLITE_OK);
}

static void remove_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), e->d_name, 0); /* rmdir tells */
	}
	(void)closedir(dir);
	assert_int_equal(rmdir(path), 0);
}

void fixture_remove(struct fixture *f)
{
	if (f->db)
		fixture_finish(f);
	(void)chmod(f->dir, 0755); /* a test may have made it read-only */
	remove_files(f->dir);
	assert_int_equal(rmdir(f->top), 0);
}

static char *read_all(const char *path, size_t *ret_len)
{
	_cleanup_fclose_ FILE *in = fopen(path, "r");
	char *data = NULL;
	size_t len = 0;

	if (!in)
		return NULL;
	for (;;) {
		char *grown = realloc(data, len + 65536);
		size_t n;

		assert_non_null(grown);
		data = grown;
		n = fread(data + len, 1, 65535, in);
		len += n;
		if (n == 0)
			break;
	}
	data[len] = '\0';
	*ret_len = len;
	return data;
}

void assert_golden(const char *name, const char *data, size_t len)
{
	_cleanup_free_ char *expected = NULL;
	const char *update = getenv("UPDATE_GOLDEN");
	size_t expected_len = 0;
	char path[160];

	(void)snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (update && *update) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(data, 1, len, f), len);
		assert_int_equal(fclose(f), 0);
		return;
	}
	expected = read_all(path, &expected_len);
	if (!expected)
		fail_msg("%s is missing (run from the top; UPDATE_GOLDEN=1 writes it)", path);
	assert_string_equal(data, expected);
	assert_int_equal(len, expected_len);
}
