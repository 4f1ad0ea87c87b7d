/* `analyzer report [DIR]`: a results directory, or one site of it, as text or JSON on stdout. */
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "report/report.h"
#include "report/site_life.h"

#include <errno.h>
#include <string.h>

enum { OPT_FORMAT = 256, OPT_SITE, OPT_RUN };

static const struct opt options[] = {
	{0, NULL, NULL, "Options"},
	{OPT_FORMAT, "format", "FORMAT", "text (default) or json"},
	{OPT_SITE, "site", "ID", "one allocation site's life instead"},
	{OPT_RUN, "run", "N", "of this run; default the first traced"},
	{'h', "help", NULL, "this text"},
};

static int help(void)
{
	(void)fputs("usage: analyzer report [DIR] [--site ID [--run N]] [--format text|json]\n"
		    "\n"
		    "Reports the results directory DIR; without DIR profile.latest or the\n"
		    "newest profile.* in the current directory. It may still be being recorded.\n",
		    stdout);
	opt_help(options, ARRAY_SIZE(options), stdout);
	return 0;
}

struct request {
	const char *dir;
	bool is_json;
	int64_t site, run; /* READ_NULL = not given */
};

static int build_site(const struct request *q, struct str *out, struct err *err)
{
	_cleanup_(site_life_done) struct site_life life = {0};
	int r = site_life_load(&life, q->dir, q->run, q->site, err);

	if (r < 0)
		return r;
	if (q->is_json)
		site_life_json(&life, out);
	else
		site_life_text(&life, out);
	return 0;
}

static int build_report(const struct request *q, struct str *out, struct err *err)
{
	_cleanup_(report_done) struct report report = {0};
	int r = report_load(&report, q->dir, err);

	if (r < 0)
		return r;
	if (q->is_json)
		report_json(&report, out);
	else
		report_text(&report, out);
	return 0;
}

static int print_report(struct cli *cli, const struct request *q)
{
	_cleanup_str_ struct str out = {0};
	struct err err;
	int r = q->site == READ_NULL ? build_report(q, &out, &err) : build_site(q, &out, &err);

	if (r < 0)
		return cli_fail(cli, cli_results_status(&err), &err);
	if (out.failed) {
		(void)err_set(&err, -ENOMEM, "no memory for the report of '%s'", q->dir);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	return cli_print(cli, out.data);
}

/* 0, or the status after the complaint. */
static int take_option(struct cli *cli, int c, struct request *q)
{
	if (c == OPT_FORMAT && strcmp(optarg, "text") != 0 && strcmp(optarg, "json") != 0)
		return cli_usage(cli, "report", "--format %.100s: takes text or json", optarg);
	if (c == OPT_FORMAT)
		q->is_json = strcmp(optarg, "json") == 0;
	else if (num_parse_u63(optarg, c == OPT_SITE ? &q->site : &q->run) < 0)
		return cli_usage(cli, "report", "--%s %.100s: takes a number",
				 c == OPT_SITE ? "site" : "run", optarg);
	return 0;
}

/* Options may stand before and after DIR: 0 = go on, 1 = help was printed, negative = told. */
static int parse(struct cli *cli, int argc, char **argv, struct request *q)
{
	struct opt_parser parser;
	int status = 0;

	opt_parser_init(&parser, options, ARRAY_SIZE(options));
	for (optind = 0; status == 0;) {
		int c = getopt_long(argc, argv, parser.shorts, parser.longs, NULL);

		if (c == 'h')
			return help(), 1;
		if (c == OPT_FORMAT || c == OPT_SITE || c == OPT_RUN)
			status = take_option(cli, c, q);
		else if (c == ':')
			status = cli_usage(cli, "report", "%.200s needs a value", argv[optind - 1]);
		else if (c != -1)
			status =
				cli_usage(cli, "report", "unknown option %.200s", argv[optind - 1]);
		else if (optind >= argc)
			break;
		else if (q->dir)
			status = cli_usage(cli, "report", "report: one DIR, not also \"%.200s\"",
					   argv[optind]);
		else
			q->dir = argv[optind++];
	}
	if (status == 0 && q->run != READ_NULL && q->site == READ_NULL)
		status = cli_usage(cli, "report", "--run goes with --site");
	return -status;
}

int cmd_report(struct cli *cli, int argc, char **argv)
{
	struct request q = {.site = READ_NULL, .run = READ_NULL};
	char newest[NAME_MAX + 1];
	struct err err;
	int r = parse(cli, argc, argv, &q);

	if (r != 0)
		return r < 0 ? -r : 0;
	if (!q.dir) {
		if (cli_find_results(cli, "report", newest, &err) < 0)
			return cli_fail(cli, cli_results_status(&err), &err);
		q.dir = newest;
	}
	return print_report(cli, &q);
}
