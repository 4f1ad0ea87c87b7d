/* `analyzer list runs [DIR]`: the results directories in DIR, oldest first. */
#include "base/fmt.h"
#include "base/str.h"
#include "cli/cli.h"
#include "store/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* One results directory; what could not be read stays NULL, READ_NULL or NAN and prints as -. */
struct entry {
	char *name, *started, *mode, *exit;
	size_t n_runs;
	int64_t peak_bytes, size_bytes;
	double seconds;
};

struct entries {
	struct entry *e;
	size_t n;
};

static void entries_done(struct entries *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->e[i].name);
		free(list->e[i].started);
		free(list->e[i].mode);
		free(list->e[i].exit);
	}
	free(list->e);
}

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "no memory for the list of results");
}

/* memory.peak, else the largest memory.current: as the report has it. */
static int find_peak(struct reader *r, int64_t run_id, int64_t *peak, struct err *err)
{
	static const char *const names[] = {"memory_peak", "memory_current"};
	_cleanup_(series_done) struct series s = {0};
	int64_t best = READ_NULL;
	int res = reader_load_series(r, run_id, names, ARRAY_SIZE(names), &s, err);

	if (res < 0)
		return res;
	for (size_t c = 0; best == READ_NULL && c < ARRAY_SIZE(names); c++) {
		for (size_t i = 0; s.cols[c] && i < s.n; i++)
			best = MAX(best, s.cols[c][i]); /* READ_NULL is the least of all */
	}
	*peak = MAX(*peak, best);
	return 0;
}

static bool is_kind(const struct run_row *row, const char *kind)
{
	return row->kind && strcmp(row->kind, kind) == 0;
}

/* The session's mode, told by its runs: the most active kind counts. */
static char *find_mode(const struct run_row *rows, size_t n)
{
	const char *mode = "baseline";
	size_t n_static = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_kind(&rows[i], "dynamic"))
			return strdup(rows[i].policy ? rows[i].policy : "dynamic");
		n_static += is_kind(&rows[i], "static") && rows[i].repeat_index <= 0;
		if (is_kind(&rows[i], "observe"))
			mode = "observe";
	}
	return strdup(n_static > 1 ? "staticsweep" : n_static == 1 ? "static" : mode);
}

/* As a session's exit status: the first run that did not end with 0. */
static char *find_exit(const struct run_row *rows, size_t n)
{
	char *text = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct run_row *row = &rows[i];
		int len = 0;

		if (!row->end_reason)
			return strdup("incomplete");
		if (row->term_signal != READ_NULL)
			len = asprintf(&text, "signal %lld", (long long)row->term_signal);
		else if (row->exit_code == READ_NULL)
			return strdup(row->end_reason);
		else if (row->exit_code != 0)
			len = asprintf(&text, "%lld", (long long)row->exit_code);
		if (len != 0)
			return len > 0 ? text : NULL;
	}
	return strdup(n > 0 ? "0" : "-");
}

static int read_entry(struct entry *e, const char *path, struct err *err)
{
	_cleanup_(reader_closep) struct reader *r = NULL;
	struct run_row *rows = NULL;
	int res = reader_open(&r, path, err);

	if (res == 0)
		res = reader_load_runs(r, &rows, &e->n_runs, err);
	if (res < 0)
		return res;
	for (size_t i = 0; res == 0 && i < e->n_runs; i++) {
		if (!isnan(rows[i].duration_s))
			e->seconds = rows[i].duration_s + (isnan(e->seconds) ? 0 : e->seconds);
		res = find_peak(r, rows[i].run_id, &e->peak_bytes, err);
	}
	if (e->n_runs > 0 && rows[0].started_at)
		e->started = strdup(rows[0].started_at);
	e->mode = find_mode(rows, e->n_runs);
	e->exit = find_exit(rows, e->n_runs);
	if (res == 0 && (!e->mode || !e->exit))
		res = no_memory(err);
	run_rows_free(rows, e->n_runs);
	return res;
}

static int64_t files_size(const char *path)
{
	DIR *dir = opendir(path);
	int64_t sum = 0;
	struct dirent *d;
	struct stat st;

	if (!dir)
		return READ_NULL;
	while ((d = readdir(dir))) {
		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			sum += st.st_size;
	}
	(void)closedir(dir); /* nothing was written */
	return sum;
}

/* A directory that cannot be read gets its line too; the reason goes to stderr. */
static int add_entry(struct cli *cli, struct entries *list, const char *path, const char *name,
		     struct err *err)
{
	struct entry *grown = realloc(list->e, (list->n + 1) * sizeof(*grown)), *e;
	struct err why;

	if (!grown)
		return no_memory(err);
	list->e = grown;
	e = &list->e[list->n++];
	*e = (struct entry){
		.name = strdup(name),
		.peak_bytes = READ_NULL,
		.size_bytes = files_size(path),
		.seconds = NAN,
	};
	if (!e->name)
		return no_memory(err);
	if (read_entry(e, path, &why) < 0)
		log_err(cli->log, LOG_WARN, &why);
	return 0;
}

static int scan(struct cli *cli, struct entries *list, const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	if (!d)
		return err_errno(err, -errno, "cannot read directory '%s'", dir);
	while (r == 0 && (e = readdir(d))) {
		_cleanup_str_ struct str path = {0};
		struct stat st;

		/* profile.latest is another name of one of them. */
		if (e->d_name[0] == '.' ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (strcmp(dir, ".") != 0)
			str_addf(&path, "%s/", dir);
		str_add(&path, e->d_name);
		if (path.failed)
			r = no_memory(err);
		else if (reader_is_results_dir(path.data))
			r = add_entry(cli, list, path.data, e->d_name, err);
	}
	(void)closedir(d); /* nothing was written */
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->started ? x->started : "", y->started ? y->started : "");

	return order ? order : strcmp(x->name, y->name);
}

/* Columns are apart by two blanks or more; "-" where nothing is known. */
static void add_line(struct str *out, const struct entry *e, int width)
{
	char peak[FMT_MAX], size[FMT_MAX], time[FMT_MAX];

	str_addf(out, "%-*s  %-20s  %4zu  %10s  %9s  %-10s  %-11s  %10s\n", width, e->name,
		 e->started ? e->started : "-", e->n_runs,
		 e->peak_bytes == READ_NULL ? "-" : fmt_bytes(peak, e->peak_bytes),
		 isnan(e->seconds) ? "-" : fmt_ns(time, (int64_t)(e->seconds * 1e9)),
		 e->exit ? e->exit : "-", e->mode ? e->mode : "-",
		 e->size_bytes == READ_NULL ? "-" : fmt_bytes(size, e->size_bytes));
}

static int print(struct cli *cli, struct entries *list)
{
	_cleanup_str_ struct str out = {0};
	int width = (int)strlen("NAME");
	struct err err;

	if (list->n > 0)
		qsort(list->e, list->n, sizeof(*list->e), compare);
	for (size_t i = 0; i < list->n; i++)
		width = MAX(width, (int)strlen(list->e[i].name));
	str_addf(&out, "%-*s  %-20s  %4s  %10s  %9s  %-10s  %-11s  %10s\n", width, "NAME",
		 "STARTED", "RUNS", "PEAK", "RUN TIME", "EXIT", "MODE", "SIZE");
	for (size_t i = 0; i < list->n; i++)
		add_line(&out, &list->e[i], width);
	if (!out.failed)
		return cli_print(cli, out.data);
	(void)no_memory(&err);
	return cli_fail(cli, STATUS_FAILED, &err);
}

int list_runs(struct cli *cli, int argc, char **argv)
{
	_cleanup_(entries_done) struct entries list = {0};
	const char *dir = argc > 1 ? argv[1] : ".";
	struct err err;
	int r;

	if (argc > 2)
		return cli_usage(cli, "list", "list runs: one DIR, not also \"%.200s\"", argv[2]);
	if (dir[0] == '-' && dir[1])
		return cli_usage(cli, "list", "list runs: unknown option %.200s", dir);
	/* A results directory itself is a list of one. */
	r = reader_is_results_dir(dir) ? add_entry(cli, &list, dir, dir, &err)
				       : scan(cli, &list, dir, &err);
	if (r < 0)
		return cli_fail(cli, r == -ENOMEM ? STATUS_FAILED : STATUS_USAGE, &err);
	return print(cli, &list);
}
