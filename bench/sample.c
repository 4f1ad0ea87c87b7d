/*
 * What one sample costs: CPU time of sampler_take on this machine, and of the same files read the
 * way a script does it, one `grep` process per file.
 *
 *     sample [-v] [GROUP [SAMPLES]]      GROUP: a cgroup's directory; default: a new, empty one
 *
 * -v also prints the keys that metrics.def does not know and the metrics that are not had here.
 */
#include "base/clock.h"
#include "base/num.h"
#include "cgroup/cgroup.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GREP_ROUNDS 5

static int fail(const struct err *err)
{
	fprintf(stderr, "sample: %s\n", err->msg);
	return 1;
}

static int64_t children_cpu_ns(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void grep_one(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		execlp("grep", "grep", "", path, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

/* One grep for each file of metrics.def that can be opened by its path; returns their number. */
static int grep_all(const char *group)
{
	char path[CGROUP_PATH_MAX + 256];
	int n = 0;

	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric *m = &metrics[i];

		if (i > 0 && strcmp(m->file, metrics[i - 1].file) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s%s", m->scope == METRIC_GROUP ? group : "",
			       m->scope == METRIC_GROUP ? "/" : "", m->file);
		if (access(path, R_OK) < 0)
			continue;
		grep_one(path);
		n++;
	}
	return n;
}

static void print_details(const struct sample *s)
{
	for (size_t i = 0; i < s->n_extra; i++)
		printf("extra %s %" PRId64 "\n", s->extra[i].key, s->extra[i].value);
	for (int i = 0; i < METRIC_COUNT; i++) {
		if (s->has[i])
			printf("%s %" PRId64 "\n", metrics[i].name, s->v[i]);
		else
			printf("not here: %s\n", metrics[i].name);
	}
}

static int measure(const char *group, int64_t rounds, bool verbose)
{
	struct sampler *s = NULL;
	struct sample *sample = calloc(1, sizeof(*sample));
	_cleanup_close_ int dirfd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t cpu, wall, grep_cpu, grep_wall;
	struct root root;
	struct err err;
	int r, n_grep = 0, had = 0;

	if (!sample || dirfd < 0)
		return err_errno(&err, -errno, "cannot open %s", group), fail(&err);
	if (root_open(&root, NULL, &err) < 0 || sampler_new(&s, &root, dirfd, &err) < 0)
		return fail(&err);
	r = sampler_take(s, sample, &err);
	wall = clock_mono_ns();
	cpu = clock_process_cpu_ns();
	for (int64_t i = 0; i < rounds && r == 0; i++)
		r = sampler_take(s, sample, &err);
	if (r < 0)
		return fail(&err);
	cpu = (clock_process_cpu_ns() - cpu) / rounds;
	wall = (clock_mono_ns() - wall) / rounds;
	if (verbose)
		print_details(sample);
	grep_wall = clock_mono_ns();
	grep_cpu = children_cpu_ns() + clock_process_cpu_ns();
	for (int i = 0; i < GREP_ROUNDS; i++)
		n_grep = grep_all(group);
	grep_cpu = (children_cpu_ns() + clock_process_cpu_ns() - grep_cpu) / GREP_ROUNDS;
	grep_wall = (clock_mono_ns() - grep_wall) / GREP_ROUNDS;
	for (int i = 0; i < METRIC_COUNT; i++)
		had += sample->has[i];
	printf("files per sample      %6zu\nvalues per sample     %6zu\n", sampler_file_count(s),
	       had + sample->n_extra);
	printf("CPU per sample        %8.1f us   (elapsed %.1f us)\n", (double)cpu / 1e3,
	       (double)wall / 1e3);
	printf("grep per file, %2d     %8.1f us   (elapsed %.1f us)\n", n_grep,
	       (double)grep_cpu / 1e3, (double)grep_wall / 1e3);
	printf("ratio                 %8.0f      CPU of the greps / CPU of one sample\n",
	       (double)grep_cpu / (double)cpu);
	sampler_free(s);
	root_close(&root);
	free(sample);
	return 0;
}

/* An empty group where we may make one; else the hierarchy's root. */
static int own_group(char path[static CGROUP_PATH_MAX + 64], bool *ret_made)
{
	struct cgroup_tree tree;
	struct root root;
	struct err err;
	int r = root_open(&root, NULL, &err);

	if (r < 0)
		return fail(&err);
	r = cgroup_tree_find(&tree, &root, NULL, &err);
	root_close(&root);
	if (r < 0)
		return fail(&err);
	(void)snprintf(path, CGROUP_PATH_MAX + 64, "%s/analyzer-bench-%d", tree.mount, getpid());
	*ret_made = mkdir(path, 0755) == 0;
	if (!*ret_made)
		(void)snprintf(path, CGROUP_PATH_MAX + 64, "%s", tree.mount);
	return 0;
}

int main(int argc, char **argv)
{
	char path[CGROUP_PATH_MAX + 64];
	int64_t rounds = 2000;
	bool made = false, verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	int r;

	argv += verbose;
	argc -= verbose;
	if (argc > 2 && (num_parse_u63(argv[2], &rounds) < 0 || rounds == 0)) {
		fprintf(stderr, "usage: sample [-v] [GROUP [SAMPLES]]\n");
		return 2;
	}
	if (argc > 1)
		(void)snprintf(path, sizeof(path), "%s", argv[1]);
	else if (own_group(path, &made) != 0)
		return 1;
	r = measure(path, rounds, verbose);
	if (made)
		(void)rmdir(path);
	return r;
}
