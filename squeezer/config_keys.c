#include "squeezer/config_keys.h"

#include <string.h>

#define ALL (1u << MODE_STATIC | 1u << MODE_STATICSWEEP | 1u << MODE_DYNAMIC)
#define AT(field) offsetof(struct squeezer_config, field)

static const char *const mode_words[] = {"static", "staticsweep", "dynamic", NULL};
static const char *const knob_words[] = {"memory.max", "memory.high", "memory.reclaim", NULL};
static const char *const phase_words[] = {"start", "steady", NULL};

/* The order is that of the documentation. Defaults: config_init_default(). */
const struct config_key config_keys[] = {
	{.name = "mode",
	 .type = KEY_WORD,
	 .modes = ALL,
	 .offset = AT(mode),
	 .words = mode_words,
	 .help = "What the squeezer does. static: one run under the limit init_limit. staticsweep: "
		 "a baseline run, then one run for each percentage of params_ranges. dynamic: a "
		 "law finds the limit while the workload runs."},
	{.name = "law",
	 .type = KEY_LAW,
	 .modes = 1u << MODE_DYNAMIC,
	 .offset = AT(law),
	 .help = "The rule that decides at each tick in mode dynamic; see `analyzer list laws`."},
	{.name = "knob",
	 .type = KEY_WORD,
	 .modes = ALL,
	 .offset = AT(knob),
	 .words = knob_words,
	 .help = "The kernel's file that is written. memory.max and memory.high hold a limit; "
		 "memory.reclaim only pushes pages out, so it needs mode dynamic."},
	{.name = "init_limit",
	 .type = KEY_AMOUNT,
	 .modes = ALL,
	 .offset = AT(init_limit),
	 .is_limit = true,
	 .help = "The first limit; 0 = none. In mode static it is the limit, and required. For "
		 "this and the other limits: 1125899906842624 (2^50 bytes) and more mean none, and "
		 "a percentage is of the baseline's peak, so that a baseline run comes first."},
	{.name = "min_limit",
	 .type = KEY_AMOUNT,
	 .modes = ALL,
	 .offset = AT(min_limit),
	 .is_limit = true,
	 .help = "Never squeeze below this size; 0 = no such bound, \"max\" = never squeeze."},
	{.name = "max_limit",
	 .type = KEY_AMOUNT,
	 .modes = ALL,
	 .offset = AT(max_limit),
	 .min = 1,
	 .is_limit = true,
	 .help = "The limit while nothing is squeezed; \"max\" = none."},
	{.name = "delay",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(delay_s),
	 .max = 3600,
	 .factor = 1,
	 .unit = "seconds",
	 .help = "No squeezing before this time after the workload's start."},
	{.name = "fixed",
	 .type = KEY_ZERO,
	 .modes = ALL,
	 .help = "Accepted for old files; it has no effect."},
	{.name = "squeeze_max",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(squeeze_max_pct),
	 .max = 50,
	 .factor = 1,
	 .unit = "percent",
	 .help = "Law step: the most that one squeeze takes off the usage; 0 = never squeeze."},
	{.name = "squeeze_delta",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(squeeze_delta_pct),
	 .min = 1,
	 .max = 50,
	 .factor = 1,
	 .unit = "percent",
	 .help = "Law step: how much the percentage grows with each squeeze that went well and "
		 "shrinks with each that did not."},
	{.name = "squeeze_timeout",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(squeeze_timeout_s),
	 .min = 1,
	 .max = 60,
	 .factor = 1,
	 .unit = "seconds",
	 .help = "A squeeze that takes longer is cancelled and counts as failed."},
	{.name = "pf_rate_watermark",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(pf_rate_watermark),
	 .min = 1,
	 .max = 1e9,
	 .factor = 1,
	 .unit = "major faults per second",
	 .help = "A higher fault rate ends the squeezing and raises the limit. What a fault costs "
		 "depends on the swap device: 10000/s is a tenth of one CPU with zswap and more "
		 "than a disk can do."},
	{.name = "params_ranges",
	 .type = KEY_RANGES,
	 .modes = 1u << MODE_STATICSWEEP,
	 .help = "Mode staticsweep, required: a list of objects {\"with_baseline\": 0 or 1, "
		 "\"param\": \"memory\", \"range\": [numbers]}. Each number, more than 0 and less "
		 "than 100, makes a run whose limit lies so many percent below the baseline's peak. The "
		 "baseline is always run, with_baseline has no effect."},
	{.name = "tick_ms",
	 .type = KEY_TICK,
	 .modes = ALL,
	 .offset = AT(tick_ns),
	 .min = 10,
	 .max = 10000,
	 .factor = 1e6,
	 .unit = "milliseconds",
	 .help = "How often the squeezer looks. Law step decides at the sampling period (-s)."},
	{.name = "stall_budget_pct",
	 .type = KEY_NUMBER,
	 .modes = ALL,
	 .offset = AT(stall_budget),
	 .max = 100,
	 .factor = 0.01,
	 .unit = "percent of the time",
	 .help = "When tasks stall on memory for more than this share (PSI), squeezing ends and "
		 "the limit is raised."},
	{.name = "max_step",
	 .type = KEY_SIZE,
	 .modes = ALL,
	 .offset = AT(max_step_bytes),
	 .min = 256 * 1024,
	 .help = "The most that is asked of the kernel in one write."},
	{.name = "headroom",
	 .type = KEY_AMOUNT,
	 .modes = ALL,
	 .offset = AT(headroom),
	 .min = 256 * 1024,
	 .may_be_auto = true,
	 .help = "How far a held limit stays above the usage. auto = the largest of 2 % of the "
		 "usage, 16 MiB and three times the growth of the last tick."},
	{.name = "limit_phase",
	 .type = KEY_WORD,
	 .modes = ALL,
	 .offset = AT(limit_phase),
	 .words = phase_words,
	 .help = "When squeezing may begin: at the workload's start, or once its memory has "
		 "stopped growing (steady), so that the filling is not slowed."},
	{.name = "protect_percentile",
	 .type = KEY_WHOLE,
	 .modes = ALL,
	 .offset = AT(protect_percentile),
	 .min = 1,
	 .max = 100,
	 .may_be_absent = true,
	 .help = "Do not squeeze below this percentile of the sizes that were needed lately; "
		 "absent = find the least."},
	{.name = "reclaimer",
	 .type = KEY_TEXT,
	 .modes = ALL,
	 .help = "Accepted for old files and ignored."},
	{.name = "reclaimer_file",
	 .type = KEY_TEXT,
	 .modes = ALL,
	 .help = "Accepted for old files and ignored."},
};
const size_t config_n_keys = ARRAY_SIZE(config_keys);

const struct config_key *config_key_find(const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		if (strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	}
	return NULL;
}

const char *squeeze_mode_name(enum squeeze_mode mode)
{
	return mode_words[mode];
}

const char *knob_file(enum knob knob)
{
	return knob_words[knob];
}

/* Insertions, deletions, replacements and swaps of neighbours between two words; of longer ones
 * than any key, "far". */
static size_t edit_distance(const char *a, const char *b)
{
	enum { LONGEST = 32 };
	size_t d[LONGEST + 1][LONGEST + 1], na = strlen(a), nb = strlen(b);

	if (na > LONGEST || nb > LONGEST)
		return LONGEST;
	for (size_t i = 0; i <= na; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= nb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		for (size_t j = 1; j <= nb; j++) {
			d[i][j] = MIN(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
				      MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[na][nb];
}

const char *config_nearest(const char *word, const char *const *candidates, size_t n)
{
	/* A third of the word: "ticks_ms" is a slip, "foo" for "mode" a guess. */
	size_t best = MAX(strlen(word) / 3, (size_t)1) + 1;
	const char *ret = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t d = edit_distance(word, candidates[i]);

		if (d < best) {
			best = d;
			ret = candidates[i];
		}
	}
	return ret;
}
