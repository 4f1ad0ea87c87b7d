/* The kernel's text formats; see parse.h. */
#include "cgroup/parse.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"

/* Cuts the next line off; *ret has no newline. A last line without one counts. */
static bool next_line(struct scan *s, struct scan *ret)
{
	const char *nl;

	if (s->p >= s->end)
		return false;
	nl = memchr(s->p, '\n', s->end - s->p);
	ret->p = s->p;
	ret->end = nl ? nl : s->end;
	s->p = nl ? nl + 1 : s->end;
	return true;
}

static void skip_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

static bool is_word(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s->end - s->p) == n && memcmp(s->p, word, n) == 0;
}

/* The whole range as one number or "max". */
static int whole_number(const struct scan *s, int64_t *ret)
{
	const char *stop;
	int64_t v;
	int r;

	if (is_word(s, "max")) {
		*ret = NUM_MAX;
		return 0;
	}
	r = num_scan_u63(s->p, s->end, &v, &stop);
	if (r < 0)
		return r;
	if (stop != s->end)
		return -EINVAL;
	*ret = v;
	return 0;
}

bool scan_flat(struct scan *s, struct field *ret)
{
	struct scan line;
	const char *stop;
	size_t len;

	if (!next_line(s, &line))
		return false;
	*ret = (struct field){.key = line.p};
	while (line.p < line.end && *line.p != ' ' && *line.p != '\t')
		line.p++;
	len = line.p - ret->key;
	ret->key_len = len > 0 && ret->key[len - 1] == ':' ? len - 1 : len;
	skip_blanks(&line);
	if (is_word(&line, "max")) {
		ret->value = NUM_MAX;
		ret->ok = true;
		return true;
	}
	if (num_scan_u63(line.p, line.end, &ret->value, &stop) < 0)
		return true;
	line.p = stop;
	if (is_word(&line, " kB"))
		ret->ok = !__builtin_mul_overflow(ret->value, 1024, &ret->value);
	else
		ret->ok = stop == line.end;
	return true;
}

/* Cuts the next word off, up to a blank or the end of the line. */
static struct scan next_word(struct scan *s)
{
	struct scan word;

	word.p = s->p;
	while (s->p < s->end && *s->p != ' ' && *s->p != '\t' && *s->p != '\n')
		s->p++;
	word.end = s->p;
	return word;
}

bool scan_nested(struct scan *s, struct field *ret)
{
	for (;;) {
		struct scan word;
		const char *eq;

		while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n'))
			s->p++;
		if (s->p >= s->end)
			return false;
		word = next_word(s);
		eq = memchr(word.p, '=', word.end - word.p);
		if (!eq)
			continue; /* the device */
		*ret = (struct field){.key = word.p, .key_len = eq - word.p};
		word.p = eq + 1;
		ret->ok = whole_number(&word, &ret->value) == 0;
		return true;
	}
}

bool scan_psi(struct scan *s, struct field *ret)
{
	static const char mark[] = " total=";
	struct scan line;
	const char *total, *blank;

	while (next_line(s, &line)) {
		blank = memchr(line.p, ' ', line.end - line.p);
		if (!blank)
			continue;
		*ret = (struct field){.key = line.p, .key_len = blank - line.p};
		total = memmem(line.p, line.end - line.p, mark, sizeof(mark) - 1);
		if (total) {
			line.p = total + sizeof(mark) - 1;
			ret->ok = whole_number(&line, &ret->value) == 0;
		}
		return true;
	}
	return false;
}

bool scan_column(struct scan *s, struct field *ret)
{
	struct scan word;

	skip_blanks(s);
	if (s->p >= s->end || *s->p == '\n')
		return false;
	word = next_word(s);
	*ret = (struct field){.key = word.p};
	ret->ok = whole_number(&word, &ret->value) == 0;
	return true;
}

int parse_value(const char *text, size_t len, int64_t *ret)
{
	struct scan s = scan_text(text, len);

	if (len > 0 && text[len - 1] == '\n')
		s.end--;
	if (is_word(&s, "Y") || is_word(&s, "N")) {
		*ret = *s.p == 'Y';
		return 0;
	}
	return whole_number(&s, ret);
}

int parse_flat_key(const char *text, size_t len, const char *key, int64_t *ret)
{
	struct scan s = scan_text(text, len);
	size_t key_len = strlen(key);
	struct field f;

	while (scan_flat(&s, &f)) {
		if (f.key_len != key_len || memcmp(f.key, key, key_len) != 0)
			continue;
		if (!f.ok)
			return -EINVAL;
		*ret = f.value;
		return 0;
	}
	return -ENOENT;
}
