/*
 * Tables of profile.db as arrays of C structs, described by tables of columns: what read.c,
 * read_trace.c and read_pressure.c share. Internal to store/.
 *
 * A column that the file does not have reads as NULL, a table that it does not have as no rows.
 */
#pragma once

#include "store/read.h"
#include "store/readonly.h"

struct reader {
	sqlite3 *db;
	struct db_copy copy;
	char **sample_cols; /* owned: the columns that this file's `sample` has */
	size_t n_sample_cols;
};

enum field_type { FIELD_INT, FIELD_REAL, FIELD_TEXT };

/* Where a column of a table goes in the C row: int64_t, double, owned char *. */
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
};

#define INT(row, f)                                    \
	{                                              \
#f, FIELD_INT, offsetof(struct row, f) \
	}
#define REAL(row, f)                                    \
	{                                               \
#f, FIELD_REAL, offsetof(struct row, f) \
	}
#define TEXT(row, f)                                    \
	{                                               \
#f, FIELD_TEXT, offsetof(struct row, f) \
	}

struct table {
	const char *name;
	const char *tail; /* JOIN, WHERE with ?1 and ORDER BY, of columns that every version has */
	const struct field *fields;
	size_t n_fields;
	size_t row_size;
};

#define TABLE(name_, tail_, row_)                                                        \
	{                                                                                \
		.name = #name_, .tail = tail_, .fields = name_##_fields,                 \
		.n_fields = ARRAY_SIZE(name_##_fields), .row_size = sizeof(struct row_), \
	}

/* The rows with ?1 = id; to be released with read_free_rows. */
int read_table(struct reader *r, const struct table *t, int64_t id, void **ret, size_t *ret_n,
	       struct err *err);

/* The rows of a whole statement: t->tail, its columns in the order of t->fields, ?1 ... = args
 * (READ_NULL binds NULL). No rows when the file lacks the table t->name. */
int read_query(struct reader *r, const struct table *t, const int64_t *args, size_t n_args,
	       void **ret, size_t *ret_n, struct err *err);
int read_has_table(struct reader *r, const char *name, bool *ret, struct err *err);
void read_free_rows(const struct table *t, void *rows, size_t n);

int read_error(struct reader *r, const char *what, struct err *err);
int read_no_memory(const char *what, struct err *err);
