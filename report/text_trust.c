#include "report/environment.h"
#include "report/text_internal.h"
#include "report/text_layout.h"

#include <string.h>

#define LABEL_MAX 128

static bool is_kind(const struct event_row *e, const char *kind)
{
	return e->kind && kind && strcmp(e->kind, kind) == 0;
}

/* Repeats share a name: their run_id tells them apart. "" in a session of one run. */
static const char *run_label(const struct report *r, const struct run_view *v,
			     char buf[static LABEL_MAX])
{
	size_t same = 0;

	if (r->n_runs == 1)
		return "";
	for (size_t i = 0; i < r->n_runs; i++)
		same += strcmp(text_run_name(&r->runs[i]), text_run_name(v)) == 0;
	if (same > 1)
		(void)snprintf(buf, LABEL_MAX, "%s (run %lld): ", text_run_name(v),
			       (long long)v->row.run_id);
	else
		(void)snprintf(buf, LABEL_MAX, "%s: ", text_run_name(v));
	return buf;
}

static void add_setting(void *arg, const char *name, const char *value)
{
	struct str *s = arg;

	str_addf(s, "%s%s %s", s->len > 0 ? ", " : "", name, value);
}

static void add_losses(struct str *out, const struct report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];
		char label[LABEL_MAX];

		for (size_t j = 0; j < v->n_losses; j++, n++)
			text_para(out, 2, "Lost: %s%lld of %s%s%s", run_label(r, v, label),
				  (long long)MAX(v->losses[j].count, 0), v->losses[j].source,
				  v->losses[j].detail ? ": " : "",
				  v->losses[j].detail ? v->losses[j].detail : "");
	}
	if (n == 0)
		text_para(out, 2, "Lost: nothing");
}

static void add_warnings(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_warnings; i++) {
		const struct report_warning *w = &r->warnings[i];
		char label[LABEL_MAX];

		if (w->n_runs == 1)
			text_para(out, 2, "Warning: %s%s", run_label(r, w->run, label), w->text);
		else
			text_para(out, 2, "Warning: %s (%zu runs)", w->text, w->n_runs);
	}
}

static bool is_first_of_kind(const struct run_view *v, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (is_kind(&v->events[i], v->events[at].kind))
			return false;
	}
	return true;
}

static void add_event(struct str *out, const struct run_view *v, size_t at, const char *prefix)
{
	const struct event_row *e = &v->events[at];
	size_t n = 0;
	char t[CELL_MAX];

	for (size_t i = at; i < v->n_events; i++)
		n += is_kind(&v->events[i], e->kind);
	text_para(out, 2, "Event: %s%s, %zu time%s, first at %s%s%s", prefix, e->kind, n,
		  n == 1 ? "" : "s", text_duration(t, (double)MAX(e->t_ns, 0) / 1e9),
		  e->detail ? ": " : "", e->detail ? e->detail : "");
}

/* Events other than warnings, counted by kind, with the first one's text. */
static void add_events(struct str *out, const struct report *r)
{
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct run_view *v = &r->runs[i];
		char label[LABEL_MAX];

		for (size_t j = 0; j < v->n_events; j++) {
			if (v->events[j].kind && !is_kind(&v->events[j], "warning") &&
			    is_first_of_kind(v, j))
				add_event(out, v, j, run_label(r, v, label));
		}
	}
}

void text_trust(struct str *out, const struct report *r, const struct run_group *const cols[],
		size_t n)
{
	_cleanup_str_ struct str s = {0};

	add_losses(out, r);
	add_warnings(out, r);
	add_events(out, r);
	environment_settings(r->runs[0].row.environment, add_setting, &s);
	if (s.len > 0)
		text_para(out, 2, "Machine: %s", s.data);
	str_add(out, "\n");
	text_figures(out, SEC_TRUST, cols, n);
	str_add(out, "\nHost: the whole machine, not this workload alone\n\n");
	text_figures(out, SEC_HOST, cols, n);
}
