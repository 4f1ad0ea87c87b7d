#include "report/text_internal.h"
#include "report/text_layout.h"

#include "base/fmt.h"

#include <math.h>
#include <string.h>

/* "'limit 80%': " where several settings are told apart, else "". */
static void add_name(struct str *s, const struct report *r, const struct run_group *g)
{
	if (r->n_groups > 1)
		str_addf(s, "'%s': ", text_run_name(g->first));
}

static void put(struct str *out, const struct str *s)
{
	if (s->len > 0)
		text_para(out, TEXT_INDENT, "%s", s->data);
}

/* The peak without a squeeze, if this session has it for this command. */
static const struct figure *whole_peak(const struct report *r, const struct run_group *g)
{
	bool is_known = r->baseline && !isnan(figure_change(g, r->baseline, FIG_peak_bytes));

	return is_known ? &r->baseline->median[FIG_peak_bytes] : &g->median[FIG_peak_bytes];
}

/* -- how much, how little --------------------------------------------------------------------- */

static void add_floor(struct str *s, const struct report *r, const struct figure *peak)
{
	const struct run_view *v = r->floor_run;
	char floor[CELL_MAX];

	str_addf(s, "%s", text_value(floor, &v->fig[FIG_floor_bytes], UNIT_BYTES));
	if (!peak->why && peak->v > 0)
		str_addf(s, " (%.1f %% of it)", 100 * v->fig[FIG_floor_bytes].v / peak->v);
	str_add(s, " was enough");
	if (r->n_groups > 1)
		str_addf(s, ", in '%s'", text_run_name(v));
	str_add(s, ": the floor.");
}

static void add_peak(struct str *out, const struct report *r)
{
	const struct run_group *whole = r->baseline ? r->baseline : &r->groups[0];
	const struct run_group *last = &r->groups[r->n_groups - 1];
	const struct figure *peak = &whole->median[FIG_peak_bytes];
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	str_add(&s, "The peak");
	if (r->n_groups > 1)
		str_addf(&s, " of '%s'", text_run_name(whole->first));
	str_addf(&s, " was %s", text_value(buf, peak, UNIT_BYTES));
	if (r->floor_run) {
		str_add(&s, "; ");
		add_floor(&s, r, peak);
	} else {
		str_addf(&s, "; how little is enough is not known: %s.",
			 last->first->fig[FIG_floor_bytes].why);
	}
	put(out, &s);
}

static void add_limit(struct str *out, const struct report *r, const struct run_group *g)
{
	const struct figure *least = &g->median[FIG_limit_least_bytes];
	const struct figure *at = &g->median[FIG_limit_least_t_s], *peak = whole_peak(r, g);
	const char *knob = g->first->row.knob;
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	if (least->why)
		return;
	add_name(&s, r, g);
	str_addf(&s, "%s least limit held was %s", r->n_groups > 1 ? "the" : "The",
		 text_value(buf, least, UNIT_BYTES));
	if (knob)
		str_addf(&s, " (%s)", knob);
	if (!peak->why && peak->v > 0)
		str_addf(&s, ", %.1f %% of the peak", 100 * least->v / peak->v);
	if (!at->why)
		str_addf(&s, ", reached at %s", text_value(buf, at, UNIT_SECONDS));
	str_add(&s, ".");
	put(out, &s);
}

static void sum_decisions(struct decision_summary *sum, const struct run_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct decision_summary *d = &g->members[i]->decisions;

		sum->n += d->n;
		sum->longest_ns = MAX(sum->longest_ns, d->longest_ns);
		for (int a = 0; a < N_ACTIONS; a++) {
			for (int o = 0; o < N_OUTCOMES; o++)
				sum->by[a][o] += d->by[a][o];
		}
	}
}

/* "29 tighten, 9 hold, 3 relax; 1 timed out" */
static void add_counts(struct str *s, const struct decision_summary *d)
{
	static const enum action order[] = {ACTION_TIGHTEN, ACTION_HOLD, ACTION_RELAX,
					    ACTION_RELEASE};
	static const char *const said[N_OUTCOMES] = {
		[OUTCOME_PARTIAL] = "reached only a part",
		[OUTCOME_TIMEOUT] = "timed out",
		[OUTCOME_ERROR] = "failed",
		[OUTCOME_SKIPPED] = "not carried out (--dry-run)",
	};
	const char *sep = ": ";

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		size_t n = 0;

		for (int o = 0; o < N_OUTCOMES; o++)
			n += d->by[order[i]][o];
		if (n == 0)
			continue;
		str_addf(s, "%s%zu %s", sep, n, action_name(order[i]));
		sep = ", ";
	}
	for (int o = 0; o < N_OUTCOMES; o++) {
		size_t n = 0;

		for (int a = 0; a < N_ACTIONS; a++)
			n += d->by[a][o];
		if (n > 0 && said[o])
			str_addf(s, "; %zu %s", n, said[o]);
	}
}

/* Of one setting, or of all. */
static void add_decisions(struct str *out, const struct report *r, const struct run_group *groups,
			  size_t n)
{
	struct decision_summary d = {.longest_ns = -1};
	_cleanup_str_ struct str s = {0};
	char took[CELL_MAX];
	size_t n_runs = 0;

	for (size_t i = 0; i < n; i++) {
		sum_decisions(&d, &groups[i]);
		n_runs += groups[i].n;
	}
	if (d.n == 0)
		return;
	if (n == 1)
		add_name(&s, r, groups);
	str_addf(&s, "%zu decision%s", d.n, d.n == 1 ? "" : "s");
	if (n_runs > 1)
		str_addf(&s, " in %zu runs", n_runs);
	add_counts(&s, &d);
	if (d.longest_ns > 0)
		str_addf(&s, "; longest %s", text_duration(took, (double)d.longest_ns / 1e9));
	put(out, &s);
}

bool text_answer_memory(struct str *out, const struct report *r)
{
	const struct run_group *whole = r->baseline ? r->baseline : &r->groups[0];
	size_t before = out->len;

	if (!whole->median[FIG_peak_bytes].why)
		add_peak(out, r);
	for (size_t i = 0; r->n_groups <= TEXT_COLUMNS && i < r->n_groups; i++) {
		add_limit(out, r, &r->groups[i]);
		add_decisions(out, r, &r->groups[i], 1);
	}
	if (r->n_groups > TEXT_COLUMNS)
		add_decisions(out, r, r->groups, r->n_groups);
	return out->len > before;
}

/* -- what it cost ----------------------------------------------------------------------------- */

/* ", 2.0 s of it (4.0 %) with all tasks stalled on memory; 395 major faults, 150/s at worst" */
static void add_pain(struct str *s, const struct run_group *g)
{
	const struct figure *stalled = &g->median[FIG_stalled_full_s];
	const struct figure *share = &g->median[FIG_stalled_full_share];
	const struct figure *worst = &g->median[FIG_stalled_full_worst];
	const struct figure *faults = &g->median[FIG_major_faults];
	const struct figure *rate = &g->median[FIG_major_faults_max_per_s];
	char buf[CELL_MAX];

	if (!stalled->why && stalled->v == 0) {
		str_add(s, ", never stalled on memory");
	} else if (!stalled->why && !share->why) {
		str_addf(s, ", %s of it", text_value(buf, stalled, UNIT_SECONDS));
		str_addf(s, " (%s", text_value(buf, share, UNIT_SHARE));
		if (!worst->why)
			str_addf(s, ", worst interval %s", text_value(buf, worst, UNIT_SHARE));
		str_add(s, ") stalled on memory");
	}
	if (!faults->why) {
		str_addf(s, "; %s major fault%s", text_value(buf, faults, UNIT_COUNT),
			 faults->v == 1 ? "" : "s");
		if (!rate->why)
			str_addf(s, ", %s at worst", text_value(buf, rate, UNIT_RATE));
	}
	str_add(s, ".");
}

static void add_only_cost(struct str *out, const struct report *r)
{
	const struct run_group *g = &r->groups[0];
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	str_addf(&s, "%s %s", r->baseline ? "Nothing was squeezed: it ran for" : "It ran for",
		 text_value(buf, &g->median[FIG_duration_s], UNIT_SECONDS));
	add_pain(&s, g);
	if (!r->baseline)
		str_add(&s, " How long it runs without a squeeze is not known: no baseline.");
	put(out, &s);
}

static void add_cost_against(struct str *out, const struct report *r, const struct run_group *g)
{
	double slower = figure_change(g, r->baseline, FIG_duration_s);
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	str_addf(&s, "'%s' ran for %s", text_run_name(g->first),
		 text_value(buf, &g->median[FIG_duration_s], UNIT_SECONDS));
	if (!isnan(slower)) {
		str_addf(&s, " (%s", text_change(buf, slower));
		str_addf(&s, " on the baseline's %s)",
			 text_value(buf, &r->baseline->median[FIG_duration_s], UNIT_SECONDS));
	}
	add_pain(&s, g);
	put(out, &s);
}

bool text_answer_cost(struct str *out, const struct report *r)
{
	size_t before = out->len;

	if (r->n_groups == 1 && !r->groups[0].median[FIG_duration_s].why)
		add_only_cost(out, r);
	for (size_t i = 0; r->n_groups > 1 && r->n_groups <= TEXT_COLUMNS && i < r->n_groups; i++) {
		if (&r->groups[i] != r->baseline && !r->groups[i].median[FIG_duration_s].why)
			add_cost_against(out, r, &r->groups[i]);
	}
	if (r->n_groups > 1 && !r->baseline)
		text_para(out, TEXT_INDENT,
			  "How long it runs without a squeeze is not known: no baseline.");
	return out->len > before;
}

/* -- which is best ---------------------------------------------------------------------------- */

static size_t least_repeats(const struct report *r)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < r->n_groups; i++)
		least = MIN(least, r->groups[i].n);
	return least;
}

void text_answer_best(struct str *out, const struct report *r)
{
	const struct run_group *best = r->best_limit;
	size_t repeats = least_repeats(r);
	char limit[FMT_MAX], change[CELL_MAX];

	if (best)
		text_para(out, TEXT_INDENT,
			  "%s is the least limit whose run time stayed within %.0f %% of "
			  "the baseline (%s).",
			  fmt_bytes(limit, best->first->row.limit_bytes), 100 * BEST_LIMIT_SLOWDOWN,
			  text_change(change, figure_change(best, r->baseline, FIG_duration_s)));
	else if (!r->baseline)
		text_para(out, TEXT_INDENT, "No verdict: there is no baseline to compare with.");
	else
		text_para(out, TEXT_INDENT,
			  "No limit that was held kept the run time within %.0f %% of the "
			  "baseline.",
			  100 * BEST_LIMIT_SLOWDOWN);
	if (repeats < VERDICT_REPEATS)
		text_para(out, TEXT_INDENT,
			  "Whether differences are real is not known: %zu run%s of a setting, "
			  "%d are needed (-n %d).",
			  repeats, repeats == 1 ? "" : "s", VERDICT_REPEATS, VERDICT_REPEATS);
}
