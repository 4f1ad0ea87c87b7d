/*
 * What a traced run left in profile.db: sites, stacks, coverage. A part of store/read.h, with its
 * rules: rows are the caller's, a table that the file does not have has no rows.
 */
#pragma once

#include "store/read.h"

/* A row of `site`; `kind` as in site_kind_name(). */
struct site_row {
	int64_t site_id, stack_id;
	char *kind;
	int64_t alloc_count, free_count, alloc_bytes;
	int64_t peak_live_bytes, at_peak_bytes;
	int64_t end_live_bytes, end_live_count;
	int64_t temporary_count, failed_count;
	int64_t major_faults, max_swapped_bytes;
};

/* By site_id. */
int reader_load_sites(struct reader *r, int64_t run_id, struct site_row **ret, size_t *ret_n,
		      struct err *err);
void site_rows_free(struct site_row *rows, size_t n);
void site_row_done(struct site_row *row);

/* A row of `frame`. */
struct frame_row {
	char *module; /* NULL: code of no file; `offset` is then the address */
	int64_t offset;
	char *function, *file;
	int64_t line, is_inline;
};

/* A stack's frames, the allocator's caller first. */
int reader_load_frames(struct reader *r, int64_t stack_id, struct frame_row **ret, size_t *ret_n,
		       struct err *err);
void frame_rows_free(struct frame_row *rows, size_t n);

/* *ret: owned, as in stack_quality_name(); NULL when there is no such stack. */
int reader_load_quality(struct reader *r, int64_t stack_id, char **ret, struct err *err);

/* A row of `coverage`. */
struct coverage_row {
	char *path, *families;
	int64_t probes, is_private;
	char *problem;
};

int reader_load_coverage(struct reader *r, int64_t run_id, struct coverage_row **ret, size_t *ret_n,
			 struct err *err);
void coverage_rows_free(struct coverage_row *rows, size_t n);

/* Whether the tracer has told anything of itself: true from a run's first second on. */
int reader_has_tracer_stat(struct reader *r, int64_t run_id, bool *ret, struct err *err);
