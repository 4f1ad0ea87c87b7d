/* Errors as values: message, prefix, hint, and what happens at the end of their room. */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void set(void **state)
{
	struct err err;

	(void)state;
	memset(&err, 'x', sizeof(err));
	assert_int_equal(err_set(&err, -EINVAL, "key \"%s\": %d", "delay", 7), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.msg, "key \"delay\": 7");
	assert_string_equal(err.hint, "");
}

static void with_errno(void **state)
{
	struct err err;

	(void)state;
	memset(&err, 'x', sizeof(err));
	assert_int_equal(err_errno(&err, -ENOENT, "cannot open %s", "/a"), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_string_equal(err.msg, "cannot open /a: No such file or directory");
	assert_string_equal(err.hint, "");
}

static void wrap_and_hint(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, -EIO, "inner");
	assert_int_equal(err_hint(&err, "try %d", 2), -EIO);
	assert_int_equal(err_wrap(&err, "run %d", 1), -EIO);
	assert_int_equal(err_wrap(&err, "session"), -EIO);
	assert_string_equal(err.msg, "session: run 1: inner");
	assert_string_equal(err.hint, "try 2"); /* a prefix keeps the remedy */
	assert_int_equal(err.code, -EIO);
	/* A new error forgets the old one's remedy. */
	err_set(&err, -EPERM, "other");
	assert_string_equal(err.hint, "");
	/* The message may contain what looks like a format. */
	err_set(&err, -EIO, "%s", "100 %s %n");
	err_wrap(&err, "a");
	assert_string_equal(err.msg, "a: 100 %s %n");
}

/* However long the parts are: cut, terminated, nothing written behind. */
static void no_room(void **state)
{
	struct {
		struct err err;
		char behind[8];
	} x;
	char text[2000];

	(void)state;
	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memset(&x, '!', sizeof(x));
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			err_set(&x.err, -EIO, "%s", text);
		else if (i == 1)
			err_errno(&x.err, -EIO, "%s", text);
		else
			err_wrap(&x.err, "%s", text);
		err_hint(&x.err, "%s", text);
		assert_int_equal(strlen(x.err.msg), sizeof(x.err.msg) - 1);
		assert_int_equal(strlen(x.err.hint), sizeof(x.err.hint) - 1);
		assert_memory_equal(x.behind, "!!!!!!!!", 8);
		assert_int_equal(x.err.code, -EIO);
	}
	err_set(&x.err, -EIO, "%.470s", text);
	err_wrap(&x.err, "start");
	assert_memory_equal(x.err.msg, "start: ttt", 10);
	assert_int_equal(strlen(x.err.msg), 7 + 470);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set),
		cmocka_unit_test(with_errno),
		cmocka_unit_test(wrap_and_hint),
		cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
