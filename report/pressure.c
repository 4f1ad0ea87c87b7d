#include "report/pressure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Decisions of which the text tells. */
#define DECISIONS_NAMED 3

const char *site_class_name(enum site_class c)
{
	static const char *const names[N_CLASSES] = {"hot", "cold", "returned", "thrashing"};

	return names[c];
}

int64_t pressure_site_bytes(const struct pressure_site *s)
{
	int64_t sum = 0;

	for (int c = 0; c < N_CLASSES; c++)
		sum += s->bytes[c];
	return sum;
}

enum site_class pressure_site_class(const struct pressure_site *s)
{
	int64_t thrashing = s->bytes[CLASS_THRASHING];
	int64_t left = s->bytes[CLASS_COLD] + s->bytes[CLASS_RETURNED] + thrashing;
	enum site_class most = CLASS_HOT;

	if (thrashing >= THRASHING_LEAST && (double)thrashing > THRASHING_SHARE * (double)left)
		return CLASS_THRASHING;
	for (int c = CLASS_COLD; c < N_CLASSES; c++) {
		if (s->bytes[c] > s->bytes[most])
			most = (enum site_class)c;
	}
	/* Less than makes a site thrash has come back all the same. */
	return most == CLASS_THRASHING ? CLASS_RETURNED : most;
}

static int64_t order_value(const struct pressure_site *s, enum pressure_order order)
{
	switch (order) {
	case BY_COLD:
		return s->bytes[CLASS_COLD];
	case BY_BYTES:
		return pressure_site_bytes(s);
	case BY_THRASHING:
		return s->bytes[CLASS_THRASHING];
	case BY_FAULTS:
	case N_PRESSURE_ORDERS:
		break;
	}
	return s->cost.faults;
}

/* -- loading ---------------------------------------------------------------------------------- */

/* What there is while loading: all sites and all sums of faults. */
struct loading {
	struct pressure_view *p;
	struct reader *r;
	int64_t run_id;
	const struct run_data *d;
	struct scan_row *scans;
	size_t n_scans;
	struct pressure_site *all; /* by site_id */
	size_t n;
	struct fault_sum_row *sums;
	size_t n_sums;
};

static void loading_done(struct loading *l)
{
	scan_rows_free(l->scans, l->n_scans);
	for (size_t i = 0; i < l->n; i++)
		site_view_done(&l->all[i].site);
	free(l->all);
	fault_sum_rows_free(l->sums, l->n_sums);
}

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "no memory for faults and pages of sites");
}

/* At the end of a workload everything may be gone: the last scan that found anything counts. */
static int load_scans(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	int res = reader_load_scans(l->r, l->run_id, &l->scans, &l->n_scans, err);

	if (res < 0)
		return res;
	p->n_scans = l->n_scans;
	if (l->n_scans == 0) {
		p->why_no_scans = "the pages of sites were not scanned";
		return 0;
	}
	p->scan = l->scans[l->n_scans - 1];
	for (size_t i = 0; i < l->n_scans; i++) {
		const struct scan_row *s = &l->scans[i];

		p->scan_s += (double)MAX(s->scan_ns, 0) / 1e9;
		p->was_swapped |= s->swapped_bytes > 0;
		if (s->resident_bytes > 0 || s->swapped_bytes > 0)
			p->scan = *s;
	}
	return 0;
}

static void set_classes(struct pressure_site *s, const struct site_state_row *row)
{
	const int64_t left[N_CLASSES] = {
		[CLASS_COLD] = MAX(row->cold_bytes, 0),
		[CLASS_RETURNED] = MAX(row->returned_bytes, 0),
		[CLASS_THRASHING] = MAX(row->thrashing_bytes, 0),
	};

	memcpy(s->bytes, left, sizeof(left));
	s->bytes[CLASS_HOT] = MAX(row->resident_bytes, 0) + MAX(row->swapped_bytes, 0);
	for (int c = CLASS_COLD; c < N_CLASSES; c++)
		s->bytes[CLASS_HOT] -= left[c];
	s->bytes[CLASS_HOT] = MAX(s->bytes[CLASS_HOT], 0); /* divided bytes are rounded */
}

static int load_states(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	struct site_state_row *rows = NULL;
	size_t n = 0;
	int res = reader_load_site_states(
		l->r, l->run_id, p->why_no_scans ? INT64_MAX : p->scan.t_ns, &rows, &n, err);

	if (res < 0)
		return res;
	l->all = calloc(n + 1, sizeof(*l->all));
	if (!l->all)
		res = no_memory(err);
	for (size_t i = 0; res == 0 && i < n; i++) {
		struct pressure_site *s = &l->all[l->n++];

		s->site.row = (struct site_row){.site_id = rows[i].site_id,
						.stack_id = rows[i].stack_id,
						.kind = TAKE_PTR(rows[i].kind)};
		s->max_swapped_bytes = rows[i].max_swapped_bytes;
		s->live_bytes = rows[i].live_bytes;
		s->swapped_bytes = rows[i].swapped_bytes;
		s->with_stall.rho = NAN;
		set_classes(s, &rows[i]);
		for (int c = 0; c < N_CLASSES; c++) {
			p->total[c] += s->bytes[c];
			p->was_swapped |= c != CLASS_HOT && s->bytes[c] > 0;
		}
		p->was_swapped |= rows[i].max_swapped_bytes > 0;
	}
	site_state_rows_free(rows, n);
	return res;
}

static int compare_site(const void *key, const void *element)
{
	int64_t id = *(const int64_t *)key;
	int64_t other = ((const struct pressure_site *)element)->site.row.site_id;

	return (id > other) - (id < other);
}

static struct pressure_site *find_site(struct pressure_site *sites, size_t n, int64_t site_id)
{
	return n > 0 ? bsearch(&site_id, sites, n, sizeof(*sites), compare_site) : NULL;
}

/* -- faults ----------------------------------------------------------------------------------- */

static void add_cost(struct fault_cost *to, const struct fault_sum_row *row)
{
	to->faults += row->faults;
	to->timed += row->timed_faults;
	to->seconds += (double)row->duration_ns / 1e9;
}

static int add_mapping(struct pressure_view *p, struct fault_sum_row *take)
{
	struct pressure_mapping *grown =
		realloc(p->mappings, (p->n_mappings + 1) * sizeof(*p->mappings));

	if (!grown)
		return -ENOMEM;
	p->mappings = grown;
	grown[p->n_mappings] = (struct pressure_mapping){0};
	grown[p->n_mappings].mapping = take->mapping ? strdup(take->mapping) : NULL;
	grown[p->n_mappings].file = take->file ? strdup(take->file) : NULL;
	add_cost(&grown[p->n_mappings++].cost, take);
	return 0;
}

/* The sums stay as they are: the estimates look for them. */
static int load_sums(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	int res = reader_load_fault_sums(l->r, l->run_id, -INT64_MAX, INT64_MAX, &l->sums,
					 &l->n_sums, err);

	for (size_t i = 0; res == 0 && i < l->n_sums; i++) {
		struct fault_sum_row *row = &l->sums[i];
		struct pressure_site *s =
			row->site_id == READ_NULL ? NULL : find_site(l->all, l->n, row->site_id);

		p->own_faults += row->own_faults;
		if (row->faults == 0)
			continue;
		add_cost(&p->faults, row);
		p->attributed += row->site_id != READ_NULL ? row->faults : 0;
		if (s)
			add_cost(&s->cost, row);
		else if (add_mapping(p, row) < 0)
			res = no_memory(err);
	}
	return res;
}

static void set_cost(struct fault_cost *c, double seconds)
{
	c->seconds = seconds;
}

/* Estimated, or not known: the sums of measured times are replaced. */
static void set_estimates(struct loading *l, const double *est_s)
{
	struct pressure_view *p = l->p;
	bool has = p->cost == COST_ESTIMATED;
	double sum = 0;
	size_t m = 0;

	for (size_t i = 0; i < l->n; i++)
		set_cost(&l->all[i].cost, has ? 0 : NAN);
	for (size_t i = 0; i < l->n_sums; i++) {
		const struct fault_sum_row *row = &l->sums[i];
		struct pressure_site *s =
			row->site_id == READ_NULL ? NULL : find_site(l->all, l->n, row->site_id);

		sum += est_s[i];
		if (row->faults == 0)
			continue;
		set_cost(s ? &s->cost : &p->mappings[m++].cost, has ? est_s[i] : NAN);
	}
	set_cost(&p->faults, has ? sum : NAN);
}

static int compare_mappings(const void *a, const void *b)
{
	const struct pressure_mapping *x = a, *y = b;

	if (x->cost.faults != y->cost.faults)
		return x->cost.faults < y->cost.faults ? 1 : -1;
	return strcmp(x->file ? x->file : "", y->file ? y->file : "");
}

/* -- orders ----------------------------------------------------------------------------------- */

struct ordering {
	const struct pressure_site *sites;
	enum pressure_order order;
};

static int compare_order(const void *a, const void *b, void *arg)
{
	const struct ordering *o = arg;
	size_t left = *(const size_t *)a, right = *(const size_t *)b;
	int64_t x = order_value(&o->sites[left], o->order);
	int64_t y = order_value(&o->sites[right], o->order);

	if (x != y)
		return x < y ? 1 : -1;
	return left < right ? -1 : 1; /* by site_id */
}

/* at: sorted by cold bytes. */
static void find_owners(struct loading *l, const size_t *at)
{
	struct pressure_view *p = l->p;
	double enough = COLD_OWNED_SHARE * (double)p->total[CLASS_COLD];

	while (p->n_cold_owners < l->n && (double)p->cold_owned < enough)
		p->cold_owned += l->all[at[p->n_cold_owners++]].bytes[CLASS_COLD];
}

static int order_sites(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	_cleanup_free_ size_t *at = calloc(l->n + 1, sizeof(*at));

	if (!at)
		return no_memory(err);
	for (int order = 0; order < N_PRESSURE_ORDERS; order++) {
		struct ordering ordering = {l->all, (enum pressure_order)order};
		size_t *n = &p->n_top[order];

		for (size_t i = 0; i < l->n; i++)
			at[i] = i;
		qsort_r(at, l->n, sizeof(*at), compare_order, &ordering);
		while (*n < MIN(l->n, (size_t)PRESSURE_KEPT) &&
		       order_value(&l->all[at[*n]], ordering.order) > 0) {
			l->all[at[*n]].is_kept = true;
			p->top[order][*n] = at[*n];
			++*n;
		}
		if (order == BY_COLD)
			find_owners(l, at);
	}
	return 0;
}

/* -- time ------------------------------------------------------------------------------------- */

static int load_intervals(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	_cleanup_free_ double *est_s = calloc(l->n_sums + 1, sizeof(*est_s));
	struct pressure_site *leading[PRESSURE_KEPT];
	size_t n = p->n_top[BY_FAULTS];
	int res;

	if (!est_s)
		return no_memory(err);
	for (size_t i = 0; i < n; i++)
		leading[i] = &l->all[p->top[BY_FAULTS][i]];
	res = pressure_load_intervals(p, l->r, l->run_id, l->d, l->sums, l->n_sums, est_s, leading,
				      n, err);
	if (p->faults.timed > 0 || p->faults.faults == 0)
		p->cost = COST_MEASURED;
	else
		p->cost = p->why_no_cost ? COST_UNKNOWN : COST_ESTIMATED;
	if (p->cost != COST_UNKNOWN)
		p->why_no_cost = NULL;
	if (p->cost != COST_MEASURED)
		set_estimates(l, est_s);
	return res;
}

static int load_decisions(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	size_t kept = 0;
	int res = pressure_load_decisions(l->r, l->run_id, READ_NULL, l->scans, l->n_scans,
					  &p->decisions, &p->n_tighten, err);

	for (size_t i = 0; res == 0 && i < p->n_tighten; i++) {
		const struct decision_effect *e = &p->decisions[i];

		if (e->taken.n > 0 || e->faulted.total > 0)
			p->decisions[kept++] = *e;
	}
	p->n_decisions = kept;
	return res;
}

size_t pressure_most_taken(const struct pressure_view *p, size_t n, size_t ret[])
{
	size_t found = 0;

	for (size_t i = 0; i < p->n_decisions; i++) {
		int64_t total = p->decisions[i].taken.total;
		size_t at = found;

		while (at > 0 && p->decisions[ret[at - 1]].taken.total < total)
			at--;
		if (total == 0 || at == n)
			continue;
		found = MIN(found + 1, n);
		memmove(&ret[at + 1], &ret[at], (found - at - 1) * sizeof(ret[0]));
		ret[at] = i;
	}
	return found;
}

static void keep_amounts(struct loading *l, const struct amounts *a)
{
	for (size_t i = 0; i < a->n; i++) {
		struct pressure_site *s = find_site(l->all, l->n, a->top[i].site_id);

		if (s)
			s->is_kept = true;
	}
}

static void keep_named(struct loading *l)
{
	const struct pressure_view *p = l->p;
	size_t most[DECISIONS_NAMED];
	size_t n = pressure_most_taken(p, DECISIONS_NAMED, most);

	for (size_t i = 0; i < n; i++) {
		keep_amounts(l, &p->decisions[most[i]].taken);
		keep_amounts(l, &p->decisions[most[i]].faulted);
	}
	for (size_t i = 0; i < p->n_peaks; i++)
		keep_amounts(l, &p->peaks[i].faulted);
}

/* -- what is kept ----------------------------------------------------------------------------- */

/* Moves kept sites into p->sites, and makes the orders point there. */
static int keep_sites(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	_cleanup_free_ size_t *to = calloc(l->n + 1, sizeof(*to));
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->all[i].is_kept;
	p->sites = calloc(n + 1, sizeof(*p->sites));
	if (!to || !p->sites)
		return no_memory(err);
	for (size_t i = 0; i < l->n; i++) {
		if (!l->all[i].is_kept)
			continue;
		to[i] = p->n_sites;
		p->sites[p->n_sites++] = l->all[i];
		memset(&l->all[i], 0, sizeof(l->all[i]));
	}
	for (int order = 0; order < N_PRESSURE_ORDERS; order++) {
		for (size_t i = 0; i < p->n_top[order]; i++)
			p->top[order][i] = to[p->top[order][i]];
	}
	return 0;
}

static int load_names(struct loading *l, struct err *err)
{
	struct pressure_view *p = l->p;
	int res = 0;

	for (size_t i = 0; res == 0 && i < p->n_sites; i++) {
		struct pressure_site *s = &p->sites[i];

		res = site_view_load_stack(&s->site, l->r, err);
		if (res == 0)
			res = reader_load_site_place(l->r, l->run_id, s->site.row.site_id,
						     &s->place, &s->n_place, err);
	}
	if (res == 0)
		res = reader_load_fault_places(l->r, l->run_id, READ_NULL, &p->places,
					       &p->n_place_rows, err);
	for (size_t i = 0; res == 0 && i < p->n_place_rows; i++) {
		struct pressure_site *s = find_site(p->sites, p->n_sites, p->places[i].site_id);

		if (s && s->n_places < PLACES_KEPT)
			s->places[s->n_places++] = p->places[i];
	}
	return res;
}

static int load(struct loading *l, struct err *err)
{
	static int (*const parts[])(struct loading * l, struct err * err) = {
		load_scans, load_states, load_sums, order_sites, load_intervals, load_decisions,
	};
	int res = 0;

	for (size_t i = 0; res == 0 && i < ARRAY_SIZE(parts); i++)
		res = parts[i](l, err);
	if (res < 0)
		return res;
	if (l->p->n_mappings > 1)
		qsort(l->p->mappings, l->p->n_mappings, sizeof(*l->p->mappings), compare_mappings);
	keep_named(l);
	res = keep_sites(l, err);
	return res == 0 ? load_names(l, err) : res;
}

int pressure_load(struct pressure_view *p, struct reader *r, int64_t run_id,
		  const struct trace_view *trace, const struct run_data *d, struct err *err)
{
	_cleanup_(loading_done) struct loading l = {.p = p, .r = r, .run_id = run_id, .d = d};
	int res;

	memset(p, 0, sizeof(*p));
	if (trace->state != TRACE_DONE || trace->n_all == 0) {
		p->why_none =
			trace->state == TRACE_ABSENT ? "not traced" : "no sites were recorded";
		p->why_no_scans = p->why_no_faults = p->why_no_cost = p->why_none;
		return 0;
	}
	res = load(&l, err);
	if (res == 0 && p->faults.faults == 0 && p->own_faults == 0 && !trace->has_faults)
		p->why_no_faults = p->why_no_cost = "faults of sites were not recorded";
	if (res < 0)
		pressure_done(p);
	return res;
}

bool pressure_has_cost(const struct pressure_view *p, const struct fault_cost *c)
{
	return p->cost == COST_ESTIMATED ||
	       (p->cost == COST_MEASURED && (c->timed > 0 || c->faults == 0));
}

const struct pressure_site *pressure_find(const struct pressure_view *p, int64_t site_id)
{
	return find_site(p->sites, p->n_sites, site_id);
}

void pressure_done(struct pressure_view *p)
{
	for (size_t i = 0; i < p->n_sites; i++) {
		site_view_done(&p->sites[i].site);
		frame_rows_free(p->sites[i].place, p->sites[i].n_place);
	}
	free(p->sites);
	for (size_t i = 0; i < p->n_mappings; i++) {
		free(p->mappings[i].mapping);
		free(p->mappings[i].file);
	}
	free(p->mappings);
	free(p->decisions);
	fault_place_rows_free(p->places, p->n_place_rows);
	memset(p, 0, sizeof(*p));
}
