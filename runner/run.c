#include "runner/run.h"

#include "base/clock.h"
#include "base/num.h"
#include "runner/children.h"
#include "runner/spawn.h"
#include "sampler/sampler.h"
#include "squeezer/squeezer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* A sender that means all of us, such as timeout(1), signals first us and then our group: the same
 * signal within this time is the same request. A person's second Ctrl-C takes longer. */
#define SAME_SIGNAL_NS (100 * NS_PER_MS)

/* How long a workload that was asked to end may take before it is killed. */
#define GRACE_NS (10 * NS_PER_S)

enum source {
	SRC_SIGNAL,
	SRC_SAMPLE,  /* timer */
	SRC_BEAT,    /* timer */
	SRC_TIMEOUT, /* timer: --timeout, then the grace period */
	SRC_EXEC,
	SRC_GROUP, /* cgroup.events */
	SRC_SQUEEZER,
	SRC_STORE,
	SRC_COUNT
};

struct run {
	const struct run_env *env;
	const struct run_spec *spec;
	int64_t run_id, t0_mono_ns;
	int64_t beat_mono_ns; /* of the last beat to the guard */
	struct cgroup cg;
	struct sampler *sampler;
	struct squeezer *squeezer;
	struct spawned child;
	int fd[SRC_COUNT]; /* -1 = not open; some are borrowed */
	int epoll_fd;
	struct sample prev, now;
	int64_t peak_bytes;
	uint32_t end_signal; /* the last that asked to end, and when */
	int64_t end_mono_ns;
	int64_t start_cpu_ns;
	struct run_end end;
	int exit_status; /* of the main process, -1 = not known yet */
	int empty_beats; /* with the main process alive and nobody in its group */
	bool has_child, is_child_reaped;
	bool is_over;      /* nothing of the workload is left */
	bool is_recording; /* samples are taken */
	bool is_ending;    /* asked to end: the grace period runs */
	bool was_killed;
	bool has_timed_out;
	struct err failure; /* the group is gone, the recording failed */
};

static int64_t elapsed(const struct run *run)
{
	return clock_mono_ns() - run->t0_mono_ns;
}

static void note_event(struct run *run, const char *kind, const char *detail)
{
	store_put_event(run->env->store, run->run_id, elapsed(run), kind, detail);
}

/* -- samples ----------------------------------------------------------------------------------- */

static void show_progress(const struct run *run)
{
	const struct session_opts *o = run->env->opts;
	double dt_s = (double)(run->now.t_ns - run->prev.t_ns) / NS_PER_S;
	struct progress p = {
		.run_name = run->spec->name,
		.run_index = run->spec->run_order,
		.run_count = run->env->run_count,
		.phase = run->is_ending  ? "finishing"
			 : run->squeezer ? "squeezing"
					 : "baseline",
		.elapsed_ns = run->now.t_ns,
		.usage_bytes = sample_get(&run->now, M_memory_current, -1),
		.peak_bytes = run->peak_bytes,
		.limit_bytes = run->squeezer ? squeezer_limit(run->squeezer) : NUM_MAX,
		.fault_rate = NAN,
		.stall_full = NAN,
	};
	int64_t d;

	if (sample_delta(&run->prev, &run->now, M_memory_stat_pgmajfault, &d) && dt_s > 0)
		p.fault_rate = d / dt_s;
	if (sample_delta(&run->prev, &run->now, M_memory_pressure_full_total, &d) && dt_s > 0)
		p.stall_full = d / 1e6 / dt_s;
	o->on_progress(o->ctx, &p);
}

static void check_oom(struct run *run)
{
	char text[96];
	int64_t d;

	if (!sample_delta(&run->prev, &run->now, M_memory_events_oom_kill, &d) || d == 0)
		return;
	(void)snprintf(text, sizeof(text), "%" PRId64 " process(es) killed for lack of memory", d);
	note_event(run, "oom_kill", text);
	log_msg(run->env->opts->log, LOG_WARN, "%s: %s", run->spec->name, text);
	if (run->squeezer && run->spec->kind == RUN_DYNAMIC)
		squeezer_release(run->squeezer, "a process was killed for lack of memory");
}

static void group_removed(struct run *run)
{
	if (!run->is_recording)
		return;
	run->is_recording = false;
	run->end.reason = END_CGROUP_REMOVED;
	/* A removed file is ready for ever. */
	(void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->fd[SRC_GROUP], NULL);
	(void)err_set(&run->failure, -ENODEV,
		      "the workload's group %s was removed by somebody else", run->cg.path);
	(void)err_hint(&run->failure, "the workload goes on unmeasured; what was recorded is kept");
	log_err(run->env->opts->log, LOG_WARN, &run->failure);
	note_event(run, "cgroup_removed", run->failure.msg);
}

static int take_sample(struct run *run)
{
	struct err err;
	int64_t usage;
	int r;

	run->prev = run->now;
	r = sampler_take(run->sampler, &run->now, &err);
	run->now.seq = run->prev.seq + 1;
	run->now.t_ns = run->now.seq == 1 ? 0 : elapsed(run);
	if (r == -ENODEV)
		return r;
	usage = sample_get(&run->now, M_memory_peak, sample_get(&run->now, M_memory_current, -1));
	run->peak_bytes = MAX(run->peak_bytes, usage);
	if (run->run_id > 0)
		store_put_sample(run->env->store, run->run_id, &run->now);
	return 0;
}

static void on_sample_timer(struct run *run)
{
	uint64_t ticks;

	/* Missed ticks are skipped, not made up for. */
	if (read(run->fd[SRC_SAMPLE], &ticks, sizeof(ticks)) < 0 || !run->is_recording)
		return;
	if (take_sample(run) < 0) {
		group_removed(run);
		return;
	}
	check_oom(run);
	if (run->squeezer)
		squeezer_observe(run->squeezer, &run->now);
	show_progress(run);
}

/* -- ending ------------------------------------------------------------------------------------ */

static void signal_workload(const struct run *run, int sig)
{
	children_signal(&run->cg, run->is_child_reaped ? 0 : run->child.pid,
			guard_pid(run->env->guard), sig);
}

static void kill_workload(struct run *run)
{
	struct err err;

	run->was_killed = true;
	if (run->cg.dirfd >= 0 && !run->cg.is_fake && run->failure.code != -ENODEV &&
	    cgroup_kill(&run->cg, &err) < 0)
		log_err(run->env->opts->log, LOG_WARN, &err);
	/* Also the main process that has left the group, and those who never had one. */
	signal_workload(run, SIGKILL);
}

static void arm(struct run *run, enum source timer, int64_t first_ns, int64_t interval_ns)
{
	struct itimerspec its = {
		.it_value = {first_ns / NS_PER_S, first_ns % NS_PER_S},
		.it_interval = {interval_ns / NS_PER_S, interval_ns % NS_PER_S},
	};

	(void)timerfd_settime(run->fd[timer], 0, &its, NULL); /* the values are valid */
}

/* The limit goes at once, the workload is asked to end, and killed when it does not. */
static void ask_to_end(struct run *run, int sig, bool forward)
{
	if (run->is_ending) {
		log_msg(run->env->opts->log, LOG_NOTE, "killing the workload");
		kill_workload(run);
		return;
	}
	run->is_ending = true;
	if (run->squeezer)
		squeezer_release(run->squeezer, "the run is being ended");
	if (forward) {
		signal_workload(run, sig);
		signal_workload(run, SIGCONT); /* whoever is stopped cannot end */
	}
	log_msg(run->env->opts->log, LOG_NOTE,
		"limit released, waiting for the workload (once more to kill it)");
	arm(run, SRC_TIMEOUT, GRACE_NS, 0);
}

static void on_timeout(struct run *run)
{
	uint64_t ticks;

	(void)!read(run->fd[SRC_TIMEOUT], &ticks, sizeof(ticks));
	if (!run->is_ending) {
		run->has_timed_out = true;
		log_msg(run->env->opts->log, LOG_NOTE, "--timeout reached");
		ask_to_end(run, SIGTERM, true);
	} else {
		ask_to_end(run, SIGKILL, false);
	}
}

static void check_over(struct run *run)
{
	int populated;

	if (!run->is_child_reaped)
		return;
	if (run->cg.dirfd < 0) {
		run->is_over = !children_exist(guard_pid(run->env->guard));
		return;
	}
	populated = run->failure.code == -ENODEV ? 0 : cgroup_is_populated(&run->cg);
	run->is_over = populated <= 0;
	if (populated == 0 && run->end.group_empty_t_ns < 0 && !run->failure.code)
		run->end.group_empty_t_ns = elapsed(run);
}

/* Twice in a row: between leaving its group and its end an exiting process is in neither. */
static void check_escaped(struct run *run)
{
	static const char text[] = "the main process has left its group: figures of the group "
				   "are not its own, and no limit holds it";

	if (run->cg.dirfd < 0 || run->cg.is_fake || run->is_child_reaped || !run->is_recording ||
	    cgroup_is_populated(&run->cg) != 0) {
		run->empty_beats = 0;
	} else if (++run->empty_beats == 2) {
		note_event(run, "warning", text);
		log_msg(run->env->opts->log, LOG_WARN, "%s", text);
	}
}

static void on_reaped(struct run *run, pid_t pid, int status)
{
	if (pid == guard_pid(run->env->guard)) {
		log_msg(run->env->opts->log, LOG_WARN,
			"the guard process was killed: kill -9 of analyzer would leave the limit set");
		return;
	}
	if (pid != run->child.pid || run->is_child_reaped)
		return;
	run->is_child_reaped = true;
	if (run->end.exec_t_ns >= 0)
		run->end.duration_ns = elapsed(run) - run->end.exec_t_ns;
	if (WIFSIGNALED(status)) {
		run->end.term_signal = WTERMSIG(status);
		run->exit_status = 128 + WTERMSIG(status);
	} else {
		run->end.exit_code = WEXITSTATUS(status);
		run->exit_status = WEXITSTATUS(status);
	}
}

static void reap(struct run *run)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		on_reaped(run, pid, status);
	check_over(run);
}

static void beat(struct run *run)
{
	guard_beat(run->env->guard);
	run->beat_mono_ns = clock_mono_ns();
}

static void stop_ourselves(struct run *run)
{
	if (run->squeezer)
		squeezer_pause(run->squeezer, "analyzer is being stopped");
	(void)raise(SIGSTOP);
	/* Continued: what happened meanwhile is a hole in the samples. */
	beat(run);
	if (run->squeezer)
		squeezer_resume(run->squeezer);
}

static void on_signal(struct run *run)
{
	struct signalfd_siginfo si;

	if (read(run->fd[SRC_SIGNAL], &si, sizeof(si)) != sizeof(si))
		return;
	switch (si.ssi_signo) {
	case SIGCHLD:
		reap(run);
		break;
	case SIGTSTP:
		stop_ourselves(run);
		break;
	case SIGUSR1:
		show_progress(run);
		break;
	default:
		if (si.ssi_signo == run->end_signal &&
		    clock_mono_ns() - run->end_mono_ns < SAME_SIGNAL_NS)
			break;
		run->end_signal = si.ssi_signo;
		run->end_mono_ns = clock_mono_ns();
		/* What the terminal sends has reached the workload too: it is in our group. */
		log_msg(run->env->opts->log, LOG_NOTE, "%s", strsignal(si.ssi_signo));
		ask_to_end(run, si.ssi_signo, si.ssi_code != SI_KERNEL);
	}
}

static struct spawn_opts spawn_opts(const struct run *run)
{
	const struct session_opts *o = run->env->opts;

	return (struct spawn_opts){
		.argv = o->argv,
		.cg = run->cg.dirfd >= 0 ? &run->cg : NULL,
		.user = o->user,
		.stdin_path = o->stdin_path              ? o->stdin_path
			      : run->env->is_one_of_many ? "/dev/null"
							 : NULL,
		.sigmask = run->env->child_sigmask,
		.ignored = run->env->child_ignored,
	};
}

static int on_exec(struct run *run, struct err *err)
{
	struct spawn_opts so = spawn_opts(run);
	int r = spawn_exec_result(&run->child, &so, &run->exit_status, err);

	run->fd[SRC_EXEC] = -1; /* closed; epoll forgets it */
	if (r < 0) {
		run->end.reason = END_EXEC_FAILED;
		run->end.exec_t_ns = -1;
		return r;
	}
	if (run->squeezer)
		squeezer_executed(run->squeezer);
	return 0;
}

static void on_store_failure(struct run *run)
{
	(void)epoll_ctl(run->epoll_fd, EPOLL_CTL_DEL, run->fd[SRC_STORE], NULL);
	run->is_recording = false;
	run->end.reason = END_RECORDING_FAILED;
	(void)store_failure(run->env->store, &run->failure);
	log_err(run->env->opts->log, LOG_WARN, &run->failure);
	if (run->squeezer)
		squeezer_release(run->squeezer, "the recording failed");
}

static void on_beat(struct run *run)
{
	int64_t gap = clock_mono_ns() - run->beat_mono_ns;
	uint64_t ticks;

	(void)!read(run->fd[SRC_BEAT], &ticks, sizeof(ticks));
	beat(run);
	/* We were stopped (kill -STOP, a debugger): the guard has put the limits back, or was
	 * about to. Begin again from there instead of believing in a limit that is gone. */
	if (run->squeezer && gap > GUARD_STALE_NS - GUARD_BEAT_NS) {
		squeezer_pause(run->squeezer, "analyzer was stopped: the guard has put the limits "
					      "back");
		squeezer_resume(run->squeezer);
	}
}

/* -- the loop ---------------------------------------------------------------------------------- */

static int handle(struct run *run, enum source source, struct err *err)
{
	switch (source) {
	case SRC_SIGNAL:
		on_signal(run);
		break;
	case SRC_SAMPLE:
		on_sample_timer(run);
		break;
	case SRC_BEAT:
		on_beat(run);
		if (run->cg.dirfd < 0) {
			/* Without a group orphans come to us one generation after the other. */
			if (run->was_killed)
				signal_workload(run, SIGKILL);
			check_over(run); /* orphans end without a word to us */
		}
		check_escaped(run);
		break;
	case SRC_TIMEOUT:
		on_timeout(run);
		break;
	case SRC_EXEC:
		return on_exec(run, err);
	case SRC_GROUP:
		if (cgroup_is_populated(&run->cg) < 0)
			group_removed(run);
		check_over(run);
		break;
	case SRC_SQUEEZER:
		squeezer_dispatch(run->squeezer);
		break;
	case SRC_STORE:
		on_store_failure(run);
		break;
	case SRC_COUNT:
		break;
	}
	return 0;
}

static int loop(struct run *run, struct err *err)
{
	struct epoll_event ev[SRC_COUNT];
	int r = 0;

	while (!run->is_over) {
		int n = epoll_wait(run->epoll_fd, ev, ARRAY_SIZE(ev), -1);

		if (n < 0 && errno != EINTR)
			return err_errno(err, -errno, "the event loop failed");
		for (int i = 0; i < n; i++) {
			int failed = handle(run, ev[i].data.u32, err);

			r = r < 0 ? r : failed;
		}
	}
	return r;
}

static int watch(struct run *run, enum source source, int fd, uint32_t events, struct err *err)
{
	struct epoll_event ev = {.events = events, .data.u32 = source};

	run->fd[source] = fd;
	if (fd < 0 || epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(err, -errno, "cannot set up the event loop");
	return 0;
}

static int timer(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

static int set_up_loop(struct run *run, struct err *err)
{
	int r;

	run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = watch(run, SRC_SIGNAL, run->env->signal_fd, EPOLLIN, err);
	for (int t = SRC_SAMPLE; r == 0 && t <= SRC_TIMEOUT; t++)
		r = watch(run, t, timer(), EPOLLIN, err);
	if (r == 0)
		r = watch(run, SRC_STORE, store_event_fd(run->env->store), EPOLLIN, err);
	if (r == 0 && run->squeezer)
		r = watch(run, SRC_SQUEEZER, squeezer_fd(run->squeezer), EPOLLIN, err);
	if (r == 0 && run->cg.dirfd >= 0 && !run->cg.is_fake)
		r = watch(run, SRC_GROUP, run->cg.events_fd, EPOLLPRI, err);
	return r;
}

/* -- from start to end ------------------------------------------------------------------------- */

static void on_decision(void *ctx, const struct decision *d)
{
	struct run *run = ctx;

	store_put_decision(run->env->store, run->run_id, d);
}

static int set_up(struct run *run, struct err *err)
{
	const struct session_opts *o = run->env->opts;
	struct squeezer_opts so = {
		.cfg = run->spec->cfg,
		.cg = &run->cg,
		.undo = guard_undo(run->env->guard),
		.is_dry_run = o->is_dry_run,
		.on_decision = on_decision,
		.ctx = run,
	};
	int r = 0;

	if (run->env->tree)
		r = cgroup_create(&run->cg, run->env->tree, run->env->place, o->cgname, so.undo,
				  err);
	if (r == 0)
		r = sampler_new(&run->sampler, o->root, run->cg.dirfd, err);
	if (r == 0 && run->spec->cfg)
		r = squeezer_new(&run->squeezer, &so, err);
	if (r == 0)
		r = set_up_loop(run, err);
	return r;
}

static int record_start(struct run *run, struct err *err)
{
	const struct squeezer_config *cfg = run->spec->cfg;
	char started_at[CLOCK_ISO_MAX];
	_cleanup_str_ struct str config = {0};
	struct run_begin begin = {
		.name = run->spec->name,
		.kind = run->spec->kind,
		.policy = !cfg                            ? "none"
			  : run->spec->kind == RUN_STATIC ? "static"
							  : cfg->law,
		.knob = cfg ? knob_file(cfg->knob) : NULL,
		.limit_bytes = run->spec->kind == RUN_STATIC ? cfg->init_limit.bytes : -1,
		.command_json = run->env->command_json,
		.started_at = started_at,
		.started_mono_ns = run->t0_mono_ns,
		.period_ns = run->env->opts->period_ns,
		.repeat_index = run->spec->repeat_index,
		.run_order = run->spec->run_order,
		.compressor = run->env->compressor,
		.environment_json = run->env->environment_json,
	};
	int r;

	if (cfg)
		config_to_json(cfg, &config);
	begin.config_json = config.data;
	clock_iso_utc(started_at);
	r = store_run_begin(run->env->store, &begin, &run->run_id, err);
	if (r == 0)
		store_put_sample(run->env->store, run->run_id, &run->now);
	return r;
}

static int start_workload(struct run *run, struct err *err)
{
	const struct session_opts *o = run->env->opts;
	struct spawn_opts so = spawn_opts(run);
	int r = spawn_gated(&run->child, &so, err);

	if (r < 0)
		return r;
	run->has_child = true;
	run->t0_mono_ns = clock_mono_ns();
	(void)take_sample(run); /* a group gone already shows at the next one */
	r = record_start(run, err);
	/* The disk may have kept us for seconds: a guard about to call us dead would take back the
	 * limit that is written now. */
	beat(run);
	if (r == 0 && run->squeezer)
		r = squeezer_start(run->squeezer, run->t0_mono_ns, err);
	if (r == 0)
		r = watch(run, SRC_EXEC, run->child.exec_fd, EPOLLIN, err);
	if (r < 0)
		return r;
	run->is_recording = true;
	arm(run, SRC_SAMPLE, o->period_ns, o->period_ns);
	arm(run, SRC_BEAT, GUARD_BEAT_NS, GUARD_BEAT_NS);
	if (o->timeout_ns)
		arm(run, SRC_TIMEOUT, o->timeout_ns, 0);
	run->end.exec_t_ns = elapsed(run);
	spawn_open_gate(&run->child);
	return 0;
}

static enum end_reason why_ended(const struct run *run)
{
	if (run->end.reason != END_NONE)
		return run->end.reason;
	if (run->has_timed_out)
		return END_TIMEOUT;
	if (run->was_killed)
		return END_INTERRUPTED;
	return run->end.term_signal ? END_SIGNALLED : END_EXITED;
}

/* The last sample comes when the group is empty and its files still exist; it shows the limits
 * put back. */
static int record_end(struct run *run, struct err *err)
{
	struct rusage ru;

	if (run->squeezer)
		squeezer_release(run->squeezer, "the workload has ended");
	if (run->is_recording && take_sample(run) == 0)
		check_oom(run);
	if (run->sampler && sampler_lost_keys(run->sampler) > 0)
		store_put_loss(run->env->store, run->run_id, "sampler",
			       sampler_lost_keys(run->sampler),
			       "keys of this kernel that the table of metrics does not know, and "
			       "that found no room beside it");
	run->end.actuator_cpu_ns = squeezer_free(run->squeezer);
	run->squeezer = NULL;
	if (run->run_id == 0)
		return 0; /* failed before there was a row to end */
	(void)getrusage(RUSAGE_SELF, &ru);
	run->end.tool_rss_bytes = ru.ru_maxrss * INT64_C(1024);
	run->end.tool_cpu_ns = clock_process_cpu_ns() - run->start_cpu_ns;
	run->end.reason = why_ended(run);
	return store_run_end(run->env->store, run->run_id, &run->end, err);
}

/* Also the way out of a failed start: everything may be half made. */
static void tear_down(struct run *run)
{
	struct log *log = run->env->opts->log;
	struct err err;

	spawn_close(&run->child); /* ends a child that still waits at the gate */
	if (run->has_child && !run->is_child_reaped)
		(void)waitpid(run->child.pid, NULL, 0);
	(void)squeezer_free(run->squeezer);
	sampler_free(run->sampler);
	for (int t = SRC_SAMPLE; t <= SRC_TIMEOUT; t++)
		close_fd(&run->fd[t]);
	close_fd(&run->epoll_fd);
	if (run->cg.dirfd >= 0 && cgroup_remove(&run->cg, guard_undo(run->env->guard), &err) < 0)
		log_err(log, LOG_WARN, &err);
}

int run_execute(const struct run_env *env, const struct run_spec *spec, struct run_result *ret,
		struct err *err)
{
	struct run *run = calloc(1, sizeof(*run)); /* two samples: too large for the stack */
	struct err late;
	int r;

	if (!run)
		return err_errno(err, -ENOMEM, "cannot start a run");
	run->env = env;
	run->spec = spec;
	run->cg.dirfd = run->cg.events_fd = run->epoll_fd = -1;
	run->child = (struct spawned){.gate_fd = -1, .exec_fd = -1};
	run->peak_bytes = run->exit_status = -1;
	run->end = (struct run_end){
		.exec_t_ns = -1, .group_empty_t_ns = -1, .duration_ns = -1, .exit_code = -1};
	run->start_cpu_ns = clock_process_cpu_ns();
	memset(run->fd, -1, sizeof(run->fd));
	r = set_up(run, err);
	if (r == 0)
		r = start_workload(run, err);
	if (r == 0)
		r = loop(run, err);
	if (record_end(run, &late) < 0 && r == 0) {
		*err = late;
		r = late.code;
	}
	tear_down(run);
	*ret = (struct run_result){
		.exit_status = run->exit_status < 0 ? 125 : run->exit_status,
		.peak_bytes = run->peak_bytes,
		.reason = run->end.reason,
		.ends_session = r < 0 || run->failure.code || run->is_ending,
	};
	if (run->has_timed_out)
		ret->exit_status = 124;
	if (r < 0 && run->end.reason != END_EXEC_FAILED)
		ret->exit_status = 125;
	if (run->failure.code)
		ret->exit_status = 125; /* told already, when it happened */
	free(run);
	return r;
}
