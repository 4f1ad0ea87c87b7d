#include "report/environment.h"
#include "report/text_internal.h"

#include <math.h>
#include <string.h>

/* Sites shown of each ranking. */
#define SITES_SHOWN 5
/* A stack of more frames ends with the number of the others. */
#define FRAMES_SHOWN 6

#define FRAME_INDENT 4
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

/* -- a stack ---------------------------------------------------------------------------------- */

/* Names come from outside: nothing unprintable, and no more than `max` bytes of it. */
static void add_cut(struct str *out, const char *text, size_t max)
{
	size_t len = strlen(text), end = len <= max ? len : max - 3;

	while (end < len && end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--; /* not within a character of UTF-8 */
	for (size_t i = 0; i < end; i++)
		str_addn(out, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? "?" : text + i, 1);
	if (end < len)
		str_add(out, "...");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Where it is in the source, else in which file of code. */
static void add_place(struct str *s, const struct frame_row *f, bool is_short)
{
	if (f->file)
		str_add(s, is_short ? base_name(f->file) : f->file);
	else if (f->function && f->module)
		str_add(s, base_name(f->module));
	if (f->file && f->line > 0)
		str_addf(s, ":%lld", (long long)f->line);
}

static void add_frame_name(struct str *s, const struct frame_row *f)
{
	if (f->function)
		str_add(s, f->function);
	else
		str_addf(s, "%s%s0x%llx", f->module ? base_name(f->module) : "",
			 f->module ? "+" : "", (unsigned long long)f->offset);
	if (f->is_inline == 1)
		str_add(s, " (inlined)");
}

/* One line of a terminal: a path gives way to its last part, then the name to its beginning. */
static void add_frame(struct str *out, const struct frame_row *f)
{
	const size_t width = TEXT_WIDTH - FRAME_INDENT, least = 24;
	_cleanup_str_ struct str name = {0}, place = {0};
	size_t place_len;

	add_frame_name(&name, f);
	add_place(&place, f, false);
	if (name.len + 2 + place.len > width) {
		place.len = 0;
		add_place(&place, f, true);
	}
	if (name.failed || place.failed) {
		out->failed = true;
		return;
	}
	place_len = MIN(place.len, width - MIN(name.len, least) - 2);
	str_addf(out, "%*s", FRAME_INDENT, "");
	add_cut(out, name.data, width - (place_len > 0 ? place_len + 2 : 0));
	if (place_len > 0) {
		str_add(out, "  ");
		add_cut(out, place.data, place_len);
	}
	str_add(out, "\n");
}

static void add_stack(struct str *out, const struct site_view *s)
{
	size_t n = s->n_frames <= FRAMES_SHOWN ? s->n_frames : FRAMES_SHOWN - 1;

	for (size_t i = 0; i < n; i++)
		add_frame(out, &s->frames[i]);
	if (n < s->n_frames)
		str_addf(out, "%*s... and %zu more\n", FRAME_INDENT, "", s->n_frames - n);
}

/* -- a ranking -------------------------------------------------------------------------------- */

static const char *share_of(char buf[static CELL_MAX], int64_t part, int64_t all)
{
	const struct figure f = {.v = all > 0 ? (double)part / (double)all : 0};

	return text_value(buf, &f, UNIT_SHARE);
}

static const char *value_of(char buf[static CELL_MAX], int64_t v, enum figure_unit unit)
{
	const struct figure f = {.v = (double)MAX(v, 0)};

	return text_value(buf, &f, unit);
}

static const char *second_value(char buf[static CELL_MAX], const struct site_row *row,
				enum second second)
{
	switch (second) {
	case SECOND_CALLS:
		return value_of(buf, row->alloc_count, UNIT_COUNT);
	case SECOND_BYTES:
		return value_of(buf, row->alloc_bytes, UNIT_BYTES);
	case SECOND_BLOCKS:
		return value_of(buf, row->end_live_count, UNIT_COUNT);
	case SECOND_OF_ITS_OWN:
		return share_of(buf, MAX(row->temporary_count, 0), row->alloc_count);
	}
	return "";
}

/* "site 3 (mmap, stack cut)": what is usual is not said. */
static void add_site_name(struct str *s, const struct site_view *site)
{
	const char *kind = site->row.kind, *sep = " (";

	str_addf(s, "site %lld", (long long)site->row.site_id);
	if (kind && strcmp(kind, "malloc") != 0) {
		str_addf(s, "%s%s", sep, kind);
		sep = ", ";
	}
	if (strcmp(site->quality, "none") == 0)
		str_addf(s, "%sno stack", sep);
	else if (strcmp(site->quality, "full") != 0)
		str_addf(s, "%sstack %s", sep, site->quality);
	else if (*sep == ' ')
		return;
	str_add(s, ")");
}

static void add_site(struct str *out, const struct trace_view *t, enum site_order order,
		     const struct site_view *site, bool is_known)
{
	const struct site_list *list = &lists[order];
	int64_t v = site_order_value(&site->row, order);
	char value[CELL_MAX], share[CELL_MAX], second[CELL_MAX];
	_cleanup_str_ struct str name = {0};

	add_site_name(&name, site);
	str_addf(out, "%*s%-*s%*s%*s%*s%s\n", TEXT_INDENT, "", SITE_WIDTH,
		 name.data ? name.data : "", VALUE_WIDTH, value_of(value, v, list->unit),
		 SHARE_WIDTH, share_of(share, v, t->total[order]), VALUE_WIDTH,
		 second_value(second, &site->row, list->second),
		 is_known && site->n_frames > 0 ? "  (above)" : "");
	if (!is_known)
		add_stack(out, site);
}

/* A stack is printed once, where its site comes first. */
static void add_list(struct str *out, const struct trace_view *t, enum site_order order,
		     bool is_known[])
{
	const struct site_list *list = &lists[order];

	if (t->n_top[order] == 0)
		return;
	str_addf(out, "\n%*s%-*s%*s%*s%*s\n", TEXT_INDENT, "", SITE_WIDTH, list->title, VALUE_WIDTH,
		 list->value, SHARE_WIDTH, "share", VALUE_WIDTH, list->second_title);
	for (size_t i = 0; i < MIN(t->n_top[order], (size_t)SITES_SHOWN); i++) {
		size_t at = t->top[order][i];

		add_site(out, t, order, &t->sites[at], is_known[at]);
		is_known[at] = true;
	}
}

/* -- all of it -------------------------------------------------------------------------------- */

static void add_number(struct str *s, const char *before, int64_t n, const char *what)
{
	char buf[CELL_MAX];

	str_addf(s, "%s%s %s%s", before, value_of(buf, n, UNIT_COUNT), what, n == 1 ? "" : "s");
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
	str_addf(&s, " of %s", value_of(buf, t->total[ORDER_ALLOCATED], UNIT_BYTES));
	add_number(&s, " at ", (int64_t)t->n_all, "site");
	str_addf(&s, "; at most %s were live at once", text_value(buf, &peak_figure, UNIT_BYTES));
	if (!isnan(t->v[TRACE_peak_t_ns]))
		str_addf(&s, ", at %s", text_trace_value(buf, v, TRACE_peak_t_ns));
	str_addf(&s, "; %s", value_of(buf, t->total[ORDER_LEAKED], UNIT_BYTES));
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
	if (n > 0)
		text_para(out, TEXT_INDENT,
			  "%zu other run%s traced too: --format json has the sites of each.", n,
			  n == 1 ? " was" : "s were");
}

void text_sites(struct str *out, const struct report *r)
{
	const struct run_view *v = text_traced_run(r);
	bool is_known[N_ORDERS * SITES_KEPT] = {false};

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
	for (int order = 0; order < N_ORDERS; order++)
		add_list(out, &v->trace, (enum site_order)order, is_known);
	str_add(out, "\n");
	if (!v->trace.has_pressure)
		text_para(out, TEXT_INDENT,
			  "Which of them are hot or cold, or were swapped out and faulted back, is "
			  "not known: faults and resident pages of sites were not recorded.");
	add_others(out, r, v);
}
