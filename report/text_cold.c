#include "report/text_internal.h"

#include <math.h>

/* Rows of the table: those that own most cold bytes, that thrash, that are largest. */
#define COLD_SHOWN 5
#define THRASHING_SHOWN 3
#define LARGEST_SHOWN 3

#define NAME_WIDTH 33
#define CLASS_WIDTH 11

static int64_t all_bytes(const struct pressure_view *p)
{
	int64_t sum = 0;

	for (int c = 0; c < N_CLASSES; c++)
		sum += p->total[c];
	return sum;
}

void text_cold_sentence(struct str *s, const struct pressure_view *p)
{
	int64_t cold = p->total[CLASS_COLD], all = all_bytes(p);
	char of[CELL_MAX], share[CELL_MAX], buf[CELL_MAX];

	if (p->why_no_scans || !p->was_swapped || all == 0)
		return;
	str_addf(s, "%s of %s (%s) are cold", text_number(buf, cold, UNIT_BYTES),
		 text_number(of, all, UNIT_BYTES), text_share(share, cold, all));
	if (cold > 0)
		str_addf(s, ": %zu stack%s 90 %%", p->n_cold_owners,
			 p->n_cold_owners == 1 ? " owns" : "s own");
	str_add(s, ".");
}

void text_thrashing_sentence(struct str *s, const struct pressure_site *site)
{
	int64_t left = pressure_site_bytes(site) - site->bytes[CLASS_HOT];
	char buf[CELL_MAX], of[CELL_MAX], share[CELL_MAX];

	text_site_name(s, &site->site);
	if (site->n_place > 0) {
		str_add(s, ", ");
		text_site_place(s, site);
		str_add(s, ",");
	}
	str_addf(s,
		 " thrashes: it does not fit; %s of %s that were ever swapped of it (%s) came"
		 " back more than once.",
		 text_number(buf, site->bytes[CLASS_THRASHING], UNIT_BYTES),
		 text_number(of, left, UNIT_BYTES),
		 text_share(share, site->bytes[CLASS_THRASHING], left));
}

/* -- the table -------------------------------------------------------------------------------- */

static void add_cells(struct str *out, const char *name, const int64_t bytes[N_CLASSES])
{
	char buf[CELL_MAX];

	str_addf(out, "%*s%-*s", TEXT_INDENT, "", NAME_WIDTH, name);
	for (int c = 0; c < N_CLASSES; c++)
		str_addf(out, "%*s", CLASS_WIDTH, text_number(buf, bytes[c], UNIT_BYTES));
	str_add(out, "\n");
}

static void add_site(struct str *out, const struct pressure_site *s, struct text_known *known,
		     struct text_known *in_table)
{
	_cleanup_str_ struct str name = {0};

	if (text_known(in_table, s->site.row.site_id))
		return;
	text_site_name(&name, &s->site);
	add_cells(out, name.data ? name.data : "", s->bytes);
	if (!text_known(known, s->site.row.site_id))
		text_stack(out, &s->site);
}

static void add_table(struct str *out, const struct pressure_view *p, struct text_known *known)
{
	struct text_known in_table = {0};

	str_addf(out, "\n%*s%-*s", TEXT_INDENT, "", NAME_WIDTH, "what became of their pages");
	for (int c = 0; c < N_CLASSES; c++)
		str_addf(out, "%*s", CLASS_WIDTH, site_class_name((enum site_class)c));
	str_add(out, "\n");
	for (size_t i = 0; i < MIN(MIN(p->n_top[BY_COLD], p->n_cold_owners), (size_t)COLD_SHOWN);
	     i++)
		add_site(out, &p->sites[p->top[BY_COLD][i]], known, &in_table);
	for (size_t i = 0; i < MIN(p->n_top[BY_THRASHING], (size_t)THRASHING_SHOWN); i++) {
		const struct pressure_site *s = &p->sites[p->top[BY_THRASHING][i]];

		if (pressure_site_class(s) == CLASS_THRASHING)
			add_site(out, s, known, &in_table);
	}
	for (size_t i = 0; i < MIN(p->n_top[BY_BYTES], (size_t)LARGEST_SHOWN); i++)
		add_site(out, &p->sites[p->top[BY_BYTES][i]], known, &in_table);
	add_cells(out, "all sites", p->total);
	str_add(out, "\n");
	text_para(
		out, TEXT_INDENT,
		"Hot: never left memory. Cold: swapped out and never faulted back. Returned: came "
		"back once; thrashing: more often. A site thrashes when that is more than 25 %% of "
		"what was ever swapped of it, and 256 KiB.");
}

/* -- all of it -------------------------------------------------------------------------------- */

static void add_when(struct str *out, const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	const struct figure *ran = &v->fig[FIG_duration_s];
	const struct figure share = {.v = ran->v > 0 ? p->scan_s / ran->v : 0};
	const struct figure cpu = {.v = p->scan_s}, at = {.v = (double)p->scan.t_ns / 1e9},
			    period = {.v = (double)p->scan.period_ns / 1e9};
	char a[CELL_MAX], b[CELL_MAX], c[CELL_MAX], d[CELL_MAX], e[CELL_MAX];
	_cleanup_str_ struct str s = {0};

	str_addf(&s, "At %s, the last of %s scan%s that found anything; ",
		 text_value(a, &at, UNIT_SECONDS), text_number(b, (int64_t)p->n_scans, UNIT_COUNT),
		 p->n_scans == 1 ? "" : "s");
	if (p->scan.period_ns > 0)
		str_addf(&s, "period then %s; ", text_value(c, &period, UNIT_SECONDS));
	str_addf(&s, "%s CPU in all", text_value(d, &cpu, UNIT_SECONDS));
	if (!ran->why && ran->v > 0)
		str_addf(&s, " (%s of one)", text_value(e, &share, UNIT_SHARE));
	if (s.data)
		text_para(out, TEXT_INDENT, "%s.", s.data);
}

static void add_answer(struct str *out, const struct pressure_view *p)
{
	_cleanup_str_ struct str s = {0};

	text_cold_sentence(&s, p);
	if (p->total[CLASS_COLD] > 0)
		str_add(&s, " They are the candidates for tiering, madvise or freeing: swapped out "
			    "and never faulted back until then.");
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
	for (size_t i = 0; i < MIN(p->n_top[BY_THRASHING], (size_t)THRASHING_SHOWN); i++) {
		const struct pressure_site *site = &p->sites[p->top[BY_THRASHING][i]];
		_cleanup_str_ struct str t = {0};

		if (pressure_site_class(site) != CLASS_THRASHING)
			continue;
		text_thrashing_sentence(&t, site);
		if (t.data)
			text_para(out, TEXT_INDENT, "%s", t.data);
	}
}

void text_cold(struct str *out, const struct run_view *v, struct text_known *known)
{
	const struct pressure_view *p = &v->pressure;

	text_para(out, TEXT_INDENT, "Which stacks are cold?");
	if (p->why_no_scans) {
		text_para(out, TEXT_INDENT, "n/a (%s)", p->why_no_scans);
		return;
	}
	add_when(out, v);
	if (!p->was_swapped) {
		text_para(out, TEXT_INDENT,
			  "Nothing was ever swapped out, so that nothing tells hot from cold: "
			  "without a squeeze, pages that nobody needs stay in memory too. Squeeze "
			  "it: --limit 80%%, or -r FILE.");
		return;
	}
	add_answer(out, p);
	add_table(out, p, known);
}
