/*
 * A growable string for building text and JSON. Zero-initialise, append, str_done.
 *
 * Out of memory is remembered (`failed`) instead of checked at every append: builders ask once
 * at the end. `data` is always NUL-terminated after the first append.
 */
#pragma once

#include "base/base.h"

struct str {
	char *data; /* owned; NULL while empty */
	size_t len, size;
	bool failed;
};

void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t len);
void str_addf(struct str *s, const char *fmt, ...) _printf_(2, 3);
void str_done(struct str *s);

#define _cleanup_str_ _cleanup_(str_done)
