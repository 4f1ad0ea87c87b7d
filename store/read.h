/*
 * The read side of profile.db: rows and series of a results directory as plain data.
 *
 * Life: reader_open -> reader_load_... (any number, any order) -> reader_close. Everything loaded
 * is owned by the caller and outlives the reader. Nothing of the data is ever written: the
 * file may still be being recorded (WAL), its recorder may have been killed (a log is left beside
 * it), or the directory may be read-only; each load sees one consistent state. A column or a
 * table that an older file does not have reads as NULL or as no rows.
 *
 * Errors: -ENOENT, -ENOTDIR, -EINVAL (no such directory, or not one of ours), -EPROTO (newer
 * schema), -EACCES, -EIO.
 */
#pragma once

#include "base/err.h"

/* NULL of an INTEGER column. No metric, size or time is ever negative to that degree; NULL of a
 * REAL column is NAN, of a TEXT column a NULL pointer. */
#define READ_NULL INT64_MIN

struct reader;

/* Opens DIR/profile.db. */
int reader_open(struct reader **ret, const char *dir, struct err *err);
void reader_close(struct reader *r); /* NULL allowed */

static inline void reader_closep(struct reader **r)
{
	reader_close(*r);
}

/* True when the directory has a profile.db at all, whatever its state. */
bool reader_is_results_dir(const char *dir);

/* A row of `run`; the columns are described in store/schema.c. */
struct run_row {
	int64_t run_id;
	char *name, *kind, *policy, *knob;
	int64_t limit_bytes;
	char *command;
	char *started_at;
	int64_t started_mono_ns, exec_t_ns, group_empty_t_ns;
	double duration_s;
	int64_t exit_code, term_signal;
	char *end_reason;
	char *compressor, *allocator;
	int64_t repeat_index, run_order;
	double kpi, tool_cpu_s;
	int64_t tool_rss_bytes;
	double actuator_cpu_s;
	char *config, *environment;
	int64_t period_ns;
	char *trace;
};

/* All runs in the order in which they were run. */
int reader_load_runs(struct reader *r, struct run_row **ret, size_t *ret_n, struct err *err);
void run_row_done(struct run_row *row);
void run_rows_free(struct run_row *rows, size_t n);

/* A row of `decision`, by time. */
struct decision_row {
	int64_t t_ns;
	char *action, *reason;
	double fault_rate, stall_some, stall_full, refault_ratio;
	int64_t usage_bytes, limit_before, limit_after;
	char *outcome;
	int64_t took_ns;
};

int reader_load_decisions(struct reader *r, int64_t run_id, struct decision_row **ret,
			  size_t *ret_n, struct err *err);
void decision_rows_free(struct decision_row *rows, size_t n);

/* A row of `event`, by time. */
struct event_row {
	int64_t t_ns;
	char *kind, *detail;
};

int reader_load_events(struct reader *r, int64_t run_id, struct event_row **ret, size_t *ret_n,
		       struct err *err);
void event_rows_free(struct event_row *rows, size_t n);

/* A row of `loss`. */
struct loss_row {
	char *source;
	int64_t count;
	char *detail;
};

int reader_load_losses(struct reader *r, int64_t run_id, struct loss_row **ret, size_t *ret_n,
		       struct err *err);
void loss_rows_free(struct loss_row *rows, size_t n);

/* Columns of `sample` of one run, ordered by seq. */
struct series {
	size_t n; /* samples */
	int64_t *seq, *t_ns;
	size_t n_cols;
	/* As many as names were given, each of n values or READ_NULL; a column that the file
	 * does not have is a NULL pointer. */
	int64_t **cols;
};

/* Reads only the named columns: rows are wide, and most readers need few. */
int reader_load_series(struct reader *r, int64_t run_id, const char *const names[], size_t n_names,
		       struct series *ret, struct err *err);
void series_done(struct series *s);
