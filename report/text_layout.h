/*
 * Laying out plain text in 79 ASCII columns: wrapped sentences, figures with a unit, aligned
 * cells. Appends to a str; nothing can fail but for lack of memory (out->failed).
 */
#pragma once

#include "base/str.h"
#include "report/run_view.h"

#define TEXT_WIDTH 79
#define CELL_MAX 32

/* Appends text from column `at` on, later lines indented by `indent`; a newline at the end. */
void text_wrap(struct str *out, size_t at, size_t indent, const char *text);

/* A paragraph of formatted text, indented. */
void text_para(struct str *out, size_t indent, const char *fmt, ...) _printf_(3, 4);

/* The value with its unit ("640.0 MiB", "12.3 %"), or "n/a". */
const char *text_value(char buf[static CELL_MAX], const struct figure *f, enum figure_unit unit);

/* Seconds as a person reads them: "12.3 ms", "59.9 s", "1m 12s", "2h 05m". */
const char *text_duration(char buf[static CELL_MAX], double seconds);

/* "+3.1 %", "-0.0 %" as "0.0 %"; "" for NAN. */
const char *text_change(char buf[static CELL_MAX], double change);
