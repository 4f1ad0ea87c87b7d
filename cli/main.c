/* The table of verbs, and which one a command line means. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <sqlite3.h>
#include <string.h>
#include <zstd.h>

#include <bpf/libbpf.h>

struct verb {
	const char *name;
	int (*run)(struct cli *cli, int argc, char **argv);
};

static const struct verb verbs[] = {
	{"run", cmd_run},     {"report", cmd_report},   {"export", cmd_export},
	{"check", cmd_check}, {"config", cmd_config},   {"list", cmd_list},
	{"zswap", cmd_zswap}, {"recover", cmd_recover},
};

static const char help[] =
	"usage: analyzer [run] [OPTIONS] [--] COMMAND [ARG...]\n"
	"       analyzer VERB [OPTIONS] ...\n"
	"\n"
	"Runs COMMAND in its own cgroup, samples its memory, squeezes it, traces its\n"
	"allocations, and reports how little memory is enough, what that costs, and\n"
	"which code allocates it.\n"
	"\n"
	"  analyzer ./workload                                     a baseline\n"
	"  analyzer -r configs/squeezerdynamicconfig.json ./workload\n"
	"  analyzer --limit 80% ./workload                         at 80 % of its peak\n"
	"  analyzer -t none ./workload                             not traced\n"
	"\n"
	"Verbs (a verb counts only as the first word; default: run)\n"
	"  run       run a command (analyzer run --help: all options)\n"
	"  report    [DIR] [--site ID] [--format F]  report a results directory\n"
	"  export    ndjson --events [DIR] [-o FILE] the recorded events, for programs\n"
	"  check     [--json] [--feature NAME]       what this machine can do, why not\n"
	"  config    check|show|explain [FILE]       squeezer configurations\n"
	"  list      metrics|laws|runs               what there is\n"
	"  zswap     status|list|set NAME|restore    the compressor of compressed swap\n"
	"  recover   [--json]                        put back what a killed one left\n"
	"\n"
	"Before the verb\n"
	"  -q, -v                   only errors; more\n"
	"      --color WHEN         auto, always, never\n"
	"      --root DIR           another system root: recorded trees, tests\n"
	"  -h, --help\n"
	"  -V, --version\n"
	"\n"
	"Exit status: the workload's own, 128+S if it died of signal S; 2 wrong usage;\n"
	"124 --timeout; 125 analyzer failed; 126, 127 COMMAND not executable, not found;\n"
	"1 a negative check.\n";

static int version(struct cli *cli)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "analyzer %s\nsqlite %s\njson-c %s\nzstd %s\nlibbpf %s\n", ANALYZER_VERSION,
		       sqlite3_libversion(), json_c_version(), ZSTD_versionString(),
		       libbpf_version_string());
	return cli_print(cli, text);
}

static const struct verb *find_verb(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(word, verbs[i].name) == 0)
			return &verbs[i];
	}
	return NULL;
}

static bool is_word(const char *arg, const char *s, const char *l)
{
	return strcmp(arg, s) == 0 || strcmp(arg, l) == 0;
}

/*
 * Descriptors 0 to 2 that we were started without: taken here in a mode in which their use fails
 * as it would have, so that no file of ours gets the number and with it our messages. Closed again
 * by exec: the workload finds them as we did.
 */
static void reserve_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

int main(int argc, char **argv)
{
	struct log log;
	struct cli cli = {.log = &log};
	const struct verb *verb;
	int at = 1, r;

	reserve_standard_fds();
	log_init(&log, LOG_NOTE);
	while (at < argc) {
		r = cli_global_option(&cli, argc, argv, &at);
		if (r < 0)
			return STATUS_USAGE;
		if (r == 0)
			break;
	}
	if (at == argc) {
		(void)!write(STDERR_FILENO, help, strlen(help));
		return STATUS_USAGE;
	}
	if (is_word(argv[at], "-h", "--help"))
		return cli_print(&cli, help);
	if (is_word(argv[at], "-V", "--version"))
		return version(&cli);
	verb = find_verb(argv[at]);
	if (verb)
		r = verb->run(&cli, argc - at, argv + at);
	else
		r = cmd_run(&cli, argc - at + 1, argv + at - 1);
	log_done(&log);
	/* A full disk or a closed pipe behind stdout must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout))
		return r ? r : STATUS_FAILED;
	return r;
}
