#include "report/stats.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct weighted {
	double v;
	int64_t weight;
};

static int compare_weighted(const void *a, const void *b)
{
	const struct weighted *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

/* The least value at or below which half of the weight lies. */
static double weighted_median(struct weighted *w, size_t n)
{
	int64_t total = 0, sum = 0;

	for (size_t i = 0; i < n; i++)
		total += w[i].weight;
	if (total == 0)
		return NAN;
	qsort(w, n, sizeof(*w), compare_weighted);
	for (size_t i = 0; i < n; i++) {
		sum += w[i].weight;
		if (sum >= total - sum)
			return w[i].v;
	}
	return w[n - 1].v;
}

/* The gap that ends at sample i, or 0 if there is none or it is a hole. */
static int64_t gap_before(const struct timeline *tl, size_t i)
{
	int64_t gap;

	if (i == 0 || i >= tl->n)
		return 0;
	gap = tl->t_ns[i] - tl->t_ns[i - 1];
	return gap > 0 && gap <= tl->hole_ns ? gap : 0;
}

/* Twice the weight of a gauge's sample, so that it stays an integer. */
static int64_t sample_weight(const struct timeline *tl, const double *v, size_t i)
{
	int64_t weight = 0;

	if (isnan(v[i]))
		return 0;
	if (i > 0 && !isnan(v[i - 1]))
		weight += gap_before(tl, i);
	if (i + 1 < tl->n && !isnan(v[i + 1]))
		weight += gap_before(tl, i + 1);
	return weight;
}

static void note_extremes(struct gauge_stats *s, double v, size_t i)
{
	if (s->n == 0 || v < s->min) {
		s->min = v;
		s->min_at = i;
	}
	if (s->n == 0 || v > s->max) {
		s->max = v;
		s->max_at = i;
	}
	s->n++;
}

int stats_gauge(const struct timeline *tl, const double *v, struct gauge_stats *ret)
{
	_cleanup_free_ struct weighted *w = calloc(tl->n + 1, sizeof(*w));
	struct gauge_stats s = {.min = NAN, .max = NAN, .mean = NAN, .median = NAN};
	int64_t weight = 0;
	double sum = 0;
	size_t n = 0;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < tl->n; i++) {
		if (isnan(v[i]))
			continue;
		note_extremes(&s, v[i], i);
		w[n].v = v[i];
		w[n].weight = sample_weight(tl, v, i);
		weight += w[n].weight;
		sum += v[i] * (double)w[n].weight;
		n++;
	}
	if (weight > 0) {
		s.mean = sum / (double)weight;
		s.median = weighted_median(w, n);
		s.covered_ns = weight / 2;
	}
	*ret = s;
	return 0;
}

int stats_counter(const struct timeline *tl, const double *v, struct rate_stats *ret)
{
	_cleanup_free_ struct weighted *w = calloc(tl->n + 1, sizeof(*w));
	struct rate_stats s = {.avg = NAN, .median = NAN, .max = NAN};
	size_t n = 0, before = SIZE_MAX;
	double covered = 0;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < tl->n; i++) {
		int64_t gap = gap_before(tl, i);
		size_t from = before;
		double delta;

		if (isnan(v[i]))
			continue;
		before = i;
		if (from == SIZE_MAX)
			continue;
		delta = v[i] - v[from];
		if (delta < 0) {
			s.resets++;
			continue;
		}
		s.n++;
		s.total += delta;
		if (from + 1 != i || gap == 0)
			continue;
		w[n].v = delta * 1e9 / (double)gap;
		w[n].weight = gap;
		if (n == 0 || w[n].v > s.max) {
			s.max = w[n].v;
			s.max_at = i;
		}
		covered += delta;
		s.covered_ns += gap;
		n++;
	}
	if (n > 0) {
		s.avg = covered * 1e9 / (double)s.covered_ns;
		s.median = weighted_median(w, n);
	}
	*ret = s;
	return 0;
}

void stats_gaps(const struct timeline *tl, struct gap_stats *ret)
{
	struct gap_stats s = {0};
	int64_t sum = 0, n = 0;

	for (size_t i = 1; i < tl->n; i++) {
		int64_t gap = tl->t_ns[i] - tl->t_ns[i - 1];

		s.max_ns = MAX(s.max_ns, gap);
		if (gap > tl->hole_ns) {
			s.holes++;
			s.hole_ns += gap;
		} else {
			sum += gap;
			n++;
		}
	}
	if (tl->n > 0)
		s.span_ns = tl->t_ns[tl->n - 1] - tl->t_ns[0];
	if (n > 0)
		s.mean_ns = (sum + n / 2) / n;
	*ret = s;
}

/* A window's values in order, so that moving it by one sample costs no sort. */
struct sorted {
	double *v;
	size_t n;
};

static size_t sorted_place(const struct sorted *s, double v)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void sorted_add(struct sorted *s, double v)
{
	size_t at = sorted_place(s, v);

	memmove(s->v + at + 1, s->v + at, (s->n - at) * sizeof(*s->v));
	s->v[at] = v;
	s->n++;
}

static void sorted_remove(struct sorted *s, double v)
{
	size_t at = sorted_place(s, v);

	s->n--;
	memmove(s->v + at, s->v + at + 1, (s->n - at) * sizeof(*s->v));
}

static double sorted_median(const struct sorted *s)
{
	return s->n % 2 ? s->v[s->n / 2] : (s->v[s->n / 2 - 1] + s->v[s->n / 2]) / 2;
}

int stats_least_window(const struct timeline *tl, const double *v, size_t from, size_t to,
		       int64_t window_ns, window_accept_fn *accept, void *arg, struct window *ret)
{
	_cleanup_free_ double *values = calloc(tl->n + 1, sizeof(*values));
	struct sorted s = {.v = values};
	size_t first = from;
	bool found = false;

	if (!values)
		return -ENOMEM;
	for (size_t last = from; last < tl->n && last <= to; last++) {
		double median;

		if (isnan(v[last]) || (last > first && gap_before(tl, last) == 0)) {
			s.n = 0;
			first = last + (isnan(v[last]) ? 1 : 0);
			if (isnan(v[last]))
				continue;
		}
		sorted_add(&s, v[last]);
		/* The shortest window that ends here and is long enough. */
		while (first < last && tl->t_ns[last] - tl->t_ns[first + 1] >= window_ns)
			sorted_remove(&s, v[first++]);
		if (first == last || tl->t_ns[last] - tl->t_ns[first] < window_ns)
			continue;
		median = sorted_median(&s);
		if ((found && median >= ret->median) || !accept(arg, first, last))
			continue;
		*ret = (struct window){.first = first, .last = last, .median = median};
		found = true;
	}
	return found;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median(double *v, size_t n)
{
	struct sorted s = {.v = v, .n = n};

	qsort(v, n, sizeof(*v), compare_double);
	return sorted_median(&s);
}

/* -- ranks ------------------------------------------------------------------------------------ */

struct ranked {
	double v;
	size_t at;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

/* Replaces each value by its rank, 1 ... n. */
static void to_ranks(double *v, struct ranked *tmp, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tmp[i] = (struct ranked){v[i], i};
	qsort(tmp, n, sizeof(*tmp), compare_ranked);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && tmp[end].v == tmp[i].v; end++)
			;
		for (size_t j = i; j < end; j++)
			v[tmp[j].at] = (double)(i + 1 + end) / 2;
	}
}

/* Of ranks: their mean is (n + 1) / 2 whatever the ties. */
static double correlation(const double *x, const double *y, size_t n)
{
	double mean = (double)(n + 1) / 2, xy = 0, xx = 0, yy = 0;

	for (size_t i = 0; i < n; i++) {
		xy += (x[i] - mean) * (y[i] - mean);
		xx += (x[i] - mean) * (x[i] - mean);
		yy += (y[i] - mean) * (y[i] - mean);
	}
	return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

int stats_rank(const double *x, const double *y, size_t n, struct rank_stats *ret)
{
	_cleanup_free_ double *a = calloc(n + 1, sizeof(*a));
	_cleanup_free_ double *b = calloc(n + 1, sizeof(*b));
	_cleanup_free_ struct ranked *tmp = calloc(n + 1, sizeof(*tmp));

	if (!a || !b || !tmp)
		return -ENOMEM;
	*ret = (struct rank_stats){.rho = NAN};
	for (size_t i = 0; i < n; i++) {
		if (isnan(x[i]) || isnan(y[i]))
			continue;
		a[ret->n] = x[i];
		b[ret->n++] = y[i];
	}
	if (ret->n < STATS_RANK_MIN)
		return 0;
	to_ranks(a, tmp, ret->n);
	to_ranks(b, tmp, ret->n);
	ret->rho = correlation(a, b, ret->n);
	return 0;
}
