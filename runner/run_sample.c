#include "runner/run_internal.h"

#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/epoll.h>

int64_t run_elapsed(const struct run *run)
{
	return clock_mono_ns() - run->t0_mono_ns;
}

void run_note_event(struct run *run, const char *kind, const char *detail)
{
	store_put_event(run->env->store, run->run_id, run_elapsed(run), kind, detail);
}

void run_show_progress(const struct run *run)
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
		.done = NAN,
	};
	int64_t d;

	if (sample_delta(&run->prev, &run->now, M_memory_stat_pgmajfault, &d) && dt_s > 0)
		p.fault_rate = d / dt_s;
	if (sample_delta(&run->prev, &run->now, M_memory_pressure_full_total, &d) && dt_s > 0)
		p.stall_full = d / 1e6 / dt_s;
	o->on_progress(o->ctx, &p);
}

void run_check_oom(struct run *run)
{
	char text[96];
	int64_t d;

	if (!sample_delta(&run->prev, &run->now, M_memory_events_oom_kill, &d) || d == 0)
		return;
	(void)snprintf(text, sizeof(text), "%" PRId64 " process(es) killed for lack of memory", d);
	run_note_event(run, "oom_kill", text);
	log_msg(run->env->opts->log, LOG_WARN, "%s: %s", run->spec->name, text);
	if (run->squeezer && run->spec->kind == RUN_DYNAMIC)
		squeezer_release(run->squeezer, "a process was killed for lack of memory");
}

void run_group_removed(struct run *run)
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
	run_note_event(run, "cgroup_removed", run->failure.msg);
}

int run_take_sample(struct run *run)
{
	struct err err;
	int64_t usage;
	int r;

	run->prev = run->now;
	r = sampler_take(run->sampler, &run->now, &err);
	run->now.seq = run->prev.seq + 1;
	run->now.t_ns = run->now.seq == 1 ? 0 : run_elapsed(run);
	if (r == -ENODEV)
		return r;
	usage = sample_get(&run->now, M_memory_peak, sample_get(&run->now, M_memory_current, -1));
	run->peak_bytes = MAX(run->peak_bytes, usage);
	if (run->run_id > 0)
		store_put_sample(run->env->store, run->run_id, &run->now);
	return 0;
}

void run_on_sample_timer(struct run *run)
{
	uint64_t ticks;

	/* Missed ticks are skipped, not made up for. */
	if (read(run->fd[SRC_SAMPLE], &ticks, sizeof(ticks)) < 0 || !run->is_recording)
		return;
	if (run_take_sample(run) < 0) {
		run_group_removed(run);
		return;
	}
	run_check_oom(run);
	if (run->squeezer)
		squeezer_observe(run->squeezer, &run->now);
	run_show_progress(run);
}
