#include "runner/run_internal.h"

#include "base/clock.h"
#include "runner/children.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* A sender that means all of us, such as timeout(1), signals first us and then our group: the same
 * signal within this time is the same request. A person's second Ctrl-C takes longer. */
#define SAME_SIGNAL_NS (100 * NS_PER_MS)

/* How long a workload that was asked to end may take before it is killed. */
#define GRACE_NS (10 * NS_PER_S)

void run_signal_workload(const struct run *run, int sig)
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
	run_signal_workload(run, SIGKILL);
}

void run_arm(struct run *run, enum source timer, int64_t first_ns, int64_t interval_ns)
{
	struct itimerspec its = {
		.it_value = {first_ns / NS_PER_S, first_ns % NS_PER_S},
		.it_interval = {interval_ns / NS_PER_S, interval_ns % NS_PER_S},
	};

	(void)timerfd_settime(run->fd[timer], 0, &its, NULL); /* the values are valid */
}

/* The limit goes at once, the workload is asked to end, and killed when it does not. */
void run_ask_to_end(struct run *run, int sig, bool forward)
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
		run_signal_workload(run, sig);
		run_signal_workload(run, SIGCONT); /* whoever is stopped cannot end */
	}
	log_msg(run->env->opts->log, LOG_NOTE,
		"limit released, waiting for the workload (once more to kill it)");
	run_arm(run, SRC_TIMEOUT, GRACE_NS, 0);
}

void run_on_timeout(struct run *run)
{
	uint64_t ticks;

	(void)!read(run->fd[SRC_TIMEOUT], &ticks, sizeof(ticks));
	if (!run->is_ending) {
		run->has_timed_out = true;
		log_msg(run->env->opts->log, LOG_NOTE, "--timeout reached");
		run_ask_to_end(run, SIGTERM, true);
	} else {
		run_ask_to_end(run, SIGKILL, false);
	}
}

void run_check_over(struct run *run)
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
		run->end.group_empty_t_ns = run_elapsed(run);
}

/* Twice in a row: between leaving its group and its end an exiting process is in neither. */
void run_check_escaped(struct run *run)
{
	static const char text[] = "the main process has left its group: figures of the group "
				   "are not its own, and no limit holds it";

	if (run->cg.dirfd < 0 || run->cg.is_fake || run->is_child_reaped || !run->is_recording ||
	    cgroup_is_populated(&run->cg) != 0) {
		run->empty_beats = 0;
	} else if (++run->empty_beats == 2) {
		run_note_event(run, "warning", text);
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
		run->end.duration_ns = run_elapsed(run) - run->end.exec_t_ns;
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
	run_check_over(run);
}

void run_beat(struct run *run)
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
	run_beat(run);
	if (run->squeezer)
		squeezer_resume(run->squeezer);
}

void run_on_signal(struct run *run)
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
		run_show_progress(run);
		break;
	default:
		if (si.ssi_signo == run->end_signal &&
		    clock_mono_ns() - run->end_mono_ns < SAME_SIGNAL_NS)
			break;
		run->end_signal = si.ssi_signo;
		run->end_mono_ns = clock_mono_ns();
		/* What the terminal sends has reached the workload too: it is in our group. */
		log_msg(run->env->opts->log, LOG_NOTE, "%s", strsignal(si.ssi_signo));
		run_ask_to_end(run, si.ssi_signo, si.ssi_code != SI_KERNEL);
	}
}
