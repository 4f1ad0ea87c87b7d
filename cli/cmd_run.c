/* `analyzer [run] [OPTIONS] [--] COMMAND [ARG…]` */
#include "base/clock.h"
#include "base/num.h"
#include "base/root.h"
#include "cli/cli.h"
#include "cli/opt.h"
#include "cli/progress.h"
#include "report/report.h"
#include "runner/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define PERIOD_MIN (10 * NS_PER_MS)
#define PERIOD_MAX (3600 * NS_PER_S)
#define REPEAT_MAX 1000

enum {
	OPT_LIMIT = 256,
	OPT_PARENT,
	OPT_CGNAME,
	OPT_CGPATH,
	OPT_STDIN,
	OPT_TIMEOUT,
	OPT_TRACE_POLICY,
	OPT_EVENTS_MAX,
	OPT_DRY_RUN,
	OPT_ROOT,
	OPT_PROGRESS,
	OPT_COLOR,
};

static const struct opt options[] = {
	{0, NULL, NULL, "What to run"},
	{'n', "repeat", "N", "repeat each run; the report has the median"},
	{'u', "user", "NAME", "run the workload as NAME"},
	{OPT_STDIN, "stdin", "FILE", "its standard input; opened anew for each run"},
	{OPT_TIMEOUT, "timeout", "DUR", "end it after DUR (exit status 124)"},
	{0, NULL, NULL, "Squeezing"},
	{'r', "reclaimer-config", "FILE", "squeezer configuration; none: a baseline"},
	{'r', "reclaimerconfig", "FILE", NULL},
	{OPT_LIMIT, "limit", "SIZE|PCT", "hold this limit: 512M, or 80% of the peak"},
	{OPT_DRY_RUN, "dry-run", NULL, "decide and record, never write a limit"},
	{0, NULL, NULL, "Observing"},
	{'s', "period", "DUR", "sampling period, 10ms to 1h (default 1s)"},
	{'s', "sampleperiod", "DUR", NULL},
	{'t', "trace", "WHAT", "auto (default), none, or of alloc,fault"},
	{OPT_TRACE_POLICY, "trace-policy", "WHAT", "events too fast: pause, drop, abort"},
	{OPT_EVENTS_MAX, "events-max", "SIZE", "most of events.zst (default 4G)"},
	{0, NULL, NULL, "Results"},
	{'o', "output", "DIR", "results directory; must not exist"},
	{'O', "output-force", "DIR", "results directory; may be an earlier one"},
	{'O', "outputforce", "DIR", NULL},
	{0, NULL, NULL, "The workload's cgroup"},
	{OPT_PARENT, "cgroup-parent", "PATH", "where it is made (default: nearest possible)"},
	{OPT_CGNAME, "cgname", "NAME", "its name (default: analyzer-PID-HEX)"},
	{OPT_CGPATH, "cgpath", "MOUNT", "the cgroup v2 mount (default: as mounted)"},
	{OPT_ROOT, "root", "DIR", "another system root: recorded trees, tests"},
	{0, NULL, NULL, "Talk"},
	{OPT_PROGRESS, "progress", "WHEN", "auto, line, log or none"},
	{OPT_COLOR, "color", "WHEN", "auto, always or never"},
	{'q', "quiet", NULL, "only errors"},
	{'v', "verbose", NULL, "more"},
	{'h', "help", NULL, "this text"},
};

struct run_args {
	struct session_opts session;
	struct squeezer_config cfg;
	const char *progress;
	struct amount limit;
	bool has_limit, wants_help;
};

static int help(void)
{
	(void)fputs("usage: analyzer [run] [OPTIONS] [--] COMMAND [ARG...]\n"
		    "\n"
		    "Runs COMMAND in its own cgroup and samples its memory; with a squeezer\n"
		    "configuration or a limit, squeezes it as well.\n"
		    "\n"
		    "  analyzer -r configs/squeezerdynamicconfig.json ./workload 8 60 10000\n"
		    "  analyzer --limit 80% -n 3 ./workload\n",
		    stdout);
	opt_help(options, ARRAY_SIZE(options), stdout);
	(void)fputs("\nDUR takes ms, s, m, h (a bare number is seconds); SIZE takes K, M, G, T;\n"
		    "PCT is of the baseline's peak, so that a baseline is run first.\n",
		    stdout);
	return 0;
}

static int bad_value(struct cli *cli, const char *option, const char *value, const char *takes)
{
	(void)cli_usage(cli, "run", "%s %s: %s", option, value, takes);
	return -EINVAL;
}

static int set_period(struct cli *cli, struct run_args *a, const char *text)
{
	int64_t ns;

	if (num_parse_duration(text, &ns) < 0 || ns < PERIOD_MIN || ns > PERIOD_MAX)
		return bad_value(cli, "-s", text, "takes a duration from 10ms to 1h, such as 0.5");
	a->session.period_ns = ns;
	return 0;
}

static int set_timeout(struct cli *cli, struct run_args *a, const char *text)
{
	if (num_parse_duration(text, &a->session.timeout_ns) < 0 || a->session.timeout_ns == 0)
		return bad_value(cli, "--timeout", text, "takes a duration such as 90s or 5m");
	return 0;
}

static int set_repeat(struct cli *cli, struct run_args *a, const char *text)
{
	int64_t n;

	if (num_parse_u63(text, &n) < 0 || n < 1 || n > REPEAT_MAX)
		return bad_value(cli, "-n", text, "takes a number from 1 to 1000");
	a->session.repeat = n;
	return 0;
}

static int set_limit(struct cli *cli, struct run_args *a, const char *text)
{
	struct amount *l = &a->limit;

	if (amount_parse(text, l) < 0)
		return bad_value(cli, "--limit", text, "takes a size such as 512M, or 80%");
	if (l->is_pct ? l->pct <= 0 || l->pct > 1000 : l->bytes <= 0 || l->bytes == NUM_MAX)
		return bad_value(cli, "--limit", text, "must be more than 0 and not max");
	a->has_limit = true;
	return 0;
}

static int set_trace(struct cli *cli, struct run_args *a, const char *text)
{
	static const struct {
		const char *text;
		enum trace_choice choice;
		unsigned parts;
	} values[] = {
		{"auto", TRACE_AUTO, 0},
		{"none", TRACE_NONE, 0},
		{"alloc", TRACE_ASKED, TRACE_ALLOC},
		{"fault", TRACE_ASKED, TRACE_FAULT},
		{"alloc,fault", TRACE_ASKED, TRACE_ALLOC | TRACE_FAULT},
		{"fault,alloc", TRACE_ASKED, TRACE_ALLOC | TRACE_FAULT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (strcmp(text, values[i].text) == 0) {
			a->session.trace = values[i].choice;
			a->session.trace_parts = values[i].parts;
			return 0;
		}
	}
	return bad_value(cli, "-t", text, "takes auto, none, or of alloc,fault");
}

static int set_trace_policy(struct cli *cli, struct run_args *a, const char *text)
{
	static const char *const names[] = {"pause", "drop", "abort"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			a->session.trace_policy = (enum trace_policy)i;
			return 0;
		}
	}
	return bad_value(cli, "--trace-policy", text, "takes pause, drop or abort");
}

static int set_events_max(struct cli *cli, struct run_args *a, const char *text)
{
	struct amount max;

	if (amount_parse(text, &max) < 0 || max.is_pct || max.bytes <= 0)
		return bad_value(cli, "--events-max", text, "takes a size such as 512M");
	a->session.events_max_bytes = max.bytes;
	return 0;
}

static int set_global(struct cli *cli, const char *option, char *value)
{
	char name[32], *argv[2] = {name, value};
	int at = 0, r;

	(void)snprintf(name, sizeof(name), "%s", option);
	r = cli_global_option(cli, value ? 2 : 1, argv, &at);
	return r < 0 ? r : 0;
}

static int set_output(struct run_args *a, const char *dir, bool is_forced)
{
	a->session.output_dir = dir;
	a->session.is_output_forced = is_forced;
	return 0;
}

static int set(struct cli *cli, struct run_args *a, int id, char *value)
{
	struct session_opts *s = &a->session;

	switch (id) {
	case 'n':
		return set_repeat(cli, a, value);
	case 's':
		return set_period(cli, a, value);
	case 't':
		return set_trace(cli, a, value);
	case 'o':
		return set_output(a, value, false);
	case 'O':
		return set_output(a, value, true);
	case OPT_LIMIT:
		return set_limit(cli, a, value);
	case OPT_TRACE_POLICY:
		return set_trace_policy(cli, a, value);
	case OPT_EVENTS_MAX:
		return set_events_max(cli, a, value);
	case OPT_TIMEOUT:
		return set_timeout(cli, a, value);
	case OPT_ROOT:
		return set_global(cli, "--root", value);
	case OPT_COLOR:
		return set_global(cli, "--color", value);
	case 'q':
		return set_global(cli, "-q", NULL);
	case 'v':
		return set_global(cli, "-v", NULL);
	}
	if (id == 'r')
		s->config_path = value;
	else if (id == 'u')
		s->user = value;
	else if (id == OPT_STDIN)
		s->stdin_path = value;
	else if (id == OPT_PARENT)
		s->cgroup_parent = value;
	else if (id == OPT_CGNAME)
		s->cgname = value;
	else if (id == OPT_CGPATH)
		s->cgpath = value;
	else if (id == OPT_PROGRESS)
		a->progress = value;
	else if (id == OPT_DRY_RUN)
		s->is_dry_run = true;
	else if (id == 'h')
		a->wants_help = true;
	return 0;
}

/* A word that getopt_long did not take: names it, and the verb that may have been meant. */
static int bad_option(struct cli *cli, int c, char **argv)
{
	const char *word = argv[optind - 1];

	if (c == ':')
		(void)cli_usage(cli, "run", "%s needs a value", word);
	else if (optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
		(void)cli_usage(cli, "run", "unknown option -%c", optopt);
	else
		(void)cli_usage(cli, "run", "unknown option %s", word);
	return -EINVAL;
}

static int parse(struct cli *cli, struct run_args *a, int argc, char **argv)
{
	struct opt_parser p;
	int c, r = 0;

	opt_parser_init(&p, options, ARRAY_SIZE(options));
	optind = 1;
	while (r == 0 && (c = getopt_long(argc, argv, p.shorts, p.longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			r = bad_option(cli, c, argv);
		else
			r = set(cli, a, c, optarg);
	}
	if (r < 0 || a->wants_help)
		return r;
	a->session.argv = argv + optind;
	if (!argv[optind] || !argv[optind][0]) {
		(void)cli_usage(cli, "run", "there is no COMMAND to run");
		return -EINVAL;
	}
	if (a->has_limit && a->session.config_path) {
		(void)cli_usage(cli, "run", "--limit and -r exclude each other");
		return -EINVAL;
	}
	return 0;
}

static int configure(struct cli *cli, struct run_args *a)
{
	struct err err;

	if (a->session.config_path) {
		if (config_load(&a->cfg, a->session.config_path, &err) < 0) {
			(void)cli_fail(cli, STATUS_USAGE, &err);
			return -EINVAL;
		}
		if (a->cfg.notes_reclaimer)
			log_msg(cli->log, LOG_NOTE,
				"%s: reclaimer and reclaimer_file are not needed: ignored",
				a->session.config_path);
	} else if (a->has_limit) {
		config_init_default(&a->cfg, MODE_STATIC);
		a->cfg.init_limit = a->limit;
	} else {
		return 0;
	}
	a->session.cfg = &a->cfg;
	return 0;
}

/* A report that fails after a good run is a warning: the run's status stands. */
static void report(struct cli *cli, const char *dir)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct err err;

	if (report_build(dir, &text, &json, &err) < 0 || report_save(dir, &text, &json, &err) < 0)
		log_err(cli->log, LOG_WARN, &err);
	if (text.data && cli->log->level >= LOG_NOTE)
		(void)!write(STDERR_FILENO, text.data, text.len);
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
	struct run_args a = {
		.session = {.period_ns = NS_PER_S, .repeat = 1, .log = cli->log},
		.progress = "auto",
	};
	struct progress_view view;
	struct session_result result;
	struct root root;
	struct err err;
	int r;

	if (parse(cli, &a, argc, argv) < 0)
		return STATUS_USAGE;
	if (a.wants_help)
		return help();
	if (progress_init(&view, cli->log, a.progress) < 0)
		return cli_usage(cli, "run", "--progress %s: takes auto, line, log or none",
				 a.progress);
	if (configure(cli, &a) < 0)
		return STATUS_USAGE;
	if (root_open(&root, cli->root_dir, &err) < 0)
		return cli_fail(cli, STATUS_USAGE, &err);
	a.session.root = &root;
	a.session.on_progress = progress_show;
	a.session.ctx = &view;
	r = session_run(&a.session, &result, &err);
	/* The status is known now: nobody reading our stderr any more must not change it. */
	(void)signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		(void)cli_fail(cli, STATUS_FAILED, &err);
	if (result.dir[0] && r == 0)
		report(cli, result.dir);
	root_close(&root);
	return result.exit_status;
}
