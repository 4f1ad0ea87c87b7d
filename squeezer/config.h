/*
 * The squeezer's configuration: the ancestor's JSON with its keys and values accepted unchanged,
 * more keys with units. One table of keys drives parsing, checking, `analyzer config explain`
 * and the documentation.
 *
 * Life: config_load or config_init_default → read only → nothing to free (a plain value).
 * A small tokenizer of ours checks syntax, duplicates, numbers and nesting and keeps each key's
 * place; json-c builds the tree. Errors name file:line:column, key, value, range and remedy.
 */
#pragma once

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"

enum squeeze_mode { MODE_STATIC, MODE_STATICSWEEP, MODE_DYNAMIC };
enum knob { KNOB_MAX, KNOB_HIGH, KNOB_RECLAIM };
enum limit_phase { PHASE_START, PHASE_STEADY };

/* A size that may be given in percent of the baseline's peak. */
struct amount {
	bool is_pct;
	double pct;
	int64_t bytes; /* NUM_MAX = none */
};

#define CONFIG_RANGE_MAX 64

struct squeezer_config {
	enum squeeze_mode mode;
	char law[32]; /* "step", …; only with MODE_DYNAMIC */
	enum knob knob;
	struct amount init_limit; /* 0 bytes = none */
	struct amount min_limit;  /* 0 bytes = none; NUM_MAX = never squeeze */
	struct amount max_limit;  /* NUM_MAX = none; the ancestor's 2^50 and more too */
	double delay_s;           /* no squeezing before this time after exec */
	double squeeze_max_pct;
	double squeeze_delta_pct;
	double squeeze_timeout_s;
	double pf_rate_watermark; /* major faults per second */
	int64_t tick_ns;
	double stall_budget; /* fraction */
	int64_t max_step_bytes;
	struct amount headroom; /* bytes -1 = automatic ("auto") */
	enum limit_phase limit_phase;
	int protect_percentile; /* 0 = find mode */
	/* staticsweep: percentages below the baseline's peak, in the file's order. */
	size_t n_range;
	double range_pct[CONFIG_RANGE_MAX];
	bool notes_reclaimer; /* `reclaimer`/`reclaimer_file` were given and are ignored */
};

/* "512M", "max" or "80%" (of the baseline's peak); also for --limit. Returns 0, -EINVAL or
 * -ERANGE, and writes *ret only on success. */
int amount_parse(const char *text, struct amount *ret);

void config_init_default(struct squeezer_config *cfg, enum squeeze_mode mode);

/* Errors: as open/read; -EINVAL with a located message. Files over 1 MiB are refused. */
int config_load(struct squeezer_config *cfg, const char *path, struct err *err);

/* As config_load, from memory; path only for messages. */
int config_parse(struct squeezer_config *cfg, const char *path, const char *text, size_t len,
		 struct err *err);

/* True when the run needs a baseline's peak first: a sweep, or a size in percent. */
bool config_needs_baseline(const struct squeezer_config *cfg);

/* Turns percentages into bytes. A minimum that then lies above the maximum is lowered to it. */
void config_resolve(struct squeezer_config *cfg, int64_t baseline_peak_bytes);

/* The effective configuration as one JSON object: every key that has a value and that the mode
 * knows, so that config_parse accepts it; reclaimer and reclaimer_file are left out. */
void config_to_json(const struct squeezer_config *cfg, struct str *out);

/* For each key: value in this configuration (or the default when cfg is NULL), unit, range,
 * meaning: the text of `analyzer config explain`. */
void config_explain(const struct squeezer_config *cfg, struct str *out);

const char *knob_file(enum knob knob); /* memory.max, memory.high, memory.reclaim */
const char *squeeze_mode_name(enum squeeze_mode mode);
