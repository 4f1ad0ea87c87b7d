/*
 * A results directory as a report: runs with their figures, repeats of a setting as groups, the
 * findings, and everything that stands in the way of trusting them. Text and JSON are two views
 * of this one object; nothing in it comes from anywhere but the directory.
 *
 * Life: report_load -> report_text, report_json -> report_done. report_build does all of it,
 * report_save keeps the result beside the data.
 * Errors: as store/read.h; a directory without a single run is -ENOENT.
 */
#pragma once

#include "base/str.h"
#include "report/run_view.h"

#define SUMMARY_SCHEMA "analyzer-summary/1"

/* The repeats of one setting: runs with the same name, command, compressor and allocator. */
struct run_group {
	const struct run_view *first;    /* borrowed from report.runs */
	const struct run_view **members; /* owned array of borrowed runs */
	size_t n;
	/* Over the runs that have a value; `why` as the first run has it when none has. */
	struct figure median[FIG_COUNT], min[FIG_COUNT], max[FIG_COUNT];
	bool has_ended_well; /* every run exited as the baseline did, nothing was killed */
};

struct report_warning {
	char *text;
	const struct run_view *run; /* the first that has it */
	size_t n_runs;
	bool is_feature; /* something that this machine has not */
};

struct report {
	char *name; /* of the directory, without the path */
	char *path; /* of the directory as it was given */
	struct run_view *runs;
	size_t n_runs;
	struct run_group *groups; /* in the order in which they were first run */
	size_t n_groups;
	const struct run_group *baseline;   /* NULL = there is none */
	const struct run_view *floor_run;   /* with the least floor; NULL = none was found */
	const struct run_group *best_limit; /* least limit held that costs no more than this ... */
	struct report_warning *warnings;
	size_t n_warnings;
};

/* ... in run time over the baseline. */
#define BEST_LIMIT_SLOWDOWN 0.05
/* Below so many repeats a difference is shown, but not judged. */
#define VERDICT_REPEATS 5

int report_load(struct report *r, const char *dir, struct err *err);
void report_done(struct report *r);

/* Both append; out of memory shows as out->failed. Lines of the text are at most 79 wide. */
void report_text(const struct report *r, struct str *out);
void report_json(const struct report *r, struct str *out);

/* The text and the JSON of a results directory, whatever state it is in. */
int report_build(const char *dir, struct str *text, struct str *json, struct err *err);

/* Writes them into the directory as report.txt and summary.json, owned as the directory is. */
int report_save(const char *dir, const struct str *text, const struct str *json, struct err *err);

/* The traced run that is told of: the first with sites, else the first at all; NULL = no run was
 * traced. */
const struct run_view *report_traced_run(const struct report *r);

/* A limit was asked for, but nothing of it was ever in force in one of the runs. */
bool group_lacks_limit(const struct run_group *g);

/* v / base - 1 of a figure; NAN when either is missing, base is 0, or the commands differ. */
double figure_change(const struct run_group *g, const struct run_group *base, enum figure_id id);

/* Fills r->warnings; internal to report_load, in its own file for its size. */
int report_collect_warnings(struct report *r);
