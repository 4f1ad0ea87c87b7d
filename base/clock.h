/* Time: CLOCK_MONOTONIC nanoseconds for everything measured, wall clock only as a label. */
#pragma once

#include "base/base.h"

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* CLOCK_MONOTONIC in ns. */
int64_t clock_mono_ns(void);

/* CPU time used by this process, all threads, in ns. */
int64_t clock_process_cpu_ns(void);

#define CLOCK_ISO_MAX 32

/* The wall clock as ISO 8601 in UTC with Z: "2026-11-30T22:15:01Z". */
void clock_iso_utc(char buf[static CLOCK_ISO_MAX]);

/* The wall clock in local time as "20261130-221501", for file names. */
void clock_stamp_local(char buf[static CLOCK_ISO_MAX]);
