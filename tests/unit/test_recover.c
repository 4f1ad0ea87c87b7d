/* What a dead analyzer has left is put back; what a live one holds is not touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runner/recover.h"
#include "tests/unit/fake.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define GROUP "/sys/fs/cgroup/work"
#define ZSWAP "/sys/module/zswap/parameters/"

static int setup(void **state)
{
	struct fake *f = fake_new();

	(void)unsetenv("XDG_RUNTIME_DIR");
	fake_file(f, GROUP "/memory.max", "8388608\n");
	fake_file(f, GROUP "/memory.high", "4194304\n");
	fake_file(f, ZSWAP "compressor", "zstd\n");
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

static bool is_there(struct fake *f, const char *path)
{
	char buf[4096];

	return root_read(fake_root(f), path, buf, sizeof(buf)) >= 0;
}

struct told {
	int n;
	char order[256];
	size_t len;
};

static void tell(void *ctx, const struct recovery *r)
{
	struct told *t = ctx;
	const char *name = strrchr(r->entry->path, '/') + 1;

	t->n++;
	t->len += (size_t)snprintf(t->order + t->len, sizeof(t->order) - t->len, "%s%s ", name,
				   r->problem ? "!" : "");
}

static struct recover_totals run(struct fake *f, struct told *t)
{
	struct recover_totals totals;
	struct err err;

	*t = (struct told){0};
	assert_int_equal(recover(fake_root(f), tell, t, &totals, &err), 0);
	return totals;
}

static void test_nothing(void **state)
{
	struct recover_totals t;
	struct told told;

	t = run(*state, &told); /* not even a directory */
	assert_int_equal(t.journals + t.in_use + t.put_back + t.left, 0);
	fake_file(*state, "/run/analyzer/zswap", "lzo"); /* not a journal */
	fake_file(*state, "/run/analyzer/77-1234567", "add 1 write max " GROUP "/memory.max\n");
	fake_file(*state, "/run/analyzer/x-12345678", "add 1 write max " GROUP "/memory.max\n");
	t = run(*state, &told);
	assert_int_equal(t.journals + t.in_use + t.put_back + t.left, 0);
	assert_file(*state, GROUP "/memory.max", "8388608");
	assert_true(is_there(*state, "/run/analyzer/zswap"));
}

/* Newest first; what is done already is not done again; a torn last line is none. */
static void test_dead(void **state)
{
	struct recover_totals t;
	struct told told;

	fake_file(*state, "/run/analyzer/4194304-0123abcd",
		  "add 1 group - " GROUP "\n"
		  "add 2 write max " GROUP "/memory.max\n"
		  "add 3 write max " GROUP "/memory.high\n"
		  "add 4 write lzo " ZSWAP "compressor\n"
		  "add 5 write 20 " ZSWAP "max_pool_percent\n"
		  "done 3\n"
		  "add 6 wri");
	t = run(*state, &told);
	assert_string_equal(told.order, "max_pool_percent compressor memory.max work ");
	assert_int_equal(t.journals, 1);
	assert_int_equal(t.put_back, 4);
	assert_int_equal(t.left, 0);
	assert_file(*state, GROUP "/memory.max", "max");
	assert_file(*state, GROUP "/memory.high", "4194304");
	assert_file(*state, ZSWAP "compressor", "lzo");
	assert_false(is_there(*state, "/run/analyzer/4194304-0123abcd"));
	t = run(*state, &told);
	assert_int_equal(t.journals, 0);
}

/* One that cannot be put back stays in the journal, alone. */
static void test_left(void **state)
{
	struct recover_totals t;
	struct told told;

	fake_dir(*state, GROUP "/memory.low"); /* writing to it fails */
	fake_file(*state, "/run/analyzer/4194304-0123abcd",
		  "add 1 write max " GROUP "/memory.max\nadd 2 write 0 " GROUP "/memory.low\n");
	t = run(*state, &told);
	assert_string_equal(told.order, "memory.low! memory.max ");
	assert_int_equal(t.put_back, 1);
	assert_int_equal(t.left, 1);
	assert_file(*state, GROUP "/memory.max", "max");
	t = run(*state, &told);
	assert_string_equal(told.order, "memory.low! ");
	assert_true(is_there(*state, "/run/analyzer/4194304-0123abcd"));
}

static void test_in_use(void **state)
{
	struct journal_entry e = {
		.id = 1, .kind = UNDO_WRITE, .path = GROUP "/memory.max", .value = "max"};
	struct recover_totals t;
	char empty[64];
	struct journal j;
	struct told told;
	struct err err;

	fake_file(*state, "/run/analyzer/.keep", "");
	assert_int_equal(journal_create(&j, fake_root(*state), &err), 0);
	assert_int_equal(journal_add(&j, &e, &err), 0);
	t = run(*state, &told);
	assert_int_equal(t.in_use, 1);
	assert_int_equal(told.n, 0);
	assert_file(*state, GROUP "/memory.max", "8388608");
	journal_close(&j, false); /* it dies */
	t = run(*state, &told);
	assert_int_equal(t.journals, 1);
	assert_file(*state, GROUP "/memory.max", "max");
	/* One that is just being made has no lock yet. */
	(void)snprintf(empty, sizeof(empty), "/run/analyzer/%d-00000000", getpid());
	fake_file(*state, empty, "");
	t = run(*state, &told);
	assert_int_equal(t.in_use, 1);
	assert_true(is_there(*state, empty));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing),
		TEST(test_dead),
		TEST(test_left),
		TEST(test_in_use),
	};

	return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
