/* The characters of JSON strings: UTF-8 and escapes, for json_scan. Pure functions. */
#pragma once

#include "base/str.h"

/* The length of the valid UTF-8 character at p, 1 … 4; 0 = invalid or cut off. */
size_t utf8_length(const char *p, const char *end);

/* Appends a character, 1 … 0x10ffff. */
void utf8_append(struct str *out, unsigned int c);

/* Decodes the escape at p (its backslash), surrogate pairs included, and appends it to out
 * (NULL = only check). Returns its length, or 0 with *ret_why a short sentence. */
size_t json_escape(const char *p, const char *end, struct str *out, const char **ret_why);
