#include "report/environment.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Neighbours that stall the host this much reach into the figures of the group. */
#define HOST_STALL_SHARE 0.01
/* Below this zswap gives back less than its own bookkeeping is worth. */
#define USEFUL_RATIO 1.05
#define SAMPLED_TOLERANCE 0.10
#define LOGICAL_TOLERANCE 0.05

struct collector {
	struct report *r;
	const struct run_view *run;
	bool is_feature; /* what is being added is a lack of this machine */
	bool failed;
};

/* One line per sentence, however many runs say it. */
static void add(struct collector *c, const struct str *text)
{
	struct report *r = c->r;
	struct report_warning *grown;
	char *copy;

	for (size_t i = 0; !text->failed && i < r->n_warnings; i++) {
		if (strcmp(r->warnings[i].text, text->data) == 0) {
			r->warnings[i].n_runs++;
			return;
		}
	}
	grown = realloc(r->warnings, (r->n_warnings + 1) * sizeof(*grown));
	if (grown)
		r->warnings = grown;
	copy = text->failed ? NULL : strdup(text->data);
	if (!grown || !copy) {
		free(copy);
		c->failed = true;
		return;
	}
	r->warnings[r->n_warnings++] = (struct report_warning){
		.text = copy, .run = c->run, .n_runs = 1, .is_feature = c->is_feature};
}

static void warn(struct collector *c, const char *fmt, ...) _printf_(2, 3);

static void warn(struct collector *c, const char *fmt, ...)
{
	_cleanup_str_ struct str text = {0};
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf, sizeof(buf), fmt, ap); /* cut when longer: it is a sentence */
	va_end(ap);
	str_add(&text, buf);
	add(c, &text);
}

static bool has(const struct run_view *v, enum figure_id id)
{
	return !v->fig[id].why;
}

static void warn_ending(struct collector *c)
{
	const struct run_view *v = c->run;

	if (v->state == RUN_RECORDER_DIED)
		warn(c, "incomplete: the recorder died, figures end with its last sample");
	if (v->state == RUN_RECORDING)
		warn(c, "still being recorded: figures end with the last sample so far");
	if (has(v, FIG_oom_kills) && v->fig[FIG_oom_kills].v > 0)
		warn(c, "%.0f process%s killed for lack of memory: not comparable with other runs",
		     v->fig[FIG_oom_kills].v, v->fig[FIG_oom_kills].v > 1 ? "es" : "");
}

static void warn_sampling(struct collector *c)
{
	const struct run_view *v = c->run;

	/* With few samples the one before the start alone is more than the tolerance. */
	if (has(v, FIG_sampled_share) && v->fig[FIG_samples].v >= 20 &&
	    fabs(v->fig[FIG_sampled_share].v - 1) > SAMPLED_TOLERANCE)
		warn(c, "period x samples is %.0f %% of the run time",
		     100 * v->fig[FIG_sampled_share].v);
	if (v->fig[FIG_samples_missing].v > 0)
		warn(c, "%.0f samples are not in the file", v->fig[FIG_samples_missing].v);
}

static void warn_accounting(struct collector *c)
{
	const struct run_view *v = c->run;

	if (v->lacks_swapcached)
		warn(c, "no swapcached in memory.stat: swapped-out figures contain pages that are "
			"also in memory");
	if (v->lacks_zswap_bytes)
		warn(c,
		     "compressed bytes of the group are not known: resident figures contain them");
	if (v->has_zram_share)
		warn(c,
		     "zram is charged to no group: its share in physical and saving is estimated");
	if (has(v, FIG_zswap_ratio) && v->fig[FIG_zswap_ratio].v < USEFUL_RATIO)
		warn(c, "zswap ratio %.2f: compression brings nothing for this workload",
		     v->fig[FIG_zswap_ratio].v);
	if (has(v, FIG_host_stalled_full_share) &&
	    v->fig[FIG_host_stalled_full_share].v - (has(v, FIG_stalled_full_share)
							     ? v->fig[FIG_stalled_full_share].v
							     : 0) >
		    HOST_STALL_SHARE)
		warn(c, "the host itself was stalled on memory for %.1f %% of the time",
		     100 * v->fig[FIG_host_stalled_full_share].v);
}

static void warn_rows(struct collector *c)
{
	const struct run_view *v = c->run;

	for (size_t i = 0; i < v->n_events; i++) {
		if (v->events[i].kind && strcmp(v->events[i].kind, "warning") == 0)
			warn(c, "%s", v->events[i].detail ? v->events[i].detail : "(no text)");
	}
}

static void warn_feature(void *arg, const char *name, const char *why)
{
	struct collector *c = arg;

	c->is_feature = true;
	warn(c, "not available here: %s%s%s%s", name, *why ? " (" : "", why, *why ? ")" : "");
	c->is_feature = false;
}

/* A squeeze can drop page cache, but it makes nothing: more logical memory than without would be
 * counted twice, a cross-check of the formulas. */
static void warn_logical(struct collector *c)
{
	const struct run_group *base = c->r->baseline;

	for (size_t i = 0; i < c->r->n_groups; i++) {
		const struct run_group *g = &c->r->groups[i];
		double change = figure_change(g, base, FIG_logical_max_bytes);

		c->run = g->first;
		if (change > LOGICAL_TOLERANCE)
			warn(c,
			     "logical memory is %.1f %% above the baseline's: swapped or "
			     "compressed pages may be counted twice",
			     100 * change);
	}
}

int report_collect_warnings(struct report *r)
{
	struct collector c = {.r = r};

	for (size_t i = 0; i < r->n_runs; i++) {
		c.run = &r->runs[i];
		warn_ending(&c);
		warn_sampling(&c);
		warn_accounting(&c);
		warn_rows(&c);
		environment_missing(c.run->row.environment, warn_feature, &c);
	}
	warn_logical(&c);
	return c.failed ? -ENOMEM : 0;
}
