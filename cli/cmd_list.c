/* `analyzer list metrics|laws|runs`: what there is, as tables on stdout. */
#include "base/str.h"
#include "cli/cli.h"
#include "model/sample.h"
#include "squeezer/law.h"

#include <errno.h>
#include <string.h>

/* One row per column of table `sample`; columns are apart by two blanks or more. */
static int list_metrics(struct cli *cli)
{
	_cleanup_str_ struct str text = {0};
	int width = 0;

	for (size_t i = 0; i < METRIC_COUNT; i++)
		width = MAX(width, (int)strlen(metrics[i].name));
	str_addf(&text, "%-*s  %-7s  %-7s  %-5s  %s\n", width, "NAME", "KIND", "UNIT", "SCOPE",
		 "MEANING");
	for (size_t i = 0; i < METRIC_COUNT; i++)
		str_addf(&text, "%-*s  %-7s  %-7s  %-5s  %s\n", width, metrics[i].name,
			 metric_kind_name(metrics[i].kind), metrics[i].unit,
			 metric_scope_name(metrics[i].scope), metrics[i].help);
	return cli_print_str(cli, &text);
}

static int list_laws(struct cli *cli)
{
	_cleanup_str_ struct str text = {0};

	str_addf(&text, "%-8s  %s\n", "NAME", "MEANING");
	for (size_t i = 0; laws[i]; i++)
		str_addf(&text, "%-8s  %s\n", laws[i]->name, laws[i]->help);
	return cli_print_str(cli, &text);
}

static const char help[] =
	"usage: analyzer list metrics     columns of table sample: kind, unit, meaning\n"
	"       analyzer list laws        laws of mode dynamic\n"
	"       analyzer list runs [DIR]  results directories in DIR (default: here)\n";

int cmd_list(struct cli *cli, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (word && (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0))
		return cli_print(cli, help);
	if (!word)
		return cli_usage(cli, "list", "list: metrics, laws or runs is missing");
	if (strcmp(word, "runs") == 0)
		return list_runs(cli, argc - 1, argv + 1);
	if (strcmp(word, "metrics") != 0 && strcmp(word, "laws") != 0)
		return cli_usage(cli, "list", "list: \"%.200s\" is none of metrics, laws, runs",
				 word);
	if (argc > 2)
		return cli_usage(cli, "list", "list %s takes nothing more, not \"%.200s\"", word,
				 argv[2]);
	return strcmp(word, "laws") == 0 ? list_laws(cli) : list_metrics(cli);
}
