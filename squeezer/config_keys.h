/*
 * The one table of configuration keys: parsing, checking, `config show`, `config explain` and
 * the documentation are all driven by it. Internal to squeezer/config*.c.
 */
#pragma once

#include "squeezer/config.h"
#include "squeezer/json_scan.h"

struct json_object;

enum key_type {
	KEY_WORD,   /* one of `words`; stored as its index in an enum */
	KEY_LAW,    /* the name of a law */
	KEY_NUMBER, /* double, times `factor` */
	KEY_TICK,   /* whole number, times `factor`, int64_t */
	KEY_WHOLE,  /* whole number, int */
	KEY_ZERO,   /* only 0, not stored */
	KEY_SIZE,   /* int64_t bytes, no percentage */
	KEY_AMOUNT, /* struct amount */
	KEY_RANGES, /* params_ranges */
	KEY_TEXT,   /* any string, ignored */
};

struct config_key {
	const char *name;
	enum key_type type;
	unsigned modes;  /* bit per enum squeeze_mode in which it may stand */
	size_t offset;   /* in struct squeezer_config */
	double min, max; /* in the unit of the file; of an amount in bytes */
	double factor;   /* stored = file * factor */
	bool is_limit;   /* an amount of which 2^50 and more mean none */
	bool may_be_auto;
	bool may_be_absent;       /* `min` - 1 stored = not set: left out by config_to_json */
	const char *unit;         /* in words; NULL = none */
	const char *const *words; /* NULL-terminated */
	const char *help;
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

const struct config_key *config_key_find(const char *name);

/* A value and where it stands, while a file is read. */
struct config_value {
	const struct json_scan *scan;
	int place;
	struct json_object *json;
	const char *key; /* as named in messages */
};

/* Sets `PATH:LINE:COLUMN: key "…": <text>`; returns -EINVAL. */
int config_value_fail(const struct config_value *val, struct err *err, const char *fmt, ...)
	_printf_(3, 4);

/* Checks the value and stores it; -EINVAL with a located message. */
int config_key_set(const struct config_key *key, struct squeezer_config *cfg,
		   const struct config_value *val, struct err *err);

/* As config_key_set for a list of params_ranges (config_ranges.c). */
int config_ranges_set(struct squeezer_config *cfg, const struct config_value *val, struct err *err);

/* A finite number ≥ 0, or -EINVAL with a message that says `what` is expected. */
int config_number(const struct config_value *val, const char *what, double *ret, struct err *err);

/* The value's text as written, shortened, for messages. */
#define CONFIG_SHOWN_MAX 64
const char *config_shown(char buf[static CONFIG_SHOWN_MAX], const struct config_value *val);

/* Appends the value as JSON; false (nothing appended) where it has none. */
bool config_key_format(const struct config_key *key, const struct squeezer_config *cfg,
		       struct str *out);

/* Appends the accepted values in words: `"memory.max" or "memory.high"`, `0 … 50 (percent)`. */
void config_key_range(const struct config_key *key, struct str *out);

/* The candidate nearest to word by edit distance, near enough to be a slip; else NULL. */
const char *config_nearest(const char *word, const char *const *candidates, size_t n);
