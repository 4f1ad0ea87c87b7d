#include "runner/session.h"

#include "base/memlock.h"
#include "base/num.h"
#include "cgroup/features.h"
#include "runner/run.h"
#include "runner/spawn.h"
#include "store/events.h"
#include "store/resdir.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

struct session {
	const struct session_opts *o;
	struct guard *guard;
	struct resdir dir;
	struct store *store;
	struct events_writer *events;
	struct cgroup_tree tree;
	struct cgroup_place place;
	struct run_env env;
	struct str environment;
	char *command_json; /* owned */
	char compressor[64];
	sigset_t old_mask;
	struct sigaction old_actions[ARRAY_SIZE(spawn_dispositions)];
	int64_t baseline_peak;
	int exit_status;
};

/* -- the machine's side --------------------------------------------------------------------------
 */

static int take_signals(struct session *s, struct err *err)
{
	static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD, SIGUSR1};
	struct sigaction sa;
	sigset_t set;

	/* Under nohup SIGHUP stays ignored: blocked, it would be delivered here all the same. The
	 * others count in every case: a script's background jobs start with SIGINT ignored, and who
	 * sends it to analyzer means it. */
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		(void)sigaction(ours[i], NULL, &sa);
		if (sa.sa_handler != SIG_IGN || ours[i] != SIGHUP)
			sigaddset(&set, ours[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	/* With SIGCHLD ignored children would vanish without a word to us; a file at its size
	 * limit is a failed write like another. */
	sigemptyset(&s->env.child_ignored);
	for (size_t i = 0; i < ARRAY_SIZE(spawn_dispositions); i++) {
		int sig = spawn_dispositions[i];

		sa = (struct sigaction){.sa_handler = sig == SIGCHLD ? SIG_DFL : SIG_IGN};
		(void)sigaction(sig, &sa, &s->old_actions[i]);
		if (s->old_actions[i].sa_handler == SIG_IGN)
			sigaddset(&s->env.child_ignored, sig);
	}
	s->env.child_sigmask = s->old_mask;
	s->env.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->env.signal_fd < 0)
		return err_errno(err, -errno, "cannot receive signals");
	return 0;
}

/*
 * What came while no run listened: while results were opened, between two runs, after the last.
 * The command is then not started (again): a signal of the terminal would never reach it.
 * Returns the signal that asks to end, 0 = none.
 */
static int take_pending(struct session *s)
{
	struct signalfd_siginfo si;
	int sig = 0;

	while (read(s->env.signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGTSTP)
			(void)raise(SIGSTOP); /* no limit is held now */
		else if (si.ssi_signo != SIGCHLD && si.ssi_signo != SIGUSR1 && sig == 0)
			sig = si.ssi_signo;
	}
	return sig;
}

static void return_signals(struct session *s)
{
	/* Pending, it would kill us before the report. */
	if (s->env.signal_fd >= 0)
		(void)take_pending(s);
	close_fd(&s->env.signal_fd);
	for (size_t i = 0; i < ARRAY_SIZE(spawn_dispositions); i++)
		(void)sigaction(spawn_dispositions[i], &s->old_actions[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

/* Orphans of the workload are ours to wait for, and the profiler must not be paged out by the
 * pressure that it makes. Both best effort: without the rights a run is still worth having. */
static void settle(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	memlock_all();
}

/* Squeezing needs the memory controller: says which mount was found, what is missing, and where
 * it can be tried. */
static int refuse_squeezing(const struct session *s, struct err *err)
{
	const struct cgroup_tree *t = &s->tree;

	if (t->memory_v1_mount[0])
		(void)err_set(err, -ENOTSUP,
			      "cannot squeeze: the memory controller is on cgroup v1 (%s), "
			      "cgroup v2 %s%s lacks it",
			      t->memory_v1_mount, t->mount[0] ? "at " : "is not mounted and",
			      t->mount);
	else
		(void)err_set(err, -ENOTSUP,
			      "cannot squeeze: no writable cgroup v2 with the memory controller "
			      "(looked from %s%s)",
			      t->mount[0] ? t->mount : "no mount", t->self);
	return err_hint(err, "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=memory, or "
			     "try it in a virtual machine: tools/vm -- build/analyzer …");
}

/* A baseline is still worth having without the memory controller, or without any group. */
static int find_place(struct session *s, struct err *err)
{
	struct log *log = s->o->log;
	struct err why;
	int r;

	r = cgroup_tree_find(&s->tree, s->o->root, s->o->cgpath, &why);
	if (r == 0)
		r = cgroup_place_find(&s->place, &s->tree, s->o->cgroup_parent,
				      guard_undo(s->guard), &why);
	if (r == 0) {
		s->env.tree = &s->tree;
		s->env.place = &s->place;
	}
	if ((s->o->cgroup_parent || s->o->cgpath) && r < 0) {
		*err = why;
		return r;
	}
	if (s->o->cfg && (r < 0 || !s->place.has_memory))
		return refuse_squeezing(s, err);
	if (r < 0) {
		log_err(log, LOG_WARN, &why);
		log_msg(log, LOG_NOTE, "the run goes on without a group: host figures only");
	} else if (!s->place.has_memory && s->tree.memory_v1_mount[0]) {
		log_msg(log, LOG_WARN,
			"no memory figures: the memory controller is on cgroup v1 (%s), cgroup "
			"v2 at %s lacks it",
			s->tree.memory_v1_mount, s->tree.mount);
	} else if (!s->place.has_memory) {
		log_msg(log, LOG_WARN,
			"no memory figures: no group below %s that we may write "
			"to gets the memory controller",
			s->tree.mount);
	}
	return 0;
}

/* -- what every run's row says --------------------------------------------------------------------
 */

static int describe(struct session *s, struct err *err)
{
	struct json_object *argv = json_object_new_array();
	char on[8] = "";

	for (char *const *arg = s->o->argv; argv && *arg; arg++)
		json_object_array_add(argv, json_object_new_string(*arg));
	if (argv)
		s->command_json = strdup(
			json_object_to_json_string_ext(argv, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(argv);
	features_to_json(s->o->root, &s->environment);
	if (!s->command_json || s->environment.failed)
		return err_errno(err, -ENOMEM, "cannot describe the session");
	s->env.command_json = s->command_json;
	s->env.environment_json = s->environment.data;
	if (root_read(s->o->root, "/sys/module/zswap/parameters/enabled", on, sizeof(on)) > 0 &&
	    on[0] == 'Y' &&
	    root_read(s->o->root, "/sys/module/zswap/parameters/compressor", s->compressor,
		      sizeof(s->compressor)) > 0)
		s->env.compressor = s->compressor;
	return 0;
}

static int copy_config(const struct session *s, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	ssize_t n = 0;
	off_t size;

	if (!s->o->config_path)
		return 0;
	fd = open(s->o->config_path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	text = size < 0 ? NULL : malloc(size + 1);
	if (text)
		n = pread(fd, text, size, 0);
	if (!text || n < 0)
		return err_errno(err, -errno, "cannot copy %s", s->o->config_path);
	return resdir_write_file(&s->dir, "config.json", text, n, err);
}

static int open_results(struct session *s, struct session_result *ret, struct err *err)
{
	const struct session_opts *o = s->o;
	int fd, r;

	r = resdir_create(&s->dir, o->output_dir, o->is_output_forced, o->argv[0], err);
	if (r < 0)
		return r;
	(void)snprintf(ret->dir, sizeof(ret->dir), "%s", s->dir.path);
	log_msg(o->log, LOG_NOTE, "writing to %s", s->dir.path);
	fd = resdir_open_log(&s->dir, "analyzer.log", err);
	if (fd < 0)
		return fd;
	log_set_file(o->log, fd);
	r = copy_config(s, err);
	if (r < 0)
		return r;
	return store_open(&s->store, s->dir.dirfd, s->dir.path, s->dir.uid, s->dir.gid, err);
}

/* -- the plan -------------------------------------------------------------------------------------
 */

/* Runs of one repetition: a baseline if one is needed, then the limited ones. */
static size_t runs_per_repeat(const struct squeezer_config *cfg)
{
	if (!cfg)
		return 1;
	return (config_needs_baseline(cfg) ? 1 : 0) +
	       (cfg->mode == MODE_STATICSWEEP ? cfg->n_range : 1);
}

/* The i-th run of a repetition. cfg is filled where the run is squeezed. */
static void plan_run(const struct session *s, size_t i, struct run_spec *spec,
		     struct squeezer_config *cfg)
{
	const struct squeezer_config *given = s->o->cfg;
	size_t baselines = given && config_needs_baseline(given) ? 1 : 0;
	double pct;

	if (!given || i < baselines) {
		spec->kind = RUN_BASELINE;
		(void)snprintf(spec->name, sizeof(spec->name), "baseline");
		return;
	}
	*cfg = *given;
	spec->cfg = cfg;
	config_resolve(cfg, s->baseline_peak);
	spec->kind = given->mode == MODE_DYNAMIC ? RUN_DYNAMIC : RUN_STATIC;
	if (given->mode == MODE_STATICSWEEP) {
		pct = given->range_pct[i - baselines];
		cfg->mode = MODE_STATIC;
		cfg->init_limit.bytes = (int64_t)floor(s->baseline_peak * (100 - pct) / 100);
		(void)snprintf(spec->name, sizeof(spec->name), "limit -%g %%", pct);
	} else if (given->mode == MODE_STATIC) {
		(void)snprintf(spec->name, sizeof(spec->name), "limit");
	} else {
		(void)snprintf(spec->name, sizeof(spec->name), "dynamic %s", cfg->law);
	}
}

/* Figures of time come from runs that nothing slows: of several runs, only one more of each
 * setting is traced, on request. */
static bool is_traced(const struct session *s, int repeat)
{
	if (s->o->trace == TRACE_AUTO)
		return !s->env.is_one_of_many;
	return s->o->trace == TRACE_ASKED && (!s->env.is_one_of_many || repeat == s->o->repeat);
}

static int execute_one(struct session *s, size_t i, int repeat, int order, bool *ret_ends,
		       struct err *err)
{
	struct run_spec spec = {
		.repeat_index = repeat, .run_order = order, .is_traced = is_traced(s, repeat)};
	struct squeezer_config cfg;
	struct run_result result = {.peak_bytes = -1};
	int r;

	plan_run(s, i, &spec, &cfg);
	if (spec.is_traced && s->env.is_one_of_many)
		(void)strncat(spec.name, " traced", sizeof(spec.name) - strlen(spec.name) - 1);
	r = run_execute(&s->env, &spec, &result, err);
	if (s->exit_status == 0)
		s->exit_status = result.exit_status;
	*ret_ends = r < 0 || result.ends_session;
	if (r == 0 && spec.kind == RUN_BASELINE)
		s->baseline_peak = result.peak_bytes;
	if (r == 0 && !result.ends_session && spec.kind == RUN_BASELINE && s->o->cfg &&
	    result.peak_bytes <= 0) {
		s->exit_status = 125;
		return err_set(err, -ENODATA, "the baseline has no peak to take limits from");
	}
	return r;
}

static bool is_called_off(struct session *s, int order, int *ret, struct err *err)
{
	int sig = take_pending(s);

	if (sig == 0)
		return false;
	if (s->exit_status == 0)
		s->exit_status = 128 + sig;
	if (order == 0)
		*ret = err_set(err, -EINTR, "%s before the command was started", strsignal(sig));
	else
		log_msg(s->o->log, LOG_NOTE, "%s between two runs", strsignal(sig));
	return true;
}

static int execute(struct session *s, struct err *err)
{
	size_t per_repeat = runs_per_repeat(s->o->cfg);
	int order = 0, r = 0, repeats = s->o->repeat;
	bool ends = false;

	s->env.is_one_of_many = per_repeat * repeats > 1;
	if (s->env.is_one_of_many && s->o->trace == TRACE_ASKED)
		repeats++;
	s->env.run_count = per_repeat * repeats;
	if (s->env.is_one_of_many)
		log_msg(s->o->log, LOG_NOTE,
			"%d runs of the command: each reads %s, their outputs follow one another",
			s->env.run_count, s->o->stdin_path ? s->o->stdin_path : "/dev/null");
	for (int rep = 0; rep < repeats && !ends; rep++) {
		for (size_t i = 0; i < per_repeat && !ends; i++) {
			ends = is_called_off(s, order, &r, err);
			if (!ends)
				r = execute_one(s, i, rep, order++, &ends, err);
		}
	}
	if (r == 0 && ends && order < s->env.run_count)
		log_msg(s->o->log, LOG_NOTE, "%d of %d runs were not made",
			s->env.run_count - order, s->env.run_count);
	return r;
}

/* -- all of it ------------------------------------------------------------------------------------
 */

static int prepare(struct session *s, struct session_result *ret, struct err *err)
{
	int r = take_signals(s, err);

	if (r == 0)
		r = guard_start(&s->guard, s->o->root, err); /* before any thread */
	if (r < 0)
		return r;
	s->env.guard = s->guard;
	r = find_place(s, err);
	if (r == 0)
		r = describe(s, err);
	if (r == 0)
		r = open_results(s, ret, err);
	s->env.store = s->store;
	s->env.dir = &s->dir;
	s->env.events = &s->events;
	return r;
}

static int wind_up(struct session *s, int r, struct err *err)
{
	struct err late;

	if (events_writer_close(s->events, &late) < 0)
		log_err(s->o->log, LOG_WARN, &late);
	if (store_close(s->store, &late) < 0 && r == 0 && s->exit_status != 125) {
		*err = late;
		r = late.code;
		s->exit_status = 125;
	}
	cgroup_place_undo(&s->place, s->guard ? guard_undo(s->guard) : NULL);
	if (guard_stop(s->guard, &late) < 0)
		log_err(s->o->log, LOG_WARN, &late);
	return_signals(s);
	resdir_close(&s->dir);
	str_done(&s->environment);
	free(s->command_json);
	return r;
}

int session_run(const struct session_opts *opts, struct session_result *ret, struct err *err)
{
	struct session s = {
		.o = opts,
		.dir = {.dirfd = -1},
		.env = {.opts = opts, .signal_fd = -1},
		.baseline_peak = -1,
	};
	int r;

	*ret = (struct session_result){0};
	settle();
	r = prepare(&s, ret, err);
	if (r < 0)
		s.exit_status = 125;
	else
		r = execute(&s, err);
	r = wind_up(&s, r, err);
	ret->exit_status = s.exit_status;
	return r;
}
