#include "store/read_pressure.h"

#include "store/read_table.h"
#include "store/statement.h"

#include <errno.h>

static const struct field scan_fields[] = {
	INT(scan_row, t_ns),          INT(scan_row, period_ns),       INT(scan_row, scan_ns),
	INT(scan_row, processes),     INT(scan_row, blocks),          INT(scan_row, resident_bytes),
	INT(scan_row, swapped_bytes), INT(scan_row, swapcache_bytes),
};

static const struct field state_fields[] = {
	INT(site_state_row, site_id),
	INT(site_state_row, stack_id),
	TEXT(site_state_row, kind),
	INT(site_state_row, major_faults),
	INT(site_state_row, max_swapped_bytes),
	INT(site_state_row, t_ns),
	INT(site_state_row, live_bytes),
	INT(site_state_row, resident_bytes),
	INT(site_state_row, swapped_bytes),
	INT(site_state_row, swapcache_bytes),
	INT(site_state_row, cold_bytes),
	INT(site_state_row, returned_bytes),
	INT(site_state_row, thrashing_bytes),
};

static const struct field sum_fields[] = {
	INT(fault_sum_row, site_id),     TEXT(fault_sum_row, mapping),
	TEXT(fault_sum_row, file),       INT(fault_sum_row, faults),
	INT(fault_sum_row, own_faults),  INT(fault_sum_row, timed_faults),
	INT(fault_sum_row, duration_ns),
};

static const struct field place_fields[] = {
	INT(fault_place_row, site_id),      INT(fault_place_row, faults),
	TEXT(fault_place_row, at.module),   INT(fault_place_row, at.offset),
	TEXT(fault_place_row, at.function), TEXT(fault_place_row, at.file),
	INT(fault_place_row, at.line),      INT(fault_place_row, at.is_inline),
};

static const struct field second_fields[] = {
	INT(fault_second_row, second),
	INT(fault_second_row, faults),
};

static const struct field histogram_fields[] = {
	TEXT(histogram_row, kind),
	INT(histogram_row, log2),
	INT(histogram_row, count),
};

static const struct field frame_fields[] = {
	TEXT(frame_row, module), INT(frame_row, offset), TEXT(frame_row, function),
	TEXT(frame_row, file),   INT(frame_row, line),   INT(frame_row, is_inline),
};

/* name: the table without which there are no rows; tail: the whole statement. */
#define QUERY(name_, sql_, fields_, row_)                                                        \
	{                                                                                        \
		.name = name_, .tail = sql_, .fields = fields_, .n_fields = ARRAY_SIZE(fields_), \
		.row_size = sizeof(struct row_),                                                 \
	}

static const struct table scan_query =
	QUERY("scan",
	      "SELECT t_ns, period_ns, scan_ns, processes, blocks, resident_bytes, swapped_bytes,"
	      " swapcache_bytes FROM scan WHERE run_id = ?1 ORDER BY t_ns",
	      scan_fields, scan_row);

static const struct table state_query =
	QUERY("site_sample",
	      "SELECT s.site_id, s.stack_id, s.kind, s.major_faults, s.max_swapped_bytes, l.t_ns,"
	      " l.live_bytes, l.resident_bytes, l.swapped_bytes, l.swapcache_bytes, l.cold_bytes,"
	      " l.returned_bytes, l.thrashing_bytes FROM site AS s LEFT JOIN site_sample AS l"
	      " ON l.run_id = s.run_id AND l.site_id = s.site_id AND l.t_ns ="
	      " (SELECT max(m.t_ns) FROM site_sample AS m WHERE m.run_id = s.run_id"
	      " AND m.site_id = s.site_id AND m.t_ns <= ?2)"
	      " WHERE s.run_id = ?1 ORDER BY s.site_id",
	      state_fields, site_state_row);

#define SUMS                                                                              \
	"sum(is_own = 0), sum(is_own != 0), sum(is_own = 0 AND duration_ns IS NOT NULL)," \
	" coalesce(sum(CASE WHEN is_own = 0 THEN duration_ns END), 0)"                    \
	" FROM fault WHERE run_id = ?1 AND t_ns > ?2 AND t_ns <= ?3"

static const struct table sum_query =
	QUERY("fault",
	      /* Not grouped by the texts where they do not matter: twice as fast. */
	      "SELECT NULL, mapping, file, " SUMS " AND site_id IS NULL GROUP BY mapping, file"
	      " UNION ALL SELECT site_id, NULL, NULL, " SUMS " AND site_id IS NOT NULL"
	      " GROUP BY site_id ORDER BY 1, 2, 3",
	      sum_fields, fault_sum_row);

static const struct table place_query =
	QUERY("fault",
	      "SELECT n.site_id, n.faults, f.module, f.offset, f.function, f.file, f.line,"
	      " f.is_inline FROM (SELECT site_id, ip_frame, count(*) AS faults, row_number() OVER"
	      " (PARTITION BY site_id ORDER BY count(*) DESC, ip_frame) AS rank FROM fault"
	      " WHERE run_id = ?1 AND is_own = 0"
	      " AND site_id IN (SELECT site_id FROM site WHERE run_id = ?1 AND site_id = ?2"
	      " UNION ALL SELECT site_id FROM (SELECT site_id FROM site WHERE run_id = ?1"
	      " AND ?2 IS NULL ORDER BY major_faults DESC, site_id LIMIT 20))"
	      " GROUP BY site_id, ip_frame) AS n LEFT JOIN frame AS f ON f.frame_id = n.ip_frame"
	      " WHERE n.rank <= 100 ORDER BY n.site_id, n.rank",
	      place_fields, fault_place_row);

static const struct table second_query =
	QUERY("fault",
	      "SELECT t_ns / 1000000000 AS second, count(*) FROM fault WHERE run_id = ?1"
	      " AND site_id = ?2 AND is_own = 0 GROUP BY second ORDER BY second",
	      second_fields, fault_second_row);

static const struct table histogram_query =
	QUERY("site_histogram",
	      "SELECT kind, log2, count FROM site_histogram WHERE run_id = ?1 AND site_id = ?2"
	      " ORDER BY log2",
	      histogram_fields, histogram_row);

static const struct table site_place_query =
	QUERY("site_place",
	      "SELECT module, offset, function, file, line, is_inline FROM site_place"
	      " WHERE run_id = ?1 AND site_id = ?2",
	      frame_fields, frame_row);

#define ROWS(query, ...)                                                                      \
	void *rows = NULL;                                                                    \
	int res = read_query(r, query, (const int64_t[]){__VA_ARGS__},                        \
			     sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), &rows, \
			     ret_n, err);                                                     \
                                                                                              \
	*ret = rows;                                                                          \
	return res

int reader_load_scans(struct reader *r, int64_t run_id, struct scan_row **ret, size_t *ret_n,
		      struct err *err)
{
	ROWS(&scan_query, run_id);
}

void scan_rows_free(struct scan_row *rows, size_t n)
{
	read_free_rows(&scan_query, rows, n);
}

int reader_load_site_states(struct reader *r, int64_t run_id, int64_t t_ns,
			    struct site_state_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&state_query, run_id, t_ns);
}

void site_state_rows_free(struct site_state_row *rows, size_t n)
{
	read_free_rows(&state_query, rows, n);
}

int reader_load_fault_sums(struct reader *r, int64_t run_id, int64_t from_ns, int64_t to_ns,
			   struct fault_sum_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&sum_query, run_id, from_ns, to_ns);
}

void fault_sum_rows_free(struct fault_sum_row *rows, size_t n)
{
	read_free_rows(&sum_query, rows, n);
}

int reader_load_fault_places(struct reader *r, int64_t run_id, int64_t site_id,
			     struct fault_place_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&place_query, run_id, site_id);
}

void fault_place_rows_free(struct fault_place_row *rows, size_t n)
{
	read_free_rows(&place_query, rows, n);
}

int reader_load_fault_seconds(struct reader *r, int64_t run_id, int64_t site_id,
			      struct fault_second_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&second_query, run_id, site_id);
}

int reader_load_histogram(struct reader *r, int64_t run_id, int64_t site_id,
			  struct histogram_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&histogram_query, run_id, site_id);
}

void histogram_rows_free(struct histogram_row *rows, size_t n)
{
	read_free_rows(&histogram_query, rows, n);
}

int reader_load_site_place(struct reader *r, int64_t run_id, int64_t site_id,
			   struct frame_row **ret, size_t *ret_n, struct err *err)
{
	ROWS(&site_place_query, run_id, site_id);
}

static int64_t int_at(sqlite3_stmt *st, int col)
{
	return sqlite3_column_type(st, col) == SQLITE_NULL ? READ_NULL
							   : sqlite3_column_int64(st, col);
}

#define SAMPLES                                                                        \
	"SELECT site_id, t_ns, live_bytes, resident_bytes, swapped_bytes, cold_bytes," \
	" thrashing_bytes, major_faults FROM site_sample WHERE run_id = ?1"

int reader_each_site_sample(struct reader *r, int64_t run_id, int64_t site_id, site_sample_fn *fn,
			    void *arg, struct err *err)
{
	_cleanup_statement_ sqlite3_stmt *st = NULL;
	bool is_one = site_id != READ_NULL, has = false;
	int rc, res = read_has_table(r, "site_sample", &has, err);

	if (res < 0 || !has)
		return res;
	if (sqlite3_prepare_v2(r->db,
			       is_one ? SAMPLES " AND site_id = ?2 ORDER BY t_ns"
				      : SAMPLES " ORDER BY site_id, t_ns",
			       -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_bind_int64(st, 1, run_id) != SQLITE_OK ||
	    (is_one && sqlite3_bind_int64(st, 2, site_id) != SQLITE_OK))
		return read_error(r, "site_sample", err);
	while (res == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const struct site_sample_row row = {
			.site_id = int_at(st, 0),
			.t_ns = int_at(st, 1),
			.live_bytes = int_at(st, 2),
			.resident_bytes = int_at(st, 3),
			.swapped_bytes = int_at(st, 4),
			.cold_bytes = int_at(st, 5),
			.thrashing_bytes = int_at(st, 6),
			.major_faults = int_at(st, 7),
		};

		res = fn(arg, &row);
	}
	return res != 0 || rc == SQLITE_DONE ? res : read_error(r, "site_sample", err);
}
