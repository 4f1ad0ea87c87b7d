#include "report/report.h"

#include "report/stats.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_repeat(const struct run_row *a, const struct run_row *b)
{
	return same_text(a->name, b->name) && same_text(a->command, b->command) &&
	       same_text(a->compressor, b->compressor) && same_text(a->allocator, b->allocator);
}

static struct run_group *find_group(struct report *r, const struct run_view *v)
{
	for (size_t i = 0; i < r->n_groups; i++) {
		if (is_repeat(&r->groups[i].first->row, &v->row))
			return &r->groups[i];
	}
	return NULL;
}

static void fold_figure(struct run_group *g, int id, double *values)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (!g->members[i]->fig[id].why)
			values[n++] = g->members[i]->fig[id].v;
	}
	if (n == 0) {
		g->median[id] = g->min[id] = g->max[id] = g->first->fig[id];
		return;
	}
	g->median[id] = (struct figure){.v = stats_median(values, n)};
	g->min[id] = (struct figure){.v = values[0]}; /* stats_median() sorted them */
	g->max[id] = (struct figure){.v = values[n - 1]};
}

static int build_groups(struct report *r)
{
	_cleanup_free_ double *values = calloc(r->n_runs, sizeof(*values));

	r->groups = calloc(r->n_runs, sizeof(*r->groups));
	if (!values || !r->groups)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_runs; i++) {
		struct run_group *g = find_group(r, &r->runs[i]);

		if (!g) {
			g = &r->groups[r->n_groups++];
			g->first = &r->runs[i];
			g->members = calloc(r->n_runs, sizeof(*g->members));
			if (!g->members)
				return -ENOMEM;
		}
		g->members[g->n++] = &r->runs[i];
	}
	for (size_t i = 0; i < r->n_groups; i++) {
		for (int id = 0; id < FIG_COUNT; id++)
			fold_figure(&r->groups[i], id, values);
	}
	return 0;
}

/* A workload may always end with 3; what differs from the baseline is the squeeze's doing. */
static bool has_ended_well(const struct run_group *g, int64_t expected_exit)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct run_view *v = g->members[i];

		if (!same_text(v->row.end_reason, "exited") || v->row.exit_code != expected_exit ||
		    (!v->fig[FIG_oom_kills].why && v->fig[FIG_oom_kills].v > 0))
			return false;
	}
	return true;
}

double figure_change(const struct run_group *g, const struct run_group *base, enum figure_id id)
{
	if (!base || !same_text(g->first->row.command, base->first->row.command) ||
	    g->median[id].why || base->median[id].why || !(base->median[id].v > 0))
		return NAN;
	return g->median[id].v / base->median[id].v - 1;
}

bool group_lacks_limit(const struct run_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		if (g->members[i]->row.limit_bytes != READ_NULL &&
		    g->members[i]->fig[FIG_limit_least_bytes].why &&
		    !same_text(g->members[i]->row.knob, "memory.reclaim"))
			return true;
	}
	return false;
}

static void find_best_limit(struct report *r)
{
	for (size_t i = 0; i < r->n_groups; i++) {
		const struct run_group *g = &r->groups[i];
		const struct run_row *row = &g->first->row;

		if (!r->baseline || !same_text(row->kind, "static") ||
		    row->limit_bytes == READ_NULL || !g->has_ended_well || group_lacks_limit(g) ||
		    !(figure_change(g, r->baseline, FIG_duration_s) <= BEST_LIMIT_SLOWDOWN))
			continue;
		if (!r->best_limit || row->limit_bytes < r->best_limit->first->row.limit_bytes)
			r->best_limit = g;
	}
}

static void find_findings(struct report *r)
{
	for (size_t i = 0; i < r->n_groups && !r->baseline; i++) {
		if (same_text(r->groups[i].first->row.kind, "baseline"))
			r->baseline = &r->groups[i];
	}
	for (size_t i = 0; i < r->n_groups; i++)
		r->groups[i].has_ended_well = has_ended_well(
			&r->groups[i], r->baseline ? r->baseline->first->row.exit_code : 0);
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];

		/* A size at which it was killed is not enough, however calm it was before. */
		if (v->fig[FIG_floor_bytes].why ||
		    (!v->fig[FIG_oom_kills].why && v->fig[FIG_oom_kills].v > 0))
			continue;
		if (!r->floor_run ||
		    v->fig[FIG_floor_bytes].v < r->floor_run->fig[FIG_floor_bytes].v)
			r->floor_run = v;
	}
	find_best_limit(r);
}

static int load_runs(struct report *r, struct reader *reader, const char *dir, struct err *err)
{
	struct run_row *rows = NULL;
	size_t n = 0;
	int res = reader_load_runs(reader, &rows, &n, err);

	if (res < 0)
		return res;
	r->runs = calloc(n + 1, sizeof(*r->runs));
	if (!r->runs)
		res = err_set(err, -ENOMEM, "no memory for %zu runs", n);
	else if (n == 0)
		res = err_set(err, -ENOENT, "'%s' has no runs: recording ended before the first",
			      dir);
	for (size_t i = 0; res == 0 && i < n; i++) {
		res = run_view_load(&r->runs[i], reader, &rows[i], (double)time(NULL), err);
		if (res == 0)
			r->n_runs++;
	}
	run_rows_free(rows, n);
	return res;
}

/* "a/b/" -> "b" */
static char *last_component(const char *dir)
{
	size_t end = strlen(dir), start;

	while (end > 1 && dir[end - 1] == '/')
		end--;
	for (start = end; start > 0 && dir[start - 1] != '/'; start--)
		;
	return strndup(dir + start, end - start);
}

int report_load(struct report *r, const char *dir, struct err *err)
{
	_cleanup_(reader_closep) struct reader *reader = NULL;
	int res;

	memset(r, 0, sizeof(*r));
	res = reader_open(&reader, dir, err);
	if (res == 0)
		res = load_runs(r, reader, dir, err);
	if (res == 0) {
		r->name = last_component(dir);
		r->path = strdup(dir);
		if (!r->name || !r->path || build_groups(r) < 0)
			res = err_set(err, -ENOMEM, "no memory for the report of '%s'", dir);
	}
	if (res == 0) {
		find_findings(r);
		if (report_collect_warnings(r) < 0)
			res = err_set(err, -ENOMEM, "no memory for the report of '%s'", dir);
	}
	if (res < 0)
		report_done(r);
	return res;
}

void report_done(struct report *r)
{
	for (size_t i = 0; i < r->n_groups; i++)
		free(r->groups[i].members);
	free(r->groups);
	for (size_t i = 0; i < r->n_runs; i++)
		run_view_done(&r->runs[i]);
	free(r->runs);
	for (size_t i = 0; i < r->n_warnings; i++)
		free(r->warnings[i].text);
	free(r->warnings);
	free(r->name);
	free(r->path);
	memset(r, 0, sizeof(*r));
}

const struct run_view *report_traced_run(const struct report *r)
{
	const struct run_view *found = NULL;

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];

		if (v->trace.n_all > 0)
			return v;
		if (!found && v->trace.state != TRACE_ABSENT)
			found = v;
	}
	return found;
}

int report_build(const char *dir, struct str *text, struct str *json, struct err *err)
{
	_cleanup_(report_done) struct report r = {0};
	int res = report_load(&r, dir, err);

	if (res < 0)
		return res;
	report_text(&r, text);
	report_json(&r, json);
	if (text->failed || json->failed)
		return err_set(err, -ENOMEM, "no memory for the report of '%s'", dir);
	return 0;
}
