#include "store/read.h"

#include "base/str.h"
#include "store/read_table.h"
#include "store/readonly.h"
#include "store/schema.h"
#include "store/statement.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct field run_fields[] = {
	INT(run_row, run_id),
	TEXT(run_row, name),
	TEXT(run_row, kind),
	TEXT(run_row, policy),
	TEXT(run_row, knob),
	INT(run_row, limit_bytes),
	TEXT(run_row, command),
	TEXT(run_row, started_at),
	INT(run_row, started_mono_ns),
	INT(run_row, exec_t_ns),
	INT(run_row, group_empty_t_ns),
	REAL(run_row, duration_s),
	INT(run_row, exit_code),
	INT(run_row, term_signal),
	TEXT(run_row, end_reason),
	TEXT(run_row, compressor),
	TEXT(run_row, allocator),
	INT(run_row, repeat_index),
	INT(run_row, run_order),
	REAL(run_row, kpi),
	REAL(run_row, tool_cpu_s),
	INT(run_row, tool_rss_bytes),
	REAL(run_row, actuator_cpu_s),
	TEXT(run_row, config),
	TEXT(run_row, environment),
	INT(run_row, period_ns),
	TEXT(run_row, trace),
};

static const struct field decision_fields[] = {
	INT(decision_row, t_ns),           TEXT(decision_row, action),
	TEXT(decision_row, reason),        REAL(decision_row, fault_rate),
	REAL(decision_row, stall_some),    REAL(decision_row, stall_full),
	REAL(decision_row, refault_ratio), INT(decision_row, usage_bytes),
	INT(decision_row, limit_before),   INT(decision_row, limit_after),
	TEXT(decision_row, outcome),       INT(decision_row, took_ns),
};

static const struct field event_fields[] = {
	INT(event_row, t_ns),
	TEXT(event_row, kind),
	TEXT(event_row, detail),
};

static const struct field loss_fields[] = {
	TEXT(loss_row, source),
	INT(loss_row, count),
	TEXT(loss_row, detail),
};

/* ?1 is NULL for `run`, which is read whole; rowid = run_id is the order of insertion. */
static const struct table run_table = TABLE(run, "WHERE ?1 IS NULL ORDER BY run_id", run_row);
static const struct table decision_table =
	TABLE(decision, "WHERE run_id = ?1 ORDER BY t_ns, rowid", decision_row);
static const struct table event_table =
	TABLE(event, "WHERE run_id = ?1 ORDER BY t_ns, rowid", event_row);
static const struct table loss_table = TABLE(loss, "WHERE run_id = ?1 ORDER BY rowid", loss_row);

int read_error(struct reader *r, const char *what, struct err *err)
{
	return err_set(err, -EIO, "cannot read %s from profile.db: %s", what,
		       sqlite3_errmsg(r->db));
}

int read_no_memory(const char *what, struct err *err)
{
	return err_set(err, -ENOMEM, "no memory for %s of profile.db", what);
}

/* Names of a table's columns in *ret; none when there is no such table. */
static int load_columns(struct reader *r, const char *table, char ***ret, size_t *ret_n,
			struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	int rc;

	if (sqlite3_prepare_v2(r->db, "SELECT name FROM pragma_table_info(?1)", -1, &st, NULL) !=
		    SQLITE_OK ||
	    sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC) != SQLITE_OK)
		return read_error(r, table, err);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		char **grown = realloc(*ret, (*ret_n + 1) * sizeof(**ret));

		if (!grown)
			return read_no_memory(table, err);
		*ret = grown;
		grown[*ret_n] = strdup((const char *)sqlite3_column_text(st, 0));
		if (!grown[*ret_n])
			return read_no_memory(table, err);
		++*ret_n;
	}
	return rc == SQLITE_DONE ? 0 : read_error(r, table, err);
}

static void columns_free(char **cols, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(cols[i]);
	free(cols);
}

static bool has_column(char *const *cols, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(cols[i], name) == 0)
			return true;
	}
	return false;
}

static int read_field(sqlite3_stmt *st, int col, const struct field *f, char *row)
{
	bool is_null = sqlite3_column_type(st, col) == SQLITE_NULL;
	void *at = row + f->offset;

	if (f->type == FIELD_INT) {
		*(int64_t *)at = is_null ? READ_NULL : sqlite3_column_int64(st, col);
	} else if (f->type == FIELD_REAL) {
		*(double *)at = is_null ? NAN : sqlite3_column_double(st, col);
	} else {
		*(char **)at = is_null ? NULL : strdup((const char *)sqlite3_column_text(st, col));
		if (!is_null && !*(char **)at)
			return -ENOMEM;
	}
	return 0;
}

static void free_row(const struct table *t, char *row)
{
	for (size_t i = 0; i < t->n_fields; i++) {
		if (t->fields[i].type == FIELD_TEXT)
			free(*(char **)(row + t->fields[i].offset));
	}
}

void read_free_rows(const struct table *t, void *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free_row(t, (char *)rows + i * t->row_size);
	free(rows);
}

static int step_rows(struct reader *r, sqlite3_stmt *st, const struct table *t, char **rows,
		     size_t *n, struct err *err)
{
	size_t size = 0;
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (*n == size) {
			char *grown;

			size = size ? 2 * size : 16;
			grown = realloc(*rows, size * t->row_size);
			if (!grown)
				return read_no_memory(t->name, err);
			*rows = grown;
		}
		/* Zeroed and counted first, so that a half-read row can be freed. */
		memset(*rows + *n * t->row_size, 0, t->row_size);
		++*n;
		for (size_t i = 0; i < t->n_fields; i++) {
			if (read_field(st, (int)i, &t->fields[i], *rows + (*n - 1) * t->row_size) <
			    0)
				return read_no_memory(t->name, err);
		}
	}
	return rc == SQLITE_DONE ? 0 : read_error(r, t->name, err);
}

static void add_select(struct str *sql, const struct table *t, char *const *cols, size_t n_cols)
{
	for (size_t i = 0; i < t->n_fields; i++) {
		bool has = has_column(cols, n_cols, t->fields[i].name);

		str_addf(sql, "%s%s", i ? ", " : "SELECT ", has ? t->fields[i].name : "NULL");
	}
	str_addf(sql, " FROM %s %s", t->name, t->tail);
}

int read_table(struct reader *r, const struct table *t, int64_t id, void **ret, size_t *ret_n,
	       struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	_cleanup_str_ struct str sql = {0};
	char **cols = NULL, *rows = NULL;
	size_t n_cols = 0, n = 0;
	int res = load_columns(r, t->name, &cols, &n_cols, err);

	if (res == 0 && n_cols > 0) {
		add_select(&sql, t, cols, n_cols);
		if (sql.failed)
			res = read_no_memory(t->name, err);
		else if (sqlite3_prepare_v2(r->db, sql.data, -1, &st, NULL) != SQLITE_OK ||
			 (t != &run_table && sqlite3_bind_int64(st, 1, id) != SQLITE_OK))
			res = read_error(r, t->name, err);
		else
			res = step_rows(r, st, t, &rows, &n, err);
	}
	columns_free(cols, n_cols);
	if (res < 0) {
		read_free_rows(t, rows, n);
		return res;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int read_has_table(struct reader *r, const char *name, bool *ret, struct err *err)
{
	char **cols = NULL;
	size_t n = 0;
	int res = load_columns(r, name, &cols, &n, err);

	columns_free(cols, n);
	*ret = n > 0;
	return res;
}

int read_query(struct reader *r, const struct table *t, const int64_t *args, size_t n_args,
	       void **ret, size_t *ret_n, struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	char *rows = NULL;
	size_t n = 0;
	bool has = false;
	int res = read_has_table(r, t->name, &has, err);

	if (res == 0 && has && sqlite3_prepare_v2(r->db, t->tail, -1, &st, NULL) != SQLITE_OK)
		res = read_error(r, t->name, err);
	for (size_t i = 0; res == 0 && st && i < n_args; i++) {
		/* What is not bound is NULL. */
		if (args[i] != READ_NULL &&
		    sqlite3_bind_int64(st, (int)i + 1, args[i]) != SQLITE_OK)
			res = read_error(r, t->name, err);
	}
	if (res == 0 && st)
		res = step_rows(r, st, t, &rows, &n, err);
	if (res < 0) {
		read_free_rows(t, rows, n);
		return res;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int reader_load_runs(struct reader *r, struct run_row **ret, size_t *ret_n, struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &run_table, 0, &rows, ret_n, err);

	*ret = rows;
	return res;
}

int reader_load_decisions(struct reader *r, int64_t run_id, struct decision_row **ret,
			  size_t *ret_n, struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &decision_table, run_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

int reader_load_events(struct reader *r, int64_t run_id, struct event_row **ret, size_t *ret_n,
		       struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &event_table, run_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

int reader_load_losses(struct reader *r, int64_t run_id, struct loss_row **ret, size_t *ret_n,
		       struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &loss_table, run_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

void run_row_done(struct run_row *row)
{
	free_row(&run_table, (char *)row);
	memset(row, 0, sizeof(*row));
}

void run_rows_free(struct run_row *rows, size_t n)
{
	read_free_rows(&run_table, rows, n);
}

void decision_rows_free(struct decision_row *rows, size_t n)
{
	read_free_rows(&decision_table, rows, n);
}

void event_rows_free(struct event_row *rows, size_t n)
{
	read_free_rows(&event_table, rows, n);
}

void loss_rows_free(struct loss_row *rows, size_t n)
{
	read_free_rows(&loss_table, rows, n);
}

static int grow_column(int64_t **col, size_t size)
{
	int64_t *grown = realloc(*col, size * sizeof(**col));

	if (!grown)
		return -ENOMEM;
	*col = grown;
	return 0;
}

static int grow_series(struct series *s, size_t size)
{
	if (grow_column(&s->seq, size) < 0 || grow_column(&s->t_ns, size) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_cols; i++) {
		/* Absent columns stay NULL: the first growth gave the others their array. */
		if (s->cols[i] && grow_column(&s->cols[i], size) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int step_series(struct reader *r, sqlite3_stmt *st, size_t size, struct series *s,
		       struct err *err)
{
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if (s->n == size) {
			size *= 2;
			if (grow_series(s, size) < 0)
				return read_no_memory("samples", err);
		}
		s->seq[s->n] = sqlite3_column_int64(st, 0);
		s->t_ns[s->n] = sqlite3_column_int64(st, 1);
		for (size_t i = 0; i < s->n_cols; i++) {
			int col = (int)i + 2;

			if (s->cols[i])
				s->cols[i][s->n] = sqlite3_column_type(st, col) == SQLITE_NULL
							   ? READ_NULL
							   : sqlite3_column_int64(st, col);
		}
		s->n++;
	}
	return rc == SQLITE_DONE ? 0 : read_error(r, "samples", err);
}

static int load_series(struct reader *r, int64_t run_id, const char *const names[],
		       struct series *s, struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	_cleanup_str_ struct str sql = {0};
	const size_t first_size = 256;

	str_add(&sql, "SELECT seq, t_ns");
	for (size_t i = 0; i < s->n_cols; i++) {
		bool has = has_column(r->sample_cols, r->n_sample_cols, names[i]);

		str_addf(&sql, ", %s", has ? names[i] : "NULL");
		if (has && grow_column(&s->cols[i], first_size) < 0)
			return read_no_memory("samples", err);
	}
	str_add(&sql, " FROM sample WHERE run_id = ?1 ORDER BY seq");
	if (sql.failed || grow_series(s, first_size) < 0)
		return read_no_memory("samples", err);
	if (sqlite3_prepare_v2(r->db, sql.data, -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_bind_int64(st, 1, run_id) != SQLITE_OK)
		return read_error(r, "samples", err);
	return step_series(r, st, first_size, s, err);
}

int reader_load_series(struct reader *r, int64_t run_id, const char *const names[], size_t n_names,
		       struct series *ret, struct err *err)
{
	struct series s = {.n_cols = n_names, .cols = calloc(n_names + 1, sizeof(*s.cols))};
	int res;

	if (!s.cols)
		return read_no_memory("samples", err);
	res = r->n_sample_cols > 0 ? load_series(r, run_id, names, &s, err) : 0;
	if (res < 0)
		series_done(&s);
	else
		*ret = s;
	return res;
}

void series_done(struct series *s)
{
	for (size_t i = 0; s->cols && i < s->n_cols; i++)
		free(s->cols[i]);
	free(s->cols);
	free(s->seq);
	free(s->t_ns);
	memset(s, 0, sizeof(*s));
}

static int get_pragma(struct reader *r, const char *sql, int64_t *ret, struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(r->db, sql, -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW)
		return read_error(r, "the version", err);
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

/* The application id is not demanded: a file that another tool copied may have lost it. */
static int check_version(struct reader *r, const char *dir, struct err *err)
{
	int64_t version = 0;
	int res = get_pragma(r, "PRAGMA user_version", &version, err);

	if (res < 0)
		return res;
	if (version > SCHEMA_VERSION) {
		err_set(err, -EPROTO,
			"%s/profile.db has format %lld, this analyzer reads up to format %d", dir,
			(long long)version, SCHEMA_VERSION);
		return err_hint(err, "read it with the analyzer that recorded it, or a newer one");
	}
	if (version < 1)
		return err_set(err, -EINVAL,
			       "%s/profile.db was not made by analyzer, or recording "
			       "ended before its first table",
			       dir);
	return 0;
}

int reader_open(struct reader **ret, const char *dir, struct err *err)
{
	_cleanup_(reader_closep) struct reader *r = calloc(1, sizeof(*r));
	int res;

	if (!r)
		return read_no_memory("the reader", err);
	res = db_open_readonly(&r->db, &r->copy, dir, err);
	if (res == 0)
		res = check_version(r, dir, err);
	if (res == 0)
		res = load_columns(r, "sample", &r->sample_cols, &r->n_sample_cols, err);
	if (res < 0)
		return res;
	*ret = TAKE_PTR(r);
	return 0;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	columns_free(r->sample_cols, r->n_sample_cols);
	(void)sqlite3_close(r->db); /* read-only: nothing can be lost */
	db_copy_done(&r->copy);
	free(r);
}
