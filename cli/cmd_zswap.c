/* `analyzer zswap status | list | set NAME | restore`: the one setting that stays, on request. */
#include "cgroup/zswap.h"
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fmt.h"
#include "base/num.h"
#include "base/str.h"

static const char help[] =
	"usage: analyzer zswap status | list | set NAME | restore\n"
	"\n"
	"  analyzer zswap list              compressors that zswap could use\n"
	"  analyzer zswap set zstd          choose one; it stays until `restore`\n"
	"\n"
	"  status     the settings and counters, read back from the kernel\n"
	"  list       compressors in the kernel, and others that a module may bring\n"
	"  set NAME   write the compressor and read it back\n"
	"  restore    put back the compressor that was there before the first `set`\n"
	"\n"
	"Exit status: 0; 1 not possible here; 2 wrong usage.\n";

/* Where the value before the first `set` is kept: gone after a reboot, as the setting is. */
#define STATE_DIR "/run/analyzer"
#define STATE_FILE "zswap"

/* Opens the directory, making it if need be. Returns a descriptor or a negative errno. */
static int open_state_dir(const struct root *root)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *path = &STATE_DIR[1];
	char user[512];
	int fd;

	if (mkdirat(root->fd, path, 0755) < 0 && errno == ENOENT && root_is_fake(root))
		(void)(mkdirat(root->fd, "run", 0755) + mkdirat(root->fd, path, 0755));
	fd = root_openat(root, STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd >= 0 && (root_is_fake(root) || faccessat(fd, ".", W_OK, AT_EACCESS) == 0))
		return fd;
	close_fd(&fd);
	if (!runtime || *runtime != '/' || root_is_fake(root))
		return -EACCES;
	(void)snprintf(user, sizeof(user), "%s/analyzer", runtime);
	if (mkdir(user, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(user, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Keeps the present compressor unless one is kept already. 1: now kept, 0: was. */
static int keep_present(const struct root *root, int dirfd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	char now[ZSWAP_VALUE_MAX];
	ssize_t n = zswap_get(root, "compressor", now);

	if (n < 0)
		return err_errno(err, n, "cannot read " ZSWAP_PARAMETERS "/compressor");
	fd = openat(dirfd, STATE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 || write(fd, now, n) != n) {
		int code = errno ? -errno : -EIO;

		(void)unlinkat(dirfd, STATE_FILE, 0); /* not made, or useless */
		return err_errno(err, code, "cannot keep the present compressor in " STATE_DIR);
	}
	return 1;
}

static void add_parameters(const struct root *root, struct str *out)
{
	int fd = root_openat(root, ZSWAP_PARAMETERS, O_RDONLY | O_DIRECTORY);
	struct dirent **list = NULL;
	char value[ZSWAP_VALUE_MAX];
	int n = 0;

	if (fd >= 0)
		n = scandirat(fd, ".", &list, NULL, alphasort);
	close_fd(&fd);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ struct dirent *e = list[i];

		if (e->d_name[0] != '.' && zswap_get(root, e->d_name, value) >= 0)
			str_addf(out, "  %-30s %s\n", e->d_name, value);
	}
	free(list);
}

static void add_counters(const struct root *root, struct str *out)
{
	_cleanup_close_ int fd = zswap_debugfs_open(root);
	struct dirent **list = NULL;
	char value[ZSWAP_VALUE_MAX];
	int n = 0;

	if (fd < 0) {
		str_addf(out, "  %s\n",
			 fd == -ENOENT ? "none before zswap is first on"
				       : "cannot be read: debugfs needs root");
		return;
	}
	n = scandirat(fd, ".", &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ struct dirent *e = list[i];

		if (e->d_name[0] != '.' && read_file_at(fd, e->d_name, value, sizeof(value)) >= 0)
			str_addf(out, "  %-30s %s\n", e->d_name, value);
	}
	free(list);
}

/* /proc/swaps: a heading, then "device type size used priority", sizes in KiB. */
static void add_swaps(const struct root *root, struct str *out)
{
	char text[8192], *rest = text, *line;

	if (root_read(root, "/proc/swaps", text, sizeof(text)) < 0)
		return;
	(void)strsep(&rest, "\n");
	if (!rest || !*rest)
		str_add(out, "  none: zswap is a cache in front of swap and stays empty\n");
	while (rest && (line = strsep(&rest, "\n")) && *line)
		str_addf(out, "  %s\n", line);
}

static int status(struct cli *cli, const struct root *root, const char *name)
{
	_cleanup_str_ struct str out = {0};

	(void)name;
	str_add(&out, "Settings (" ZSWAP_PARAMETERS ")\n");
	add_parameters(root, &out);
	str_add(&out, "Counters, whole host (debugfs)\n");
	add_counters(root, &out);
	str_add(&out, "Swap\n");
	add_swaps(root, &out);
	return cli_print(cli, out.data);
}

static int list(struct cli *cli, const struct root *root, const char *name)
{
	struct zswap_compressor found[ZSWAP_COMPRESSORS_MAX];
	_cleanup_str_ struct str out = {0};
	char now[ZSWAP_VALUE_MAX] = "";
	struct err err;
	int n = zswap_compressors(root, found, &err);

	(void)name;
	if (n < 0)
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	(void)zswap_get(root, "compressor", now); /* unreadable: none is marked */
	for (int i = 0; i < n; i++) {
		bool is_set = strcmp(found[i].name, now) == 0;
		const char *note = found[i].is_loaded ? "" : "not loaded (may load on demand)";

		if (is_set)
			str_addf(&out, "%-12s set%s%s\n", found[i].name, *note ? ", " : "", note);
		else
			str_addf(&out, "%s%*s%s\n", found[i].name,
				 *note ? 13 - (int)strlen(found[i].name) : 0, "", note);
	}
	return cli_print(cli, out.data);
}

static int set(struct cli *cli, const struct root *root, const char *name)
{
	_cleanup_close_ int dirfd = open_state_dir(root);
	struct err err;
	int kept, r;

	if (dirfd < 0) {
		(void)err_errno(&err, dirfd, "cannot keep the present compressor in " STATE_DIR);
		(void)err_hint(&err, "run it as root");
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	}
	kept = keep_present(root, dirfd, &err);
	if (kept < 0)
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	r = zswap_set_compressor(root, name, &err);
	if (r < 0) {
		if (kept)
			(void)unlinkat(dirfd, STATE_FILE, 0); /* nothing changed */
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	}
	log_msg(cli->log, LOG_NOTE, "compressor %s; it stays until: analyzer zswap restore", name);
	if (zswap_is_enabled(root) != 1)
		log_msg(cli->log, LOG_NOTE, "zswap is off: echo Y > " ZSWAP_PARAMETERS "/enabled");
	return 0;
}

static int restore(struct cli *cli, const struct root *root, const char *name)
{
	_cleanup_close_ int dirfd = open_state_dir(root);
	char was[ZSWAP_VALUE_MAX];
	struct err err;
	ssize_t n = dirfd < 0 ? dirfd : read_file_at(dirfd, STATE_FILE, was, sizeof(was));

	(void)name;
	if (n == -ENOENT) {
		log_msg(cli->log, LOG_NOTE, "nothing to restore: no `zswap set` since the boot");
		return 0;
	}
	if (n < 0) {
		(void)err_errno(&err, n, "cannot read what to restore from " STATE_DIR);
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	}
	if (zswap_write_compressor(root, was, &err) < 0)
		return cli_fail(cli, STATUS_NEGATIVE, &err);
	(void)unlinkat(dirfd, STATE_FILE, 0); /* a second restore would write the same again */
	log_msg(cli->log, LOG_NOTE, "compressor %s again", was);
	return 0;
}

static const struct action {
	const char *name;
	int n_words; /* that follow */
	int (*run)(struct cli *cli, const struct root *root, const char *name);
} actions[] = {
	{"status", 0, status},
	{"list", 0, list},
	{"set", 1, set},
	{"restore", 0, restore},
};

static const struct action *find_action(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
	}
	return NULL;
}

int cmd_zswap(struct cli *cli, int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	const struct action *action;
	struct root root;
	struct err err;
	int r;

	optind = 0;
	opterr = 0;
	while ((r = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
		if (r == 'h')
			return cli_print(cli, help);
		return cli_usage(cli, "zswap", "zswap: unknown option: %.200s", argv[optind - 1]);
	}
	if (optind == argc)
		return cli_usage(cli, "zswap", "zswap: status, list, set NAME or restore?");
	action = find_action(argv[optind]);
	if (!action)
		return cli_usage(cli, "zswap", "zswap: this is not known: %.200s", argv[optind]);
	if (argc - optind - 1 != action->n_words)
		return cli_usage(cli, "zswap", "zswap %s takes %s", action->name,
				 action->n_words ? "one name" : "no further words");
	if (root_open(&root, cli->root_dir, &err) < 0)
		return cli_fail(cli, STATUS_FAILED, &err);
	if (zswap_exists(&root)) {
		r = action->run(cli, &root, argv[optind + 1]);
	} else {
		(void)err_set(&err, -ENOENT, "this kernel has no zswap");
		(void)err_hint(&err, "it takes a kernel built with CONFIG_ZSWAP");
		r = cli_fail(cli, STATUS_NEGATIVE, &err);
	}
	root_close(&root);
	return r;
}
