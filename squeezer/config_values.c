/* Checking and storing the values of a configuration file. */
#include "squeezer/config_keys.h"
#include "squeezer/json_string.h"
#include "squeezer/law.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <string.h>

#define LIMIT_NONE (INT64_C(1) << 50) /* the ancestor's largest limit, its word for "none" */
#define PCT_MAX 1000

static int value_failv(const struct config_value *val, struct err *err, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static int value_failv(const struct config_value *val, struct err *err, const char *fmt, va_list ap)
{
	char text[sizeof(err->msg)];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	return json_scan_fail(val->scan, val->scan->places[val->place].offset, err,
			      "key \"%.64s\": %s", val->key, text);
}

int config_value_fail(const struct config_value *val, struct err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)value_failv(val, err, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *config_shown(char buf[static CONFIG_SHOWN_MAX], const struct config_value *val)
{
	const struct json_place *place = &val->scan->places[val->place];
	const char *text = val->scan->text + place->offset;
	size_t n = 0, step;

	if (*text == '{' || *text == '[') {
		(void)snprintf(buf, CONFIG_SHOWN_MAX, *text == '{' ? "an object" : "a list");
		return buf;
	}
	while (n < place->len && n < 40) {
		step = utf8_length(text + n, text + place->len);
		n += step ? step : 1;
	}
	(void)snprintf(buf, CONFIG_SHOWN_MAX, "%.*s%s", (int)n, text, n < place->len ? "…" : "");
	return buf;
}

int config_number(const struct config_value *val, const char *what, double *ret, struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];

	if (json_object_is_type(val->json, json_type_int)) {
		*ret = json_object_get_int64(val->json);
	} else if (json_object_is_type(val->json, json_type_double)) {
		*ret = json_object_get_double(val->json);
	} else {
		config_value_fail(val, err, "%s is not %s", config_shown(shown, val), what);
		if (json_object_is_type(val->json, json_type_string))
			err_hint(err, "numbers stand without quotes");
		return -EINVAL;
	}
	*ret += 0.0; /* -0 and 0 are one value */
	return 0;
}

static int out_of_range(const struct config_key *key, const struct config_value *val,
			struct err *err)
{
	_cleanup_str_ struct str range = {0};
	char shown[CONFIG_SHOWN_MAX];

	config_key_range(key, &range);
	return config_value_fail(val, err, "%s is out of range; %s", config_shown(shown, val),
				 range.data ? range.data : "");
}

/* A number within the key's range, in the file's unit. */
static int ranged(const struct config_key *key, const struct config_value *val, bool is_whole,
		  double *ret, struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];
	double v;
	int r;

	r = config_number(val, is_whole ? "a whole number" : "a number", &v, err);
	if (r < 0)
		return r;
	if (!(v >= key->min && v <= key->max))
		return out_of_range(key, val, err);
	if (is_whole && v != (double)(int64_t)v)
		return config_value_fail(val, err, "%s is not a whole number",
					 config_shown(shown, val));
	*ret = v;
	return 0;
}

static int unknown_word(const struct config_value *val, const char *what, const char *word,
			const char *const *words, size_t n, struct err *err)
{
	_cleanup_str_ struct str list = {0};
	char shown[CONFIG_SHOWN_MAX];
	const char *near = config_nearest(word, words, n);

	for (size_t i = 0; i < n; i++)
		str_addf(&list, "%s\"%s\"", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
	config_value_fail(val, err, "%s is not %s; use %s", config_shown(shown, val), what,
			  list.data ? list.data : "");
	return near ? err_hint(err, "did you mean \"%s\"?", near) : -EINVAL;
}

static int set_word(const struct config_key *key, struct squeezer_config *cfg,
		    const struct config_value *val, struct err *err)
{
	const char *word = "";
	size_t n;

	if (json_object_is_type(val->json, json_type_string))
		word = json_object_get_string(val->json);
	for (n = 0; key->words[n]; n++) {
		if (strcmp(key->words[n], word) == 0) {
			/* Every enum here counts from 0 and has the size of an int. */
			memcpy((char *)cfg + key->offset, &(int){n}, sizeof(int));
			return 0;
		}
	}
	return unknown_word(val, "known", word, key->words, n, err);
}

static int set_law(struct squeezer_config *cfg, const struct config_value *val, struct err *err)
{
	const char *names[16], *word = "";
	size_t n = 0;

	if (json_object_is_type(val->json, json_type_string))
		word = json_object_get_string(val->json);
	for (; laws[n] && n < ARRAY_SIZE(names); n++)
		names[n] = laws[n]->name;
	if (!law_find(word))
		return unknown_word(val, "a law of this version", word, names, n, err);
	(void)snprintf(cfg->law, sizeof(cfg->law), "%s", word);
	return 0;
}

int amount_parse(const char *text, struct amount *ret)
{
	struct amount a = {0};
	int r;

	r = num_parse_percent(text, &a.pct);
	if (r == 0)
		a.is_pct = true;
	else if (r == -EINVAL)
		r = num_parse_size(text, &a.bytes);
	if (r < 0)
		return r;
	*ret = a;
	return 0;
}

/* Reads a size: a whole number, or a string with a unit. */
static int read_amount(const struct config_value *val, const char *what, struct amount *ret,
		       struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];
	double v;
	int r;

	*ret = (struct amount){0};
	if (json_object_is_type(val->json, json_type_string)) {
		r = amount_parse(json_object_get_string(val->json), ret);
		if (r == -ERANGE)
			return config_value_fail(val, err, "%s is too large",
						 config_shown(shown, val));
		if (r < 0)
			return config_value_fail(val, err, "%s is not %s", config_shown(shown, val),
						 what);
		return 0;
	}
	r = config_number(val, what, &v, err);
	if (r < 0)
		return r;
	/* Through int64_t where json-c has it: a double rounds above 2^53. */
	ret->bytes = json_object_is_type(val->json, json_type_int)
			     ? json_object_get_int64(val->json)
		     : v < 0 ? -1
			     : (int64_t)MIN(v, 9007199254740992.0);
	if (json_object_is_type(val->json, json_type_double) && v != (double)ret->bytes && v > 0)
		return config_value_fail(val, err, "%s is not a whole number of bytes",
					 config_shown(shown, val));
	return 0;
}

static int set_amount(const struct config_key *key, struct squeezer_config *cfg,
		      const struct config_value *val, struct err *err)
{
	struct amount *ret = (struct amount *)((char *)cfg + key->offset);
	struct amount a;
	int r;

	if (key->may_be_auto && json_object_is_type(val->json, json_type_string) &&
	    strcmp(json_object_get_string(val->json), "auto") == 0) {
		*ret = (struct amount){.bytes = -1};
		return 0;
	}
	r = read_amount(val,
			key->is_limit ? "a size: bytes, \"512M\", \"80%\" or \"max\""
				      : "a size: bytes, \"16M\", \"2%\" or \"auto\"",
			&a, err);
	if (r < 0)
		return r;
	if (a.is_pct ? (key->min > 0 && a.pct <= 0) || a.pct > PCT_MAX : a.bytes < key->min)
		return out_of_range(key, val, err);
	if (key->is_limit && !a.is_pct && a.bytes >= LIMIT_NONE)
		a.bytes = NUM_MAX;
	if (!key->is_limit && a.bytes == NUM_MAX)
		return out_of_range(key, val, err);
	*ret = a;
	return 0;
}

static int set_size(const struct config_key *key, struct squeezer_config *cfg,
		    const struct config_value *val, struct err *err)
{
	static const char what[] = "a size: bytes, \"16M\" or \"max\"";
	char shown[CONFIG_SHOWN_MAX];
	struct amount a;
	int r;

	r = read_amount(val, what, &a, err);
	if (r < 0)
		return r;
	if (a.is_pct)
		return config_value_fail(val, err, "%s is not %s", config_shown(shown, val), what);
	if (a.bytes < key->min)
		return out_of_range(key, val, err);
	memcpy((char *)cfg + key->offset, &a.bytes, sizeof(a.bytes));
	return 0;
}

static int set_number(const struct config_key *key, struct squeezer_config *cfg,
		      const struct config_value *val, struct err *err)
{
	char *field = (char *)cfg + key->offset;
	double v = 0;
	int r;

	r = ranged(key, val, key->type != KEY_NUMBER, &v, err);
	if (r < 0)
		return r;
	if (key->type == KEY_NUMBER)
		memcpy(field, &(double){v * key->factor}, sizeof(double));
	else if (key->type == KEY_TICK)
		memcpy(field, &(int64_t){v * key->factor}, sizeof(int64_t));
	else if (key->type == KEY_WHOLE)
		memcpy(field, &(int){v}, sizeof(int));
	return 0;
}

int config_key_set(const struct config_key *key, struct squeezer_config *cfg,
		   const struct config_value *val, struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];

	switch (key->type) {
	case KEY_WORD:
		return set_word(key, cfg, val, err);
	case KEY_LAW:
		return set_law(cfg, val, err);
	case KEY_NUMBER:
	case KEY_TICK:
	case KEY_WHOLE:
	case KEY_ZERO:
		return set_number(key, cfg, val, err);
	case KEY_SIZE:
		return set_size(key, cfg, val, err);
	case KEY_AMOUNT:
		return set_amount(key, cfg, val, err);
	case KEY_RANGES:
		return config_ranges_set(cfg, val, err);
	case KEY_TEXT:
		break;
	}
	if (!json_object_is_type(val->json, json_type_string))
		return config_value_fail(val, err, "%s is not a string", config_shown(shown, val));
	cfg->notes_reclaimer = true;
	return 0;
}
