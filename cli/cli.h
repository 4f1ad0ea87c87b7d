/*
 * The command line: one file per verb, each with one function. Only this layer prints and exits.
 *
 * A verb gets its own argv (argv[0] is the verb), writes its result to stdout and returns the
 * exit status.
 */
#pragma once

#include "base/log.h"
#include "base/str.h"

#include <limits.h>

/* Exit statuses of analyzer itself; a run's other statuses are the workload's own. */
enum {
	STATUS_NEGATIVE = 1, /* check, config check: ran well, the verdict is no */
	STATUS_USAGE = 2,    /* wrong command line or configuration, nothing run */
	STATUS_FAILED = 125, /* analyzer failed */
};

struct cli {
	struct log *log;
	const char *root_dir; /* NULL: the real system */
	const char *color;    /* auto, always, never */
};

int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_report(struct cli *cli, int argc, char **argv);
int cmd_export(struct cli *cli, int argc, char **argv);
int cmd_check(struct cli *cli, int argc, char **argv);
int cmd_config(struct cli *cli, int argc, char **argv);
int cmd_list(struct cli *cli, int argc, char **argv);
int cmd_recover(struct cli *cli, int argc, char **argv);
int cmd_zswap(struct cli *cli, int argc, char **argv);

/* Part of `list`. */
int list_runs(struct cli *cli, int argc, char **argv);

/* The results directory to read when none was named: profile.latest, else the newest here; says
 * which ("reporting …"). -ENOENT. */
int cli_find_results(struct cli *cli, const char *verb, char ret[static NAME_MAX + 1],
		     struct err *err);

/* The status for an error of reading results: a directory that is none of ours is a mistake in the
 * command line. */
int cli_results_status(const struct err *err);

/* Prints the error and its hint to stderr; returns status. */
int cli_fail(struct cli *cli, int status, const struct err *err);

/* A usage error: the sentence, then where help is. Returns STATUS_USAGE. */
int cli_usage(struct cli *cli, const char *verb, const char *fmt, ...) _printf_(3, 4);

/* Whether to colour what goes to fd: --color, NO_COLOR, CLICOLOR_FORCE, a terminal, TERM. */
bool cli_has_color(const struct cli *cli, int fd);

/* Consumes -q, -v, --color, --root at argv[*at]: 1 = consumed, 0 = another word, negative =
 * wrong value, told. */
int cli_global_option(struct cli *cli, int argc, char **argv, int *at);

/* Prints to stdout and flushes; a status that says whether all of it arrived. */
int cli_print(struct cli *cli, const char *text);
int cli_print_str(struct cli *cli, const struct str *text);

/* The verb nearest to a mistyped word, or NULL. */
const char *cli_nearest_verb(const char *word);
