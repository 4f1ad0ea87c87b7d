/*
 * A finished (or unfinished) run as the reports show it: its row, every figure with a value or
 * the reason why there is none, and what was decided, happened and lost.
 *
 * Life: run_view_load -> use -> run_view_done. Owns everything but the reasons, which are static.
 */
#pragma once

#include "model/decision.h"
#include "report/pressure.h"
#include "report/trace_view.h"
#include "store/read.h"

enum figure_section { SEC_USE, SEC_ENOUGH, SEC_COST, SEC_SAVE, SEC_TRUST, SEC_HOST };
enum figure_unit { UNIT_BYTES, UNIT_SECONDS, UNIT_COUNT, UNIT_RATE, UNIT_SHARE, UNIT_RATIO };

enum figure_id {
#define FIGURE(name, section, unit, label, definition) FIG_##name,
#include "report/figures.def"
#undef FIGURE
	FIG_COUNT
};

struct figure_info {
	const char *name; /* key in summary.json */
	enum figure_section section;
	enum figure_unit unit;
	const char *label;
	const char *definition;
};

extern const struct figure_info figure_infos[FIG_COUNT];

struct figure {
	double v;        /* bytes, seconds, per second, fractions */
	const char *why; /* no value: the reason; else NULL */
};

/* From here on a limit is none: the word of the configurations. */
#define NO_LIMIT (INT64_C(1) << 50)

#define N_ACTIONS (ACTION_RELEASE + 1)
#define N_OUTCOMES (OUTCOME_SKIPPED + 1)

struct decision_summary {
	size_t n, by[N_ACTIONS][N_OUTCOMES];
	int64_t longest_ns; /* -1 = none */
	int64_t longest_t_ns;
	enum action longest_action;
	int64_t least_limit, least_limit_t_ns; /* written by a decision; READ_NULL = none was */
	int64_t last_limit;
};

enum run_state { RUN_ENDED, RUN_RECORDING, RUN_RECORDER_DIED };

struct run_view {
	struct run_row row;
	enum run_state state;
	char *command;    /* printable, quoted where a shell would need it */
	double page_size; /* NAN = not recorded */
	double last_sample_s;
	struct figure fig[FIG_COUNT];
	struct decision_summary decisions;
	struct event_row *events;
	size_t n_events;
	struct loss_row *losses;
	size_t n_losses;
	struct trace_view trace;
	struct pressure_view pressure;
	bool lacks_swapcached;  /* swap-cached pages counted as swapped out */
	bool lacks_zswap_bytes; /* zswap in use, its charge not known */
	bool has_zram_share;    /* physical contains an estimate */
};

/* Takes the row (moved in, also on failure). now_s: wall clock, to tell a recording that is
 * still going on from one whose recorder died. */
int run_view_load(struct run_view *v, struct reader *r, struct run_row *take_row, double now_s,
		  struct err *err);
void run_view_done(struct run_view *v);

/* Computes v->fig from the samples; internal to run_view_load, in its own file for its size. */
struct run_data;
int figures_compute(struct run_view *v, const struct run_data *d, struct err *err);
