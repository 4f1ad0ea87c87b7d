#include "runner/guard.h"

#include "base/clock.h"
#include "base/memlock.h"
#include "runner/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define STALE_MS (GUARD_STALE_NS / NS_PER_MS)
#define GROUP_WAIT_MS 2000

struct guard {
	struct undo undo; /* first: the interface is the object */
	struct journal journal;
	int pipe_fd;
	pid_t pid;
	int next_id;
	int n;
	struct journal_entry entries[JOURNAL_MAX];
};

/* -- the guard process ------------------------------------------------------------------- */

static void replay(const struct journal *j, bool is_last)
{
	static struct journal_entry list[JOURNAL_MAX]; /* locked in memory with the rest */
	struct err ignored;                            /* nobody is left to be told */
	int n = journal_load(j, list);

	for (int i = n - 1; i >= 0; i--) {
		if (list[i].kind == UNDO_WRITE || (is_last && list[i].kind == UNDO_CONTINUE))
			(void)journal_put_back(j->root, &list[i], 0, &ignored);
	}
	for (int i = n - 1; is_last && i >= 0; i--) {
		if (list[i].kind == UNDO_GROUP || list[i].kind == UNDO_CONTROLLER)
			(void)journal_put_back(j->root, &list[i], -1, &ignored);
	}
}

static void ignore_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN); /* KILL and STOP refuse, as they must */
}

static _Noreturn void watch(const struct journal *j, int pipe_fd)
{
	struct pollfd pfd = {.fd = pipe_fd, .events = POLLIN};
	bool is_stale = false;
	char beats[256];

	for (;;) {
		int r = poll(&pfd, 1, is_stale ? -1 : STALE_MS);
		ssize_t n;

		if (r < 0)
			continue;
		if (r == 0) {
			replay(j, false);
			is_stale = true;
			continue;
		}
		is_stale = false;
		n = read(pipe_fd, beats, sizeof(beats));
		if (n == 0) {
			replay(j, true);
			if (j->path[0])
				(void)unlinkat(j->root->fd, j->path + strspn(j->path, "/"), 0);
			_exit(0);
		}
	}
}

/* Keeps the three descriptors that the guard works with, so that it never holds open a pipe
 * whose other end waits for our end of file. */
static void close_others(int a, int b, int c)
{
	int keep[3] = {a, b, c}, from = 0;

	for (int pass = 0; pass < 3; pass++) {
		int least = INT32_MAX;

		for (int i = 0; i < 3; i++) {
			if (keep[i] >= from && keep[i] < least)
				least = keep[i];
		}
		if (least == INT32_MAX)
			break;
		if (least > from)
			(void)close_range(from, least - 1, 0);
		from = least + 1;
	}
	(void)close_range(from, ~0U, 0);
}

static _Noreturn void guard_main(const struct journal *j, int pipe_fd)
{
	(void)setsid();
	ignore_signals();
	(void)prctl(PR_SET_NAME, "analyzer-guard");
	close_others(j->root->fd, j->fd, pipe_fd);
	memlock_all();
	watch(j, pipe_fd);
}

/* -- the undo interface in this process ---------------------------------------------------- */

static int add(struct undo *u, const struct undo_entry *entry, struct err *err)
{
	struct guard *g = (struct guard *)u;
	struct journal_entry *e = &g->entries[g->n];
	int r;

	if (g->n == JOURNAL_MAX)
		return err_set(err, -ENOSPC, "too many changes to put back");
	if (entry->path && strlen(entry->path) >= sizeof(e->path))
		return err_set(err, -ENAMETOOLONG, "path too long: %s", entry->path);
	*e = (struct journal_entry){
		.id = ++g->next_id,
		.kind = entry->kind,
	};
	(void)snprintf(e->path, sizeof(e->path), "%s", entry->path ? entry->path : "-");
	(void)snprintf(e->value, sizeof(e->value), "%s", entry->value ? entry->value : "");
	r = journal_add(&g->journal, e, err);
	if (r < 0)
		return r;
	g->n++;
	return e->id;
}

static int find(const struct guard *g, int id)
{
	for (int i = 0; i < g->n; i++) {
		if (g->entries[i].id == id)
			return i;
	}
	return -1;
}

static void drop(struct undo *u, int id)
{
	struct guard *g = (struct guard *)u;
	int i = find(g, id);

	if (i < 0)
		return;
	/* Should this fail, the guard would put back once more what is back already. */
	(void)journal_done(&g->journal, id);
	memmove(g->entries + i, g->entries + i + 1, (g->n - i - 1) * sizeof(g->entries[0]));
	g->n--;
}

static int run(struct undo *u, int id, struct err *err)
{
	struct guard *g = (struct guard *)u;
	int i = find(g, id), r;

	if (i < 0)
		return 0;
	r = journal_put_back(g->journal.root, &g->entries[i], GROUP_WAIT_MS, err);
	if (r == 0)
		drop(u, id);
	return r;
}

static const struct undo_ops ops = {.add = add, .run = run, .drop = drop};

int guard_start(struct guard **ret, const struct root *root, struct err *err)
{
	struct guard *g = calloc(1, sizeof(*g));
	int fds[2], r;

	if (!g)
		return err_errno(err, -ENOMEM, "cannot start the guard");
	g->undo.ops = &ops;
	r = journal_create(&g->journal, root, err);
	if (r < 0) {
		free(g);
		return r;
	}
	if (pipe2(fds, O_CLOEXEC) < 0 || (g->pid = fork()) < 0) {
		r = err_errno(err, -errno, "cannot start the guard");
		journal_close(&g->journal, true);
		free(g);
		return r;
	}
	if (g->pid == 0) {
		close(fds[1]);
		guard_main(&g->journal, fds[0]);
	}
	close(fds[0]);
	g->pipe_fd = fds[1];
	/* A guard that has died must not block us: without a reader a beat fails at once. */
	(void)fcntl(g->pipe_fd, F_SETFL, O_NONBLOCK);
	*ret = g;
	return 0;
}

struct undo *guard_undo(struct guard *g)
{
	return &g->undo;
}

pid_t guard_pid(const struct guard *g)
{
	return g->pid;
}

void guard_beat(struct guard *g)
{
	(void)!write(g->pipe_fd, "b", 1); /* full pipe: the guard has beats enough */
}

int guard_stop(struct guard *g, struct err *err)
{
	int failed = 0;

	if (!g)
		return 0;
	while (g->n > 0 && failed == 0)
		failed = run(&g->undo, g->entries[g->n - 1].id, err);
	/* The guard replays what is left at the end of its pipe: nothing, if all went well. */
	close_fd(&g->pipe_fd);
	journal_close(&g->journal, failed == 0);
	if (failed == 0)
		(void)waitpid(g->pid, NULL, 0);
	else
		(void)err_hint(err, "process %d stays to finish when the group is empty", g->pid);
	free(g);
	return failed;
}
