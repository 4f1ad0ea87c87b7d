#include "report/run_view.h"

#include "report/environment.h"
#include "report/run_data.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* A recorder commits every second; one that was silent for much longer is gone. */
#define SILENCE_S 5.0

static int find_action(const char *name)
{
	for (int i = 0; name && i < N_ACTIONS; i++) {
		if (strcmp(name, action_name((enum action)i)) == 0)
			return i;
	}
	return -1;
}

/* No outcome is recorded for what needed no write. */
static int find_outcome(const char *name)
{
	for (int i = 0; name && i < N_OUTCOMES; i++) {
		if (strcmp(name, outcome_name((enum outcome)i)) == 0)
			return i;
	}
	return name ? -1 : OUTCOME_OK;
}

/* A limit may come and go between two samples: then only the decision tells of it. */
static void note_limit(struct decision_summary *s, const struct decision_row *row, int outcome)
{
	int64_t limit = row->limit_after;

	if (outcome == OUTCOME_ERROR || outcome == OUTCOME_SKIPPED || limit == READ_NULL ||
	    limit >= NO_LIMIT)
		return;
	s->last_limit = limit;
	if (s->least_limit != READ_NULL && s->least_limit <= limit)
		return;
	s->least_limit = limit;
	s->least_limit_t_ns = row->t_ns;
}

static void summarize_decisions(struct decision_summary *s, const struct decision_row *rows,
				size_t n)
{
	s->longest_ns = -1;
	s->least_limit = s->last_limit = READ_NULL;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		int a = find_action(rows[i].action), o = find_outcome(rows[i].outcome);

		/* A word of a newer recorder: in the sum, but in no cell. */
		if (a < 0 || o < 0)
			continue;
		s->by[a][o]++;
		note_limit(s, &rows[i], o);
		if (rows[i].took_ns <= s->longest_ns)
			continue;
		s->longest_ns = rows[i].took_ns;
		s->longest_t_ns = rows[i].t_ns;
		s->longest_action = (enum action)a;
	}
}

/* 0 when it cannot be read as such a time. */
static double parse_iso_utc(const char *text)
{
	struct tm tm = {0};
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	return end ? (double)timegm(&tm) : 0;
}

static enum run_state find_state(const struct run_view *v, double now_s)
{
	double silence = now_s - parse_iso_utc(v->row.started_at) -
			 (isnan(v->last_sample_s) ? 0 : v->last_sample_s);
	double period = v->row.period_ns > 0 ? (double)v->row.period_ns / 1e9 : 0;

	if (v->row.end_reason)
		return RUN_ENDED;
	return silence <= SILENCE_S + 3 * period ? RUN_RECORDING : RUN_RECORDER_DIED;
}

static int load_rows(struct run_view *v, struct reader *r, struct err *err)
{
	struct decision_row *decisions = NULL;
	size_t n = 0;
	int res = reader_load_decisions(r, v->row.run_id, &decisions, &n, err);

	if (res < 0)
		return res;
	summarize_decisions(&v->decisions, decisions, n);
	decision_rows_free(decisions, n);
	res = reader_load_events(r, v->row.run_id, &v->events, &v->n_events, err);
	if (res == 0)
		res = reader_load_losses(r, v->row.run_id, &v->losses, &v->n_losses, err);
	if (res == 0)
		res = trace_view_load(&v->trace, r, v->row.run_id, v->row.trace, err);
	return res;
}

static int load_figures(struct run_view *v, struct reader *r, double now_s, struct err *err)
{
	struct run_data data;
	int res = run_data_load(&data, r, &v->row, v->page_size, err);

	if (res == 0) {
		v->last_sample_s = data.tl.n > 0 ? (double)data.t_ns[data.tl.n - 1] / 1e9 : NAN;
		v->state = find_state(v, now_s);
		res = figures_compute(v, &data, err);
		if (res == 0)
			res = pressure_load(&v->pressure, r, v->row.run_id, &v->trace, &data, err);
	}
	run_data_done(&data);
	return res;
}

int run_view_load(struct run_view *v, struct reader *r, struct run_row *take_row, double now_s,
		  struct err *err)
{
	struct str command = {0};
	int res;

	memset(v, 0, sizeof(*v));
	v->row = *take_row;
	memset(take_row, 0, sizeof(*take_row));
	v->page_size = environment_page_size(v->row.environment);
	command_line(&command, v->row.command);
	v->command = command.data;
	res = command.failed ? err_set(err, -ENOMEM, "no memory for a run's command")
			     : load_rows(v, r, err);
	if (res == 0)
		res = load_figures(v, r, now_s, err);
	if (res < 0)
		run_view_done(v);
	return res;
}

void run_view_done(struct run_view *v)
{
	run_row_done(&v->row);
	free(v->command);
	event_rows_free(v->events, v->n_events);
	loss_rows_free(v->losses, v->n_losses);
	pressure_done(&v->pressure);
	trace_view_done(&v->trace);
	memset(v, 0, sizeof(*v));
}
