#include "squeezer/json_scan.h"

#include "base/num.h"
#include "base/str.h"
#include "squeezer/json_string.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define PATH_SHOWN 160

struct scanner {
	struct json_scan *out;
	const char *p, *end;
	int depth;
	const char *key; /* of the value being read, or of the list it is in; NULL = none */
	struct err *err;
};

int json_scan_fail(const struct json_scan *scan, size_t offset, struct err *err, const char *fmt,
		   ...)
{
	const char *path = scan->path, *lead = "";
	size_t line = 1, col = 1, path_len = strlen(path);
	char what[sizeof(err->msg)];
	va_list ap;

	for (size_t i = scan->start; i < offset; i++) {
		if (scan->text[i] == '\n') {
			line++;
			col = 1;
		} else if ((scan->text[i] & 0xc0) != 0x80) {
			col++; /* continuation bytes are no characters of their own */
		}
	}
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* A path of any length must leave room for what is wrong: its end tells most. */
	if (path_len > PATH_SHOWN) {
		lead = "…";
		path += path_len - PATH_SHOWN;
		while ((*path & 0xc0) == 0x80)
			path++; /* not from the middle of a character */
	}
	return err_set(err, -EINVAL, "%s%s:%zu:%zu: %s", lead, path, line, col, what);
}

#define fail(sc, at, ...) json_scan_fail((sc)->out, (at) - (sc)->out->text, (sc)->err, __VA_ARGS__)

/* As fail(), of a value: names its key. Returns -EINVAL. */
static int fail_value(struct scanner *sc, const char *at, const char *what, const char *text,
		      size_t len)
{
	size_t shown = 0, n;

	while (shown < len && shown < 40) {
		n = utf8_length(text + shown, text + len);
		shown += n ? n : 1;
	}
	return fail(sc, at, "%s%.64s%s%.*s%s %s", sc->key ? "key \"" : "", sc->key ? sc->key : "",
		    sc->key ? "\": " : "", (int)shown, text, shown < len ? "…" : "", what);
}

/* What is written for numbers that JSON cannot express. */
static int hint_finite(struct scanner *sc, const char *word, size_t len)
{
	if (len > 0 && *word == '-') {
		word++;
		len--;
	}
	if (len >= 3 && (strncasecmp(word, "nan", 3) == 0 || strncasecmp(word, "inf", 3) == 0))
		return err_hint(sc->err, "numbers are finite; no limit is written \"max\"");
	return -EINVAL;
}

void json_scan_done(struct json_scan *scan)
{
	for (size_t i = 0; i < scan->n_places; i++)
		free(scan->places[i].key);
	free(scan->places);
	*scan = (struct json_scan){0};
}

int json_scan_child(const struct json_scan *scan, int parent, int index)
{
	for (size_t i = 0; i < scan->n_places; i++) {
		if (scan->places[i].parent == parent && scan->places[i].index == index)
			return i;
	}
	return -1;
}

/* Returns the new place's index; key is moved in, also on failure. */
static int add_place(struct scanner *sc, const struct json_place *place)
{
	struct json_scan *s = sc->out;
	_cleanup_free_ char *key = place->key;

	if (s->n_places >= JSON_VALUES_MAX)
		return fail(sc, sc->p, "more than %d values in one file", JSON_VALUES_MAX);
	if (s->n_places == s->size) {
		size_t size = s->size ? s->size * 2 : 32;
		struct json_place *p = realloc(s->places, size * sizeof(*p));

		if (!p)
			return err_set(sc->err, -ENOMEM, "%s: out of memory", s->path);
		s->places = p;
		s->size = size;
	}
	s->places[s->n_places] = *place;
	s->places[s->n_places].key = TAKE_PTR(key);
	return s->n_places++;
}

/* Skips blanks; fails on what people write there although JSON has no such thing. */
static int skip_blanks(struct scanner *sc)
{
	while (sc->p < sc->end && strchr(" \t\r\n", *sc->p) && *sc->p)
		sc->p++;
	if (sc->p == sc->end)
		return 0;
	if (*sc->p == '\0') {
		fail(sc, sc->p, "a NUL byte");
		return err_hint(sc->err, "the file must be UTF-8 text; is it UTF-16 or binary?");
	}
	if (*sc->p == '/' || *sc->p == '#') {
		fail(sc, sc->p, "JSON has no comments");
		return err_hint(sc->err, "remove the comment");
	}
	return 0;
}

/* Checks the string at p (its opening quote) and appends it, decoded, to ret unless NULL. */
static int scan_string(struct scanner *sc, struct str *ret)
{
	const char *start = sc->p++, *why;
	size_t n;

	for (;;) {
		if (sc->p == sc->end || *sc->p == '\n')
			return fail(sc, start, "the string is not closed");
		if (*sc->p == '"')
			break;
		if (*sc->p == '\0')
			return fail(sc, sc->p, "a NUL byte in a string");
		if ((unsigned char)*sc->p < ' ')
			return fail(sc, sc->p, "a control character in a string; write \\u%04x",
				    *sc->p);
		if (*sc->p == '\\') {
			n = json_escape(sc->p, sc->end, ret, &why);
			if (n == 0)
				return fail(sc, sc->p, "%s", why);
		} else {
			n = utf8_length(sc->p, sc->end);
			if (n == 0)
				return fail(sc, sc->p, "invalid UTF-8 in a string");
			if (ret)
				str_addn(ret, sc->p, n);
		}
		sc->p += n;
	}
	sc->p++;
	return 0;
}

static bool is_digit(const struct scanner *sc)
{
	return sc->p < sc->end && *sc->p >= '0' && *sc->p <= '9';
}

static bool skip_one(struct scanner *sc, const char *set)
{
	if (sc->p == sc->end || *sc->p == '\0' || !strchr(set, *sc->p))
		return false;
	sc->p++;
	return true;
}

/* Reads digits; *magnitude becomes the power of ten of the first one that is not 0, counted
 * from the point (123 → 3, 0.01 → -1), and stays INT64_MIN while all are 0. */
static bool scan_digits(struct scanner *sc, bool is_fraction, int64_t *magnitude)
{
	const char *start = sc->p, *first = NULL;

	for (; is_digit(sc); sc->p++) {
		if (!first && *sc->p != '0')
			first = sc->p;
	}
	if (first && *magnitude == INT64_MIN)
		*magnitude = is_fraction ? start - first : sc->p - first;
	return sc->p > start;
}

static void scan_exponent(struct scanner *sc, int64_t *magnitude, bool *is_ok)
{
	bool negative = sc->p < sc->end && *sc->p == '-';
	int64_t e = 0;

	(void)skip_one(sc, "+-");
	*is_ok = is_digit(sc);
	for (; is_digit(sc); sc->p++)
		e = MIN(e * 10 + (*sc->p - '0'), INT64_C(1000000000)); /* far beyond any file */
	if (*magnitude != INT64_MIN)
		*magnitude += negative ? -e : e;
}

static int scan_number(struct scanner *sc)
{
	const char *start = sc->p, *digits, *stop;
	int64_t magnitude = INT64_MIN, whole;
	bool ok, is_whole = true;

	(void)skip_one(sc, "-");
	digits = sc->p;
	ok = scan_digits(sc, false, &magnitude) && (*digits != '0' || sc->p == digits + 1);
	if (ok && skip_one(sc, ".")) {
		is_whole = false;
		ok = scan_digits(sc, true, &magnitude);
	}
	if (ok && skip_one(sc, "eE")) {
		is_whole = false;
		scan_exponent(sc, &magnitude, &ok);
	}
	if (ok && sc->p < sc->end && !strchr(" \t\r\n,]}/#", *sc->p))
		ok = false;
	if (!ok) {
		while (sc->p < sc->end && *sc->p && !strchr(" \t\r\n,]}", *sc->p))
			sc->p++;
		fail_value(sc, start, "is not a number of JSON", start, sc->p - start);
		return hint_finite(sc, start, sc->p - start);
	}
	/* json-c would make infinity or the nearest integer of these, silently. The largest
	 * double is 1.8e308; nobody needs the last of its decades. */
	if (magnitude > 308 || (is_whole && num_scan_u63(digits, sc->p, &whole, &stop) < 0))
		return fail_value(sc, start, "is too large a number", start, sc->p - start);
	return 0;
}

static int scan_word(struct scanner *sc)
{
	static const char *const words[] = {"true", "false", "null"};
	const char *start = sc->p;
	size_t n;

	while (sc->p < sc->end && ((*sc->p >= 'a' && *sc->p <= 'z') || *sc->p == '_' ||
				   (*sc->p >= 'A' && *sc->p <= 'Z') || is_digit(sc)))
		sc->p++;
	n = sc->p - start;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i]) == n && memcmp(words[i], start, n) == 0)
			return 0;
	}
	if (*start == '\'') {
		fail(sc, start, "single quotes are not JSON");
		return err_hint(sc->err, "strings stand in double quotes");
	}
	if (n == 0 && utf8_length(start, sc->end) == 0)
		return fail(sc, start, "invalid UTF-8");
	if (n == 0)
		n = utf8_length(start, sc->end);
	fail_value(sc, start, "is no value of JSON", start, n);
	return hint_finite(sc, start, n);
}

static int scan_value(struct scanner *sc, struct json_place *take_place);

/* The key at p and the colon behind it; *ret_key is the caller's. */
static int scan_key(struct scanner *sc, int object, char **ret_key)
{
	const struct json_scan *s = sc->out;
	_cleanup_str_ struct str key = {0};
	const char *start = sc->p;
	int r;

	if (*sc->p == '\'') {
		fail(sc, sc->p, "single quotes are not JSON");
		return err_hint(sc->err, "keys stand in double quotes");
	}
	if (*sc->p != '"')
		return fail(sc, sc->p, "a key in double quotes is expected");
	str_add(&key, ""); /* an empty key is a key, too */
	r = scan_string(sc, &key);
	if (r < 0)
		return r;
	if (key.failed)
		return err_set(sc->err, -ENOMEM, "%s: out of memory", s->path);
	for (size_t i = object + 1; i < s->n_places; i++) {
		if (s->places[i].parent == object && strcmp(s->places[i].key, key.data) == 0)
			return fail(sc, start, "key \"%.64s\" is given twice", key.data);
	}
	r = skip_blanks(sc);
	if (r < 0)
		return r;
	if (!skip_one(sc, ":"))
		return fail(sc, sc->p, "a colon is expected behind the key \"%.64s\"", key.data);
	*ret_key = TAKE_PTR(key.data);
	return skip_blanks(sc);
}

/* One child of an object or list whose place is `container`. */
static int scan_child(struct scanner *sc, int container, int index, bool is_object)
{
	struct json_place place = {.parent = container, .index = index};
	int r;

	place.key_offset = sc->p - sc->out->text;
	if (is_object) {
		r = scan_key(sc, container, &place.key);
		if (r < 0) {
			free(place.key);
			return r;
		}
	}
	return scan_value(sc, &place);
}

static int scan_container(struct scanner *sc, int container)
{
	const char *open = sc->p++, *comma = NULL;
	bool is_object = *open == '{';
	char close = is_object ? '}' : ']';
	int r;

	for (int index = 0;; index++) {
		r = skip_blanks(sc);
		if (r < 0)
			return r;
		if (sc->p == sc->end)
			return fail(sc, open, "this %c is never closed", *open);
		if (*sc->p == close && comma)
			return fail(sc, comma, "a comma before the closing %c", close);
		if (*sc->p == close)
			break;
		r = scan_child(sc, container, index, is_object);
		if (r >= 0)
			r = skip_blanks(sc);
		if (r < 0)
			return r;
		if (sc->p == sc->end)
			return fail(sc, open, "this %c is never closed", *open);
		if (*sc->p == close)
			break;
		comma = sc->p;
		if (!skip_one(sc, ","))
			return fail(sc, sc->p, "a comma or %c is expected", close);
	}
	sc->p++;
	return 0;
}

/* The value at p; the key in take_place is moved in, also on failure. */
static int scan_value(struct scanner *sc, struct json_place *take_place)
{
	const char *start = sc->p, *outer = sc->key;
	int r, place;

	take_place->offset = start - sc->out->text;
	place = add_place(sc, take_place);
	if (place < 0)
		return place;
	if (sc->out->places[place].key)
		sc->key = sc->out->places[place].key;
	if (sc->p == sc->end)
		return fail(sc, sc->p, "the file ends where a value is expected");
	if (*sc->p == '{' || *sc->p == '[') {
		if (++sc->depth > JSON_DEPTH_MAX)
			return fail(sc, sc->p, "nested more than %d levels deep", JSON_DEPTH_MAX);
		r = scan_container(sc, place);
		sc->depth--;
	} else if (*sc->p == '"') {
		r = scan_string(sc, NULL);
	} else if (*sc->p == '-' || is_digit(sc)) {
		r = scan_number(sc);
	} else {
		r = scan_word(sc);
	}
	sc->out->places[place].len = sc->p - start;
	sc->key = outer;
	return r;
}

int json_scan(struct json_scan *ret, const char *path, const char *text, size_t len,
	      struct err *err)
{
	struct scanner sc = {.out = ret, .p = text, .end = text + len, .err = err};
	struct json_place top = {.parent = -1};
	int r;

	*ret = (struct json_scan){.path = path, .text = text, .len = len};
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		ret->start = 3; /* editors write it; it is not part of the text */
		sc.p += 3;
	}
	r = skip_blanks(&sc);
	if (r < 0)
		return r;
	if (sc.p == sc.end)
		return err_set(err, -EINVAL, "%s: the file is empty", path);
	r = scan_value(&sc, &top);
	if (r >= 0)
		r = skip_blanks(&sc);
	if (r < 0)
		return r;
	if (sc.p < sc.end)
		return fail(&sc, sc.p, "text behind the end of the JSON value");
	return 0;
}
