/*
 * A strict JSON checker that keeps the place of every value.
 *
 * json-c builds the tree, but it accepts duplicate keys, NaN, single quotes, comments and 1e999
 * and tells no place. This one accepts exactly RFC 8259 (UTF-8, a byte order mark is skipped)
 * and refuses besides: duplicate keys, NUL characters, numbers that no double or 63-bit integer
 * holds, more than JSON_DEPTH_MAX levels and more than JSON_VALUES_MAX values. What passes can
 * be given to json-c, whose children have the order of the places here.
 *
 * Life: json_scan → look up → json_scan_done, also after a failure. Borrows path and text.
 */
#pragma once

#include "base/err.h"

#define JSON_DEPTH_MAX 16
#define JSON_VALUES_MAX 4096

struct json_place {
	int parent;        /* index of the containing value, -1 = the top */
	int index;         /* among its children: 0, 1, … */
	char *key;         /* decoded, owned; NULL in a list and at the top */
	size_t key_offset; /* of the key's opening quote; in a list of the value */
	size_t offset;     /* of the value */
	size_t len;        /* of the value's text */
};

struct json_scan {
	const char *path, *text;
	size_t len;
	struct json_place *places; /* in the file's order; [0] is the top */
	size_t n_places, size;
	size_t start; /* where the text begins, behind a byte order mark */
};

/* Returns 0, -EINVAL with a located message, or -ENOMEM. */
int json_scan(struct json_scan *ret, const char *path, const char *text, size_t len,
	      struct err *err);
void json_scan_done(struct json_scan *scan);

/* The place of a value's index-th child, or -1. */
int json_scan_child(const struct json_scan *scan, int parent, int index);

/* Sets "PATH:LINE:COLUMN: <text>"; columns count characters. Returns -EINVAL. */
int json_scan_fail(const struct json_scan *scan, size_t offset, struct err *err, const char *fmt,
		   ...) _printf_(4, 5);
