#include "report/environment.h"
#include "report/text_internal.h"

#include <math.h>
#include <string.h>

/* Sites shown of each ranking. */
#define SITES_SHOWN 5
#define SITE_WIDTH 34
#define VALUE_WIDTH 12
#define SHARE_WIDTH 9

enum second { SECOND_CALLS, SECOND_BYTES, SECOND_BLOCKS, SECOND_OF_ITS_OWN };

/* A ranking: the value by which it is, its share of all sites, and a second value. */
static const struct site_list {
	const char *title, *value, *second_title;
	enum figure_unit unit;
	enum second second;
} lists[N_ORDERS] = {
	[ORDER_AT_PEAK] = {"live at the peak", "bytes", "calls", UNIT_BYTES, SECOND_CALLS},
	[ORDER_ALLOCATED] = {"allocated in all", "bytes", "calls", UNIT_BYTES, SECOND_CALLS},
	[ORDER_CALLS] = {"allocations", "calls", "bytes", UNIT_COUNT, SECOND_BYTES},
	[ORDER_LEAKED] = {"not freed at the end", "bytes", "blocks", UNIT_BYTES, SECOND_BLOCKS},
	[ORDER_TEMPORARY] = {"temporary: freed by the next event", "calls", "of its own",
			     UNIT_COUNT, SECOND_OF_ITS_OWN},
};

/* -- a ranking -------------------------------------------------------------------------------- */

static const char *second_value(char buf[static CELL_MAX], const struct site_row *row,
				enum second second)
{
	switch (second) {
	case SECOND_CALLS:
		return text_number(buf, row->alloc_count, UNIT_COUNT);
	case SECOND_BYTES:
		return text_number(buf, row->alloc_bytes, UNIT_BYTES);
	case SECOND_BLOCKS:
		return text_number(buf, row->end_live_count, UNIT_COUNT);
	case SECOND_OF_ITS_OWN:
		return text_share(buf, MAX(row->temporary_count, 0), row->alloc_count);
	}
	return "";
}

static void add_site(struct str *out, const struct trace_view *t, enum site_order order,
		     const struct site_view *site, struct text_known *known)
{
	const struct site_list *list = &lists[order];
	int64_t v = site_order_value(&site->row, order);
	char value[CELL_MAX], share[CELL_MAX], second[CELL_MAX];
	bool is_known = text_known(known, site->row.site_id);
	_cleanup_str_ struct str name = {0};

	text_site_name(&name, site);
	str_addf(out, "%*s%-*s%*s%*s%*s%s\n", TEXT_INDENT, "", SITE_WIDTH,
		 name.data ? name.data : "", VALUE_WIDTH, text_number(value, v, list->unit),
		 SHARE_WIDTH, text_share(share, v, t->total[order]), VALUE_WIDTH,
		 second_value(second, &site->row, list->second),
		 is_known && site->n_frames > 0 ? "  (above)" : "");
	if (!is_known)
		text_stack(out, site);
}

/* A stack is printed once, where its site comes first. */
static void add_list(struct str *out, const struct trace_view *t, enum site_order order,
		     struct text_known *known)
{
	const struct site_list *list = &lists[order];

	if (t->n_top[order] == 0)
		return;
	str_addf(out, "\n%*s%-*s%*s%*s%*s\n", TEXT_INDENT, "", SITE_WIDTH, list->title, VALUE_WIDTH,
		 list->value, SHARE_WIDTH, "share", VALUE_WIDTH, list->second_title);
	for (size_t i = 0; i < MIN(t->n_top[order], (size_t)SITES_SHOWN); i++)
		add_site(out, t, order, &t->sites[t->top[order][i]], known);
}

/* -- all of it -------------------------------------------------------------------------------- */

static void add_number(struct str *s, const char *before, int64_t n, const char *what)
{
	char buf[CELL_MAX];

	str_addf(s, "%s%s %s%s", before, text_number(buf, n, UNIT_COUNT), what, n == 1 ? "" : "s");
}

/* "1 234 allocations of 3.2 GiB at 56 sites; at most 640.0 MiB were live, at 3.2 s; ..." */
static void add_totals(struct str *out, const struct report *r, const struct run_view *v)
{
	const struct trace_view *t = &v->trace;
	double peak = isnan(t->v[TRACE_peak_live_bytes]) ? (double)t->total[ORDER_AT_PEAK]
							 : t->v[TRACE_peak_live_bytes];
	const struct figure peak_figure = {.v = peak};
	_cleanup_str_ struct str s = {0};
	char buf[CELL_MAX], label[LABEL_MAX];

	str_add(&s, text_run_label(r, v, label));
	add_number(&s, "", t->total[ORDER_CALLS], "allocation");
	str_addf(&s, " of %s", text_number(buf, t->total[ORDER_ALLOCATED], UNIT_BYTES));
	add_number(&s, " at ", (int64_t)t->n_all, "site");
	str_addf(&s, "; at most %s were live at once", text_value(buf, &peak_figure, UNIT_BYTES));
	if (!isnan(t->v[TRACE_peak_t_ns]))
		str_addf(&s, ", at %s", text_trace_value(buf, v, TRACE_peak_t_ns));
	str_addf(&s, "; %s", text_number(buf, t->total[ORDER_LEAKED], UNIT_BYTES));
	add_number(&s, " in ", t->total_leaked_count, "block");
	str_add(&s, " not freed at the end");
	if (t->v[TRACE_failed_allocs] > 0)
		add_number(&s, "; ", (int64_t)t->v[TRACE_failed_allocs], "failed allocation");
	str_add(&s, ".");
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
}

static void find_tracer(void *arg, const char *name, const char *why)
{
	if (strcmp(name, "tracer") == 0)
		str_add(arg, why);
}

static void add_why_absent(struct str *out, const struct run_view *v)
{
	_cleanup_str_ struct str why = {0};

	if (v->trace.why_absent)
		str_add(&why, v->trace.why_absent);
	else
		environment_missing(v->row.environment, find_tracer, &why);
	text_para(out, TEXT_INDENT, "n/a (not traced%s%s)", why.len > 0 ? ": " : "",
		  why.len > 0 ? why.data : "");
}

static void add_others(struct str *out, const struct report *r, const struct run_view *shown)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_runs; i++)
		n += &r->runs[i] != shown && r->runs[i].trace.state == TRACE_DONE;
	if (n == 0)
		return;
	str_add(out, "\n");
	text_para(out, TEXT_INDENT,
		  "%zu other run%s traced too: --format json has the sites of each.", n,
		  n == 1 ? " was" : "s were");
}

void text_sites(struct str *out, const struct report *r)
{
	const struct run_view *v = report_traced_run(r);
	struct text_known known = {0};

	if (!v) {
		add_why_absent(out, &r->runs[0]);
		return;
	}
	if (v->trace.state == TRACE_UNFINISHED) {
		text_para(out, TEXT_INDENT, "n/a (sites are written at the end of a run%s)",
			  v->state == RUN_RECORDING ? "" : ", and this one's was not recorded");
		return;
	}
	if (v->trace.n_all == 0) {
		text_para(out, TEXT_INDENT, "n/a (traced, but no allocation was seen)");
		return;
	}
	add_totals(out, r, v);
	str_add(out, "\n");
	text_cold(out, v, &known);
	str_add(out, "\n");
	text_faults(out, v, &known);
	text_pressure_time(out, v);
	for (int order = 0; order < N_ORDERS; order++)
		add_list(out, &v->trace, (enum site_order)order, &known);
	add_others(out, r, v);
}
