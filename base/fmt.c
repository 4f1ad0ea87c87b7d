#include "base/fmt.h"

#include <inttypes.h>

const char *fmt_bytes(char buf[static FMT_MAX], int64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = bytes;
	size_t i = 0;

	if (bytes == INT64_MAX)
		return (void)snprintf(buf, FMT_MAX, "max"), buf;
	if (bytes < 1024 && bytes > -1024)
		return (void)snprintf(buf, FMT_MAX, "%" PRId64 " B", bytes), buf;
	/* 1023.95 would print as 1024.0: the next unit is the honest one. */
	for (v /= 1024; (v >= 1023.95 || v <= -1023.95) && i + 1 < ARRAY_SIZE(units); i++)
		v /= 1024;
	(void)snprintf(buf, FMT_MAX, "%.1f %s", v, units[i]);
	return buf;
}

const char *fmt_bytes_short(char buf[static FMT_MAX], int64_t bytes)
{
	static const char units[] = "KMGTPE";
	double v = bytes;
	size_t i = 0;

	if (bytes == INT64_MAX)
		return (void)snprintf(buf, FMT_MAX, "max"), buf;
	for (v /= 1024; v >= 999.5 && units[i + 1]; i++)
		v /= 1024;
	(void)snprintf(buf, FMT_MAX, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[i]);
	return buf;
}

const char *fmt_ns(char buf[static FMT_MAX], int64_t ns)
{
	double v = ns;

	if (v < 1e6)
		(void)snprintf(buf, FMT_MAX, "%.1f us", v / 1e3);
	else if (v < 1e9)
		(void)snprintf(buf, FMT_MAX, "%.1f ms", v / 1e6);
	else
		(void)snprintf(buf, FMT_MAX, "%.1f s", v / 1e9);
	return buf;
}

const char *fmt_clock(char buf[static FMT_MAX], int64_t ns)
{
	int64_t s = ns / 1000000000;

	if (s < 3600)
		(void)snprintf(buf, FMT_MAX, "%02" PRId64 ":%02" PRId64, s / 60, s % 60);
	else
		(void)snprintf(buf, FMT_MAX, "%" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600,
			       s / 60 % 60, s % 60);
	return buf;
}

const char *fmt_count(char buf[static FMT_MAX], int64_t n)
{
	char digits[FMT_MAX];
	int len = snprintf(digits, sizeof(digits), "%" PRId64, n);
	size_t o = 0;

	for (int i = 0; i < len && o + 2 < FMT_MAX; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf[o++] = ' ';
		buf[o++] = digits[i];
	}
	buf[o] = '\0';
	return buf;
}
