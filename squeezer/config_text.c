/* Writing a configuration: as JSON and as the documentation of its keys. */
#include "squeezer/config_keys.h"

#include "base/fmt.h"

#include <inttypes.h>
#include <string.h>

#define EXPLAIN_WIDTH 80

static void format_amount(const struct amount *a, struct str *out)
{
	if (a->is_pct)
		str_addf(out, "\"%.15g%%\"", a->pct);
	else if (a->bytes == NUM_MAX)
		str_add(out, "\"max\"");
	else if (a->bytes < 0)
		str_add(out, "\"auto\"");
	else
		str_addf(out, "%" PRId64, a->bytes);
}

static bool format_ranges(const struct squeezer_config *cfg, struct str *out)
{
	if (cfg->n_range == 0)
		return false;
	str_add(out, "[{\"with_baseline\": 1, \"param\": \"memory\", \"range\": [");
	for (size_t i = 0; i < cfg->n_range; i++)
		str_addf(out, "%s%.15g", i ? ", " : "", cfg->range_pct[i]);
	str_add(out, "]}]");
	return true;
}

bool config_key_format(const struct config_key *key, const struct squeezer_config *cfg,
		       struct str *out)
{
	const char *field = (const char *)cfg + key->offset;
	int64_t i64;
	double d;
	int i;

	switch (key->type) {
	case KEY_WORD:
		memcpy(&i, field, sizeof(i));
		str_addf(out, "\"%s\"", key->words[i]);
		return true;
	case KEY_LAW:
		if (cfg->law[0])
			str_addf(out, "\"%s\"", cfg->law);
		return cfg->law[0];
	case KEY_NUMBER:
		memcpy(&d, field, sizeof(d));
		str_addf(out, "%.15g", d / key->factor);
		return true;
	case KEY_TICK:
		memcpy(&i64, field, sizeof(i64));
		str_addf(out, "%.15g", i64 / key->factor);
		return true;
	case KEY_WHOLE:
		memcpy(&i, field, sizeof(i));
		if (i < key->min && key->may_be_absent)
			return false;
		str_addf(out, "%d", i);
		return true;
	case KEY_ZERO:
		str_add(out, "0");
		return true;
	case KEY_SIZE:
		memcpy(&i64, field, sizeof(i64));
		format_amount(&(struct amount){.bytes = i64}, out);
		return true;
	case KEY_AMOUNT:
		format_amount((const struct amount *)field, out);
		return true;
	case KEY_RANGES:
		return format_ranges(cfg, out);
	case KEY_TEXT:
		break;
	}
	return false;
}

static void amount_range(const struct config_key *key, struct str *out)
{
	char buf[FMT_MAX];

	if (key->min > 1)
		str_addf(out, "%s or more", fmt_bytes(buf, key->min));
	else
		str_add(out, key->min > 0 ? "more than 0" : "0 or more");
	if (key->type == KEY_SIZE)
		str_add(out, ", or \"max\" (bytes, or with K, M, G, T)");
	else
		str_addf(out,
			 ", %s to 1000%%, or \"%s\" (bytes, with K, M, G, T, or %% of the "
			 "baseline's peak)",
			 key->min > 0 ? "more than 0%" : "0%", key->is_limit ? "max" : "auto");
}

void config_key_range(const struct config_key *key, struct str *out)
{
	switch (key->type) {
	case KEY_WORD:
		for (size_t i = 0; key->words[i]; i++)
			str_addf(out, "%s\"%s\"",
				 i == 0              ? ""
				 : key->words[i + 1] ? ", "
						     : " or ",
				 key->words[i]);
		break;
	case KEY_LAW:
		str_add(out, "the name of a law");
		break;
	case KEY_ZERO:
		str_add(out, "only 0");
		break;
	case KEY_NUMBER:
	case KEY_TICK:
	case KEY_WHOLE:
		str_addf(out, "%.15g … %.15g", key->min, key->max);
		if (key->unit)
			str_addf(out, " (%s)", key->unit);
		break;
	case KEY_SIZE:
	case KEY_AMOUNT:
		amount_range(key, out);
		break;
	case KEY_RANGES:
		str_add(out, "a list of objects");
		break;
	case KEY_TEXT:
		str_add(out, "any string");
		break;
	}
}

void config_to_json(const struct squeezer_config *cfg, struct str *out)
{
	const char *lead = "{\n";

	for (size_t i = 0; i < config_n_keys; i++) {
		_cleanup_str_ struct str value = {0};

		if (!(config_keys[i].modes & 1u << cfg->mode) ||
		    !config_key_format(&config_keys[i], cfg, &value))
			continue;
		str_addf(out, "%s  \"%s\": %s", lead, config_keys[i].name,
			 value.data ? value.data : "null");
		out->failed |= value.failed;
		lead = ",\n";
	}
	str_add(out, "\n}\n");
}

/* Appends text in lines of at most EXPLAIN_WIDTH columns, indented, broken between words. */
static void add_wrapped(struct str *out, const char *text)
{
	size_t col = 0;

	while (*text) {
		size_t n = strcspn(text, " "), width = 0;

		for (size_t i = 0; i < n; i++)
			width += (text[i] & 0xc0) != 0x80; /* characters, not bytes */
		if (col > 0 && col + 1 + width > EXPLAIN_WIDTH) {
			str_add(out, "\n");
			col = 0;
		}
		str_add(out, col == 0 ? "    " : " ");
		str_addn(out, text, n);
		col += (col == 0 ? 4 : 1) + width;
		text += n;
		while (*text == ' ')
			text++;
	}
	str_add(out, "\n");
}

static void explain_key(const struct config_key *key, const struct squeezer_config *cfg,
			const struct squeezer_config *defaults, struct str *out)
{
	_cleanup_str_ struct str value = {0}, dflt = {0}, about = {0};

	if (cfg && key->modes & 1u << cfg->mode && config_key_format(key, cfg, &value))
		str_addf(out, "%s = %s\n", key->name, value.data ? value.data : "");
	else
		str_addf(out, "%s\n", key->name);
	config_key_range(key, &about);
	if (key->offset == offsetof(struct squeezer_config, mode) && key->type == KEY_WORD)
		str_add(&about, "; required");
	else if (config_key_format(key, defaults, &dflt) && key->type != KEY_ZERO)
		str_addf(&about, "; default %s", dflt.data ? dflt.data : "");
	for (int mode = MODE_STATIC; mode <= MODE_DYNAMIC; mode++) {
		if (key->modes == 1u << mode)
			str_addf(&about, "; only in mode %s", squeeze_mode_name(mode));
	}
	add_wrapped(out, about.data ? about.data : "");
	add_wrapped(out, key->help);
	out->failed |= value.failed | dflt.failed | about.failed;
}

void config_explain(const struct squeezer_config *cfg, struct str *out)
{
	struct squeezer_config defaults;

	config_init_default(&defaults, MODE_DYNAMIC);
	for (size_t i = 0; i < config_n_keys; i++) {
		if (i > 0)
			str_add(out, "\n");
		explain_key(&config_keys[i], cfg, &defaults, out);
	}
}
