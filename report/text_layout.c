#include "report/text_layout.h"

#include "base/fmt.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static void newline(struct str *out, size_t indent)
{
	str_addf(out, "\n%*s", (int)indent, "");
}

/* Names and details come from outside: no control character reaches the terminal. */
static void add_printable(struct str *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		str_addn(out, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? "?" : text + i, 1);
}

/* A word longer than a line is broken where the line ends. */
static size_t add_word(struct str *out, size_t at, size_t indent, const char *word, size_t len)
{
	while (at + len > TEXT_WIDTH && len > TEXT_WIDTH - indent) {
		size_t part = TEXT_WIDTH - at;

		add_printable(out, word, part);
		newline(out, indent);
		word += part;
		len -= part;
		at = indent;
	}
	add_printable(out, word, len);
	return at + len;
}

static bool is_unit(const char *word)
{
	static const char *const units[] = {"%", "s", "ms", "us", "B", "KiB", "MiB", "GiB", "TiB"};
	size_t len = strcspn(word, " ,;.:)");

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i]) == len && strncmp(units[i], word, len) == 0)
			return true;
	}
	return len == 3 && strspn(word, "0123456789") == 3; /* thousands: "38 412" */
}

/* Up to the next blank at which a line may end: a number stays with its unit. */
static size_t word_length(const char *text)
{
	size_t len = strcspn(text, " ");

	while (len > 0 && strchr("0123456789", text[len - 1]) && text[len] == ' ' &&
	       is_unit(text + len + 1))
		len += 1 + strcspn(text + len + 1, " ");
	return len;
}

void text_wrap(struct str *out, size_t at, size_t indent, const char *text)
{
	bool is_first = true;

	while (*text) {
		size_t len = word_length(text);

		if (!is_first && at + 1 + len > TEXT_WIDTH) {
			newline(out, indent);
			at = indent;
		} else if (!is_first) {
			str_add(out, " ");
			at++;
		}
		at = add_word(out, at, indent, text, len);
		is_first = false;
		text += len;
		text += strspn(text, " ");
	}
	str_add(out, "\n");
}

void text_para(struct str *out, size_t indent, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0) {
		text = NULL; /* undefined after a failure */
		out->failed = true;
		return;
	}
	str_addf(out, "%*s", (int)indent, "");
	text_wrap(out, indent, indent, text);
}

const char *text_duration(char buf[static CELL_MAX], double s)
{
	int64_t whole = (int64_t)(s + 0.5);

	if (s <= 0)
		(void)snprintf(buf, CELL_MAX, "0 s");
	else if (s < 59.95)
		(void)fmt_ns(buf, (int64_t)(s * 1e9 + 0.5));
	else if (whole < 3600)
		(void)snprintf(buf, CELL_MAX, "%lldm %02llds", (long long)whole / 60,
			       (long long)whole % 60);
	else
		(void)snprintf(buf, CELL_MAX, "%lldh %02lldm", (long long)whole / 3600,
			       (long long)whole / 60 % 60);
	return buf;
}

static void format_rate(char buf[static CELL_MAX], double v)
{
	char count[FMT_MAX];

	if (v >= 99.95)
		(void)snprintf(buf, CELL_MAX, "%.24s/s", fmt_count(count, (int64_t)(v + 0.5)));
	else
		(void)snprintf(buf, CELL_MAX, "%.1f/s", v);
}

const char *text_value(char buf[static CELL_MAX], const struct figure *f, enum figure_unit unit)
{
	if (f->why)
		return (void)snprintf(buf, CELL_MAX, "n/a"), buf;
	switch (unit) {
	case UNIT_BYTES:
		return fmt_bytes(buf, (int64_t)llround(f->v));
	case UNIT_SECONDS:
		return text_duration(buf, f->v);
	case UNIT_COUNT:
		return fmt_count(buf, (int64_t)llround(f->v));
	case UNIT_RATE:
		format_rate(buf, f->v);
		return buf;
	case UNIT_SHARE:
		return (void)snprintf(buf, CELL_MAX, "%.1f %%", 100 * f->v), buf;
	case UNIT_RATIO:
		return (void)snprintf(buf, CELL_MAX, "%.2f", f->v), buf;
	}
	return "";
}

const char *text_change(char buf[static CELL_MAX], double change)
{
	if (isnan(change))
		buf[0] = '\0';
	else if (fabs(change) < 0.0005) /* what would print as +0.0 or -0.0 */
		(void)snprintf(buf, CELL_MAX, "0.0 %%");
	else
		(void)snprintf(buf, CELL_MAX, "%+.1f %%", 100 * change);
	return buf;
}
