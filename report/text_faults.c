#include "report/environment.h"
#include "report/text_internal.h"

#include <math.h>
#include <string.h>

#define SITES_SHOWN 5
#define MAPPINGS_SHOWN 5
#define DECISIONS_SHOWN 3

#define NAME_WIDTH 34
#define FAULTS_WIDTH 11
#define SHARE_WIDTH 9
#define TIME_WIDTH 11
#define STALL_WIDTH 12

static const char *seconds(char buf[static CELL_MAX], int64_t ns)
{
	const struct figure f = {.v = (double)MAX(ns, 0) / 1e9};

	return text_value(buf, &f, UNIT_SECONDS);
}

void text_faults_sentence(struct str *s, const struct pressure_view *p)
{
	const struct pressure_site *most;
	char buf[CELL_MAX];

	if (p->why_no_faults || p->n_top[BY_FAULTS] == 0)
		return;
	most = &p->sites[p->top[BY_FAULTS][0]];
	str_addf(s, "%s of the major faults hit %s: ",
		 text_share(buf, most->cost.faults, p->faults.faults),
		 site_is_allocator(&most->site.row) ? "no stack" : "one stack");
	text_site_place(s, most);
	str_add(s, ".");
}

/* -- the table -------------------------------------------------------------------------------- */

static const char *cost(char buf[static CELL_MAX], const struct pressure_view *p,
			const struct fault_cost *c)
{
	const struct figure f = {.v = c->seconds};
	char value[CELL_MAX];

	if (!pressure_has_cost(p, c))
		(void)snprintf(buf, CELL_MAX, "n/a");
	else
		(void)snprintf(buf, CELL_MAX, "%s%.28s", p->cost == COST_ESTIMATED ? "~" : "",
			       text_value(value, &f, UNIT_SECONDS));
	return buf;
}

static void add_row(struct str *out, const struct pressure_view *p, const char *name,
		    const struct fault_cost *c, const char *with_stall)
{
	char faults[CELL_MAX], share[CELL_MAX], time[CELL_MAX];

	str_addf(out, "%*s%-*s%*s%*s%*s", TEXT_INDENT, "", NAME_WIDTH, name, FAULTS_WIDTH,
		 text_number(faults, c->faults, UNIT_COUNT), SHARE_WIDTH,
		 text_share(share, c->faults, p->faults.faults), TIME_WIDTH, cost(time, p, c));
	if (*with_stall)
		str_addf(out, "%*s", STALL_WIDTH, with_stall);
	str_add(out, "\n");
}

/* The instructions that met the site's faults. */
static void add_places(struct str *out, const struct pressure_site *s)
{
	_cleanup_str_ struct str text = {0};
	char share[CELL_MAX];

	for (size_t i = 0; i < s->n_places; i++) {
		const struct fault_place_row *at = &s->places[i];

		str_add(&text, i == 0 ? "faulted in " : ", ");
		if (at->at.offset == READ_NULL)
			str_add(&text, "unknown code");
		else
			text_place(&text, &at->at);
		str_addf(&text, " %s", text_share(share, at->faults, s->cost.faults));
	}
	if (text.data)
		text_para(out, 2 * TEXT_INDENT, "%s", text.data);
}

static void add_site(struct str *out, const struct pressure_view *p, const struct pressure_site *s,
		     struct text_known *known)
{
	bool is_known = text_known(known, s->site.row.site_id);
	_cleanup_str_ struct str name = {0};
	char rho[CELL_MAX] = "n/a";

	if (!isnan(s->with_stall.rho))
		(void)snprintf(rho, sizeof(rho), "%+.2f", s->with_stall.rho);
	text_site_name(&name, &s->site);
	if (is_known && s->site.n_frames > 0)
		str_add(&name, " (above)");
	add_row(out, p, name.data ? name.data : "", &s->cost, rho);
	if (!is_known)
		text_stack(out, &s->site);
	else if (s->n_place > 0)
		text_frame(out, s->place);
	add_places(out, s);
}

static const char *mapping_name(const struct pressure_mapping *m)
{
	static const char *const names[][2] = {
		{"file", "a file"},
		{"anon", "anonymous, of no site"},
		{"stack", "thread's stack"},
		{"brk", "heap of brk, of no site"},
		{"vdso", "vdso"},
	};

	for (size_t i = 0; m->mapping && i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i][0], m->mapping) == 0)
			return names[i][1];
	}
	return "unknown";
}

/* The end of a path says more than its beginning. */
static void add_mapping(struct str *out, const struct pressure_view *p,
			const struct pressure_mapping *m)
{
	_cleanup_str_ struct str name = {0};
	const char *file = m->file;

	if (!file)
		str_add(&name, mapping_name(m));
	else if (strlen(file) <= NAME_WIDTH - 1)
		text_cut(&name, file, NAME_WIDTH - 1);
	else
		text_cut(&name, strrchr(file, '/') ? strrchr(file, '/') + 1 : file, NAME_WIDTH - 1);
	add_row(out, p, name.data ? name.data : "", &m->cost, "");
}

static void add_others(struct str *out, const struct pressure_view *p, size_t sites,
		       size_t mappings)
{
	struct fault_cost rest = p->faults;

	for (size_t i = 0; i < sites; i++) {
		const struct fault_cost *c = &p->sites[p->top[BY_FAULTS][i]].cost;

		rest.faults -= c->faults;
		rest.timed -= c->timed;
		rest.seconds -= c->seconds;
	}
	for (size_t i = 0; i < mappings; i++) {
		rest.faults -= p->mappings[i].cost.faults;
		rest.timed -= p->mappings[i].cost.timed;
		rest.seconds -= p->mappings[i].cost.seconds;
	}
	rest.seconds = rest.seconds < 0 ? 0 : rest.seconds; /* differences of sums */
	if (rest.faults > 0)
		add_row(out, p, "others", &rest, "");
}

static void add_table(struct str *out, const struct pressure_view *p, struct text_known *known)
{
	size_t sites = MIN(p->n_top[BY_FAULTS], (size_t)SITES_SHOWN);
	size_t mappings = MIN(p->n_mappings, (size_t)MAPPINGS_SHOWN);

	str_addf(out, "\n%*s%-*s%*s%*s%*s%*s\n", TEXT_INDENT, "", NAME_WIDTH, "what they hit",
		 FAULTS_WIDTH, "faults", SHARE_WIDTH, "share", TIME_WIDTH, "time", STALL_WIDTH,
		 "with stall");
	for (size_t i = 0; i < sites; i++)
		add_site(out, p, &p->sites[p->top[BY_FAULTS][i]], known);
	for (size_t i = 0; i < mappings; i++)
		add_mapping(out, p, &p->mappings[i]);
	add_others(out, p, sites, mappings);
	add_row(out, p, "all", &p->faults, "");
	str_add(out, "\n");
}

/* -- what the figures are --------------------------------------------------------------------- */

static void add_definitions(struct str *out, const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	_cleanup_str_ struct str s = {0}, paging = {0};
	char timed[CELL_MAX];

	if (p->cost == COST_ESTIMATED)
		str_add(&s, "Time: estimated (~), not measured: the stall (PSI some) of each "
			    "sample interval, divided equally among the faults in it.");
	else if (p->cost == COST_UNKNOWN)
		str_addf(&s, "Time: n/a (%s).", p->why_no_cost);
	else if (p->faults.timed < p->faults.faults)
		str_addf(&s, "Time: measured, for %s of them.",
			 text_number(timed, p->faults.timed, UNIT_COUNT));
	else
		str_add(&s, "Time: measured, fault by fault.");
	str_addf(&s,
		 " With stall: rank correlation of the faults with the stall share over the "
		 "sample intervals, -1 to +1; n/a for fewer than %d, or where one never changes.",
		 STATS_RANK_MIN);
	environment_paging(&paging, v->row.environment);
	if (paging.len > 0)
		str_addf(&s, " A fault may bring in more than its page: %s.", paging.data);
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
}

void text_faults(struct str *out, const struct run_view *v, struct text_known *known)
{
	const struct pressure_view *p = &v->pressure;
	_cleanup_str_ struct str s = {0};

	text_para(out, TEXT_INDENT, "Where did the major faults come from?");
	if (p->why_no_faults) {
		text_para(out, TEXT_INDENT, "n/a (%s)", p->why_no_faults);
		return;
	}
	if (p->faults.faults == 0) {
		text_para(out, TEXT_INDENT, "There were none.");
		return;
	}
	text_faults_sentence(&s, p);
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
	add_table(out, p, known);
	add_definitions(out, v);
}

/* -- in time ---------------------------------------------------------------------------------- */

/* "site 3 (table_insert)" */
static void add_short(struct str *s, const struct pressure_view *p, int64_t site_id)
{
	const struct pressure_site *site = pressure_find(p, site_id);

	if (site && site_is_allocator(&site->site.row)) {
		text_site_name(s, &site->site);
		return;
	}
	str_addf(s, "site %lld", (long long)site_id);
	if (!site || site->n_place == 0 || !site->place->function)
		return;
	str_add(s, " (");
	text_cut(s, site->place->function, NAME_WIDTH);
	str_add(s, ")");
}

/* "12.0 MiB of site 3 (table_insert), 4.0 MiB of site 1 (main)" */
static void add_amounts(struct str *s, const struct pressure_view *p, const struct amounts *a,
			enum figure_unit unit)
{
	char buf[CELL_MAX];

	for (size_t i = 0; i < a->n; i++) {
		str_addf(s, "%s%s of ", i > 0 ? ", " : "",
			 text_number(buf, a->top[i].amount, unit));
		add_short(s, p, a->top[i].site_id);
	}
}

static void add_faulted(struct str *s, const struct pressure_view *p, const struct amounts *a)
{
	char buf[CELL_MAX];

	str_addf(s, "%s major fault%s", text_number(buf, a->total, UNIT_COUNT),
		 a->total == 1 ? "" : "s");
	if (a->n > 0)
		str_add(s, ": ");
	add_amounts(s, p, a, UNIT_COUNT);
}

static void add_decision(struct str *out, const struct pressure_view *p,
			 const struct decision_effect *e)
{
	char at[CELL_MAX], limit[CELL_MAX], took[CELL_MAX], window[CELL_MAX];
	_cleanup_str_ struct str s = {0};

	str_addf(&s, "tightened at %s", seconds(at, e->t_ns));
	if (e->limit_after != READ_NULL && e->limit_after < NO_LIMIT)
		str_addf(&s, " to %s", text_number(limit, e->limit_after, UNIT_BYTES));
	str_addf(&s, ": %s no more resident: ", text_number(took, e->taken.total, UNIT_BYTES));
	add_amounts(&s, p, &e->taken, UNIT_BYTES);
	str_addf(&s, "; in the next %s ", seconds(window, e->aftermath_ns));
	add_faulted(&s, p, &e->faulted);
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
}

static void add_peak(struct str *out, const struct pressure_view *p, const struct stall_peak *peak)
{
	const struct figure share = {.v = peak->share};
	char from[CELL_MAX], to[CELL_MAX], buf[CELL_MAX];
	_cleanup_str_ struct str s = {0};

	str_addf(&s, "stalled %s of the time from %s to %s: ", text_value(buf, &share, UNIT_SHARE),
		 seconds(from, peak->from_ns), seconds(to, peak->to_ns));
	add_faulted(&s, p, &peak->faulted);
	if (s.data)
		text_para(out, TEXT_INDENT, "%s", s.data);
}

void text_pressure_time(struct str *out, const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	size_t most[DECISIONS_SHOWN];
	size_t n = pressure_most_taken(p, DECISIONS_SHOWN, most);

	if (n == 0 && p->n_peaks == 0)
		return;
	str_add(out, "\n");
	text_para(out, TEXT_INDENT,
		  "When? The tightenings that took most, and the worst stalls (PSI some):");
	for (size_t i = 0; i < n; i++)
		add_decision(out, p, &p->decisions[most[i]]);
	for (size_t i = 0; i < p->n_peaks; i++)
		add_peak(out, p, &p->peaks[i]);
}

/* -- trust ------------------------------------------------------------------------------------ */

static void add_trust(struct str *out, const struct report *r, const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	const struct figure *counted = &v->fig[FIG_major_faults];
	int64_t all = p->faults.faults + p->own_faults;
	char buf[CELL_MAX], label[LABEL_MAX];
	_cleanup_str_ struct str s = {0};

	str_add(&s, text_run_label(r, v, label));
	str_addf(&s, "%s hit a site", text_number(buf, p->attributed, UNIT_COUNT));
	str_addf(&s, ", %s something else",
		 text_number(buf, p->faults.faults - p->attributed, UNIT_COUNT));
	str_addf(&s, ", %s met by the tracer reading stacks",
		 text_number(buf, p->own_faults, UNIT_COUNT));
	str_addf(&s, ": %s recorded; ", text_number(buf, all, UNIT_COUNT));
	if (counted->why) {
		str_addf(&s, "pgmajfault n/a (%s)", counted->why);
	} else {
		long long less = (long long)counted->v - all;

		str_addf(&s, "the group counted %s (pgmajfault), difference %lld",
			 text_value(buf, counted, UNIT_COUNT), less);
	}
	if (s.data)
		text_about(out, "faults", "%s", s.data);
}

void text_faults_trust(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_runs; i++) {
		if (!r->runs[i].pressure.why_no_faults)
			add_trust(out, r, &r->runs[i]);
	}
}
