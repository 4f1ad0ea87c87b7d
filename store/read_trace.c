#include "store/read_trace.h"

#include "store/read_table.h"

#include <string.h>

struct stack_row {
	char *quality;
};

struct tracer_stat_row {
	int64_t t_ns;
};

static const struct field site_fields[] = {
	INT(site_row, site_id),         INT(site_row, stack_id),
	TEXT(site_row, kind),           INT(site_row, alloc_count),
	INT(site_row, free_count),      INT(site_row, alloc_bytes),
	INT(site_row, peak_live_bytes), INT(site_row, at_peak_bytes),
	INT(site_row, end_live_bytes),  INT(site_row, end_live_count),
	INT(site_row, temporary_count), INT(site_row, failed_count),
	INT(site_row, major_faults),    INT(site_row, max_swapped_bytes),
};

static const struct field frame_fields[] = {
	TEXT(frame_row, module), INT(frame_row, offset), TEXT(frame_row, function),
	TEXT(frame_row, file),   INT(frame_row, line),   INT(frame_row, is_inline),
};

static const struct field stack_fields[] = {
	TEXT(stack_row, quality),
};

static const struct field coverage_fields[] = {
	TEXT(coverage_row, path),      TEXT(coverage_row, families), INT(coverage_row, probes),
	INT(coverage_row, is_private), TEXT(coverage_row, problem),
};

static const struct field tracer_stat_fields[] = {
	INT(tracer_stat_row, t_ns),
};

static const struct table site_table = TABLE(site, "WHERE run_id = ?1 ORDER BY site_id", site_row);
static const struct table frame_table = TABLE(
	frame, "JOIN stack_frame USING (frame_id) WHERE stack_id = ?1 ORDER BY level", frame_row);
static const struct table stack_table = TABLE(stack, "WHERE stack_id = ?1", stack_row);
static const struct table coverage_table =
	TABLE(coverage, "WHERE run_id = ?1 ORDER BY rowid", coverage_row);
static const struct table tracer_stat_table =
	TABLE(tracer_stat, "WHERE run_id = ?1 LIMIT 1", tracer_stat_row);

int reader_load_sites(struct reader *r, int64_t run_id, struct site_row **ret, size_t *ret_n,
		      struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &site_table, run_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

void site_rows_free(struct site_row *rows, size_t n)
{
	read_free_rows(&site_table, rows, n);
}

void site_row_done(struct site_row *row)
{
	free(row->kind);
	memset(row, 0, sizeof(*row));
}

int reader_load_frames(struct reader *r, int64_t stack_id, struct frame_row **ret, size_t *ret_n,
		       struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &frame_table, stack_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

void frame_rows_free(struct frame_row *rows, size_t n)
{
	read_free_rows(&frame_table, rows, n);
}

int reader_load_quality(struct reader *r, int64_t stack_id, char **ret, struct err *err)
{
	struct stack_row *row;
	void *rows = NULL;
	size_t n = 0;
	int res = read_table(r, &stack_table, stack_id, &rows, &n, err);

	if (res < 0)
		return res;
	row = rows;
	*ret = n > 0 ? TAKE_PTR(row->quality) : NULL;
	read_free_rows(&stack_table, rows, n);
	return 0;
}

int reader_load_coverage(struct reader *r, int64_t run_id, struct coverage_row **ret, size_t *ret_n,
			 struct err *err)
{
	void *rows = NULL;
	int res = read_table(r, &coverage_table, run_id, &rows, ret_n, err);

	*ret = rows;
	return res;
}

void coverage_rows_free(struct coverage_row *rows, size_t n)
{
	read_free_rows(&coverage_table, rows, n);
}

int reader_has_tracer_stat(struct reader *r, int64_t run_id, bool *ret, struct err *err)
{
	void *rows = NULL;
	size_t n = 0;
	int res = read_table(r, &tracer_stat_table, run_id, &rows, &n, err);

	if (res < 0)
		return res;
	*ret = n > 0;
	read_free_rows(&tracer_stat_table, rows, n);
	return 0;
}
