#include "base/clock.h"

#include <time.h>

int64_t clock_mono_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock */
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_process_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void format_now(char buf[static CLOCK_ISO_MAX], const char *fmt, bool utc)
{
	time_t now = time(NULL);
	struct tm tm;

	if (utc)
		gmtime_r(&now, &tm);
	else
		localtime_r(&now, &tm);
	(void)strftime(buf, CLOCK_ISO_MAX, fmt, &tm); /* always fits */
}

void clock_iso_utc(char buf[static CLOCK_ISO_MAX])
{
	format_now(buf, "%Y-%m-%dT%H:%M:%SZ", true);
}

void clock_stamp_local(char buf[static CLOCK_ISO_MAX])
{
	format_now(buf, "%Y%m%d-%H%M%S", false);
}
