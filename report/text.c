#include "report/text_internal.h"
#include "report/text_layout.h"

#include "base/fmt.h"

#include <math.h>
#include <string.h>

static bool is_word(const char *text, const char *word)
{
	return text && strcmp(text, word) == 0;
}

const char *text_run_name(const struct run_view *v)
{
	return v->row.name ? v->row.name : "run";
}

/* ", exit 0", ", ended by signal 9 (SIGKILL)": how one run ended. */
static void add_ending(struct str *s, const struct run_view *v)
{
	const char *reason = v->row.end_reason;
	char buf[CELL_MAX];

	if (v->state == RUN_RECORDING)
		str_addf(s, ", still being recorded: %s so far",
			 text_duration(buf, isnan(v->last_sample_s) ? 0 : v->last_sample_s));
	else if (v->state == RUN_RECORDER_DIED)
		str_addf(s, ", incomplete: the recorder died %s in",
			 text_duration(buf, isnan(v->last_sample_s) ? 0 : v->last_sample_s));
	else if (is_word(reason, "timeout"))
		str_add(s, ", ended by --timeout");
	else if (is_word(reason, "interrupted"))
		str_add(s, ", interrupted");
	else if (is_word(reason, "cgroup_removed"))
		str_add(s, ", its cgroup was removed by somebody");
	else if (is_word(reason, "recording_failed"))
		str_add(s, ", incomplete: recording failed");
	else if (is_word(reason, "exec_failed"))
		str_add(s, ", it could not be executed");
	if (v->row.term_signal != READ_NULL) {
		const char *name = sigabbrev_np((int)v->row.term_signal);

		str_addf(s, ", ended by signal %lld%s%s%s", (long long)v->row.term_signal,
			 name ? " (SIG" : "", name ? name : "", name ? ")" : "");
	} else if (v->row.exit_code != READ_NULL) {
		str_addf(s, ", exit %lld", (long long)v->row.exit_code);
	}
}

static void add_run_line(struct str *out, const struct run_view *v, bool with_name)
{
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	if (with_name)
		str_addf(&s, "%s: ", text_run_name(v));
	str_addf(&s, "Ran %s", v->command);
	if (!v->fig[FIG_duration_s].why)
		str_addf(&s, " for %s", text_duration(buf, v->fig[FIG_duration_s].v));
	add_ending(&s, v);
	text_wrap(out, 0, 2, s.data ? s.data : "");
}

static bool has_one_command(const struct report *r)
{
	for (size_t i = 1; i < r->n_runs; i++) {
		if (strcmp(r->runs[i].command, r->runs[0].command) != 0)
			return false;
	}
	return true;
}

static bool ended_alike(const struct run_view *a, const struct run_view *b)
{
	return a->state == RUN_ENDED && b->state == RUN_ENDED &&
	       is_word(a->row.end_reason, "exited") && is_word(b->row.end_reason, "exited") &&
	       a->row.exit_code == b->row.exit_code;
}

/* Runs of a setting that ended in the same unusual way share a line. */
static void add_odd_endings(struct str *out, const struct report *r, const struct run_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		_cleanup_str_ struct str s = {0};
		size_t same = 0;

		if (ended_alike(&r->runs[0], g->members[i]))
			continue;
		for (size_t j = 0; j < g->n; j++)
			same += g->members[j]->row.exit_code == g->members[i]->row.exit_code &&
				g->members[j]->row.term_signal == g->members[i]->row.term_signal &&
				g->members[j]->state == g->members[i]->state;
		add_ending(&s, g->members[i]);
		/* The list begins with ", ", which here is a colon. */
		text_para(out, 2, "%s%s: %s", text_run_name(g->members[i]),
			  same == g->n && g->n > 1 ? " (each)" : "",
			  s.len > 2 ? s.data + 2 : "its end is not recorded");
		if (same == g->n)
			return;
	}
}

/* Several runs of one command: the common ending once, and every run that ended otherwise. */
static void add_runs_line(struct str *out, const struct report *r)
{
	_cleanup_str_ struct str s = {0};
	double seconds = 0;
	size_t alike = 0;
	char buf[CELL_MAX];

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct figure *duration = &r->runs[i].fig[FIG_duration_s];

		seconds += duration->why ? 0 : duration->v;
		alike += ended_alike(&r->runs[0], &r->runs[i]);
	}
	str_addf(&s, "Ran %s %zu times for %s in all", r->runs[0].command, r->n_runs,
		 text_duration(buf, seconds));
	if (alike == r->n_runs)
		str_addf(&s, ", each exit %lld", (long long)r->runs[0].row.exit_code);
	else if (alike > 0)
		str_addf(&s, ", %zu times exit %lld", alike, (long long)r->runs[0].row.exit_code);
	text_wrap(out, 0, 2, s.data ? s.data : "");
	for (size_t i = 0; i < r->n_groups; i++)
		add_odd_endings(out, r, &r->groups[i]);
}

static void add_opening(struct str *out, const struct report *r)
{
	if (r->n_runs > 1 && has_one_command(r)) {
		add_runs_line(out, r);
		return;
	}
	for (size_t i = 0; i < r->n_runs; i++)
		add_run_line(out, &r->runs[i], r->n_runs > 1);
}

static void add_question(struct str *out, const char *question)
{
	str_addf(out, "\n%s\n", question);
}

/* The settings whose figures are printed in full. */
static size_t pick_columns(const struct report *r, const struct run_group *cols[TEXT_COLUMNS])
{
	if (r->n_groups > TEXT_COLUMNS) {
		cols[0] = r->baseline ? r->baseline : &r->groups[0];
		return 1;
	}
	for (size_t i = 0; i < r->n_groups; i++)
		cols[i] = &r->groups[i];
	return r->n_groups;
}

/* After the table of all settings. */
static void add_in_full(struct str *out, const struct report *r, const struct run_group *g)
{
	if (r->n_groups > TEXT_COLUMNS)
		text_para(out, TEXT_INDENT, "All figures of '%s':", text_run_name(g->first));
}

static void add_memory(struct str *out, const struct report *r,
		       const struct run_group *const cols[], size_t n)
{
	add_question(out, "How much memory does it use, and how little is enough?");
	if (text_answer_memory(out, r))
		str_add(out, "\n");
	if (r->n_groups > TEXT_COLUMNS) {
		text_table_memory(out, r);
		str_add(out, "\n");
	}
	add_in_full(out, r, cols[0]);
	(void)text_figures(out, SEC_USE, SEC_ENOUGH, cols, n);
}

static void add_cost(struct str *out, const struct report *r, const struct run_group *const cols[],
		     size_t n)
{
	add_question(out, "What did the squeeze cost?");
	if (text_answer_cost(out, r))
		str_add(out, "\n");
	if (r->n_groups > TEXT_COLUMNS) {
		text_table_cost(out, r);
		str_add(out, "\n");
	}
	add_in_full(out, r, cols[0]);
	(void)text_figures(out, SEC_COST, SEC_SAVE, cols, n);
}

static void add_best(struct str *out, const struct report *r)
{
	add_question(out, "Which limit is best?");
	if (r->n_groups < 2) {
		text_para(out, TEXT_INDENT,
			  "n/a (one setting was run; --limit 80%% or a staticsweep tries others)");
		return;
	}
	text_table_best(out, r);
	str_add(out, "\n");
	text_answer_best(out, r);
}

void report_text(const struct report *r, struct str *out)
{
	const struct run_group *cols[TEXT_COLUMNS];
	size_t n = pick_columns(r, cols);

	add_opening(out, r);
	add_memory(out, r, cols, n);
	add_cost(out, r, cols, n);
	add_question(out, "Which allocation stacks are hot, cold, swapped?");
	text_sites(out, r);
	add_best(out, r);
	add_question(out, "Can the figures be trusted?");
	text_trust(out, r, cols, n);
	text_next(out, r);
}
