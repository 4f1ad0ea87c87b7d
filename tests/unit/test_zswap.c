/* zswap's settings on fake trees: what is accepted, what is put back. */
#include "cgroup/zswap.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "tests/unit/fake.h"

#define COMPRESSOR ZSWAP_PARAMETERS "/compressor"

static const char crypto[] =
	"name         : sha256\ndriver       : sha256-generic\ntype         : shash\n\n"
	"name         : lzo-rle\ndriver       : lzo-rle-scomp\nmodule       : kernel\n"
	"type         : scomp\n\n"
	"name         : lzo-rle\ndriver       : lzo-rle-generic\ntype         : compression\n\n"
	"name         : zstd\ntype         : acomp\n\n"
	"name         : compress_null\ntype         : compression\n";

static void set_up(struct fake **ret, const char *enabled)
{
	*ret = fake_new();
	fake_file(*ret, "/proc/crypto", crypto);
	fake_file(*ret, ZSWAP_PARAMETERS "/enabled", enabled);
	fake_file(*ret, COMPRESSOR, "lzo\n");
}

static void expect_compressor(const struct fake *f, const char *name)
{
	char text[ZSWAP_VALUE_MAX];

	assert_true(zswap_get(fake_root(f), "compressor", text) > 0);
	assert_string_equal(text, name);
}

static void list(void **state)
{
	static const struct {
		const char *name;
		bool is_loaded;
	} want[] = {{"lzo-rle", true}, {"zstd", true},     {"lzo", false}, {"lz4", false},
		    {"lz4hc", false},  {"deflate", false}, {"842", false}};
	struct zswap_compressor got[ZSWAP_COMPRESSORS_MAX];
	struct fake *f;
	struct err err;

	(void)state;
	set_up(&f, "Y\n");
	assert_int_equal(zswap_compressors(fake_root(f), got, &err), ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_string_equal(got[i].name, want[i].name);
		assert_int_equal(got[i].is_loaded, want[i].is_loaded);
	}
	fake_free(f);
}

static void set_while_on(void **state)
{
	struct fake *f;
	struct err err;

	(void)state;
	set_up(&f, "Y\n");
	assert_int_equal(zswap_is_enabled(fake_root(f)), 1);
	/* On: the kernel knows better than its table what a module can bring. */
	assert_int_equal(zswap_set_compressor(fake_root(f), "lz4", &err), 0);
	expect_compressor(f, "lz4");
	assert_int_equal(zswap_set_compressor(fake_root(f), "", &err), -ENOENT);
	assert_int_equal(zswap_set_compressor(fake_root(f), "../x", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "lzo-rle, zstd, lzo (not loaded)"));
	expect_compressor(f, "lz4");
	fake_free(f);
}

/* Off, the kernel would accept any string. */
static void set_while_off(void **state)
{
	struct fake *f;
	struct err err;

	(void)state;
	set_up(&f, "N\n");
	assert_int_equal(zswap_is_enabled(fake_root(f)), 0);
	assert_int_equal(zswap_set_compressor(fake_root(f), "lz4", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "there are: lzo-rle, zstd"));
	assert_null(strstr(err.msg, "not loaded"));
	assert_non_null(strstr(err.hint, "echo Y > " ZSWAP_PARAMETERS "/enabled"));
	assert_int_equal(zswap_set_compressor(fake_root(f), "sha256", &err), -ENOENT);
	expect_compressor(f, "lzo");
	assert_int_equal(zswap_set_compressor(fake_root(f), "zstd", &err), 0);
	expect_compressor(f, "zstd");
	fake_free(f);
}

/* A value that does not take shows when it is read back: here it goes to /dev/null. */
static void does_not_take(void **state)
{
	struct fake *f;
	struct err err;
	char path[256];

	(void)state;
	set_up(&f, "Y\n");
	fake_remove(f, COMPRESSOR);
	(void)snprintf(path, sizeof(path), "%s" COMPRESSOR, fake_path(f));
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(zswap_set_compressor(fake_root(f), "zstd", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "the kernel kept ''"));
	fake_free(f);
}

static void no_zswap(void **state)
{
	struct fake *f = fake_new();
	struct err err;

	(void)state;
	assert_false(zswap_exists(fake_root(f)));
	assert_int_equal(zswap_is_enabled(fake_root(f)), -ENOENT);
	assert_int_equal(zswap_debugfs_open(fake_root(f)), -ENOENT);
	assert_int_equal(zswap_set_compressor(fake_root(f), "zstd", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "no zswap"));
	fake_free(f);
}

/* `analyzer zswap WORD [NAME]` on the fake tree; what it tells goes to /dev/null. */
static int run(const struct fake *f, const char *word, const char *name)
{
	char *argv[] = {(char *)"zswap", (char *)word, (char *)name, NULL};
	struct log log;
	struct cli cli = {.log = &log, .root_dir = fake_path(f)};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), r;

	log_init(&log, LOG_NOTE);
	log.term_fd = null;
	r = cmd_zswap(&cli, name ? 3 : 2, argv);
	log_done(&log);
	close_fd(&null);
	return r;
}

static void restore_is_to_the_first(void **state)
{
	struct fake *f;
	char text[ZSWAP_VALUE_MAX];

	(void)state;
	set_up(&f, "Y\n");
	assert_int_equal(run(f, "restore", NULL), 0); /* nothing to do */
	expect_compressor(f, "lzo");
	assert_int_equal(run(f, "set", "zstd"), 0);
	assert_int_equal(run(f, "set", "lzo-rle"), 0);
	expect_compressor(f, "lzo-rle");
	assert_int_equal(root_read(fake_root(f), "/run/analyzer/zswap", text, sizeof(text)), 3);
	assert_string_equal(text, "lzo");
	assert_int_equal(run(f, "restore", NULL), 0);
	expect_compressor(f, "lzo");
	assert_int_equal(root_read(fake_root(f), "/run/analyzer/zswap", text, sizeof(text)),
			 -ENOENT);
	fake_free(f);
}

/* What was there before may be a name that could not be set now. */
static void restore_does_not_judge(void **state)
{
	struct fake *f;

	(void)state;
	set_up(&f, "N\n");
	fake_file(f, COMPRESSOR, "lz4\n");
	assert_int_equal(run(f, "set", "zstd"), 0);
	assert_int_equal(run(f, "restore", NULL), 0);
	expect_compressor(f, "lz4");
	fake_free(f);
}

static void a_failed_set_keeps_nothing(void **state)
{
	struct fake *f;
	char text[ZSWAP_VALUE_MAX];

	(void)state;
	set_up(&f, "N\n");
	assert_int_equal(run(f, "set", "nosuch"), 1);
	expect_compressor(f, "lzo");
	assert_int_equal(root_read(fake_root(f), "/run/analyzer/zswap", text, sizeof(text)),
			 -ENOENT);
	/* and does not forget what an earlier one kept */
	assert_int_equal(run(f, "set", "zstd"), 0);
	assert_int_equal(run(f, "set", "nosuch"), 1);
	assert_int_equal(root_read(fake_root(f), "/run/analyzer/zswap", text, sizeof(text)), 3);
	fake_free(f);
}

static void wrong_words(void **state)
{
	struct fake *f;

	(void)state;
	set_up(&f, "Y\n");
	assert_int_equal(run(f, "nonsense", NULL), 2);
	assert_int_equal(run(f, "set", NULL), 2);
	assert_int_equal(run(f, "list", "more"), 2);
	assert_int_equal(run(f, "--nonsense", NULL), 2);
	fake_free(f);
	f = fake_new();
	assert_int_equal(run(f, "status", NULL), 1); /* no zswap in this kernel */
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list),
		cmocka_unit_test(set_while_on),
		cmocka_unit_test(set_while_off),
		cmocka_unit_test(does_not_take),
		cmocka_unit_test(no_zswap),
		cmocka_unit_test(restore_is_to_the_first),
		cmocka_unit_test(restore_does_not_judge),
		cmocka_unit_test(a_failed_set_keeps_nothing),
		cmocka_unit_test(wrong_words),
	};

	return cmocka_run_group_tests_name("zswap", tests, NULL, NULL);
}
