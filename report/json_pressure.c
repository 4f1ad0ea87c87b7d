#include "report/json_values.h"
#include "report/text_internal.h"

#include <math.h>

static struct json_object *seconds(int64_t ns)
{
	return ns == READ_NULL ? NULL : json_number((double)ns / 1e9);
}

static struct json_object *share(int64_t part, int64_t all)
{
	return all > 0 ? json_number((double)part / (double)all) : NULL;
}

static struct json_object *time_of(const struct pressure_view *p, const struct fault_cost *c)
{
	return pressure_has_cost(p, c) ? json_number(c->seconds) : NULL;
}

static struct json_object *amounts(const struct amounts *a, const char *unit)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < a->n; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "site_id", json_int(a->top[i].site_id));
		json_add(o, unit, json_int(a->top[i].amount));
		json_push(array, o);
	}
	return array;
}

struct json_object *json_decisions(const struct decision_effect *effects, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		const struct decision_effect *e = &effects[i];
		bool is_known = e->from_ns != READ_NULL && e->to_ns != READ_NULL;
		struct json_object *o = json_object_new_object();

		json_add(o, "t_s", seconds(e->t_ns));
		json_add(o, "limit_before", json_int(e->limit_before));
		json_add(o, "limit_after", json_int(e->limit_after));
		json_add(o, "scan_before_s", seconds(e->from_ns));
		json_add(o, "scan_after_s", seconds(e->to_ns));
		json_add(o, "taken_bytes", is_known ? json_int(e->taken.total) : NULL);
		json_add(o, "taken", amounts(&e->taken, "bytes"));
		json_add(o, "aftermath_s", seconds(e->aftermath_ns));
		json_add(o, "aftermath_faults", json_int(e->faulted.total));
		json_add(o, "faulted", amounts(&e->faulted, "faults"));
		json_push(array, o);
	}
	return array;
}

static struct json_object *peaks(const struct pressure_view *p)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < p->n_peaks; i++) {
		const struct stall_peak *peak = &p->peaks[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "from_s", seconds(peak->from_ns));
		json_add(o, "to_s", seconds(peak->to_ns));
		json_add(o, "stall_share", json_number(peak->share));
		json_add(o, "faults", json_int(peak->faulted.total));
		json_add(o, "faulted", amounts(&peak->faulted, "faults"));
		json_push(array, o);
	}
	return array;
}

struct json_object *json_places(const struct fault_place_row *rows, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_frame(&rows[i].at);

		json_add(o, "faults", json_int(rows[i].faults));
		json_push(array, o);
	}
	return array;
}

static void add_classes(struct json_object *o, const struct pressure_view *p,
			const int64_t bytes[N_CLASSES])
{
	for (int c = 0; c < N_CLASSES; c++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "%s_bytes", site_class_name((enum site_class)c));
		json_add(o, key, p->why_no_scans ? NULL : json_int(bytes[c]));
	}
}

static void add_stall(struct json_object *o, const struct rank_stats *s)
{
	bool is_short = s->n < STATS_RANK_MIN;

	json_add(o, "stall_correlation", json_number(s->rho));
	json_add(o, "stall_intervals", json_object_new_int64((int64_t)s->n));
	json_add(o, "stall_correlation_missing",
		 isnan(s->rho) ? json_text(is_short ? "fewer than 8 sample intervals, or not among "
						      "the 20 sites with most faults"
						    : "faults or stall never change")
			       : NULL);
}

static struct json_object *site(const struct pressure_view *p, const struct pressure_site *s)
{
	struct json_object *o = json_object_new_object(), *stack = json_object_new_array();
	bool has_class = !p->why_no_scans && p->was_swapped && pressure_site_bytes(s) > 0;

	json_add(o, "id", json_int(s->site.row.site_id));
	json_add(o, "kind", json_text(s->site.row.kind));
	json_add(o, "is_allocator", json_object_new_boolean(site_is_allocator(&s->site.row)));
	json_add(o, "class", has_class ? json_text(site_class_name(pressure_site_class(s))) : NULL);
	json_add(o, "live_bytes", json_int(s->live_bytes));
	json_add(o, "swapped_bytes", json_int(s->swapped_bytes));
	json_add(o, "max_swapped_bytes", json_int(s->max_swapped_bytes));
	add_classes(o, p, s->bytes);
	json_add(o, "faults", p->why_no_faults ? NULL : json_int(s->cost.faults));
	json_add(o, "fault_share", share(s->cost.faults, p->faults.faults));
	json_add(o, "timed_faults", p->why_no_faults ? NULL : json_int(s->cost.timed));
	json_add(o, "time_s", time_of(p, &s->cost));
	add_stall(o, &s->with_stall);
	json_add(o, "place", s->n_place > 0 ? json_frame(s->place) : NULL);
	json_add(o, "faulted_in", json_places(s->places, s->n_places));
	json_add(o, "quality", json_text(s->site.quality));
	for (size_t i = 0; i < s->site.n_frames; i++)
		json_push(stack, json_frame(&s->site.frames[i]));
	json_add(o, "stack", stack);
	return o;
}

static struct json_object *mappings(const struct pressure_view *p)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct pressure_mapping *m = &p->mappings[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "mapping", json_text(m->mapping));
		json_add(o, "file", json_text(m->file));
		json_add(o, "faults", json_int(m->cost.faults));
		json_add(o, "fault_share", share(m->cost.faults, p->faults.faults));
		json_add(o, "timed_faults", json_int(m->cost.timed));
		json_add(o, "time_s", time_of(p, &m->cost));
		json_push(array, o);
	}
	return array;
}

static struct json_object *scans(const struct pressure_view *p)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "count", json_object_new_int64((int64_t)p->n_scans));
	json_add(o, "cpu_s", json_number(p->scan_s));
	json_add(o, "t_s", seconds(p->scan.t_ns));
	json_add(o, "period_s", seconds(p->scan.period_ns));
	json_add(o, "resident_bytes", json_int(p->scan.resident_bytes));
	json_add(o, "swapped_bytes", json_int(p->scan.swapped_bytes));
	json_add(o, "swapcache_bytes", json_int(p->scan.swapcache_bytes));
	return o;
}

static struct json_object *faults(const struct run_view *v)
{
	static const char *const sources[] = {NULL, "measured", "estimated"};
	const struct pressure_view *p = &v->pressure;
	const struct figure *counted = &v->fig[FIG_major_faults];
	int64_t all = p->faults.faults + p->own_faults;
	struct json_object *o = json_object_new_object();

	json_add(o, "count", json_int(p->faults.faults));
	json_add(o, "attributed", json_int(p->attributed));
	json_add(o, "not_attributed", json_int(p->faults.faults - p->attributed));
	json_add(o, "own", json_int(p->own_faults));
	json_add(o, "counted", counted->why ? NULL : json_number(counted->v));
	json_add(o, "difference", counted->why ? NULL : json_number(counted->v - (double)all));
	json_add(o, "difference_missing", json_text(counted->why));
	json_add(o, "timed", json_int(p->faults.timed));
	json_add(o, "time_s", time_of(p, &p->faults));
	json_add(o, "time_source", json_text(sources[p->cost]));
	json_add(o, "time_missing", json_text(p->why_no_cost));
	return o;
}

static struct json_object *ids(const struct pressure_view *p, enum pressure_order order, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < MIN(n, p->n_top[order]); i++)
		json_push(array, json_int(p->sites[p->top[order][i]].site.row.site_id));
	return array;
}

struct json_object *json_pressure(const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	struct json_object *o, *sites;

	if (p->why_none)
		return NULL;
	o = json_object_new_object();
	sites = json_object_new_array();
	json_add(o, "scans", p->why_no_scans ? NULL : scans(p));
	json_add(o, "scans_missing", json_text(p->why_no_scans));
	json_add(o, "was_swapped",
		 p->why_no_scans ? NULL : json_object_new_boolean(p->was_swapped));
	add_classes(o, p, p->total);
	json_add(o, "cold_owner_count",
		 p->why_no_scans ? NULL : json_object_new_int64((int64_t)p->n_cold_owners));
	json_add(o, "cold_owned_bytes", p->why_no_scans ? NULL : json_int(p->cold_owned));
	json_add(o, "cold_owner_ids", ids(p, BY_COLD, p->n_cold_owners));
	json_add(o, "fault_site_ids", ids(p, BY_FAULTS, PRESSURE_KEPT));
	json_add(o, "faults", p->why_no_faults ? NULL : faults(v));
	json_add(o, "faults_missing", json_text(p->why_no_faults));
	json_add(o, "mappings", mappings(p));
	for (size_t i = 0; i < p->n_sites; i++)
		json_push(sites, site(p, &p->sites[i]));
	json_add(o, "sites", sites);
	json_add(o, "tightenings", json_object_new_int64((int64_t)p->n_tighten));
	json_add(o, "decisions", json_decisions(p->decisions, p->n_decisions));
	json_add(o, "stall_peaks", peaks(p));
	return o;
}

static void push_sentence(struct json_object *array, struct str *s)
{
	if (s->data)
		json_push(array, json_text(s->data));
	str_done(s);
}

struct json_object *json_pressure_findings(const struct run_view *v)
{
	const struct pressure_view *p = &v->pressure;
	struct json_object *o, *sentences;
	struct str s = {0};

	if (p->why_none)
		return NULL;
	o = json_object_new_object();
	sentences = json_object_new_array();
	text_cold_sentence(&s, p);
	push_sentence(sentences, &s);
	text_faults_sentence(&s, p);
	push_sentence(sentences, &s);
	for (size_t i = 0; i < p->n_top[BY_THRASHING]; i++) {
		const struct pressure_site *thrashing = &p->sites[p->top[BY_THRASHING][i]];

		if (pressure_site_class(thrashing) != CLASS_THRASHING)
			continue;
		text_thrashing_sentence(&s, thrashing);
		push_sentence(sentences, &s);
	}
	json_add(o, "run_id", json_int(v->row.run_id));
	json_add(o, "sentences", sentences);
	return o;
}
