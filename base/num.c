#include "base/num.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int num_scan_u63(const char *p, const char *end, int64_t *ret, const char **ret_end)
{
	int64_t v = 0;
	const char *start = p;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
			return -ERANGE;
	}
	if (p == start)
		return -EINVAL;
	*ret = v;
	*ret_end = p;
	return 0;
}

int num_parse_u63(const char *s, int64_t *ret)
{
	const char *end = s + strlen(s), *stop;
	int64_t v;
	int r;

	r = num_scan_u63(s, end, &v, &stop);
	if (r < 0)
		return r;
	if (stop != end)
		return -EINVAL;
	*ret = v;
	return 0;
}

int num_parse_limit(const char *s, int64_t *ret)
{
	if (strcmp(s, "max") == 0) {
		*ret = NUM_MAX;
		return 0;
	}
	return num_parse_u63(s, ret);
}

/* Digits with at most one point between or behind them; *ret_rest is what follows. Written out
 * because the C library's own accepts signs, blanks, hexadecimal, exponents and the locale. */
static int scan_decimal(const char *s, double *ret, const char **ret_rest)
{
	double v = 0, scale = 1;
	bool digits = false, point = false;

	for (;; s++) {
		if (*s >= '0' && *s <= '9') {
			digits = true;
			v = v * 10 + (*s - '0');
			if (point)
				scale *= 10;
		} else if (*s == '.' && !point) {
			point = true;
		} else {
			break;
		}
	}
	if (!digits)
		return -EINVAL;
	if (!isfinite(v) || !isfinite(scale))
		return -ERANGE;
	*ret = v / scale;
	*ret_rest = s;
	return 0;
}

static int to_i63(double v, int64_t *ret)
{
	if (!(v < 9223372036854775807.0))
		return -ERANGE;
	*ret = (int64_t)v;
	return 0;
}

int num_parse_size(const char *s, int64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	const char *rest, *u;
	double v, unit = 1;
	int r;

	if (strcmp(s, "max") == 0) {
		*ret_bytes = NUM_MAX;
		return 0;
	}
	/* Whole bytes first: a double would round above 2^53. */
	r = num_parse_u63(s, ret_bytes);
	if (r != -EINVAL)
		return r;
	r = scan_decimal(s, &v, &rest);
	if (r < 0)
		return r;
	u = *rest ? strchr(units, *rest == 'k' ? 'K' : *rest) : NULL;
	if (!u)
		return -EINVAL;
	for (size_t i = 0; i <= (size_t)(u - units); i++)
		unit *= 1024;
	rest++;
	if (*rest && strcmp(rest, "B") != 0 && strcmp(rest, "iB") != 0)
		return -EINVAL;
	return to_i63(v * unit, ret_bytes);
}

int num_parse_duration(const char *s, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},  {"ns", 1},   {"us", 1e3},  {"ms", 1e6},
		     {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
	const char *rest;
	double v;
	int r;

	r = scan_decimal(s, &v, &rest);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(rest, units[i].name) == 0)
			return to_i63(v * units[i].ns, ret_ns);
	}
	return -EINVAL;
}

int num_parse_percent(const char *s, double *ret_pct)
{
	const char *rest;
	double v;
	int r;

	r = scan_decimal(s, &v, &rest);
	if (r < 0)
		return r;
	if (strcmp(rest, "%") != 0)
		return -EINVAL;
	*ret_pct = v;
	return 0;
}

int num_parse_fraction(const char *s, double *ret)
{
	const char *rest;
	double v;
	int r;

	r = scan_decimal(s, &v, &rest);
	if (r < 0)
		return r;
	if (*rest)
		return -EINVAL;
	*ret = v;
	return 0;
}
