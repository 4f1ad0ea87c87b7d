#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code < 0);
	err->code = code;
	err->hint[0] = '\0';
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap); /* cut at the buffer's end is fine */
	va_end(ap);
	return code;
}

int err_errno(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	assert(code < 0);
	err->code = code;
	err->hint[0] = '\0';
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	(void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(-code));
	return code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;
	size_t n;

	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	(void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", inner);
	return err->code;
}

int err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return err->code;
}
