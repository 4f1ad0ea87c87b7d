#include "report/text_internal.h"

#include "model/site.h"
#include <math.h>
#include <string.h>

/* Files named in a sentence, and lines of files with a problem. */
#define FILES_SHOWN 5

static const enum figure_unit units[TRACE_COUNT] = {
#define TRACE(key, unit, definition) UNIT_##unit,
#include "report/trace.def"
#undef TRACE
};

const char *text_trace_value(char buf[static CELL_MAX], const struct run_view *v,
			     enum trace_key key)
{
	double scale = units[key] == UNIT_SECONDS ? 1e9 : 1;
	const struct figure f = {.v = v->trace.v[key] / scale,
				 .why = isnan(v->trace.v[key]) ? "not recorded" : NULL};

	return text_value(buf, &f, units[key]);
}

static bool has(const struct run_view *v, enum trace_key key)
{
	return !isnan(v->trace.v[key]);
}

static bool is_more(const struct run_view *v, enum trace_key key)
{
	return v->trace.v[key] > 0; /* NAN is not */
}

struct text_trace_doubts text_trace_doubts(const struct report *r)
{
	struct text_trace_doubts d = {0};

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];

		if (is_more(v, TRACE_lost))
			d.n_lost += (size_t)v->trace.v[TRACE_lost];
		if (is_more(v, TRACE_mismatched))
			d.n_mismatched += (size_t)v->trace.v[TRACE_mismatched];
		for (size_t j = 0; j < v->trace.n_coverage; j++)
			d.n_files += v->trace.coverage[j].problem != NULL;
	}
	return d;
}

/* "2 pauses": a figure as a number of things; nothing when it is not known. */
static void add_number(struct str *s, const char *before, const struct run_view *v,
		       enum trace_key key, const char *one, const char *many)
{
	char buf[CELL_MAX];

	if (has(v, key))
		str_addf(s, "%s%s %s", before, text_trace_value(buf, v, key),
			 v->trace.v[key] == 1 ? one : many);
}

static void add_value(struct str *s, const char *before, const struct run_view *v,
		      enum trace_key key, const char *after)
{
	char buf[CELL_MAX];

	if (has(v, key))
		str_addf(s, "%s%s%s", before, text_trace_value(buf, v, key), after);
}

static void add_recorded(struct str *s, const struct run_view *v)
{
	if (!has(v, TRACE_recorded))
		return;
	if (v->trace.v[TRACE_recorded] == v->trace.v[TRACE_events])
		str_add(s, "; all in events.zst");
	else
		add_value(s, "; ", v, TRACE_recorded, " in events.zst");
	add_value(s, " (", v, TRACE_bytes_written, ")");
}

static void add_trace(struct str *out, const struct report *r, const struct run_view *v)
{
	_cleanup_str_ struct str s = {0};
	char label[LABEL_MAX];

	str_add(&s, text_run_label(r, v, label));
	if (has(v, TRACE_events))
		add_number(&s, "", v, TRACE_events, "event", "events");
	else
		str_add(&s, "events not counted");
	add_number(&s, " of ", v, TRACE_processes, "process", "processes");
	if (!has(v, TRACE_lost))
		str_add(&s, ", losses not known");
	else
		str_add(&s, v->trace.v[TRACE_lost] > 0 ? "" : ", none lost");
	if (is_more(v, TRACE_lost))
		add_value(&s, ", ", v, TRACE_lost, " lost");
	add_recorded(&s, v);
	if (is_more(v, TRACE_unknown_frees))
		add_number(&s, "; ", v, TRACE_unknown_frees, "free of unknown blocks",
			   "frees of unknown blocks");
	if (is_more(v, TRACE_pauses))
		add_number(&s, "; held ", v, TRACE_pauses, "time", "times");
	else if (has(v, TRACE_pauses))
		str_add(&s, "; never paused");
	if (is_more(v, TRACE_pauses))
		add_value(&s, " for ", v, TRACE_paused_ns, " in all");
	if (is_more(v, TRACE_stops))
		add_number(&s, "; ", v, TRACE_stops, "stop by SIGSTOP", "stops by SIGSTOP");
	if (s.data)
		text_about(out, "trace", "%s", s.data);
}

static void add_stacks(struct str *out, const struct run_view *v)
{
	static const struct {
		enum trace_key key;
		const char *name;
	} qualities[] = {{TRACE_stacks_full, "full"},
			 {TRACE_stacks_cut, "cut"},
			 {TRACE_stacks_guessed, "guessed"},
			 {TRACE_stacks_none, "none"}};
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];
	double sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(qualities); i++)
		sum += is_more(v, qualities[i].key) ? v->trace.v[qualities[i].key] : 0;
	for (size_t i = 0; sum > 0 && i < ARRAY_SIZE(qualities); i++) {
		double n = v->trace.v[qualities[i].key];
		const struct figure share = {.v = isnan(n) ? 0 : n / sum};

		str_addf(&s, "%s%s %s", i > 0 ? ", " : "", text_value(buf, &share, UNIT_SHARE),
			 qualities[i].name);
	}
	str_add(&s, sum > 0 ? " of all allocations" : "their quality was not recorded");
	if (!is_more(v, TRACE_checked))
		str_add(&s, "; not checked");
	else
		add_value(&s, "; ", v, TRACE_checked, " checked, ");
	if (is_more(v, TRACE_checked) && v->trace.v[TRACE_mismatched] == 0)
		str_add(&s, "none wrong");
	else if (is_more(v, TRACE_checked))
		add_value(&s, "", v, TRACE_mismatched, " wrong");
	add_value(&s, "; ", v, TRACE_stacks, " different ones");
	add_value(&s, ", ", v, TRACE_stack_definitions, " unwound");
	if (s.data)
		text_about(out, "stacks", "%s", s.data);
}

/* The files with probes, those by name of which other processes pay too. */
static void add_probes(struct str *out, const struct trace_view *t)
{
	_cleanup_str_ struct str s = {0}, shared = {0};
	size_t n = 0, n_shared = 0;
	int64_t probes = 0;

	for (size_t i = 0; i < t->n_coverage; i++) {
		const struct coverage_row *c = &t->coverage[i];

		if (c->probes <= 0)
			continue;
		n++;
		probes += c->probes;
		if (c->is_private == 1)
			continue;
		if (n_shared++ < FILES_SHOWN)
			str_addf(&shared, "%s%s", shared.len > 0 ? ", " : "",
				 c->path ? c->path : "?");
	}
	str_addf(&s, "%lld in %zu file%s", (long long)probes, n, n == 1 ? "" : "s");
	if (n_shared == 0)
		str_addf(&s, "%s", n > 0 ? ", all of them copies of the workload's own" : "");
	else
		str_addf(&s, "; on shared inodes, where other processes pay too: %s", shared.data);
	if (n_shared > FILES_SHOWN)
		str_addf(&s, " and %zu more", n_shared - FILES_SHOWN);
	if (s.data && !shared.failed)
		text_about(out, "probes", "%s", s.data);
}

static void add_problems(struct str *out, const struct trace_view *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_coverage; i++) {
		const struct coverage_row *c = &t->coverage[i];

		if (!c->problem)
			continue;
		if (n++ < FILES_SHOWN)
			text_about(out, "file", "%s: %s", c->path ? c->path : "?", c->problem);
	}
	if (n > FILES_SHOWN)
		text_about(out, "file", "and %zu more: table coverage of profile.db",
			   n - FILES_SHOWN);
}

static void add_cost(struct str *out, const struct run_view *v)
{
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX];

	str_addf(&s, "%s CPU", text_trace_value(buf, v, TRACE_tracer_cpu_ns));
	add_value(&s, ", ", v, TRACE_tracer_rss_bytes, "");
	add_value(&s, "; in BPF programs ", v, TRACE_program_ns, "");
	if (is_more(v, TRACE_copies_bytes))
		add_value(&s, "; copies of files ", v, TRACE_copies_bytes, "");
	if (is_more(v, TRACE_faulted_pages))
		add_number(&s, "; ", v, TRACE_faulted_pages, "page faulted in", "pages faulted in");
	if (s.data)
		text_about(out, "tracer", "%s", s.data);
}

static void add_slowdown(struct str *out, const struct run_view *v)
{
	const struct figure slower = {.v = v->trace.v[TRACE_slowdown]};
	char share[CELL_MAX], hits[CELL_MAX], trap[CELL_MAX], bpf[CELL_MAX];

	if (isnan(slower.v)) {
		text_about(out, "slowdown", "n/a (hits, cost of a trap or CPU time not recorded)");
		return;
	}
	text_about(out, "slowdown",
		   "%s %s, estimated: hits x trap cost and BPF programs, %s x %s + %s, against "
		   "the rest of the run's CPU time",
		   slower.v < TRACE_SLOWDOWN_MAX ? "about" : "more than",
		   text_value(share, &slower, UNIT_SHARE), text_trace_value(hits, v, TRACE_hits),
		   text_trace_value(trap, v, TRACE_trap_ns),
		   text_trace_value(bpf, v, TRACE_program_ns));
}

void text_trace_trust(struct str *out, const struct report *r)
{
	const struct run_view *shown = report_traced_run(r);
	char label[LABEL_MAX];

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];

		if (v->trace.state == TRACE_DONE)
			add_trace(out, r, v);
		else if (v->trace.state == TRACE_UNFINISHED)
			text_about(out, "trace", "%swithout an end: no figures, no sites",
				   text_run_label(r, v, label));
	}
	if (!shown || shown->trace.state != TRACE_DONE)
		return;
	add_stacks(out, shown);
	text_faults_trust(out, r);
	add_probes(out, &shown->trace);
	add_problems(out, &shown->trace);
	add_cost(out, shown);
	add_slowdown(out, shown);
}
