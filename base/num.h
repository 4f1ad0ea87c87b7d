/*
 * Strict number parsing: the whole string must be the number. No sign, no blanks, no octal,
 * no overflow, no NaN. Every function returns 0, -EINVAL (not such a number) or -ERANGE
 * (too large) and writes *ret only on success.
 */
#pragma once

#include "base/base.h"

/* "max" in kernel files and in our database: the largest INTEGER of SQLite. */
#define NUM_MAX INT64_MAX

/* Decimal, 0 … INT64_MAX. */
int num_parse_u63(const char *s, int64_t *ret);

/* Decimal or the word "max" (= NUM_MAX), as in memory.max. */
int num_parse_limit(const char *s, int64_t *ret);

/* Bytes: a decimal number, fractions allowed, with an optional K, M, G or T (binary, also
 * "KiB", "KB", "k"), or the word "max". */
int num_parse_size(const char *s, int64_t *ret_bytes);

/* Nanoseconds: a decimal number, fractions allowed, with ns, us, ms, s, m or h; bare = seconds. */
int num_parse_duration(const char *s, int64_t *ret_ns);

/* "80%" → 80.0; finite, not negative. */
int num_parse_percent(const char *s, double *ret_pct);

/* A finite, non-negative decimal fraction without suffix. */
int num_parse_fraction(const char *s, double *ret);

/* One unsigned decimal from a byte range that need not end in NUL; *ret_end is set behind its
 * last digit. For parsers of kernel files, where copying each word would cost more. */
int num_scan_u63(const char *p, const char *end, int64_t *ret, const char **ret_end);
