#include "base/str.h"

#include <stdarg.h>
#include <string.h>

static bool reserve(struct str *s, size_t more)
{
	size_t need = s->len + more + 1, size = s->size ? s->size : 256;
	char *p;

	if (s->failed)
		return false;
	if (need <= s->size)
		return true;
	while (size < need)
		size *= 2;
	p = realloc(s->data, size);
	if (!p) {
		s->failed = true;
		return false;
	}
	s->data = p;
	s->size = size;
	return true;
}

void str_addn(struct str *s, const char *text, size_t len)
{
	if (!reserve(s, len))
		return;
	memcpy(s->data + s->len, text, len);
	s->len += len;
	s->data[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && reserve(s, n)) {
		(void)vsnprintf(s->data + s->len, n + 1, fmt, again);
		s->len += n;
	}
	va_end(again);
}

void str_done(struct str *s)
{
	free(s->data);
	*s = (struct str){0};
}
