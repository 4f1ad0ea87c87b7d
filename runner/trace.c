#include "runner/trace.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "store/events.h"
#include "tracer/tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#define STATS_MAX 256 /* rings that get rows in tracer_stat */
#define EVENTS_MAX (INT64_C(4) << 30)
#define FAULT_ROWS_MAX INT64_C(1000000) /* about 100 MB */
#define COST_BEATS 3                    /* the cost is told after 1.5 s at the earliest … */
#define COST_TOLD 0.05 /* … from this slowdown on, of a workload that has used 0.1 s */
#define COST_CPU_NS (NS_PER_S / 10)

struct trace {
	const struct run_env *env;
	const struct cgroup *cg; /* the run's */
	struct tracer *tracer;
	struct trace_sink sink;
	int64_t run_id, t0_mono_ns;
	int run_index;
	int undo_freeze, undo_continue;
	int64_t fault_rows, faults_left_out;
	int64_t bytes_before; /* in events.zst, of runs before this one */
	int beats;
	bool has_told_cost;
	int64_t encode_ns, write_ns; /* of the reader's thread, for trace_beat */
	struct tracer_stat stats[STATS_MAX];
};

/* -- the sink: events.zst of the session ----------------------------------------------------------
 */

static void on_function(void *ctx, uint16_t id, const char *name)
{
	events_put_function(*((struct trace *)ctx)->env->events, id, name);
}

static void on_module(void *ctx, const struct module *m)
{
	events_put_module(*((struct trace *)ctx)->env->events, m);
}

static void on_stack(void *ctx, uint32_t id, enum stack_quality quality,
		     const struct frame_ref *frames, uint32_t n)
{
	events_put_stack(*((struct trace *)ctx)->env->events, id, quality, frames, n);
}

static void on_event(void *ctx, const struct event *ev)
{
	events_put(*((struct trace *)ctx)->env->events, ev);
}

/* Sites, and events.zst, go on counting when the table has enough of them. */
static void on_faults(void *ctx, const struct fault *faults, size_t n)
{
	struct trace *t = ctx;
	size_t rows = MIN(n, (size_t)(FAULT_ROWS_MAX - t->fault_rows));

	t->fault_rows += (int64_t)rows;
	t->faults_left_out += (int64_t)(n - rows);
	if (rows > 0)
		store_put_faults(t->env->store, t->run_id, faults, rows);
}

static void on_scan(void *ctx, const struct scan *scan, const struct site_sample *sites, size_t n)
{
	const struct trace *t = ctx;

	store_put_scan(t->env->store, t->run_id, scan, sites, n);
}

static void on_loss(void *ctx, int ring, int64_t from_ns, int64_t to_ns, int64_t count)
{
	struct trace *t = ctx;
	char detail[160];

	events_put_loss(*t->env->events, ring, from_ns, to_ns, count);
	(void)snprintf(detail, sizeof(detail),
		       "ring %d was full between %.3f s and %.3f s of the run", ring,
		       (double)(from_ns - t->t0_mono_ns) / NS_PER_S,
		       (double)(to_ns - t->t0_mono_ns) / NS_PER_S);
	store_put_loss(t->env->store, t->run_id, "ring", count, detail);
}

static void on_flush(void *ctx)
{
	struct trace *t = ctx;
	struct events_totals e;

	events_flush(*t->env->events);
	e = events_writer_totals(*t->env->events);
	__atomic_store_n(&t->encode_ns, e.encode_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&t->write_ns, e.write_ns, __ATOMIC_RELAXED);
}

/* 4 GiB, or a tenth of what is free. */
static int64_t events_max(const struct run_env *env)
{
	struct statvfs fs;
	int64_t max = EVENTS_MAX;

	if (env->opts->events_max_bytes > 0)
		return env->opts->events_max_bytes;
	if (fstatvfs(env->dir->dirfd, &fs) == 0)
		max = MIN(max, (int64_t)fs.f_bavail * (int64_t)fs.f_frsize / 10);
	return max;
}

/* One file for all runs of the session, made when the first one is traced. */
static int open_events(const struct run_env *env, struct err *err)
{
	if (*env->events)
		return 0;
	return events_writer_open(env->events, env->dir->dirfd, env->dir->path, env->dir->uid,
				  env->dir->gid, events_max(env), err);
}

/* -- life ----------------------------------------------------------------------------------------
 */

static int64_t test_setting(const char *name)
{
	const char *text = getenv(name);
	int64_t v = 0;

	return text && num_parse_u63(text, &v) == 0 ? v : 0;
}

/* Frozen or stopped, the workload must not stay so when we are killed. */
static int register_undo(struct trace *t, const struct cgroup *cg, struct err *err)
{
	struct undo *undo = guard_undo(t->env->guard);
	char path[sizeof(cg->path) + 16];
	struct undo_entry e = {.kind = UNDO_WRITE, .path = path, .value = "0"};

	(void)snprintf(path, sizeof(path), "%s/cgroup.freeze", cg->path);
	t->undo_freeze = undo_add(undo, &e, err);
	if (t->undo_freeze < 0)
		return t->undo_freeze;
	e = (struct undo_entry){.kind = UNDO_CONTINUE, .path = cg->path};
	t->undo_continue = undo_add(undo, &e, err);
	return MIN(t->undo_continue, 0);
}

int trace_new(struct trace **ret, const struct run_env *env, const struct run_spec *spec,
	      const struct cgroup *cg, struct err *err)
{
	struct trace *t;
	struct tracer_opts o = {
		.command = env->opts->argv[0],
		.cg = cg,
		.policy = env->opts->trace_policy,
		.parts = env->opts->trace == TRACE_ASKED ? env->opts->trace_parts
							 : TRACE_ALLOC | TRACE_FAULT,
		.scan_period_ns = env->opts->period_ns,
		/* What tests need to bring the pipeline under pressure. */
		.ring_bytes = (size_t)test_setting("ANALYZER_TEST_RING_BYTES"),
		.reader_delay_ms = (int)test_setting("ANALYZER_TEST_READER_DELAY_MS"),
	};
	int r;

	if (cg->dirfd < 0 || cg->is_fake) {
		(void)err_set(err, -ENOTSUP, "there is no cgroup that says whom to trace");
		return err_hint(err, "run as root where cgroup v2 is mounted");
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	t->env = env;
	t->cg = cg;
	t->run_index = spec->run_order;
	t->sink = (struct trace_sink){
		.ctx = t,
		.function = on_function,
		.module = on_module,
		.stack = on_stack,
		.event = on_event,
		.faults = on_faults,
		.scan = on_scan,
		.loss = on_loss,
		.flush = on_flush,
	};
	o.sink = &t->sink;
	r = open_events(env, err);
	if (r == 0)
		r = register_undo(t, cg, err);
	if (r == 0)
		r = tracer_new(&t->tracer, &o, err);
	if (r < 0) {
		trace_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	tracer_free(t->tracer);
	if (t->undo_freeze > 0)
		undo_drop(guard_undo(t->env->guard), t->undo_freeze);
	if (t->undo_continue > 0)
		undo_drop(guard_undo(t->env->guard), t->undo_continue);
	free(t);
}

int trace_enter(void *trace)
{
	return tracer_enter(((struct trace *)trace)->tracer);
}

int trace_start(struct trace *t, int64_t run_id, pid_t pid, int64_t t0_mono_ns, struct err *err)
{
	struct err why;

	t->run_id = run_id;
	t->t0_mono_ns = t0_mono_ns;
	t->bytes_before = events_writer_totals(*t->env->events).bytes;
	events_put_run(*t->env->events, run_id, t0_mono_ns);
	if (tracer_no_faults(t->tracer, &why) < 0) {
		log_err(t->env->opts->log, LOG_WARN, &why);
		store_put_event(t->env->store, run_id, clock_mono_ns() - t0_mono_ns, "warning",
				why.msg);
	}
	return tracer_start(t->tracer, pid, t0_mono_ns, err);
}

/* Once, as soon as it is worth telling. */
static void tell_cost(struct trace *t)
{
	int64_t cpu_ns = cgroup_cpu_ns(t->cg);
	double slowdown = tracer_slowdown(t->tracer, cpu_ns);
	bool is_least = slowdown >= TRACE_SLOWDOWN_MAX;
	const char *about = is_least ? "more than" : "about";

	if (cpu_ns < COST_CPU_NS || !(slowdown >= COST_TOLD))
		return;
	t->has_told_cost = true;
	log_msg(t->env->opts->log, LOG_NOTE,
		"tracing has taken %s %.0f %% of the workload's CPU time so far: it needs %s %.1f "
		"times as much as with -t none",
		about, 100 * slowdown / (1 + slowdown), about, 1 + slowdown);
}

bool trace_beat(struct trace *t)
{
	int n;

	t->beats++;
	if (!t->has_told_cost && t->beats >= COST_BEATS)
		tell_cost(t);
	if (t->beats % 2)
		return !tracer_has_aborted(t->tracer);
	n = tracer_stats(t->tracer, t->stats, STATS_MAX);
	for (int i = 0; i < n; i++) {
		t->stats[i].t_ns -= t->t0_mono_ns;
		t->stats[i].encode_ns = __atomic_load_n(&t->encode_ns, __ATOMIC_RELAXED);
		t->stats[i].write_ns = __atomic_load_n(&t->write_ns, __ATOMIC_RELAXED);
		store_put_tracer_stat(t->env->store, t->run_id, &t->stats[i]);
	}
	return !tracer_has_aborted(t->tracer);
}

static void on_progress(void *ctx, double done)
{
	struct trace *t = ctx;
	const struct session_opts *o = t->env->opts;
	const struct progress p = {.phase = "naming",
				   .run_index = t->run_index,
				   .run_count = t->env->run_count,
				   .elapsed_ns = clock_mono_ns() - t->t0_mono_ns,
				   .done = done};

	guard_beat(t->env->guard);
	o->on_progress(o->ctx, &p);
}

/* What could not be recorded is a loss; sites do not depend on it. */
static void tell_unrecorded(struct trace *t)
{
	struct events_totals e = events_writer_totals(*t->env->events);
	struct err why;

	if (t->faults_left_out > 0)
		store_put_loss(t->env->store, t->run_id, "fault rows", t->faults_left_out,
			       "major faults without a row of their own: there are a million");
	if (events_writer_failure(*t->env->events, &why) == 0)
		return;
	log_err(t->env->opts->log, LOG_WARN, &why);
	store_put_loss(t->env->store, t->run_id, "events.zst", e.not_recorded, why.msg);
}

int trace_finish(struct trace *t, int64_t cpu_ns, struct err *err)
{
	struct tracer_run run = {.cpu_ns = cpu_ns};
	struct trace_result result;
	int r;

	tracer_stop(t->tracer);
	tell_unrecorded(t);
	run.bytes_written = events_writer_totals(*t->env->events).bytes - t->bytes_before;
	r = tracer_result(t->tracer, run, on_progress, t, &result, err);
	if (r == 0)
		r = store_write_trace(t->env->store, t->run_id, &result, err);
	return r;
}

void trace_decline(const struct run_env *env, int64_t run_id, const char *why)
{
	struct json_object *o = json_object_new_object();
	struct trace_result none = {0};
	struct err ignored; /* the recording's own failure is told by itself */

	if (!o)
		return;
	json_object_object_add(o, "not_traced", json_object_new_string(why));
	none.summary_json = json_object_to_json_string(o);
	(void)store_write_trace(env->store, run_id, &none, &ignored);
	json_object_put(o);
}
