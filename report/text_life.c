#include "report/site_life.h"
#include "report/text_internal.h"

#include "base/fmt.h"

#include <math.h>
#include <string.h>

/* Rows of a table; more moments are thinned out. */
#define ROWS_SHOWN 20
#define DECISIONS_SHOWN 10
#define PLACES_SHOWN 10

#define CELL_WIDTH 11
#define BAR_WIDTH 40

static void add_heading(struct str *out, const char *text)
{
	str_addf(out, "\n%s\n", text);
}

static void add_name(struct str *out, const struct site_life *l)
{
	_cleanup_str_ struct str s = {0};

	text_site_name(&s, &l->site);
	str_addf(&s, ", run %lld", (long long)l->run_id);
	if (l->run_name)
		str_addf(&s, " (%s)", l->run_name);
	if (l->n_place > 0) {
		str_add(&s, ": ");
		text_place(&s, l->place);
	}
	if (s.data)
		text_wrap(out, 0, 2, s.data);
	for (size_t i = 0; i < l->site.n_frames; i++)
		text_frame(out, &l->site.frames[i]);
	if (l->site.n_frames == 0)
		text_para(out, 2 * TEXT_INDENT, "no stack");
}

static void add_number(struct str *s, const char *before, int64_t v, enum figure_unit unit,
		       const char *after)
{
	char buf[CELL_MAX];

	if (v == READ_NULL)
		str_addf(s, "%sn/a%s", before, after);
	else
		str_addf(s, "%s%s%s", before, text_number(buf, v, unit), after);
}

static void add_totals(struct str *out, const struct site_life *l)
{
	const struct site_row *row = &l->site.row;
	_cleanup_str_ struct str s = {0};

	add_heading(out, "Totals");
	add_number(&s, "", row->alloc_count, UNIT_COUNT,
		   row->alloc_count == 1 ? " allocation of " : " allocations of ");
	add_number(&s, "", row->alloc_bytes, UNIT_BYTES, "");
	add_number(&s, ", ", row->free_count, UNIT_COUNT, " freed");
	add_number(&s, "; most live ", row->peak_live_bytes, UNIT_BYTES, "");
	add_number(&s, ", at the workload's peak ", row->at_peak_bytes, UNIT_BYTES, "");
	add_number(&s, "; not freed at the end ", row->end_live_bytes, UNIT_BYTES, "");
	add_number(&s, " in ", row->end_live_count, UNIT_COUNT,
		   row->end_live_count == 1 ? " block" : " blocks");
	add_number(&s, "; temporary ", row->temporary_count, UNIT_COUNT, "");
	add_number(&s, ", failed ", row->failed_count, UNIT_COUNT, "");
	add_number(&s, "; most swapped ", row->max_swapped_bytes, UNIT_BYTES, "");
	add_number(&s, ", major faults ", row->major_faults, UNIT_COUNT, ".");
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
}

/* -- histograms ------------------------------------------------------------------------------- */

static void add_bar(struct str *out, const char *label, int64_t count, int64_t most)
{
	char buf[CELL_MAX];

	str_addf(out, "%*s%-*s%*s  ", TEXT_INDENT, "", CELL_WIDTH + 2, label, CELL_WIDTH,
		 text_number(buf, count, UNIT_COUNT));
	for (int64_t i = 0; i == 0 || i < BAR_WIDTH * count / MAX(most, 1); i++)
		str_add(out, "#");
	str_add(out, "\n");
}

static const char *log2_label(char buf[static CELL_MAX], int64_t log2, bool is_size)
{
	double low = ldexp(1, (int)log2);

	if (log2 >= 62)
		return "the rest";
	if (is_size)
		return fmt_bytes(buf, (int64_t)low);
	return fmt_ns(buf, (int64_t)low);
}

static void add_histogram(struct str *out, const struct site_life *l, const char *kind,
			  const char *title)
{
	bool is_size = strcmp(kind, "size") == 0;
	int64_t most = 0;
	char buf[CELL_MAX];

	for (size_t i = 0; i < l->n_histogram; i++) {
		if (l->histogram[i].kind && strcmp(l->histogram[i].kind, kind) == 0)
			most = MAX(most, l->histogram[i].count);
	}
	if (most == 0)
		return;
	add_heading(out, title);
	for (size_t i = 0; i < l->n_histogram; i++) {
		const struct histogram_row *row = &l->histogram[i];

		if (row->kind && strcmp(row->kind, kind) == 0)
			add_bar(out, log2_label(buf, row->log2, is_size), row->count, most);
	}
}

/* -- in time ---------------------------------------------------------------------------------- */

static void add_cell(struct str *out, int64_t v, enum figure_unit unit)
{
	char buf[CELL_MAX];

	str_addf(out, "%*s", CELL_WIDTH, v == READ_NULL ? "n/a" : text_number(buf, v, unit));
}

static const char *seconds(char buf[static CELL_MAX], int64_t ns)
{
	return text_duration(buf, (double)MAX(ns, 0) / 1e9);
}

static void add_sample(struct str *out, const struct site_sample_row *row)
{
	char t[CELL_MAX];

	str_addf(out, "%*s%*s", TEXT_INDENT, "", CELL_WIDTH, seconds(t, row->t_ns));
	add_cell(out, row->live_bytes, UNIT_BYTES);
	add_cell(out, row->resident_bytes, UNIT_BYTES);
	add_cell(out, row->swapped_bytes, UNIT_BYTES);
	add_cell(out, row->cold_bytes, UNIT_BYTES);
	add_cell(out, row->thrashing_bytes, UNIT_BYTES);
	add_cell(out, row->major_faults, UNIT_COUNT);
	str_add(out, "\n");
}

static void add_samples(struct str *out, const struct site_life *l)
{
	static const char *const titles[] = {"at",   "live",      "resident", "swapped",
					     "cold", "thrashing", "faults"};
	size_t n = MIN(l->n_samples, (size_t)ROWS_SHOWN);

	add_heading(out, "Where its pages were");
	if (l->n_samples == 0) {
		text_para(out, TEXT_INDENT, "n/a (%s)",
			  l->has_scans ? "no scan found anything of it"
				       : "the pages of sites were not scanned");
		return;
	}
	str_addf(out, "%*s", TEXT_INDENT, "");
	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		str_addf(out, "%*s", CELL_WIDTH, titles[i]);
	str_add(out, "\n");
	for (size_t i = 0; i < n; i++)
		add_sample(out, &l->samples[n > 1 ? i * (l->n_samples - 1) / (n - 1) : 0]);
	if (n < l->n_samples)
		text_para(out, TEXT_INDENT, "%zu of %zu changes; --format json has all.", n,
			  l->n_samples);
}

static void add_faults(struct str *out, const struct site_life *l)
{
	int64_t first, width, sums[ROWS_SHOWN] = {0}, most = 0;

	add_heading(out, "When it faulted");
	if (l->n_seconds == 0) {
		text_para(out, TEXT_INDENT, "%s",
			  l->site.row.major_faults == READ_NULL
				  ? "n/a (faults of sites were not recorded)"
				  : "It never did.");
		return;
	}
	first = l->seconds[0].second;
	width = (l->seconds[l->n_seconds - 1].second - first) / ROWS_SHOWN + 1;
	for (size_t i = 0; i < l->n_seconds; i++)
		sums[(l->seconds[i].second - first) / width] += l->seconds[i].faults;
	for (size_t i = 0; i < ROWS_SHOWN; i++)
		most = MAX(most, sums[i]);
	for (int i = 0; i < ROWS_SHOWN; i++) {
		char label[CELL_MAX], t[CELL_MAX];

		if (sums[i] == 0)
			continue;
		(void)snprintf(label, sizeof(label), "%.20s",
			       seconds(t, (first + i * width) * INT64_C(1000000000)));
		add_bar(out, label, sums[i], most);
	}
	text_para(out, TEXT_INDENT, "Each line: major faults of %lld s.", (long long)width);
}

static void add_places(struct str *out, const struct site_life *l)
{
	int64_t all = 0;
	char faults[CELL_MAX], share[CELL_MAX];

	if (l->n_places == 0)
		return;
	add_heading(out, "Which code faulted");
	for (size_t i = 0; i < l->n_seconds; i++)
		all += l->seconds[i].faults;
	for (size_t i = 0; i < MIN(l->n_places, (size_t)PLACES_SHOWN); i++) {
		const struct fault_place_row *p = &l->places[i];
		_cleanup_str_ struct str s = {0};

		str_addf(&s, "%s (%s) in ", text_number(faults, p->faults, UNIT_COUNT),
			 text_share(share, p->faults, all));
		if (p->at.offset == READ_NULL)
			str_add(&s, "unknown code");
		else
			text_place(&s, &p->at);
		if (s.data)
			text_para(out, TEXT_INDENT, "%s", s.data);
	}
}

/* Those that took most, the largest first. */
static void add_decisions(struct str *out, const struct site_life *l)
{
	struct pressure_view p = {.decisions = l->decisions, .n_decisions = l->n_decisions};
	size_t most[DECISIONS_SHOWN];
	size_t n = pressure_most_taken(&p, DECISIONS_SHOWN, most);
	char at[CELL_MAX], taken[CELL_MAX], faults[CELL_MAX], window[CELL_MAX];

	if (n == 0)
		return;
	add_heading(out, "Which tightenings took its residency");
	for (size_t i = 0; i < n; i++) {
		const struct decision_effect *e = &l->decisions[most[i]];

		text_para(out, TEXT_INDENT, "%s at %s; %s major faults of it in the next %s",
			  text_number(taken, e->taken.total, UNIT_BYTES), seconds(at, e->t_ns),
			  text_number(faults, e->faulted.total, UNIT_COUNT),
			  seconds(window, e->aftermath_ns));
	}
}

void site_life_text(const struct site_life *l, struct str *out)
{
	add_name(out, l);
	add_totals(out, l);
	add_histogram(out, l, "size", "Sizes, from");
	add_histogram(out, l, "lifetime", "Lifetimes, from");
	add_samples(out, l);
	add_faults(out, l);
	add_places(out, l);
	add_decisions(out, l);
}
