/* `analyzer config check|show|explain FILE`: the squeezer's configuration, without a run. */
#include "base/fmt.h"
#include "base/str.h"
#include "cli/cli.h"
#include "squeezer/config.h"

#include <errno.h>
#include <string.h>

static const char help[] =
	"usage: analyzer config check FILE      is it valid? (exit status 0 or 1)\n"
	"       analyzer config show FILE       every value that it results in, as JSON\n"
	"       analyzer config explain [FILE]  each key: value, unit, range, meaning\n";

static int check(struct cli *cli, const char *path)
{
	_cleanup_str_ struct str text = {0};
	struct squeezer_config cfg;
	char buf[FMT_MAX];
	struct err err;

	if (config_load(&cfg, path, &err) < 0)
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	str_addf(&text, "%s: ok, mode %s", path, squeeze_mode_name(cfg.mode));
	if (cfg.mode == MODE_DYNAMIC)
		str_addf(&text, ", law %s", cfg.law);
	else if (cfg.mode == MODE_STATICSWEEP)
		str_addf(&text, ", %zu limit%s", cfg.n_range, cfg.n_range == 1 ? "" : "s");
	else if (cfg.init_limit.is_pct)
		str_addf(&text, ", limit %.15g %% of the baseline's peak", cfg.init_limit.pct);
	else
		str_addf(&text, ", limit %s", fmt_bytes(buf, cfg.init_limit.bytes));
	str_add(&text, "\n");
	return cli_print_str(cli, &text);
}

static int show(struct cli *cli, const char *path, bool is_explain)
{
	_cleanup_str_ struct str text = {0};
	struct squeezer_config cfg;
	struct err err;

	if (path && config_load(&cfg, path, &err) < 0)
		return cli_fail(cli, STATUS_USAGE, &err);
	if (is_explain)
		config_explain(path ? &cfg : NULL, &text);
	else
		config_to_json(&cfg, &text);
	return cli_print_str(cli, &text);
}

int cmd_config(struct cli *cli, int argc, char **argv)
{
	static const char *const words[] = {"check", "show", "explain"};
	const char *word = argc > 1 ? argv[1] : NULL, *path = argc > 2 ? argv[2] : NULL;
	size_t i = 0;

	if (word && (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0))
		return cli_print(cli, help);
	if (!word)
		return cli_usage(cli, "config", "config: check, show or explain is missing");
	while (i < ARRAY_SIZE(words) && strcmp(words[i], word) != 0)
		i++;
	if (i == ARRAY_SIZE(words))
		return cli_usage(cli, "config",
				 "config: \"%.200s\" is none of check, show, explain", word);
	if (!path && i != 2)
		return cli_usage(cli, "config", "config %s: the FILE is missing", word);
	if (argc > 3)
		return cli_usage(cli, "config",
				 "config %s: one FILE at a time, not also \"%.200s\"", word,
				 argv[3]);
	return i == 0 ? check(cli, path) : show(cli, path, i == 2);
}
