/* Which results directory a verb reads. */
#include "base/str.h"
#include "cli/cli.h"
#include "store/read.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define LATEST "profile.latest"

static void consider(const char *name, char best[static NAME_MAX + 1], struct timespec *best_at)
{
	_cleanup_str_ struct str path = {0};
	struct stat st;

	if (strncmp(name, "profile.", strlen("profile.")) != 0 || strcmp(name, LATEST) == 0)
		return;
	str_addf(&path, "%s/profile.db", name);
	if (path.failed || stat(path.data, &st) < 0)
		return;
	if (best[0] &&
	    (st.st_mtim.tv_sec < best_at->tv_sec ||
	     (st.st_mtim.tv_sec == best_at->tv_sec && st.st_mtim.tv_nsec <= best_at->tv_nsec)))
		return;
	(void)snprintf(best, NAME_MAX + 1, "%s", name);
	*best_at = st.st_mtim;
}

int cli_find_results(struct cli *cli, const char *verb, char ret[static NAME_MAX + 1],
		     struct err *err)
{
	struct timespec at = {0};
	char target[PATH_MAX];
	struct dirent *e;
	ssize_t len;
	DIR *dir;

	ret[0] = '\0';
	if (reader_is_results_dir(LATEST)) {
		len = readlink(LATEST, target, sizeof(target) - 1);
		target[MAX(len, 0)] = '\0';
		log_msg(cli->log, LOG_NOTE, "%sing " LATEST "%s%s", verb, len > 0 ? " -> " : "",
			target);
		(void)snprintf(ret, NAME_MAX + 1, "%s", LATEST);
		return 0;
	}
	dir = opendir(".");
	if (!dir)
		return err_errno(err, -errno, "cannot read the current directory");
	while ((e = readdir(dir)))
		consider(e->d_name, ret, &at);
	(void)closedir(dir); /* nothing was written */
	if (!ret[0]) {
		(void)err_set(err, -ENOENT,
			      "no results here: neither " LATEST " nor another profile.*");
		return err_hint(err, "name a results directory, or go to where there is one");
	}
	log_msg(cli->log, LOG_NOTE, "%sing %s", verb, ret);
	return 0;
}

int cli_results_status(const struct err *err)
{
	return err->code == -ENOENT || err->code == -ENOTDIR || err->code == -EINVAL
		       ? STATUS_USAGE
		       : STATUS_FAILED;
}
