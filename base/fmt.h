/*
 * Numbers for people, always in the same form: binary units with the i and one decimal, times
 * with a unit, thousands apart. Each writes into the caller's buffer and returns it.
 */
#pragma once

#include "base/base.h"

#define FMT_MAX 32

/* 671088640 → "640.0 MiB"; 512 → "512 B"; INT64_MAX → "max". */
const char *fmt_bytes(char buf[static FMT_MAX], int64_t bytes);

/* As fmt_bytes but short, for the progress line: "640M", "1.0G". */
const char *fmt_bytes_short(char buf[static FMT_MAX], int64_t bytes);

/* 72.4e9 → "72.4 s"; 0.0123e9 → "12.3 ms"; 4.2e3 → "4.2 us". */
const char *fmt_ns(char buf[static FMT_MAX], int64_t ns);

/* 42e9 → "00:42"; 3725e9 → "1:02:05". */
const char *fmt_clock(char buf[static FMT_MAX], int64_t ns);

/* 38412 → "38 412". */
const char *fmt_count(char buf[static FMT_MAX], int64_t n);
