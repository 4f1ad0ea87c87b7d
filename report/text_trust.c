#include "report/environment.h"
#include "report/text_internal.h"
#include "report/text_layout.h"

#include "base/fmt.h"

#include <stdarg.h>
#include <string.h>

#define ABOUT_WIDTH 9

static bool is_kind(const struct event_row *e, const char *kind)
{
	return e->kind && kind && strcmp(e->kind, kind) == 0;
}

/* Repeats share a name: their run_id tells them apart. "" in a session of one run. */
const char *text_run_label(const struct report *r, const struct run_view *v,
			   char buf[static LABEL_MAX])
{
	size_t same = 0;

	if (r->n_runs == 1)
		return "";
	for (size_t i = 0; i < r->n_runs; i++)
		same += strcmp(text_run_name(&r->runs[i]), text_run_name(v)) == 0;
	if (same > 1)
		(void)snprintf(buf, LABEL_MAX, "%s (run %lld): ", text_run_name(v),
			       (long long)v->row.run_id);
	else
		(void)snprintf(buf, LABEL_MAX, "%s: ", text_run_name(v));
	return buf;
}

void text_about(struct str *out, const char *what, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0) {
		text = NULL; /* undefined after a failure */
		out->failed = true;
		return;
	}
	str_addf(out, "%*s%-*s", TEXT_INDENT, "", ABOUT_WIDTH, what);
	text_wrap(out, TEXT_INDENT + ABOUT_WIDTH, TEXT_INDENT + ABOUT_WIDTH, text);
}

/* -- the answer ------------------------------------------------------------------------------- */

static double sum_of(const struct report *r, enum figure_id id)
{
	double sum = 0;

	for (size_t i = 0; i < r->n_runs; i++)
		sum += r->runs[i].fig[id].why ? 0 : r->runs[i].fig[id].v;
	return sum;
}

/* The largest of the runs; missing, with the first run's reason, when none has it. */
static struct figure most_of(const struct report *r, enum figure_id id)
{
	struct figure most = r->runs[0].fig[id];

	for (size_t i = 1; i < r->n_runs; i++) {
		const struct figure *f = &r->runs[i].fig[id];

		if (!f->why && (most.why || f->v > most.v))
			most = *f;
	}
	return most;
}

static void add_doubt(struct str *s, size_t n, const char *what, const char *plural)
{
	if (n > 0)
		str_addf(s, "%s%zu %s%s", s->len > 0 ? ", " : "", n, what, n == 1 ? "" : plural);
}

static void add_answer(struct str *out, const struct report *r)
{
	size_t n_losses = 0, n_warnings = 0, n_bad = 0, n_loose = 0;
	struct text_trace_doubts trace = text_trace_doubts(r);
	_cleanup_str_ struct str s = {0};

	for (size_t i = 0; i < r->n_runs; i++) {
		n_losses += r->runs[i].n_losses;
		n_bad += r->runs[i].state != RUN_ENDED;
	}
	for (size_t i = 0; i < r->n_warnings; i++)
		n_warnings += !r->warnings[i].is_feature;
	for (size_t i = 0; i < r->n_groups; i++)
		n_loose += group_lacks_limit(&r->groups[i]);
	if (n_loose > 0)
		str_addf(&s, "%zu limit%s never held", n_loose, n_loose == 1 ? " was" : "s were");
	add_doubt(&s, n_bad, "run without an end", "s");
	add_doubt(&s, n_losses, "loss", "es");
	add_doubt(&s, trace.n_lost, "lost event", "s");
	add_doubt(&s, trace.n_mismatched, "wrong stack", "s");
	add_doubt(&s, trace.n_files, "file problem", "s");
	add_doubt(&s, (size_t)sum_of(r, FIG_holes), "hole", "s");
	add_doubt(&s, (size_t)sum_of(r, FIG_samples_missing), "missing sample", "s");
	add_doubt(&s, n_warnings, "warning", "s");
	if (s.len == 0)
		text_para(out, TEXT_INDENT, "Yes: nothing was lost, and there are no warnings.");
	else
		text_para(out, TEXT_INDENT, "With care: %s%s.", s.data,
			  n_losses == 0 && trace.n_lost == 0 ? "; nothing was lost" : "");
}

/* -- recording -------------------------------------------------------------------------------- */

static void add_count(struct str *s, double n, const char *what)
{
	char buf[FMT_MAX];

	str_addf(s, "; %s %s%s", n == 0 ? "no" : fmt_count(buf, (int64_t)n), what,
		 n == 1 ? "" : "s");
}

static void add_value(struct str *s, const char *before, const struct figure *f,
		      enum figure_unit unit, const char *after)
{
	char buf[CELL_MAX];

	str_addf(s, "%s%s%s", before, text_value(buf, f, unit), after);
	if (f->why)
		str_addf(s, " (%s)", f->why);
}

static void add_sampled(struct str *s, const struct report *r)
{
	struct figure least = r->runs[0].fig[FIG_sampled_share];
	struct figure most = most_of(r, FIG_sampled_share);

	for (size_t i = 1; i < r->n_runs; i++) {
		const struct figure *f = &r->runs[i].fig[FIG_sampled_share];

		if (!f->why && (least.why || f->v < least.v))
			least = *f;
	}
	add_value(s, "; sampled ", &least, UNIT_SHARE, "");
	if (r->n_runs > 1 && !most.why)
		add_value(s, " to ", &most, UNIT_SHARE, " of each run");
	else if (!least.why)
		str_add(s, " of the run");
}

static void add_samples(struct str *out, const struct report *r)
{
	const struct figure samples = {.v = sum_of(r, FIG_samples)};
	const struct figure gap = most_of(r, FIG_gap_max_s),
			    holes_s = {sum_of(r, FIG_holes_s), NULL};
	const struct figure *fig = r->runs[0].fig;
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	add_value(&s, "", &samples, UNIT_COUNT, "");
	if (r->n_runs > 1)
		str_addf(&s, " in %zu runs", r->n_runs);
	add_value(&s, ", period ", &fig[FIG_period_s], UNIT_SECONDS, "");
	if (!fig[FIG_period_mean_s].why && !gap.why) {
		add_value(&s, " (mean ", &fig[FIG_period_mean_s], UNIT_SECONDS, ", ");
		add_value(&s, "longest ", &gap, UNIT_SECONDS, ")");
	}
	add_sampled(&s, r);
	add_count(&s, sum_of(r, FIG_holes), "hole");
	if (holes_s.v > 0)
		str_addf(&s, " (%s)", text_value(buf, &holes_s, UNIT_SECONDS));
	if (sum_of(r, FIG_samples_missing) > 0)
		add_count(&s, sum_of(r, FIG_samples_missing), "missing sample");
	if (sum_of(r, FIG_counter_resets) > 0)
		add_count(&s, sum_of(r, FIG_counter_resets), "counter reset");
	if (s.data)
		text_about(out, "samples", "%s", s.data);
}

static void add_tool(struct str *out, const struct report *r)
{
	const struct figure share = most_of(r, FIG_tool_cpu_share);
	const struct figure rss = most_of(r, FIG_tool_rss_bytes);
	struct figure cpu = most_of(r, FIG_tool_cpu_s), reclaim = most_of(r, FIG_actuator_cpu_s);
	_cleanup_str_ struct str s = {0};

	if (cpu.why) {
		text_about(out, "tool", "n/a (%s)", cpu.why);
		return;
	}
	cpu.v = sum_of(r, FIG_tool_cpu_s);
	reclaim.v = sum_of(r, FIG_actuator_cpu_s);
	add_value(&s, "", &cpu, UNIT_SECONDS, " CPU (");
	if (share.why)
		str_addf(&s, "share n/a: %s", share.why);
	else
		add_value(&s, r->n_runs > 1 ? "at most " : "", &share, UNIT_SHARE, " of one");
	add_value(&s, "), ", &rss, UNIT_BYTES, "");
	if (!reclaim.why)
		add_value(&s, "; reclaiming for the group ", &reclaim, UNIT_SECONDS, " CPU");
	if (s.data)
		text_about(out, "tool", "%s", s.data);
}

static void add_losses(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];
		char label[LABEL_MAX];

		for (size_t j = 0; j < v->n_losses; j++)
			text_about(out, "lost", "%s%lld of %s%s%s", text_run_label(r, v, label),
				   (long long)MAX(v->losses[j].count, 0), v->losses[j].source,
				   v->losses[j].detail ? ": " : "",
				   v->losses[j].detail ? v->losses[j].detail : "");
	}
}

/* -- what happened ---------------------------------------------------------------------------- */

static void add_warnings(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_warnings; i++) {
		const struct report_warning *w = &r->warnings[i];
		char label[LABEL_MAX];

		if (w->is_feature)
			continue;
		if (w->n_runs == 1)
			text_about(out, "warning", "%s%s", text_run_label(r, w->run, label),
				   w->text);
		else
			text_about(out, "warning", "%s (%zu runs)", w->text, w->n_runs);
	}
}

static bool is_first_of_kind(const struct run_view *v, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (is_kind(&v->events[i], v->events[at].kind))
			return false;
	}
	return true;
}

static void add_event(struct str *out, const struct run_view *v, size_t at, const char *prefix)
{
	const struct event_row *e = &v->events[at];
	size_t n = 0;
	char t[CELL_MAX];

	for (size_t i = at; i < v->n_events; i++)
		n += is_kind(&v->events[i], e->kind);
	(void)text_duration(t, (double)MAX(e->t_ns, 0) / 1e9);
	if (n == 1)
		text_about(out, "event", "%s%s at %s%s%s", prefix, e->kind, t,
			   e->detail ? ": " : "", e->detail ? e->detail : "");
	else
		text_about(out, "event", "%s%s, %zu times, first at %s%s%s", prefix, e->kind, n, t,
			   e->detail ? ": " : "", e->detail ? e->detail : "");
}

/* Events other than warnings, counted by kind, with the first one's text. */
static void add_events(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];
		char label[LABEL_MAX];

		for (size_t j = 0; j < v->n_events; j++) {
			if (v->events[j].kind && !is_kind(&v->events[j], "warning") &&
			    is_first_of_kind(v, j))
				add_event(out, v, j, text_run_label(r, v, label));
		}
	}
}

/* -- the machine ------------------------------------------------------------------------------ */

static void add_name(void *arg, const char *name, const char *why)
{
	struct str *s = arg;

	(void)why; /* summary.json and `analyzer check` have it */
	if (strcmp(name, "memory") == 0)
		name = "memory controller";
	/* No file of a controller that is not there needs to be named. */
	else if (s->len > 0 && strstr(s->data, "memory controller") &&
		 strncmp(name, "memory.", 7) == 0)
		return;
	str_addf(s, "%s%s", s->len > 0 ? ", " : "", name);
}

static void add_machine(struct str *out, const struct report *r)
{
	const char *environment = r->runs[0].row.environment;
	_cleanup_str_ struct str machine = {0}, lacks = {0};

	environment_machine(&machine, environment);
	if (machine.len > 0)
		text_about(out, "machine", "%s", machine.data);
	environment_missing(environment, add_name, &lacks);
	if (lacks.len > 0)
		text_para(out, TEXT_INDENT,
			  "not available here: %s (analyzer check tells why and how to fix it)",
			  lacks.data);
}

void text_trust(struct str *out, const struct report *r, const struct run_group *const cols[],
		size_t n)
{
	add_answer(out, r);
	add_samples(out, r);
	add_losses(out, r);
	text_trace_trust(out, r);
	add_tool(out, r);
	add_warnings(out, r);
	add_events(out, r);
	add_machine(out, r);
	str_add(out, "  The whole host, not this workload alone:\n");
	(void)text_figures(out, SEC_HOST, SEC_HOST, cols, n);
}
