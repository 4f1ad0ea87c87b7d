#include "report/report.h"

#include "base/num.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

/*
 * {"schema": ..., "session": {...}, "runs": [...], "findings": {...}, "losses": [...],
 *  "warnings": [...]}: bytes, seconds, fractions and rates as numbers, null where there is none.
 * Within a schema number keys are only added.
 *
 * json-c asserts when it is without memory: for some kilobytes, after the samples are freed, that
 * is accepted.
 */

static struct json_object *text_or_null(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

static struct json_object *int_or_null(int64_t v)
{
	/* "max" is no number of bytes: there is no limit. */
	return v == READ_NULL || v == NUM_MAX ? NULL : json_object_new_int64(v);
}

/* Whole numbers without a point, others with what a measurement is good for, not %.17g. */
static struct json_object *number_or_null(double v)
{
	char text[40];

	if (!isfinite(v))
		return NULL;
	if (v == floor(v) && fabs(v) < 9e15)
		return json_object_new_int64((int64_t)v);
	(void)snprintf(text, sizeof(text), "%.9g", v);
	return json_object_new_double_s(v, text);
}

/* JSON kept as text in the database goes in as what it is. */
static struct json_object *json_or_null(const char *text)
{
	struct json_object *o = text ? json_tokener_parse(text) : NULL;

	return o ? o : text_or_null(text);
}

static void add(struct json_object *o, const char *key, struct json_object *v)
{
	(void)json_object_object_add(o, key, v); /* fails only without memory */
}

static void push(struct json_object *array, struct json_object *v)
{
	(void)json_object_array_add(array, v); /* likewise */
}

static struct json_object *figure_or_null(const struct figure *f)
{
	return f->why ? NULL : number_or_null(f->v);
}

static struct json_object *figures(const struct figure *f)
{
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < FIG_COUNT; i++)
		add(o, figure_infos[i].name, figure_or_null(&f[i]));
	return o;
}

/* Why a figure is null, for those that are. */
static struct json_object *reasons(const struct figure *f)
{
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < FIG_COUNT; i++) {
		if (f[i].why)
			add(o, figure_infos[i].name, json_object_new_string(f[i].why));
	}
	return o;
}

static struct json_object *decisions(const struct decision_summary *d)
{
	struct json_object *o = json_object_new_object();

	add(o, "count", json_object_new_int64((int64_t)d->n));
	for (int a = 0; a < N_ACTIONS; a++) {
		struct json_object *by = json_object_new_object();

		for (int i = 0; i < N_OUTCOMES; i++)
			add(by, outcome_name((enum outcome)i),
			    json_object_new_int64((int64_t)d->by[a][i]));
		add(o, action_name((enum action)a), by);
	}
	add(o, "longest_s", d->longest_ns < 0 ? NULL : number_or_null((double)d->longest_ns / 1e9));
	return o;
}

static struct json_object *events(const struct run_view *v)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < v->n_events; i++) {
		const struct event_row *e = &v->events[i];
		struct json_object *o = json_object_new_object();

		add(o, "t_s", e->t_ns == READ_NULL ? NULL : number_or_null((double)e->t_ns / 1e9));
		add(o, "kind", text_or_null(e->kind));
		add(o, "detail", text_or_null(e->detail));
		push(array, o);
	}
	return array;
}

static struct json_object *frame(const struct frame_row *f)
{
	struct json_object *o = json_object_new_object();

	add(o, "function", text_or_null(f->function));
	add(o, "file", text_or_null(f->file));
	add(o, "line", int_or_null(f->line));
	add(o, "module", text_or_null(f->module));
	add(o, "offset", int_or_null(f->offset));
	add(o, "inline", json_object_new_boolean(f->is_inline == 1));
	return o;
}

static struct json_object *site(const struct site_view *s)
{
	struct json_object *o = json_object_new_object(), *stack = json_object_new_array();
	const struct site_row *row = &s->row;

	add(o, "id", int_or_null(row->site_id));
	add(o, "kind", text_or_null(row->kind));
	add(o, "alloc_count", int_or_null(row->alloc_count));
	add(o, "free_count", int_or_null(row->free_count));
	add(o, "alloc_bytes", int_or_null(row->alloc_bytes));
	add(o, "peak_live_bytes", int_or_null(row->peak_live_bytes));
	add(o, "at_peak_bytes", int_or_null(row->at_peak_bytes));
	add(o, "end_live_bytes", int_or_null(row->end_live_bytes));
	add(o, "end_live_count", int_or_null(row->end_live_count));
	add(o, "temporary_count", int_or_null(row->temporary_count));
	add(o, "failed_count", int_or_null(row->failed_count));
	add(o, "major_faults", int_or_null(row->major_faults));
	add(o, "max_swapped_bytes", int_or_null(row->max_swapped_bytes));
	add(o, "quality", text_or_null(s->quality));
	for (size_t i = 0; i < s->n_frames; i++)
		push(stack, frame(&s->frames[i]));
	add(o, "stack", stack);
	return o;
}

static struct json_object *coverage(const struct trace_view *t)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < t->n_coverage; i++) {
		const struct coverage_row *c = &t->coverage[i];
		struct json_object *o = json_object_new_object();

		add(o, "path", text_or_null(c->path));
		add(o, "families", text_or_null(c->families));
		add(o, "probes", int_or_null(c->probes));
		add(o, "is_private", json_object_new_boolean(c->is_private == 1));
		add(o, "problem", text_or_null(c->problem));
		push(array, o);
	}
	return array;
}

/* null: not traced, or its result was never written. */
static struct json_object *trace_or_null(const struct trace_view *t)
{
	struct json_object *o, *sites;

	if (t->state != TRACE_DONE)
		return NULL;
	o = json_object_new_object();
	sites = json_object_new_array();
	for (int i = 0; i < TRACE_COUNT; i++)
		add(o, trace_keys[i], number_or_null(t->v[i]));
	for (size_t i = 0; i < t->n_sites; i++)
		push(sites, site(&t->sites[i]));
	add(o, "coverage", coverage(t));
	add(o, "site_count", json_object_new_int64((int64_t)t->n_all));
	add(o, "sites", sites);
	return o;
}

static const char *state_name(enum run_state state)
{
	static const char *const names[] = {"ended", "recording", "recorder_died"};

	return names[state];
}

static struct json_object *run(const struct run_view *v)
{
	const struct run_row *row = &v->row;
	struct json_object *o = json_object_new_object();

	add(o, "run_id", int_or_null(row->run_id));
	add(o, "name", text_or_null(row->name));
	add(o, "kind", text_or_null(row->kind));
	add(o, "policy", text_or_null(row->policy));
	add(o, "knob", text_or_null(row->knob));
	add(o, "limit_bytes", int_or_null(row->limit_bytes));
	add(o, "command", json_or_null(row->command));
	add(o, "started_at", text_or_null(row->started_at));
	add(o, "state", json_object_new_string(state_name(v->state)));
	add(o, "end_reason", text_or_null(row->end_reason));
	add(o, "exit_code", int_or_null(row->exit_code));
	add(o, "term_signal", int_or_null(row->term_signal));
	add(o, "last_sample_s", number_or_null(v->last_sample_s));
	add(o, "compressor", text_or_null(row->compressor));
	add(o, "allocator", text_or_null(row->allocator));
	add(o, "repeat_index", int_or_null(row->repeat_index));
	add(o, "run_order", int_or_null(row->run_order));
	add(o, "kpi", number_or_null(row->kpi));
	add(o, "config", json_or_null(row->config));
	add(o, "figures", figures(v->fig));
	add(o, "missing", reasons(v->fig));
	add(o, "decisions", decisions(&v->decisions));
	add(o, "events", events(v));
	add(o, "trace", trace_or_null(&v->trace));
	return o;
}

static struct json_object *runs(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_runs; i++)
		push(array, run(&r->runs[i]));
	return array;
}

static struct json_object *session(const struct report *r)
{
	const struct run_row *row = &r->runs[0].row;
	struct json_object *o = json_object_new_object();
	bool is_complete = true;

	for (size_t i = 0; i < r->n_runs; i++)
		is_complete &= r->runs[i].state == RUN_ENDED;
	add(o, "directory", json_object_new_string(r->name));
	add(o, "command", json_or_null(row->command));
	add(o, "started_at", text_or_null(row->started_at));
	add(o, "run_count", json_object_new_int64((int64_t)r->n_runs));
	add(o, "is_complete", json_object_new_boolean(is_complete));
	add(o, "environment", json_or_null(row->environment));
	return o;
}

static struct json_object *setting(const struct report *r, const struct run_group *g)
{
	static const enum figure_id compared[] = {FIG_peak_bytes, FIG_duration_s, FIG_major_faults};
	struct json_object *o = json_object_new_object(), *change = json_object_new_object();
	struct json_object *ids = json_object_new_array();

	for (size_t i = 0; i < g->n; i++)
		push(ids, int_or_null(g->members[i]->row.run_id));
	for (size_t i = 0; i < ARRAY_SIZE(compared); i++)
		add(change, figure_infos[compared[i]].name,
		    g == r->baseline ? NULL
				     : number_or_null(figure_change(g, r->baseline, compared[i])));
	add(o, "name", text_or_null(g->first->row.name));
	add(o, "limit_bytes", int_or_null(g->first->row.limit_bytes));
	add(o, "run_ids", ids);
	add(o, "ended_well", json_object_new_boolean(g->has_ended_well));
	add(o, "median", figures(g->median));
	add(o, "least", figures(g->min));
	add(o, "largest", figures(g->max));
	add(o, "change_against_baseline", change);
	return o;
}

/* Of the first run that has sites: their sums, and the ids of those with most of each. */
static struct json_object *rankings_or_null(const struct report *r)
{
	const struct run_view *v = NULL;
	struct json_object *o;

	for (size_t i = 0; i < r->n_runs && !v; i++)
		v = r->runs[i].trace.n_all > 0 ? &r->runs[i] : NULL;
	if (!v)
		return NULL;
	o = json_object_new_object();
	add(o, "run_id", int_or_null(v->row.run_id));
	for (int order = 0; order < N_ORDERS; order++) {
		struct json_object *by = json_object_new_object();
		struct json_object *ids = json_object_new_array();

		for (size_t i = 0; i < v->trace.n_top[order]; i++)
			push(ids, int_or_null(v->trace.sites[v->trace.top[order][i]].row.site_id));
		add(by, "total", int_or_null(v->trace.total[order]));
		add(by, "site_ids", ids);
		add(o, site_order_keys[order], by);
	}
	return o;
}

static struct json_object *findings(const struct report *r)
{
	struct json_object *o = json_object_new_object(), *settings = json_object_new_array();
	const struct run_group *whole = r->baseline ? r->baseline : &r->groups[0];
	const struct run_view *low = r->floor_run;

	for (size_t i = 0; i < r->n_groups; i++)
		push(settings, setting(r, &r->groups[i]));
	add(o, "peak_bytes", figure_or_null(&whole->median[FIG_peak_bytes]));
	add(o, "floor_bytes", low ? figure_or_null(&low->fig[FIG_floor_bytes]) : NULL);
	add(o, "floor_run_id", low ? int_or_null(low->row.run_id) : NULL);
	add(o, "best_limit_bytes",
	    r->best_limit ? int_or_null(r->best_limit->first->row.limit_bytes) : NULL);
	add(o, "best_limit_slowdown_allowed", number_or_null(BEST_LIMIT_SLOWDOWN));
	add(o, "allocation_stacks", rankings_or_null(r));
	add(o, "settings", settings);
	return o;
}

static struct json_object *losses(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_runs; i++) {
		for (size_t j = 0; j < r->runs[i].n_losses; j++) {
			const struct loss_row *loss = &r->runs[i].losses[j];
			struct json_object *o = json_object_new_object();

			add(o, "run_id", int_or_null(r->runs[i].row.run_id));
			add(o, "source", text_or_null(loss->source));
			add(o, "count", int_or_null(loss->count));
			add(o, "detail", text_or_null(loss->detail));
			push(array, o);
		}
	}
	return array;
}

static struct json_object *warnings(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_warnings; i++) {
		struct json_object *o = json_object_new_object();

		add(o, "text", json_object_new_string(r->warnings[i].text));
		add(o, "first_run_id", int_or_null(r->warnings[i].run->row.run_id));
		add(o, "run_count", json_object_new_int64((int64_t)r->warnings[i].n_runs));
		push(array, o);
	}
	return array;
}

void report_json(const struct report *r, struct str *out)
{
	const int flags =
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
	struct json_object *o = json_object_new_object();
	const char *text;

	add(o, "schema", json_object_new_string(SUMMARY_SCHEMA));
	add(o, "session", session(r));
	add(o, "runs", runs(r));
	add(o, "findings", findings(r));
	add(o, "losses", losses(r));
	add(o, "warnings", warnings(r));
	text = o ? json_object_to_json_string_ext(o, flags) : NULL;
	if (text) {
		str_add(out, text);
		str_add(out, "\n");
	} else {
		out->failed = true;
	}
	(void)json_object_put(o); /* tells only whether it was the last reference */
}
