#include "squeezer/json_string.h"

#include <string.h>

size_t utf8_length(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = end - s, n;

	if (left == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
		return 0; /* a continuation byte, an overlong form of ASCII, past U+10FFFF */
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates and what lies past U+10FFFF show in the second byte. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

void utf8_append(struct str *out, unsigned int c)
{
	char b[4];
	size_t n = 0;

	if (c < 0x80) {
		b[n++] = c;
	} else if (c < 0x800) {
		b[n++] = 0xc0 | c >> 6;
		b[n++] = 0x80 | (c & 0x3f);
	} else if (c < 0x10000) {
		b[n++] = 0xe0 | c >> 12;
		b[n++] = 0x80 | (c >> 6 & 0x3f);
		b[n++] = 0x80 | (c & 0x3f);
	} else {
		b[n++] = 0xf0 | c >> 18;
		b[n++] = 0x80 | (c >> 12 & 0x3f);
		b[n++] = 0x80 | (c >> 6 & 0x3f);
		b[n++] = 0x80 | (c & 0x3f);
	}
	str_addn(out, b, n);
}

/* The four hexadecimal digits behind "\u"; false = there are none. */
static bool scan_hex4(const char *p, const char *end, unsigned int *ret)
{
	unsigned int v = 0;

	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			v = v * 16 + (p[i] - '0');
		else if (p[i] >= 'a' && p[i] <= 'f')
			v = v * 16 + 10 + (p[i] - 'a');
		else if (p[i] >= 'A' && p[i] <= 'F')
			v = v * 16 + 10 + (p[i] - 'A');
		else
			return false;
	}
	*ret = v;
	return true;
}

static size_t unicode_escape(const char *p, const char *end, struct str *out, const char **ret_why)
{
	unsigned int c, low;
	size_t n = 6;

	if (!scan_hex4(p + 2, end, &c)) {
		*ret_why = "\\u needs four hexadecimal digits";
		return 0;
	}
	if (c == 0) {
		/* It would end the string for every C program that reads it. */
		*ret_why = "a NUL character is not accepted";
		return 0;
	}
	if (c >= 0xd800 && c <= 0xdfff) {
		if (c > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u' ||
		    !scan_hex4(p + 8, end, &low) || low < 0xdc00 || low > 0xdfff) {
			*ret_why = "half of a surrogate pair";
			return 0;
		}
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		n = 12;
	}
	if (out)
		utf8_append(out, c);
	return n;
}

size_t json_escape(const char *p, const char *end, struct str *out, const char **ret_why)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (end - p >= 2 && p[1] == 'u')
		return unicode_escape(p, end, out, ret_why);
	at = end - p >= 2 && p[1] ? strchr(from, p[1]) : NULL;
	if (!at) {
		*ret_why = "not an escape that JSON knows";
		return 0;
	}
	if (out)
		str_addn(out, &to[at - from], 1);
	return 2;
}
