/*
 * Readers of the kernel's text formats: "key value" lines, nested "dev key=value" lines (io.stat),
 * pressure (PSI) lines, single values.
 *
 * Pure functions over a byte range that need not end in NUL: no allocation, no I/O. Each scanner
 * returns one field per call until the text is used up. A field that is no number (cut off, empty,
 * negative, over 2^63 - 1) has ok = false and costs only itself: the next call goes on behind it.
 */
#pragma once

#include "base/base.h"

/* What is left of the text. */
struct scan {
	const char *p, *end;
};

/* One field; key points into the text. */
struct field {
	const char *key;
	size_t key_len;
	int64_t value; /* only if ok */
	bool ok;
};

static inline struct scan scan_text(const char *text, size_t len)
{
	return (struct scan){text, text + len};
}

/*
 * memory.stat, memory.events, cpu.stat, /proc/vmstat: "anon 4096". Also /proc/meminfo:
 * "MemTotal:   1024 kB" (key without the colon, value in bytes). False at the end of the text.
 */
bool scan_flat(struct scan *s, struct field *ret);

/*
 * io.stat: "254:0 rbytes=4096 wbytes=0 …", one line per device; returns the fields of all
 * devices one after another. Names of devices are skipped.
 */
bool scan_nested(struct scan *s, struct field *ret);

/*
 * memory.pressure: "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234"; returns the total of
 * each line, key "some" or "full", in us.
 */
bool scan_psi(struct scan *s, struct field *ret);

/* zram's mm_stat: numbers apart by blanks; returns them in turn, key empty. */
bool scan_column(struct scan *s, struct field *ret);

/* A file that holds one value: a number, "max" (INT64_MAX), or Y or N (1, 0). -EINVAL, -ERANGE. */
int parse_value(const char *text, size_t len, int64_t *ret);

/* The value of one key of a flat-keyed text. -ENOENT: no such key; -EINVAL: it has no number. */
int parse_flat_key(const char *text, size_t len, const char *key, int64_t *ret);
