/* `analyzer report [DIR]`: a results directory as text or JSON on stdout. */
#include "base/str.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "report/report.h"

#include <errno.h>
#include <string.h>

enum { OPT_FORMAT = 256 };

static const struct opt options[] = {
	{0, NULL, NULL, "Options"},
	{OPT_FORMAT, "format", "FORMAT", "text (default) or json"},
	{'h', "help", NULL, "this text"},
};

static int help(void)
{
	(void)fputs("usage: analyzer report [DIR] [--format text|json]\n"
		    "\n"
		    "Reports the results directory DIR; without DIR profile.latest or the\n"
		    "newest profile.* in the current directory. It may still be being recorded.\n",
		    stdout);
	opt_help(options, ARRAY_SIZE(options), stdout);
	return 0;
}

static int print_report(struct cli *cli, const char *dir, bool is_json)
{
	_cleanup_(report_done) struct report r = {0};
	_cleanup_str_ struct str out = {0};
	struct err err;

	if (report_load(&r, dir, &err) < 0)
		return cli_fail(cli, cli_results_status(&err), &err);
	if (is_json)
		report_json(&r, &out);
	else
		report_text(&r, &out);
	if (out.failed) {
		(void)err_set(&err, -ENOMEM, "no memory for the report of '%s'", dir);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	return cli_print(cli, out.data);
}

/* Options may stand before and after DIR: 0 = go on, 1 = help was printed, negative = told. */
static int parse(struct cli *cli, int argc, char **argv, const char **ret_dir, bool *ret_json)
{
	struct opt_parser parser;

	opt_parser_init(&parser, options, ARRAY_SIZE(options));
	for (optind = 0;;) {
		int c = getopt_long(argc, argv, parser.shorts, parser.longs, NULL);

		if (c == 'h')
			return help(), 1;
		if (c == OPT_FORMAT && strcmp(optarg, "text") != 0 && strcmp(optarg, "json") != 0)
			return -cli_usage(cli, "report", "--format %.100s: takes text or json",
					  optarg);
		if (c == OPT_FORMAT)
			*ret_json = strcmp(optarg, "json") == 0;
		else if (c == ':')
			return -cli_usage(cli, "report", "%.200s needs a value", argv[optind - 1]);
		else if (c != -1)
			return -cli_usage(cli, "report", "unknown option %.200s", argv[optind - 1]);
		else if (optind >= argc)
			return 0;
		else if (*ret_dir)
			return -cli_usage(cli, "report", "report: one DIR, not also \"%.200s\"",
					  argv[optind]);
		else
			*ret_dir = argv[optind++];
	}
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
	char newest[NAME_MAX + 1];
	const char *dir = NULL;
	bool is_json = false;
	struct err err;
	int r = parse(cli, argc, argv, &dir, &is_json);

	if (r != 0)
		return r < 0 ? -r : 0;
	if (!dir) {
		if (cli_find_results(cli, "report", newest, &err) < 0)
			return cli_fail(cli, cli_results_status(&err), &err);
		dir = newest;
	}
	return print_report(cli, dir, is_json);
}
