/*
 * Option tables: one row per option drives getopt_long and the help text, so that they cannot
 * differ.
 */
#pragma once

#include "base/base.h"

#include <getopt.h>

struct opt {
	int id;           /* the short option's letter, or a number from 256 up */
	const char *name; /* long option; NULL starts a group: help is its title */
	const char *arg;  /* metavariable; NULL = takes none */
	const char *help; /* NULL: another spelling of the row above, not in the help */
};

#define OPT_MAX 64

/* What getopt_long takes, built from the table. */
struct opt_parser {
	struct option longs[OPT_MAX];
	char shorts[OPT_MAX * 2 + 2];
};

/* Parsing stops at the first other word. */
void opt_parser_init(struct opt_parser *p, const struct opt *table, size_t n);

/* The table as aligned lines of at most 79 columns. */
void opt_help(const struct opt *table, size_t n, FILE *out);
