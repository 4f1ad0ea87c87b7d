/*
 * One site's life: what was allocated, where its pages were, when it faulted and in which code,
 * and which decisions took its residency.
 *
 * Life: site_life_load -> site_life_text, site_life_json -> site_life_done.
 * Errors: as store/read.h; -ENOENT also when there is no such run or site: the message says which
 * there are.
 */
#pragma once

#include "base/str.h"
#include "report/pressure.h"

#define SITE_SCHEMA "analyzer-site/1"

struct site_life {
	int64_t run_id;
	char *run_name; /* NULL = none */
	struct site_view site;
	struct frame_row *place;
	size_t n_place;
	bool has_scans;
	struct site_sample_row *samples;
	size_t n_samples, size_samples;
	struct histogram_row *histogram;
	size_t n_histogram;
	struct fault_second_row *seconds;
	size_t n_seconds;
	struct fault_place_row *places;
	size_t n_places;
	struct decision_effect *decisions; /* of the site alone; those that moved something */
	size_t n_decisions;
};

/* run_id READ_NULL: the run that the report tells of. */
int site_life_load(struct site_life *l, const char *dir, int64_t run_id, int64_t site_id,
		   struct err *err);
void site_life_done(struct site_life *l);

void site_life_text(const struct site_life *l, struct str *out);
void site_life_json(const struct site_life *l, struct str *out);
