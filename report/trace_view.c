#include "report/trace_view.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

const char *const trace_keys[TRACE_COUNT] = {
#define TRACE(key, unit, definition) #key,
#include "report/trace.def"
#undef TRACE
};

const char *const site_order_keys[N_ORDERS] = {
	[ORDER_AT_PEAK] = "at_peak_bytes",     [ORDER_ALLOCATED] = "alloc_bytes",
	[ORDER_CALLS] = "alloc_count",         [ORDER_LEAKED] = "end_live_bytes",
	[ORDER_TEMPORARY] = "temporary_count",
};

int64_t site_order_value(const struct site_row *row, enum site_order order)
{
	const int64_t values[N_ORDERS] = {
		[ORDER_AT_PEAK] = row->at_peak_bytes,     [ORDER_ALLOCATED] = row->alloc_bytes,
		[ORDER_CALLS] = row->alloc_count,         [ORDER_LEAKED] = row->end_live_bytes,
		[ORDER_TEMPORARY] = row->temporary_count,
	};

	return MAX(values[order], 0); /* READ_NULL is negative */
}

/* -- the figures ------------------------------------------------------------------------------ */

static int load_figures(struct trace_view *t, const char *json)
{
	struct json_object *o = json ? json_tokener_parse(json) : NULL, *v;
	int r = 0;

	for (int i = 0; i < TRACE_COUNT; i++) {
		bool has = o && json_object_object_get_ex(o, trace_keys[i], &v) &&
			   (json_object_is_type(v, json_type_int) ||
			    json_object_is_type(v, json_type_double));

		t->v[i] = has ? json_object_get_double(v) : NAN;
	}
	if (json)
		t->state = TRACE_DONE;
	if (o && json_object_object_get_ex(o, "not_traced", &v) &&
	    json_object_is_type(v, json_type_string)) {
		t->state = TRACE_ABSENT;
		t->why_absent = strdup(json_object_get_string(v));
		r = t->why_absent ? 0 : -ENOMEM;
	}
	(void)json_object_put(o); /* tells only whether it was the last reference */
	return r;
}

/* -- the rankings ----------------------------------------------------------------------------- */

struct ranking {
	const struct site_row *rows;
	enum site_order order;
};

static int compare(const void *a, const void *b, void *arg)
{
	const struct ranking *ranking = arg;
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	int64_t x = site_order_value(&ranking->rows[left], ranking->order);
	int64_t y = site_order_value(&ranking->rows[right], ranking->order);

	if (x != y)
		return x < y ? 1 : -1;
	return left < right ? -1 : 1; /* rows are by site_id */
}

static int rank(struct trace_view *t, const struct site_row *rows, size_t n)
{
	_cleanup_free_ size_t *at = calloc(n + 1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (int order = 0; order < N_ORDERS; order++) {
		struct ranking ranking = {rows, (enum site_order)order};
		size_t *n_top = &t->n_top[order];

		for (size_t i = 0; i < n; i++)
			at[i] = i;
		qsort_r(at, n, sizeof(*at), compare, &ranking);
		while (*n_top < MIN(n, (size_t)SITES_KEPT) &&
		       site_order_value(&rows[at[*n_top]], ranking.order) > 0) {
			t->top[order][*n_top] = at[*n_top];
			++*n_top;
		}
	}
	return 0;
}

static void add_totals(struct trace_view *t, const struct site_row *rows, size_t n)
{
	t->n_all = n;
	for (size_t i = 0; i < n; i++) {
		for (int order = 0; order < N_ORDERS; order++)
			t->total[order] += site_order_value(&rows[i], (enum site_order)order);
		t->total_leaked_count += MAX(rows[i].end_live_count, 0);
		t->has_faults |= rows[i].major_faults != READ_NULL;
	}
}

/* Moves the ranked rows into t->sites, and makes the rankings point there. */
static int keep_ranked(struct trace_view *t, struct site_row *rows, size_t n)
{
	_cleanup_free_ size_t *to = calloc(n + 1, sizeof(*to)); /* index in t->sites, plus 1 */

	t->sites = calloc((size_t)N_ORDERS * SITES_KEPT, sizeof(*t->sites));
	if (!to || !t->sites)
		return -ENOMEM;
	for (int order = 0; order < N_ORDERS; order++) {
		for (size_t i = 0; i < t->n_top[order]; i++)
			to[t->top[order][i]] = 1;
	}
	for (size_t i = 0; i < n; i++) {
		if (to[i] == 0)
			continue;
		t->sites[t->n_sites++].row = rows[i];
		memset(&rows[i], 0, sizeof(rows[i]));
		to[i] = t->n_sites;
	}
	for (int order = 0; order < N_ORDERS; order++) {
		for (size_t i = 0; i < t->n_top[order]; i++)
			t->top[order][i] = to[t->top[order][i]] - 1;
	}
	return 0;
}

int site_view_load_stack(struct site_view *s, struct reader *r, struct err *err)
{
	int res = 0;

	if (s->row.stack_id != READ_NULL)
		res = reader_load_quality(r, s->row.stack_id, &s->quality, err);
	if (res == 0 && s->quality)
		res = reader_load_frames(r, s->row.stack_id, &s->frames, &s->n_frames, err);
	if (res == 0 && !s->quality) {
		s->quality = strdup("none");
		if (!s->quality)
			res = err_set(err, -ENOMEM, "no memory for a stack");
	}
	return res;
}

static int load_sites(struct trace_view *t, struct reader *r, int64_t run_id, struct err *err)
{
	struct site_row *rows = NULL;
	size_t n = 0;
	int res = reader_load_sites(r, run_id, &rows, &n, err);

	if (res < 0)
		return res;
	add_totals(t, rows, n);
	if (rank(t, rows, n) < 0 || keep_ranked(t, rows, n) < 0)
		res = err_set(err, -ENOMEM, "no memory for %zu allocation sites", n);
	site_rows_free(rows, n);
	for (size_t i = 0; res == 0 && i < t->n_sites; i++)
		res = site_view_load_stack(&t->sites[i], r, err);
	return res;
}

int trace_view_load(struct trace_view *t, struct reader *r, int64_t run_id, const char *json,
		    struct err *err)
{
	bool has_begun = false;
	int res = 0;

	memset(t, 0, sizeof(*t));
	if (load_figures(t, json) < 0)
		res = err_set(err, -ENOMEM, "no memory for the figures of a trace");
	if (res == 0 && !json)
		res = reader_has_tracer_stat(r, run_id, &has_begun, err);
	if (has_begun)
		t->state = TRACE_UNFINISHED;
	/* All of a result is one transaction. */
	if (res == 0 && t->state == TRACE_DONE)
		res = load_sites(t, r, run_id, err);
	if (res == 0 && t->state == TRACE_DONE)
		res = reader_load_coverage(r, run_id, &t->coverage, &t->n_coverage, err);
	if (res < 0)
		trace_view_done(t);
	return res;
}

void site_view_done(struct site_view *s)
{
	site_row_done(&s->row);
	free(s->quality);
	frame_rows_free(s->frames, s->n_frames);
}

void trace_view_done(struct trace_view *t)
{
	for (size_t i = 0; i < t->n_sites; i++)
		site_view_done(&t->sites[i]);
	free(t->sites);
	free(t->why_absent);
	coverage_rows_free(t->coverage, t->n_coverage);
	memset(t, 0, sizeof(*t));
}
