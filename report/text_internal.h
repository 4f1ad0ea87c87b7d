/*
 * What the parts of the text report share: text.c (the order of things and the sentences),
 * text_figures.c (figures with their definitions), text_tables.c (one line per setting),
 * text_trust.c (what stands in the way of trusting them).
 */
#pragma once

#include "report/report.h"

/* Up to so many settings stand side by side with all figures; beyond, only the baseline's are
 * printed in full and the others get a line in each table. */
#define TEXT_COLUMNS 3

/* All figures of a section: one column for each of the groups. */
void text_figures(struct str *out, enum figure_section section,
		  const struct run_group *const groups[], size_t n);

/* One line per setting: how little is enough, what it cost, which is best. */
void text_table_memory(struct str *out, const struct report *r);
void text_table_cost(struct str *out, const struct report *r);
void text_table_best(struct str *out, const struct report *r);

/* Losses, warnings, events, the machine, and the figures on recording itself; then the host's. */
void text_trust(struct str *out, const struct report *r, const struct run_group *const cols[],
		size_t n);

const char *text_run_name(const struct run_view *v);
