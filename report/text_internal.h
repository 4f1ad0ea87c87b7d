/*
 * What the parts of the text report share: text.c (the order of things), text_answers.c (the
 * sentences that answer a block's question), text_figures.c (figures with their definitions, as
 * text_lines.c arranges them), text_missing.c (figures that there are none of), text_tables.c
 * (one line per setting), text_sites.c (allocation stacks), text_stack.c (one of them), text_cold.c
 * (which are cold), text_faults.c (which were faulted back, and when), text_trust.c (what stands in
 * the way of trusting them), text_trace.c (what of it is the tracer's).
 */
#pragma once

#include "report/report.h"
#include "report/text_layout.h"

/* Up to so many settings stand side by side with all figures; beyond, only the baseline's are
 * printed in full and the others get a line in each table. */
#define TEXT_COLUMNS 3

/* Columns of a line: indent, label, value; then the definition. */
#define TEXT_INDENT 2
#define TEXT_LABEL 22
#define TEXT_CELL 12
#define TEXT_DEFINITION 41

/* A figure that is told in another one's line: '@' stands for its value. */
struct text_also {
	enum figure_id id;
	const char *text; /* NULL = none */
};

#define TEXT_ALSO_MAX 2

struct text_line {
	enum figure_id id;
	const char *lead; /* NULL = the label says it */
	struct text_also also[TEXT_ALSO_MAX];
	bool has_spread; /* with the least and the largest of repeats */
};

/* Every figure but those of SEC_TRUST is in exactly one line. */
extern const struct text_line text_lines[];
extern const size_t n_text_lines;

/* All figures of the sections `first` to `last`: one column for each of the groups; those that
 * are missing in the end, by reason. True when anything but one reason was printed. */
bool text_figures(struct str *out, enum figure_section first, enum figure_section last,
		  const struct run_group *const groups[], size_t n);

/* Figures without a value, collected over a block. */
struct text_missing {
	const struct run_group *const *groups; /* borrowed: the columns */
	size_t n_groups, n;
	struct text_missing_item {
		const char *why, *label; /* borrowed */
		unsigned int columns;    /* a bit for each in which it is missing */
	} items[FIG_COUNT * TEXT_COLUMNS];
};

/* Adds the figure for every column that lacks it. */
void text_missing_add(struct text_missing *m, enum figure_id id);

/* is_whole: nothing else is in the block; one reason then needs no list. */
void text_missing_print(struct str *out, const struct text_missing *m, bool is_whole);

/* The reason in the text: one for all that fails for the same cause. Borrowed or static. */
const char *text_reason(const struct run_view *v, enum figure_id id);

/* No figure of the group's memory at all. */
bool text_lacks_memory(const struct run_view *v);

/* How much, how little is enough; what it cost: false when there is nothing to say. */
bool text_answer_memory(struct str *out, const struct report *r);
bool text_answer_cost(struct str *out, const struct report *r);

/* The verdict on the settings. */
void text_answer_best(struct str *out, const struct report *r);

/* One line per setting: how little is enough, what it cost, which is best. */
void text_table_memory(struct str *out, const struct report *r);
void text_table_cost(struct str *out, const struct report *r);
void text_table_best(struct str *out, const struct report *r);

/* The sites that lead the rankings; why there are none. */
void text_sites(struct str *out, const struct report *r);

/* Sites whose stack has been printed. */
struct text_known {
	int64_t ids[256];
	size_t n;
};

/* Whether it was known; it is from now on. */
bool text_known(struct text_known *k, int64_t site_id);

/* What became of the sites' pages; where the major faults came from; what happened at tightenings
 * and stalls. Each begins with its own question. */
void text_cold(struct str *out, const struct run_view *v, struct text_known *known);
void text_faults(struct str *out, const struct run_view *v, struct text_known *known);
void text_pressure_time(struct str *out, const struct run_view *v);

/* Sentences: how much is cold; which stack most faults hit; which sites thrash. Nothing where
 * there is nothing to say. */
void text_cold_sentence(struct str *s, const struct pressure_view *p);
void text_faults_sentence(struct str *s, const struct pressure_view *p);
void text_thrashing_sentence(struct str *s, const struct pressure_site *site);

/* A frame's line; a stack's, cut after some frames. */
void text_frame(struct str *out, const struct frame_row *f);
void text_stack(struct str *out, const struct site_view *s);

/* "site 3 (mmap, stack cut)"; "table_insert (table.c:88)", the site's name without a stack. */
void text_site_name(struct str *s, const struct site_view *site);
void text_place(struct str *s, const struct frame_row *f);
void text_site_place(struct str *s, const struct pressure_site *site);

/* Names come from outside: nothing unprintable, and no more than `max` bytes of it. */
void text_cut(struct str *out, const char *text, size_t max);

/* part / all; a number that is not negative. */
const char *text_share(char buf[static CELL_MAX], int64_t part, int64_t all);
const char *text_number(char buf[static CELL_MAX], int64_t v, enum figure_unit unit);

/* "faults": the workload's, by whether they hit a site, against what the group counted. */
void text_faults_trust(struct str *out, const struct report *r);

/* A figure of the run's trace as text; "n/a" when it is not known. */
const char *text_trace_value(char buf[static CELL_MAX], const struct run_view *v,
			     enum trace_key key);

/* What is wrong with the traces, over all runs. */
struct text_trace_doubts {
	size_t n_lost, n_mismatched; /* events, stacks */
	size_t n_files;              /* with a problem */
};
struct text_trace_doubts text_trace_doubts(const struct report *r);

/* Losses and pauses of every trace; stacks, probes and cost of the one that the text tells of. */
void text_trace_trust(struct str *out, const struct report *r);

/* "samples   101 every 500.0 ms": what it is about, and a wrapped sentence. */
void text_about(struct str *out, const char *what, const char *fmt, ...) _printf_(3, 4);

#define LABEL_MAX 128

/* "limit 80 % (run 3): "; "" in a session of one run. Returns buf or "". */
const char *text_run_label(const struct report *r, const struct run_view *v,
			   char buf[static LABEL_MAX]);

/* Losses, warnings, events, the machine, and the figures on recording itself; then the host's. */
void text_trust(struct str *out, const struct report *r, const struct run_group *const cols[],
		size_t n);

/* What to do next. */
void text_next(struct str *out, const struct report *r);

const char *text_run_name(const struct run_view *v);
