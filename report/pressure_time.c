#include "report/pressure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void amounts_add(struct amounts *a, int64_t site_id, int64_t amount)
{
	size_t at = a->n;

	if (amount <= 0)
		return;
	a->total += amount;
	while (at > 0 && a->top[at - 1].amount < amount)
		at--;
	if (at == AMOUNTS_KEPT)
		return;
	a->n = MIN(a->n + 1, (size_t)AMOUNTS_KEPT);
	memmove(&a->top[at + 1], &a->top[at], (a->n - at - 1) * sizeof(a->top[0]));
	a->top[at] = (struct site_amount){site_id, amount};
}

/* Faults of a time by what they hit: those of sites into *a; all into its total. */
static int load_faulted(struct amounts *a, struct reader *r, int64_t run_id, int64_t site_id,
			int64_t from_ns, int64_t to_ns, struct err *err)
{
	struct fault_sum_row *rows = NULL;
	size_t n = 0;
	int res = reader_load_fault_sums(r, run_id, from_ns, to_ns, &rows, &n, err);

	if (res < 0)
		return res;
	for (size_t i = 0; i < n; i++) {
		if (site_id != READ_NULL && rows[i].site_id != site_id)
			continue;
		if (rows[i].site_id != READ_NULL)
			amounts_add(a, rows[i].site_id, rows[i].faults);
		else
			a->total += rows[i].faults;
	}
	fault_sum_rows_free(rows, n);
	return 0;
}

/* -- tightenings ------------------------------------------------------------------------------ */

struct taking {
	struct decision_effect *effects; /* by time */
	size_t n;
	int64_t *loss; /* of the site at hand, by effect */
	size_t first, end;
	int64_t site_id, resident;
};

static void close_site(struct taking *t)
{
	for (size_t i = t->first; i < t->end; i++) {
		amounts_add(&t->effects[i].taken, t->site_id, t->loss[i]);
		t->loss[i] = 0;
	}
	t->first = t->n;
	t->end = 0;
}

/* The effects before whose second scan t lies, and after whose first. */
static size_t effects_before(const struct taking *t, int64_t t_ns)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->effects[mid].from_ns < t_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int add_site_sample(void *arg, const struct site_sample_row *row)
{
	struct taking *t = arg;
	int64_t resident = MAX(row->resident_bytes, 0), lost;

	if (row->site_id != t->site_id) {
		close_site(t);
		t->site_id = row->site_id;
		t->resident = 0;
	}
	lost = t->resident - resident;
	t->resident = resident;
	for (size_t i = effects_before(t, row->t_ns); i > 0; i--) {
		struct decision_effect *e = &t->effects[i - 1];

		if (e->to_ns == READ_NULL)
			continue;
		if (e->from_ns == READ_NULL || e->to_ns < row->t_ns)
			break;
		t->loss[i - 1] += lost;
		t->first = MIN(t->first, i - 1);
		t->end = MAX(t->end, i);
	}
	return 0;
}

static int load_taken(struct reader *r, int64_t run_id, int64_t site_id,
		      struct decision_effect *effects, size_t n, struct err *err)
{
	_cleanup_free_ int64_t *loss = calloc(n + 1, sizeof(*loss));
	struct taking t = {
		.effects = effects, .n = n, .loss = loss, .first = n, .site_id = READ_NULL};
	int res;

	if (!loss)
		return err_set(err, -ENOMEM, "no memory for %zu decisions", n);
	res = reader_each_site_sample(r, run_id, site_id, add_site_sample, &t, err);
	close_site(&t);
	return res;
}

/* The scans around: the last before the decision, the first after its outcome. */
static void set_scans(struct decision_effect *e, int64_t took_ns, const struct scan_row *scans,
		      size_t n)
{
	e->from_ns = e->to_ns = READ_NULL;
	for (size_t i = 0; i < n && scans[i].t_ns <= e->t_ns; i++)
		e->from_ns = scans[i].t_ns;
	for (size_t i = n; i > 0 && scans[i - 1].t_ns >= e->t_ns + MAX(took_ns, 1); i--)
		e->to_ns = scans[i - 1].t_ns;
}

static bool is_tightening(const struct decision_row *d)
{
	return d->action && strcmp(d->action, "tighten") == 0 &&
	       (!d->outcome ||
		(strcmp(d->outcome, "error") != 0 && strcmp(d->outcome, "skipped") != 0));
}

int pressure_load_decisions(struct reader *r, int64_t run_id, int64_t site_id,
			    const struct scan_row *scans, size_t n_scans,
			    struct decision_effect **ret, size_t *ret_n, struct err *err)
{
	struct decision_row *rows = NULL;
	size_t n_rows = 0, n = 0;
	_cleanup_free_ struct decision_effect *effects = NULL;
	int res = reader_load_decisions(r, run_id, &rows, &n_rows, err);

	if (res < 0)
		return res;
	effects = calloc(n_rows + 1, sizeof(*effects));
	if (!effects)
		res = err_set(err, -ENOMEM, "no memory for %zu decisions", n_rows);
	for (size_t i = 0; res == 0 && i < n_rows; i++) {
		struct decision_effect *e = &effects[n];

		if (!is_tightening(&rows[i]))
			continue;
		*e = (struct decision_effect){
			.t_ns = rows[i].t_ns,
			.limit_before = rows[i].limit_before,
			.limit_after = rows[i].limit_after,
			.aftermath_ns = AFTERMATH_NS,
		};
		if (i + 1 < n_rows)
			e->aftermath_ns = MIN(AFTERMATH_NS, rows[i + 1].t_ns - e->t_ns);
		set_scans(e, rows[i].took_ns, scans, n_scans);
		res = load_faulted(&e->faulted, r, run_id, site_id, e->t_ns,
				   e->t_ns + e->aftermath_ns, err);
		n++;
	}
	decision_rows_free(rows, n_rows);
	if (res == 0)
		res = load_taken(r, run_id, site_id, effects, n, err);
	if (res < 0)
		return res;
	*ret = TAKE_PTR(effects);
	*ret_n = n;
	return 0;
}

/* -- sample intervals ------------------------------------------------------------------------- */

static int compare_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

/* As SQLite has ordered them; READ_NULL is the least. */
static int compare_sums(const void *a, const void *b)
{
	const struct fault_sum_row *x = a, *y = b;
	int by_mapping = compare_text(x->mapping, y->mapping);

	if (x->site_id != y->site_id)
		return x->site_id < y->site_id ? -1 : 1;
	return by_mapping ? by_mapping : compare_text(x->file, y->file);
}

/* The stall share of the interval that ends at sample i; NAN over a hole or without PSI. */
static double stall_share(const struct run_data *d, size_t i)
{
	double us = d->v[SRC_SOME][i] - d->v[SRC_SOME][i - 1];
	int64_t gap = d->t_ns[i] - d->t_ns[i - 1];

	return gap > 0 && gap <= d->tl.hole_ns && us >= 0 ? us * 1e3 / (double)gap : NAN;
}

struct interval {
	double stalled_s; /* NAN = not known */
	const struct fault_sum_row *rows;
	size_t n;
};

/* The stall of an interval, divided equally among the faults in it. */
static bool add_estimates(const struct interval *in, const struct fault_sum_row *sums,
			  size_t n_sums, double *est_s)
{
	int64_t faults = 0;

	for (size_t i = 0; i < in->n; i++)
		faults += in->rows[i].faults;
	if (faults == 0 || !(in->stalled_s > 0))
		return false;
	for (size_t i = 0; i < in->n; i++) {
		const struct fault_sum_row *to =
			bsearch(&in->rows[i], sums, n_sums, sizeof(*sums), compare_sums);

		if (to)
			est_s[to - sums] +=
				in->stalled_s * (double)in->rows[i].faults / (double)faults;
	}
	return true;
}

static void add_faults(const struct interval *in, struct pressure_site *const sites[],
		       size_t n_sites, double *const faults[], size_t at)
{
	for (size_t s = 0; s < n_sites; s++) {
		for (size_t i = 0; i < in->n; i++) {
			if (in->rows[i].site_id == sites[s]->site.row.site_id)
				faults[s][at] = (double)in->rows[i].faults;
		}
	}
}

/* Peaks are apart: neighbours of a higher one are its slopes. */
static int load_peaks(struct pressure_view *p, struct reader *r, int64_t run_id,
		      const struct run_data *d, const double *stall, struct err *err)
{
	size_t used[PEAKS_KEPT];
	int res = 0;

	while (res == 0 && p->n_peaks < PEAKS_KEPT) {
		struct stall_peak *peak = &p->peaks[p->n_peaks];
		size_t best = 0;

		for (size_t i = 1; i < d->tl.n; i++) {
			bool is_near = false;

			for (size_t j = 0; j < p->n_peaks; j++)
				is_near |= i + 1 >= used[j] && i <= used[j] + 1;
			if (!is_near && stall[i] > (best ? stall[best] : 0))
				best = i;
		}
		if (!best)
			break;
		used[p->n_peaks++] = best;
		*peak = (struct stall_peak){
			.from_ns = d->t_ns[best - 1], .to_ns = d->t_ns[best], .share = stall[best]};
		res = load_faulted(&peak->faulted, r, run_id, READ_NULL, peak->from_ns, peak->to_ns,
				   err);
	}
	return res;
}

static int correlate(const struct run_data *d, const double *stall,
		     struct pressure_site *const sites[], size_t n_sites, double *const faults[])
{
	int res = 0;

	for (size_t s = 0; res == 0 && s < n_sites; s++)
		res = stats_rank(faults[s] + 1, stall + 1, d->tl.n - 1, &sites[s]->with_stall);
	return res;
}

struct interval_buffers {
	double *stall, *faults[PRESSURE_KEPT];
};

static void buffers_done(struct interval_buffers *b)
{
	free(b->stall);
	for (size_t i = 0; i < PRESSURE_KEPT; i++)
		free(b->faults[i]);
}

static int buffers_init(struct interval_buffers *b, size_t n_sites, size_t n)
{
	b->stall = calloc(n + 1, sizeof(*b->stall));
	for (size_t i = 0; i < n_sites; i++) {
		b->faults[i] = calloc(n + 1, sizeof(*b->faults[i]));
		if (!b->faults[i])
			return -ENOMEM;
	}
	return b->stall ? 0 : -ENOMEM;
}

int pressure_load_intervals(struct pressure_view *p, struct reader *r, int64_t run_id,
			    const struct run_data *d, const struct fault_sum_row *sums,
			    size_t n_sums, double *est_s, struct pressure_site *const sites[],
			    size_t n_sites, struct err *err)
{
	_cleanup_(buffers_done) struct interval_buffers b = {0};
	bool has_estimate = false;
	int res = 0;

	if (buffers_init(&b, n_sites, d->tl.n) < 0)
		return err_set(err, -ENOMEM, "no memory for %zu samples", d->tl.n);
	for (size_t i = 1; res == 0 && i < d->tl.n; i++) {
		struct fault_sum_row *rows = NULL;
		struct interval in = {.stalled_s =
					      (d->v[SRC_SOME][i] - d->v[SRC_SOME][i - 1]) / 1e6};

		b.stall[i] = stall_share(d, i);
		res = reader_load_fault_sums(r, run_id, d->t_ns[i - 1], d->t_ns[i], &rows, &in.n,
					     err);
		in.rows = rows;
		has_estimate |= add_estimates(&in, sums, n_sums, est_s);
		add_faults(&in, sites, n_sites, b.faults, i);
		fault_sum_rows_free(rows, in.n);
	}
	if (res == 0 && d->tl.n > 1 && correlate(d, b.stall, sites, n_sites, b.faults) < 0)
		res = err_set(err, -ENOMEM, "no memory for %zu samples", d->tl.n);
	if (res == 0)
		res = load_peaks(p, r, run_id, d, b.stall, err);
	if (!has_estimate)
		p->why_no_cost = d->why[SRC_SOME] ? d->why[SRC_SOME]
						  : "not measured, and no stall was counted";
	return res;
}
