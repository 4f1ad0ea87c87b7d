#include "report/json_values.h"
#include "report/report.h"

/*
 * {"schema": ..., "session": {...}, "runs": [...], "findings": {...}, "losses": [...],
 *  "warnings": [...]}: bytes, seconds, fractions and rates as numbers, null where there is none.
 * Within a schema number keys are only added.
 *
 * json-c asserts when it is without memory: for some kilobytes, after the samples are freed, that
 * is accepted.
 */

static struct json_object *figure_or_null(const struct figure *f)
{
	return f->why ? NULL : json_number(f->v);
}

static struct json_object *figures(const struct figure *f)
{
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < FIG_COUNT; i++)
		json_add(o, figure_infos[i].name, figure_or_null(&f[i]));
	return o;
}

/* Why a figure is null, for those that are. */
static struct json_object *reasons(const struct figure *f)
{
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < FIG_COUNT; i++) {
		if (f[i].why)
			json_add(o, figure_infos[i].name, json_object_new_string(f[i].why));
	}
	return o;
}

static struct json_object *decisions(const struct decision_summary *d)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "count", json_object_new_int64((int64_t)d->n));
	for (int a = 0; a < N_ACTIONS; a++) {
		struct json_object *by = json_object_new_object();

		for (int i = 0; i < N_OUTCOMES; i++)
			json_add(by, outcome_name((enum outcome)i),
				 json_object_new_int64((int64_t)d->by[a][i]));
		json_add(o, action_name((enum action)a), by);
	}
	json_add(o, "longest_s",
		 d->longest_ns < 0 ? NULL : json_number((double)d->longest_ns / 1e9));
	return o;
}

static struct json_object *events(const struct run_view *v)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < v->n_events; i++) {
		const struct event_row *e = &v->events[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "t_s",
			 e->t_ns == READ_NULL ? NULL : json_number((double)e->t_ns / 1e9));
		json_add(o, "kind", json_text(e->kind));
		json_add(o, "detail", json_text(e->detail));
		json_push(array, o);
	}
	return array;
}

struct json_object *json_site(const struct site_view *s)
{
	struct json_object *o = json_object_new_object(), *stack = json_object_new_array();
	const struct site_row *row = &s->row;

	json_add(o, "id", json_int(row->site_id));
	json_add(o, "kind", json_text(row->kind));
	json_add(o, "alloc_count", json_int(row->alloc_count));
	json_add(o, "free_count", json_int(row->free_count));
	json_add(o, "alloc_bytes", json_int(row->alloc_bytes));
	json_add(o, "peak_live_bytes", json_int(row->peak_live_bytes));
	json_add(o, "at_peak_bytes", json_int(row->at_peak_bytes));
	json_add(o, "end_live_bytes", json_int(row->end_live_bytes));
	json_add(o, "end_live_count", json_int(row->end_live_count));
	json_add(o, "temporary_count", json_int(row->temporary_count));
	json_add(o, "failed_count", json_int(row->failed_count));
	json_add(o, "major_faults", json_int(row->major_faults));
	json_add(o, "max_swapped_bytes", json_int(row->max_swapped_bytes));
	json_add(o, "quality", json_text(s->quality));
	for (size_t i = 0; i < s->n_frames; i++)
		json_push(stack, json_frame(&s->frames[i]));
	json_add(o, "stack", stack);
	return o;
}

static struct json_object *coverage(const struct trace_view *t)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < t->n_coverage; i++) {
		const struct coverage_row *c = &t->coverage[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "path", json_text(c->path));
		json_add(o, "families", json_text(c->families));
		json_add(o, "probes", json_int(c->probes));
		json_add(o, "is_private", json_object_new_boolean(c->is_private == 1));
		json_add(o, "problem", json_text(c->problem));
		json_push(array, o);
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
		json_add(o, trace_keys[i], json_number(t->v[i]));
	for (size_t i = 0; i < t->n_sites; i++)
		json_push(sites, json_site(&t->sites[i]));
	json_add(o, "coverage", coverage(t));
	json_add(o, "site_count", json_object_new_int64((int64_t)t->n_all));
	json_add(o, "sites", sites);
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

	json_add(o, "run_id", json_int(row->run_id));
	json_add(o, "name", json_text(row->name));
	json_add(o, "kind", json_text(row->kind));
	json_add(o, "policy", json_text(row->policy));
	json_add(o, "knob", json_text(row->knob));
	json_add(o, "limit_bytes", json_int(row->limit_bytes));
	json_add(o, "command", json_parsed(row->command));
	json_add(o, "started_at", json_text(row->started_at));
	json_add(o, "state", json_object_new_string(state_name(v->state)));
	json_add(o, "end_reason", json_text(row->end_reason));
	json_add(o, "exit_code", json_int(row->exit_code));
	json_add(o, "term_signal", json_int(row->term_signal));
	json_add(o, "last_sample_s", json_number(v->last_sample_s));
	json_add(o, "compressor", json_text(row->compressor));
	json_add(o, "allocator", json_text(row->allocator));
	json_add(o, "repeat_index", json_int(row->repeat_index));
	json_add(o, "run_order", json_int(row->run_order));
	json_add(o, "kpi", json_number(row->kpi));
	json_add(o, "config", json_parsed(row->config));
	json_add(o, "figures", figures(v->fig));
	json_add(o, "missing", reasons(v->fig));
	json_add(o, "decisions", decisions(&v->decisions));
	json_add(o, "events", events(v));
	json_add(o, "trace", trace_or_null(&v->trace));
	json_add(o, "pressure", json_pressure(v));
	json_add(o, "pressure_missing", json_text(v->pressure.why_none));
	return o;
}

static struct json_object *runs(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_runs; i++)
		json_push(array, run(&r->runs[i]));
	return array;
}

static struct json_object *session(const struct report *r)
{
	const struct run_row *row = &r->runs[0].row;
	struct json_object *o = json_object_new_object();
	bool is_complete = true;

	for (size_t i = 0; i < r->n_runs; i++)
		is_complete &= r->runs[i].state == RUN_ENDED;
	json_add(o, "directory", json_object_new_string(r->name));
	json_add(o, "command", json_parsed(row->command));
	json_add(o, "started_at", json_text(row->started_at));
	json_add(o, "run_count", json_object_new_int64((int64_t)r->n_runs));
	json_add(o, "is_complete", json_object_new_boolean(is_complete));
	json_add(o, "environment", json_parsed(row->environment));
	return o;
}

static struct json_object *setting(const struct report *r, const struct run_group *g)
{
	static const enum figure_id compared[] = {FIG_peak_bytes, FIG_duration_s, FIG_major_faults};
	struct json_object *o = json_object_new_object(), *change = json_object_new_object();
	struct json_object *ids = json_object_new_array();

	for (size_t i = 0; i < g->n; i++)
		json_push(ids, json_int(g->members[i]->row.run_id));
	for (size_t i = 0; i < ARRAY_SIZE(compared); i++)
		json_add(change, figure_infos[compared[i]].name,
			 g == r->baseline
				 ? NULL
				 : json_number(figure_change(g, r->baseline, compared[i])));
	json_add(o, "name", json_text(g->first->row.name));
	json_add(o, "limit_bytes", json_int(g->first->row.limit_bytes));
	json_add(o, "run_ids", ids);
	json_add(o, "ended_well", json_object_new_boolean(g->has_ended_well));
	json_add(o, "median", figures(g->median));
	json_add(o, "least", figures(g->min));
	json_add(o, "largest", figures(g->max));
	json_add(o, "change_against_baseline", change);
	return o;
}

/* Of the first run that has sites: their sums, and the ids of those with most of each. */
static struct json_object *rankings_or_null(const struct run_view *v)
{
	struct json_object *o;

	if (!v || v->trace.n_all == 0)
		return NULL;
	o = json_object_new_object();
	json_add(o, "run_id", json_int(v->row.run_id));
	for (int order = 0; order < N_ORDERS; order++) {
		struct json_object *by = json_object_new_object();
		struct json_object *ids = json_object_new_array();

		for (size_t i = 0; i < v->trace.n_top[order]; i++)
			json_push(ids,
				  json_int(v->trace.sites[v->trace.top[order][i]].row.site_id));
		json_add(by, "total", json_int(v->trace.total[order]));
		json_add(by, "site_ids", ids);
		json_add(o, site_order_keys[order], by);
	}
	return o;
}

static struct json_object *findings(const struct report *r)
{
	struct json_object *o = json_object_new_object(), *settings = json_object_new_array();
	const struct run_group *whole = r->baseline ? r->baseline : &r->groups[0];
	const struct run_view *low = r->floor_run, *v = report_traced_run(r);

	for (size_t i = 0; i < r->n_groups; i++)
		json_push(settings, setting(r, &r->groups[i]));
	json_add(o, "peak_bytes", figure_or_null(&whole->median[FIG_peak_bytes]));
	json_add(o, "floor_bytes", low ? figure_or_null(&low->fig[FIG_floor_bytes]) : NULL);
	json_add(o, "floor_run_id", low ? json_int(low->row.run_id) : NULL);
	json_add(o, "best_limit_bytes",
		 r->best_limit ? json_int(r->best_limit->first->row.limit_bytes) : NULL);
	json_add(o, "best_limit_slowdown_allowed", json_number(BEST_LIMIT_SLOWDOWN));
	json_add(o, "allocation_stacks", rankings_or_null(v));
	json_add(o, "pressure", v ? json_pressure_findings(v) : NULL);
	json_add(o, "pressure_missing",
		 v ? json_text(v->pressure.why_none) : json_text("not traced"));
	json_add(o, "settings", settings);
	return o;
}

static struct json_object *losses(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_runs; i++) {
		for (size_t j = 0; j < r->runs[i].n_losses; j++) {
			const struct loss_row *loss = &r->runs[i].losses[j];
			struct json_object *o = json_object_new_object();

			json_add(o, "run_id", json_int(r->runs[i].row.run_id));
			json_add(o, "source", json_text(loss->source));
			json_add(o, "count", json_int(loss->count));
			json_add(o, "detail", json_text(loss->detail));
			json_push(array, o);
		}
	}
	return array;
}

static struct json_object *warnings(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n_warnings; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "text", json_object_new_string(r->warnings[i].text));
		json_add(o, "first_run_id", json_int(r->warnings[i].run->row.run_id));
		json_add(o, "run_count", json_object_new_int64((int64_t)r->warnings[i].n_runs));
		json_push(array, o);
	}
	return array;
}

void report_json(const struct report *r, struct str *out)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "schema", json_object_new_string(SUMMARY_SCHEMA));
	json_add(o, "session", session(r));
	json_add(o, "runs", runs(r));
	json_add(o, "findings", findings(r));
	json_add(o, "losses", losses(r));
	json_add(o, "warnings", warnings(r));
	json_print(out, o);
}
