#include "runner/recover.h"

#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct recoverer {
	const struct root *root;
	recover_fn *fn;
	void *ctx;
	struct recover_totals totals;
};

/* Names of journals are PID-HEX: other files live beside them. */
static bool is_journal(const char *name, pid_t *ret_pid)
{
	size_t digits = strspn(name, "0123456789");
	char pid[16];
	int64_t n;

	if (digits == 0 || digits >= sizeof(pid) || name[digits] != '-' ||
	    strspn(name + digits + 1, "0123456789abcdef") != 8 || name[digits + 9])
		return false;
	(void)snprintf(pid, sizeof(pid), "%.*s", (int)digits, name);
	if (num_parse_u63(pid, &n) < 0)
		return false;
	*ret_pid = (pid_t)n;
	return true;
}

static void put_back(struct recoverer *rc, struct journal *j, const struct journal_entry *e)
{
	struct recovery r = {.journal = j->path, .entry = e};
	struct err err;

	if (journal_put_back(rc->root, e, 0, &err) < 0)
		r.problem = &err;
	else
		(void)journal_done(j, e->id); /* else it is put back once more */
	rc->totals.put_back += !r.problem;
	rc->totals.left += r.problem != NULL;
	rc->fn(rc->ctx, &r);
}

/* In the guard's order: what squeezes or holds goes first, newest first, then groups. */
static void replay(struct recoverer *rc, struct journal *j)
{
	struct journal_entry list[JOURNAL_MAX];
	int n = journal_load(j, list), left = rc->totals.left;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = n - 1; i >= 0; i--) {
			bool is_quick = list[i].kind == UNDO_WRITE || list[i].kind == UNDO_CONTINUE;

			if (is_quick == (pass == 0))
				put_back(rc, j, &list[i]);
		}
	}
	journal_close(j, rc->totals.left == left);
}

static void look_at(struct recoverer *rc, const char *dir, const char *name)
{
	struct journal j = {.root = rc->root};
	struct stat st;
	pid_t pid;

	if (!is_journal(name, &pid))
		return;
	(void)snprintf(j.path, sizeof(j.path), "%s/%s", dir, name);
	j.fd = root_openat(rc->root, j.path, O_RDWR | O_APPEND | O_NOFOLLOW);
	if (j.fd < 0)
		return; /* another user's, or gone meanwhile */
	/* Between its making and its lock it is empty, and its maker there. */
	if (flock(j.fd, LOCK_EX | LOCK_NB) < 0 ||
	    (fstat(j.fd, &st) == 0 && st.st_size == 0 && kill(pid, 0) == 0)) {
		rc->totals.in_use++;
		journal_close(&j, false);
		return;
	}
	rc->totals.journals++;
	replay(rc, &j);
}

/* None there: nobody has ever left anything. */
static int look_in(struct recoverer *rc, const char *path, struct err *err)
{
	int fd = root_openat(rc->root, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		int code = fd < 0 ? fd : -errno;

		close_fd(&fd);
		return code == -ENOENT ? 0 : err_errno(err, code, "cannot read %s", path);
	}
	while ((d = readdir(dir)))
		look_at(rc, path, d->d_name);
	closedir(dir);
	return 0;
}

int recover(const struct root *root, recover_fn *fn, void *ctx, struct recover_totals *ret,
	    struct err *err)
{
	struct recoverer rc = {.root = root, .fn = fn, .ctx = ctx};
	char user[200];
	int r = look_in(&rc, JOURNAL_DIR, err);

	if (r == 0 && journal_user_dir(user, sizeof(user)))
		r = look_in(&rc, user, err);
	*ret = rc.totals;
	return r;
}
