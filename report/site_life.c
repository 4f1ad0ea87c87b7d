#include "report/site_life.h"

#include "report/json_values.h"

#include <errno.h>
#include <string.h>

/* -- loading ---------------------------------------------------------------------------------- */

/* Moves the row out of those of the run. */
static int take_site(struct site_life *l, struct site_row *rows, size_t n, int64_t site_id,
		     const char *dir, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].site_id != site_id)
			continue;
		l->site.row = rows[i];
		memset(&rows[i], 0, sizeof(rows[i]));
		return 0;
	}
	(void)err_set(err, -ENOENT, "run %lld has no site %lld: its sites are %lld to %lld",
		      (long long)l->run_id, (long long)site_id, (long long)rows[0].site_id,
		      (long long)rows[n - 1].site_id);
	return err_hint(err,
			"the report names the important ones, and all are in: "
			"sqlite3 -readonly %s/profile.db 'SELECT * FROM site_pressure'",
			dir);
}

/* The run, or without one the first that has sites. 1 = found, *ret_sites are its sites. */
static int find_run(struct site_life *l, struct reader *r, int64_t run_id, struct run_row *runs,
		    size_t n_runs, struct site_row **ret_sites, size_t *ret_n, struct err *err)
{
	for (size_t i = 0; i < n_runs; i++) {
		int res;

		if (run_id != READ_NULL && runs[i].run_id != run_id)
			continue;
		res = reader_load_sites(r, runs[i].run_id, ret_sites, ret_n, err);
		if (res < 0)
			return res;
		if (*ret_n == 0)
			continue;
		l->run_id = runs[i].run_id;
		l->run_name = TAKE_PTR(runs[i].name);
		return 1;
	}
	return 0;
}

static int no_run(int64_t run_id, const struct run_row *runs, size_t n, const char *dir,
		  struct err *err)
{
	bool exists = run_id == READ_NULL;

	for (size_t i = 0; i < n; i++)
		exists |= runs[i].run_id == run_id;
	if (n > 0 && !exists)
		return err_set(err, -ENOENT, "'%s' has no run %lld: its runs are %lld to %lld", dir,
			       (long long)run_id, (long long)runs[0].run_id,
			       (long long)runs[n - 1].run_id);
	if (run_id == READ_NULL)
		return err_set(err, -ENOENT, "'%s' has no sites: no run was traced to its end",
			       dir);
	return err_set(err, -ENOENT, "run %lld of '%s' has no sites: it was not traced to its end",
		       (long long)run_id, dir);
}

static int find_site(struct site_life *l, struct reader *r, const char *dir, int64_t run_id,
		     int64_t site_id, struct err *err)
{
	struct run_row *runs = NULL;
	struct site_row *sites = NULL;
	size_t n_runs = 0, n_sites = 0;
	int res = reader_load_runs(r, &runs, &n_runs, err);

	if (res < 0)
		return res;
	res = find_run(l, r, run_id, runs, n_runs, &sites, &n_sites, err);
	if (res == 0)
		res = no_run(run_id, runs, n_runs, dir, err);
	else if (res == 1)
		res = take_site(l, sites, n_sites, site_id, dir, err);
	run_rows_free(runs, n_runs);
	site_rows_free(sites, n_sites);
	return res;
}

static int add_sample(void *arg, const struct site_sample_row *row)
{
	struct site_life *l = arg;

	if (l->n_samples == l->size_samples) {
		size_t size = l->size_samples ? 2 * l->size_samples : 64;
		struct site_sample_row *grown = realloc(l->samples, size * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->samples = grown;
		l->size_samples = size;
	}
	l->samples[l->n_samples++] = *row;
	return 0;
}

static int load_decisions(struct site_life *l, struct reader *r, struct err *err)
{
	struct scan_row *scans = NULL;
	size_t n = 0, all = 0;
	int res = reader_load_scans(r, l->run_id, &scans, &n, err);

	l->has_scans = n > 0;
	if (res == 0)
		res = pressure_load_decisions(r, l->run_id, l->site.row.site_id, scans, n,
					      &l->decisions, &all, err);
	for (size_t i = 0; res == 0 && i < all; i++) {
		const struct decision_effect *e = &l->decisions[i];

		if (e->taken.total > 0 || e->faulted.total > 0)
			l->decisions[l->n_decisions++] = *e;
	}
	scan_rows_free(scans, n);
	return res;
}

static int load(struct site_life *l, struct reader *r, struct err *err)
{
	int64_t run = l->run_id, site = l->site.row.site_id;
	int res = site_view_load_stack(&l->site, r, err);

	if (res == 0)
		res = reader_load_site_place(r, run, site, &l->place, &l->n_place, err);
	if (res == 0)
		res = reader_each_site_sample(r, run, site, add_sample, l, err);
	if (res == -ENOMEM)
		res = err_set(err, -ENOMEM, "no memory for the samples of site %lld",
			      (long long)site);
	if (res == 0)
		res = reader_load_histogram(r, run, site, &l->histogram, &l->n_histogram, err);
	if (res == 0)
		res = reader_load_fault_seconds(r, run, site, &l->seconds, &l->n_seconds, err);
	if (res == 0)
		res = reader_load_fault_places(r, run, site, &l->places, &l->n_places, err);
	return res == 0 ? load_decisions(l, r, err) : res;
}

int site_life_load(struct site_life *l, const char *dir, int64_t run_id, int64_t site_id,
		   struct err *err)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	int res;

	memset(l, 0, sizeof(*l));
	res = reader_open(&r, dir, err);
	if (res == 0)
		res = find_site(l, r, dir, run_id, site_id, err);
	if (res == 0)
		res = load(l, r, err);
	if (res < 0)
		site_life_done(l);
	return res;
}

void site_life_done(struct site_life *l)
{
	free(l->run_name);
	site_view_done(&l->site);
	frame_rows_free(l->place, l->n_place);
	free(l->samples);
	histogram_rows_free(l->histogram, l->n_histogram);
	free(l->seconds);
	fault_place_rows_free(l->places, l->n_places);
	free(l->decisions);
	memset(l, 0, sizeof(*l));
}

/* -- JSON ------------------------------------------------------------------------------------- */

static struct json_object *samples(const struct site_life *l)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < l->n_samples; i++) {
		const struct site_sample_row *row = &l->samples[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "t_s", json_number((double)row->t_ns / 1e9));
		json_add(o, "live_bytes", json_int(row->live_bytes));
		json_add(o, "resident_bytes", json_int(row->resident_bytes));
		json_add(o, "swapped_bytes", json_int(row->swapped_bytes));
		json_add(o, "cold_bytes", json_int(row->cold_bytes));
		json_add(o, "thrashing_bytes", json_int(row->thrashing_bytes));
		json_add(o, "faults", json_int(row->major_faults));
		json_push(array, o);
	}
	return array;
}

static struct json_object *histogram(const struct site_life *l, const char *kind)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < l->n_histogram; i++) {
		struct json_object *o;

		if (!l->histogram[i].kind || strcmp(l->histogram[i].kind, kind) != 0)
			continue;
		o = json_object_new_object();
		json_add(o, "log2", json_int(l->histogram[i].log2));
		json_add(o, "count", json_int(l->histogram[i].count));
		json_push(array, o);
	}
	return array;
}

static struct json_object *seconds(const struct site_life *l)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < l->n_seconds; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "second", json_int(l->seconds[i].second));
		json_add(o, "faults", json_int(l->seconds[i].faults));
		json_push(array, o);
	}
	return array;
}

void site_life_json(const struct site_life *l, struct str *out)
{
	struct json_object *o = json_object_new_object();
	bool has_faults = l->site.row.major_faults != READ_NULL || l->n_seconds > 0;

	json_add(o, "schema", json_object_new_string(SITE_SCHEMA));
	json_add(o, "run_id", json_int(l->run_id));
	json_add(o, "run_name", json_text(l->run_name));
	json_add(o, "site", json_site(&l->site));
	json_add(o, "place", l->n_place > 0 ? json_frame(l->place) : NULL);
	json_add(o, "sizes", histogram(l, "size"));
	json_add(o, "lifetimes", histogram(l, "lifetime"));
	json_add(o, "samples", l->has_scans ? samples(l) : NULL);
	json_add(o, "samples_missing",
		 l->has_scans ? NULL : json_text("the pages of sites were not scanned"));
	json_add(o, "faults_by_second", has_faults ? seconds(l) : NULL);
	json_add(o, "faults_missing",
		 has_faults ? NULL : json_text("faults of sites were not recorded"));
	json_add(o, "faulted_in", json_places(l->places, l->n_places));
	json_add(o, "decisions", json_decisions(l->decisions, l->n_decisions));
	json_print(out, o);
}
