#include "runner/run_internal.h"

#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

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
		.prepare = run->trace ? trace_enter : NULL,
		.prepare_ctx = run->trace,
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
	run_beat(run);
	if (run->trace && !trace_beat(run->trace) && !run->is_ending) {
		log_msg(run->env->opts->log, LOG_WARN,
			"an allocation event was lost: the run ends");
		run_ask_to_end(run, SIGTERM, true);
	}
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
		run_on_signal(run);
		break;
	case SRC_SAMPLE:
		run_on_sample_timer(run);
		break;
	case SRC_BEAT:
		on_beat(run);
		if (run->cg.dirfd < 0) {
			/* Without a group orphans come to us one generation after the other. */
			if (run->was_killed)
				run_signal_workload(run, SIGKILL);
			run_check_over(run); /* orphans end without a word to us */
		}
		run_check_escaped(run);
		break;
	case SRC_TIMEOUT:
		run_on_timeout(run);
		break;
	case SRC_EXEC:
		return on_exec(run, err);
	case SRC_GROUP:
		if (cgroup_is_populated(&run->cg) < 0)
			run_group_removed(run);
		run_check_over(run);
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

/* A tracer that cannot be had costs the stacks, not the run. */
static void give_up_trace(struct run *run, const struct err *why)
{
	log_msg(run->env->opts->log, LOG_WARN, "no allocation stacks: %s", why->msg);
	if (why->hint[0])
		log_msg(run->env->opts->log, LOG_NOTE, "%s", why->hint);
	run->no_trace = *why;
	trace_free(run->trace);
	run->trace = NULL;
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
	struct err why;
	int r = 0;

	if (run->env->tree)
		r = cgroup_create(&run->cg, run->env->tree, run->env->place, o->cgname, so.undo,
				  err);
	if (r == 0)
		r = sampler_new(&run->sampler, o->root, run->cg.dirfd, err);
	if (r == 0 && run->spec->cfg)
		r = squeezer_new(&run->squeezer, &so, err);
	if (r == 0 && run->spec->is_traced &&
	    trace_new(&run->trace, run->env, run->spec, &run->cg, &why) < 0)
		give_up_trace(run, &why);
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

static void start_trace(struct run *run)
{
	struct err why;

	/* Without a mount namespace of its own the workload's opens cannot be told from others'. */
	if (run->child.prepared < 0)
		(void)err_errno(&why, run->child.prepared,
				"the workload cannot be given its own mount namespace");
	else if (trace_start(run->trace, run->run_id, run->child.pid, run->t0_mono_ns, &why) == 0)
		return;
	give_up_trace(run, &why);
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
	(void)run_take_sample(run); /* a group gone already shows at the next one */
	r = record_start(run, err);
	/* The disk may have kept us for seconds: a guard about to call us dead would take back the
	 * limit that is written now. */
	run_beat(run);
	if (r == 0 && run->squeezer)
		r = squeezer_start(run->squeezer, run->t0_mono_ns, err);
	if (r == 0)
		r = watch(run, SRC_EXEC, run->child.exec_fd, EPOLLIN, err);
	if (r < 0)
		return r;
	if (run->trace)
		start_trace(run);
	run->is_recording = true;
	run_arm(run, SRC_SAMPLE, o->period_ns, o->period_ns);
	run_arm(run, SRC_BEAT, GUARD_BEAT_NS, GUARD_BEAT_NS);
	if (o->timeout_ns)
		run_arm(run, SRC_TIMEOUT, o->timeout_ns, 0);
	run->end.exec_t_ns = run_elapsed(run);
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

static int64_t cpu_ns(const struct run *run)
{
	int64_t us = sample_get(&run->now, M_cpu_stat_usage_usec, -1);

	return us < 0 ? -1 : us * 1000;
}

/* The last sample comes when the group is empty and its files still exist; it shows the limits
 * put back. */
static int record_end(struct run *run, struct err *err)
{
	struct rusage ru;
	struct err why;

	if (run->squeezer)
		squeezer_release(run->squeezer, "the workload has ended");
	if (run->is_recording && run_take_sample(run) == 0)
		run_check_oom(run);
	if (run->sampler && sampler_lost_keys(run->sampler) > 0)
		store_put_loss(run->env->store, run->run_id, "sampler",
			       sampler_lost_keys(run->sampler),
			       "keys of this kernel that the table of metrics does not know, and "
			       "that found no room beside it");
	run->end.actuator_cpu_ns = squeezer_free(run->squeezer);
	run->squeezer = NULL;
	if (run->run_id == 0)
		return 0; /* failed before there was a row to end */
	if (run->trace && trace_finish(run->trace, cpu_ns(run), &why) < 0)
		log_err(run->env->opts->log, LOG_WARN, &why);
	else if (run->no_trace.code)
		trace_decline(run->env, run->run_id, run->no_trace.msg);
	else if (!run->trace)
		trace_decline(run->env, run->run_id,
			      run->env->opts->trace == TRACE_NONE
				      ? "-t none"
				      : "one of several runs; -t alloc,fault adds traced ones");
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
	trace_free(run->trace);
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
