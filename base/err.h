/*
 * Errors as values: a negative errno for programs, one sentence and one remedy for people.
 *
 * A function that can fail returns 0 or a positive count on success and a negative errno on
 * failure, and takes `struct err *err` last (never NULL). On success *err is untouched. The
 * message is set once, where most is known; callers that know more prefix it with err_wrap().
 * Errors of libraries are translated where the library is used. Only cli/ prints them.
 * Fixed size, on the stack of the top-level caller: reporting an error cannot itself fail.
 */
#pragma once

#include "base/base.h"

struct err {
	int code;       /* negative errno; 0 = no error */
	char msg[480];  /* one sentence without a full stop, names file, key, value */
	char hint[480]; /* the remedy; empty = none */
};

/* Sets code and message, clears the hint; returns code, so that `return err_set(…)` works. */
int err_set(struct err *err, int code, const char *fmt, ...) _printf_(3, 4);

/* As err_set with ": <strerror(-code)>" appended; code is a negative errno. */
int err_errno(struct err *err, int code, const char *fmt, ...) _printf_(3, 4);

/* Prefixes the message with "<text>: "; returns err->code. */
int err_wrap(struct err *err, const char *fmt, ...) _printf_(2, 3);

/* Sets the remedy; returns err->code. */
int err_hint(struct err *err, const char *fmt, ...) _printf_(2, 3);
