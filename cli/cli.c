#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int cli_fail(struct cli *cli, int status, const struct err *err)
{
	log_err(cli->log, LOG_ERROR, err);
	return status;
}

int cli_usage(struct cli *cli, const char *verb, const char *fmt, ...)
{
	struct err err;
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)err_set(&err, -EINVAL, "%s", text);
	(void)err_hint(&err, "try: analyzer %s --help", verb);
	return cli_fail(cli, STATUS_USAGE, &err);
}

bool cli_has_color(const struct cli *cli, int fd)
{
	const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
	const char *term = getenv("TERM");

	if (cli->color && strcmp(cli->color, "auto") != 0)
		return strcmp(cli->color, "always") == 0;
	if (no && *no)
		return false;
	if (force && *force)
		return true;
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static int set_color(struct cli *cli, const char *when)
{
	static const char *const words[] = {"auto", "always", "never"};

	for (size_t i = 0; when && i < ARRAY_SIZE(words); i++) {
		if (strcmp(when, words[i]) == 0) {
			cli->color = words[i];
			return 1;
		}
	}
	(void)cli_usage(cli, "", "--color %s: takes auto, always or never", when ? when : "");
	return -EINVAL;
}

static int set_root(struct cli *cli, const char *dir)
{
	if (!dir || !*dir) {
		(void)cli_usage(cli, "", "--root needs a directory");
		return -EINVAL;
	}
	cli->root_dir = dir;
	return 1;
}

/* "--name VALUE" or "--name=VALUE": the value, NULL if there is none; *at moves over it. */
static bool long_value(int argc, char **argv, int *at, const char *name, const char **ret)
{
	size_t n = strlen(name);
	const char *word = argv[*at];

	if (strncmp(word, name, n) != 0 || (word[n] != '=' && word[n] != '\0'))
		return false;
	if (word[n] == '=')
		*ret = word + n + 1;
	else
		*ret = *at + 1 < argc ? argv[++*at] : NULL;
	return true;
}

int cli_global_option(struct cli *cli, int argc, char **argv, int *at)
{
	const char *word = argv[*at], *value;
	int r = 1;

	if (strcmp(word, "-q") == 0 || strcmp(word, "--quiet") == 0)
		cli->log->level = LOG_ERROR;
	else if (strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0)
		cli->log->level = LOG_INFO;
	else if (strcmp(word, "-vv") == 0)
		cli->log->level = LOG_DEBUG;
	else if (long_value(argc, argv, at, "--color", &value))
		r = set_color(cli, value);
	else if (long_value(argc, argv, at, "--root", &value))
		r = set_root(cli, value);
	else
		return 0;
	++*at;
	return r;
}

int cli_print_str(struct cli *cli, const struct str *text)
{
	struct err err;

	if (!text->failed)
		return cli_print(cli, text->data ? text->data : "");
	(void)err_errno(&err, -ENOMEM, "cannot build the output");
	return cli_fail(cli, STATUS_FAILED, &err);
}

int cli_print(struct cli *cli, const char *text)
{
	struct err err;

	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return 0;
	(void)err_errno(&err, -errno, "cannot write the output");
	return cli_fail(cli, STATUS_FAILED, &err);
}
