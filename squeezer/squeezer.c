#include "squeezer/squeezer.h"

#include "base/clock.h"
#include "base/fmt.h"
#include "base/num.h"
#include "squeezer/actuator.h"
#include "squeezer/observe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>

/* Least automatic headroom: a service's ordinary growth within one tick. */
#define HEADROOM_MIN (INT64_C(16) << 20)
/* Usage that grows by less than this share per second has left its warm-up. */
#define STEADY_GROWTH 0.02
/* A static limit is written when usage is this far below it, since the workload runs on while
 * we look. */
#define STATIC_MARGIN (INT64_C(1) << 20)
/* A static limit has no law that waits for an answer: it may take its time to get there. */
#define STATIC_TIMEOUT_NS (60 * NS_PER_S)

/* Both limits that we write, as they were found. */
struct found {
	const char *file;
	int64_t value;
	int undo_id;
};

struct squeezer {
	struct squeezer_opts o;
	const struct law *law; /* NULL in mode static */
	struct law_state law_state;
	struct actuator *actuator;
	int epoll_fd, events_fd, current_fd;
	struct found found[2]; /* memory.max, memory.high */
	int64_t t0_mono_ns, exec_mono_ns;
	struct sample prev;
	bool has_prev;
	int calm_ticks;
	bool is_steady;
	bool is_released; /* by squeezer_release: hands off */
	bool is_paused;   /* … until squeezer_resume */
	bool is_done;     /* mode static: the limit is in place */
	int64_t limit;    /* held by us; NUM_MAX = none */
	int64_t growth;   /* of the last tick */
	int boost;        /* headroom is doubled by events, and halves again */
	int64_t seen_high, seen_max;
	struct decision pending; /* the tightening that the actuator works on */
	int64_t pending_mono_ns, pending_timeout_ns, pending_swap;
	bool has_last;
	enum outcome last;
	struct decision last_hold;
};

enum { FOUND_MAX, FOUND_HIGH };

/* -- reading and writing -------------------------------------------------------------------- */

static int64_t read_usage(const struct squeezer *s)
{
	char buf[32];
	const char *end;
	int64_t v;
	ssize_t n = pread(s->current_fd, buf, sizeof(buf), 0);

	return n > 0 && num_scan_u63(buf, buf + n, &v, &end) == 0 ? v : -1;
}

static int64_t headroom(const struct squeezer *s, int64_t usage)
{
	int64_t set = s->o.cfg->headroom.bytes;

	if (set >= 0)
		return set * s->boost;
	return MAX(MAX(usage / 50, HEADROOM_MIN), 3 * s->growth) * s->boost;
}

static int write_limit(struct squeezer *s, int which, int64_t value)
{
	if (s->o.is_dry_run)
		return 0;
	return cgroup_write_number(s->o.cg, s->found[which].file, value);
}

/* The limits as they were found; nothing in it can block. */
static void give_back(struct squeezer *s)
{
	(void)write_limit(s, FOUND_MAX, s->found[FOUND_MAX].value); /* gone = nothing to limit */
	(void)write_limit(s, FOUND_HIGH, s->found[FOUND_HIGH].value);
	s->limit = NUM_MAX;
}

/*
 * Holds the limit, never below usage. With knob memory.max a tripwire goes with it: memory.high
 * half-way between usage and limit slows growth down and wakes us before the limit is met; a
 * held memory.max alone was seen to OOM-kill.
 */
static int hold_limit(struct squeezer *s, int64_t limit)
{
	int64_t usage = read_usage(s);
	int r;

	if (usage < 0)
		return -EIO;
	limit = MAX(limit, MAX(s->o.cfg->min_limit.bytes, usage + usage / 64));
	limit = MIN(limit, s->o.cfg->max_limit.bytes);
	if (limit < usage)
		return -EBUSY; /* max_limit is below usage: not by force */
	if (s->o.cfg->knob == KNOB_RECLAIM)
		return 0;
	if (s->o.cfg->knob == KNOB_MAX) {
		r = write_limit(s, FOUND_MAX, limit);
		if (r < 0)
			return r;
	}
	r = write_limit(s, FOUND_HIGH,
			s->o.cfg->knob == KNOB_MAX ? usage + (limit - usage) / 2 : limit);
	if (r < 0)
		return r;
	s->limit = limit;
	return 0;
}

/* Swap used by the group; 0 where there is none. */
static int64_t read_swap(const struct squeezer *s)
{
	int64_t v;

	return cgroup_read_number(s->o.cg, "memory.swap.current", &v) == 0 ? v : 0;
}

/* -- decisions -------------------------------------------------------------------------------- */

static int64_t now_ns(const struct squeezer *s)
{
	return clock_mono_ns() - s->t0_mono_ns;
}

static struct decision new_decision(const struct squeezer *s, const struct observation *obs,
				    enum action action, const char *reason)
{
	struct decision d = {
		.t_ns = now_ns(s),
		.action = action,
		.fault_rate = obs ? obs->fault_rate : NAN,
		.stall_some = obs ? obs->stall_some : NAN,
		.stall_full = obs ? obs->stall_full : NAN,
		.refault_ratio = obs ? obs->refault_ratio : NAN,
		.usage_bytes = obs ? obs->usage_bytes : read_usage(s),
		.limit_before = s->limit,
		.limit_after = s->limit,
	};

	(void)snprintf(d.reason, sizeof(d.reason), "%s", reason);
	return d;
}

static void tell(struct squeezer *s, struct decision *d, int r)
{
	d->limit_after = s->limit;
	d->took_ns = now_ns(s) - d->t_ns;
	d->outcome = s->o.is_dry_run ? OUTCOME_SKIPPED : r < 0 ? OUTCOME_ERROR : d->outcome;
	s->o.on_decision(s->o.ctx, d);
}

/* A hold is worth a row when it says something new, or once a second. */
static void tell_hold(struct squeezer *s, struct decision *d)
{
	if (s->last_hold.t_ns && strcmp(s->last_hold.reason, d->reason) == 0 &&
	    d->t_ns - s->last_hold.t_ns < NS_PER_S)
		return;
	s->last_hold = *d;
	tell(s, d, 0);
}

static bool is_swap_low(const struct squeezer *s, const struct sample *now, int64_t usage)
{
	return observe_swap_free(now) < 2 * headroom(s, usage);
}

static void finish_pending(struct squeezer *s, const struct actuator_result *res)
{
	struct decision *d = &s->pending;
	int64_t usage = res->usage_bytes, want;
	int r = 0;

	d->outcome = res->outcome;
	s->has_last = true;
	s->last = res->outcome;
	/* Reclaim fills swap. Less of it than before means that the workload itself let go, such
	 * as at its end: no size that it could run in. */
	if (s->law && read_swap(s) < s->pending_swap) {
		(void)snprintf(d->reason, sizeof(d->reason), "not held: the workload freed memory");
	} else if (s->law && usage >= 0 && !is_swap_low(s, &s->prev, usage)) {
		want = usage + headroom(s, usage);
		/* What has been gained is held; a limit already lower stays. */
		if (want < s->limit)
			r = hold_limit(s, want);
	} else if (res->wrote_limit) {
		s->limit = s->o.cfg->init_limit.bytes;
		s->is_done = true;
	}
	if (res->outcome == OUTCOME_ERROR)
		r = -res->error;
	tell(s, d, r);
	d->t_ns = 0;
}

static void cancel_pending(struct squeezer *s, enum outcome outcome)
{
	struct actuator_result res = {.outcome = outcome};

	if (!s->actuator || !actuator_is_busy(s->actuator))
		return;
	res.usage_bytes = read_usage(s); /* what it has reached so far is held as well */
	actuator_cancel(s->actuator);
	finish_pending(s, &res);
}

static void tighten(struct squeezer *s, const struct observation *obs, const struct verdict *v)
{
	struct actuator_request req = {
		.target_bytes =
			MAX(MAX(v->target_bytes, obs->floor_bytes), s->o.cfg->min_limit.bytes),
		.max_step_bytes = s->o.cfg->max_step_bytes,
		.timeout_ns = s->law ? (int64_t)(s->o.cfg->squeeze_timeout_s * NS_PER_S)
				     : STATIC_TIMEOUT_NS,
		.then_limit_bytes =
			s->law || s->o.cfg->knob == KNOB_RECLAIM ? -1 : s->o.cfg->init_limit.bytes,
	};
	struct err err;
	int r;

	(void)snprintf(req.then_file, sizeof(req.then_file), "%s", knob_file(s->o.cfg->knob));
	s->pending = new_decision(s, obs, ACTION_TIGHTEN, v->reason);
	s->pending_mono_ns = clock_mono_ns();
	s->pending_timeout_ns = req.timeout_ns;
	s->pending_swap = read_swap(s);
	if (!s->actuator) {
		tell(s, &s->pending, 0);
		return;
	}
	r = actuator_reclaim(s->actuator, &req, &err);
	if (r < 0)
		tell(s, &s->pending, r);
}

static void relax(struct squeezer *s, const struct observation *obs, int64_t limit,
		  const char *reason)
{
	struct decision d;
	int r = 0;

	cancel_pending(s, OUTCOME_PARTIAL);
	d = new_decision(s, obs, ACTION_RELAX, reason);
	if (s->limit != NUM_MAX)
		r = hold_limit(s, MAX(limit, s->limit));
	tell(s, &d, r);
}

static void release(struct squeezer *s, const struct observation *obs, const char *reason)
{
	struct decision d;

	cancel_pending(s, OUTCOME_PARTIAL);
	d = new_decision(s, obs, ACTION_RELEASE, reason);
	give_back(s);
	tell(s, &d, 0);
}

/*
 * The limit follows usage down by itself when usage falls without a request of ours in flight:
 * a request that was given up may still do its work. True if it did.
 */
static bool follow(struct squeezer *s, const struct observation *obs, const struct sample *now)
{
	int64_t swap = sample_get(now, M_memory_swap_current, 0);
	int64_t want = obs->usage_bytes + obs->headroom_bytes;
	struct decision d;

	if (!s->law || s->limit == NUM_MAX || want > s->limit - obs->headroom_bytes / 4 ||
	    obs->growth_bytes > 0 || swap < sample_get(&s->prev, M_memory_swap_current, 0))
		return false;
	d = new_decision(s, obs, ACTION_TIGHTEN, "usage fell: the limit follows");
	tell(s, &d, hold_limit(s, want));
	return true;
}

/* -- events ----------------------------------------------------------------------------------- */

static int64_t event_count(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *end;
	int64_t v;

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, n) == 0 && p[n] == ' ' &&
		    num_scan_u63(p + n + 1, text + strlen(text), &v, &end) == 0)
			return v;
	}
	return 0;
}

/* The group met its limit: raised at once, by twice as much each time it happens again. */
static void on_memory_event(struct squeezer *s)
{
	char text[512], reason[96];
	ssize_t n = pread(s->events_fd, text, sizeof(text) - 1, 0);
	int64_t high, max, usage;
	bool is_new;

	if (n < 0) {
		/* The group is gone: the session sees that by itself. A removed file is ready for
		 * ever, which would keep the loop busy until the workload ends. */
		(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->events_fd, NULL);
		return;
	}
	text[n] = '\0';
	high = event_count(text, "high");
	max = event_count(text, "max");
	is_new = high > s->seen_high || max > s->seen_max;
	if (is_new && s->law && s->limit != NUM_MAX) {
		(void)snprintf(reason, sizeof(reason),
			       "the group met its limit (high +%" PRId64 ", max +%" PRId64 ")",
			       high - s->seen_high, max - s->seen_max);
		s->boost = MIN(s->boost * 2, 64);
		usage = read_usage(s);
		relax(s, NULL, usage + headroom(s, usage), reason);
	}
	s->seen_high = high;
	s->seen_max = max;
}

/*
 * A cancelled request has ended only now: between its last look at the cancellation and its write
 * we may have put the limits where they belong, and it came after us.
 */
static void put_again(struct squeezer *s)
{
	if (s->limit == NUM_MAX)
		give_back(s);
	else if (s->law)
		(void)hold_limit(s, s->limit);
}

void squeezer_dispatch(struct squeezer *s)
{
	struct epoll_event ev[2];
	struct actuator_result res;
	int n = epoll_wait(s->epoll_fd, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		if (ev[i].data.fd == s->events_fd) {
			on_memory_event(s);
			continue;
		}
		switch (actuator_result(s->actuator, &res)) {
		case 1:
			finish_pending(s, &res);
			break;
		case 2:
			put_again(s);
			break;
		case -EPIPE:
			/* Killed from outside (OOM killer): go on without, as in a dry run. */
			(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, ev[i].data.fd, NULL);
			cancel_pending(s, OUTCOME_ERROR);
			release(s, NULL, "the actuator process died");
			s->is_released = true;
			s->is_paused = false; /* nobody is left to squeeze with */
			break;
		}
	}
}

/* -- ticks ------------------------------------------------------------------------------------ */

static void update_steady(struct squeezer *s, const struct observation *obs)
{
	double allowed = STEADY_GROWTH * obs->usage_bytes * obs->dt_s;

	s->growth = MAX(obs->growth_bytes, 0);
	s->calm_ticks = obs->growth_bytes <= allowed ? s->calm_ticks + 1 : 0;
	if (s->exec_mono_ns && s->calm_ticks >= 2 &&
	    clock_mono_ns() - s->exec_mono_ns >= s->o.cfg->delay_s * NS_PER_S)
		s->is_steady = true;
}

/* Mode static: down to the limit once, then hold. */
static void step_static(const struct squeezer *s, const struct observation *obs,
			struct verdict *ret)
{
	char limit[FMT_MAX];

	*ret = (struct verdict){.action = ACTION_HOLD};
	fmt_bytes(limit, s->o.cfg->init_limit.bytes);
	if (s->is_done) {
		(void)snprintf(ret->reason, sizeof(ret->reason), "holding the limit %s", limit);
	} else if (!obs->is_steady) {
		(void)snprintf(ret->reason, sizeof(ret->reason), "usage is still growing");
	} else {
		ret->action = ACTION_TIGHTEN;
		ret->target_bytes = MAX(s->o.cfg->init_limit.bytes - STATIC_MARGIN, 0);
		(void)snprintf(ret->reason, sizeof(ret->reason), "down to the limit %s", limit);
	}
}

static void act(struct squeezer *s, const struct observation *obs, const struct verdict *v)
{
	struct decision d;

	switch (v->action) {
	case ACTION_TIGHTEN:
		tighten(s, obs, v);
		break;
	case ACTION_RELAX:
		relax(s, obs, MAX(v->target_bytes, obs->usage_bytes + obs->headroom_bytes),
		      v->reason);
		break;
	case ACTION_RELEASE:
		release(s, obs, v->reason);
		break;
	case ACTION_HOLD:
		d = new_decision(s, obs, ACTION_HOLD, v->reason);
		tell_hold(s, &d);
		break;
	}
}

static void tick(struct squeezer *s, struct observation *obs, const struct sample *now)
{
	struct verdict v = {0};

	obs->limit_bytes = s->limit;
	obs->headroom_bytes = headroom(s, obs->usage_bytes);
	obs->is_steady = s->is_steady;
	obs->has_last = s->has_last;
	obs->last = s->last;
	if (s->actuator && actuator_is_busy(s->actuator)) {
		/* It watches the time itself; what is late by as much again sits in one write. */
		if (clock_mono_ns() - s->pending_mono_ns > 2 * s->pending_timeout_ns)
			cancel_pending(s, OUTCOME_TIMEOUT);
		return;
	}
	if (s->law && s->limit != NUM_MAX && is_swap_low(s, now, obs->usage_bytes)) {
		release(s, obs, "swap_low: free swap is less than twice the headroom");
		return;
	}
	if (follow(s, obs, now))
		return;
	if (s->law)
		s->law->step(&s->law_state, s->o.cfg, obs, &v);
	else
		step_static(s, obs, &v);
	act(s, obs, &v);
}

void squeezer_observe(struct squeezer *s, const struct sample *now)
{
	struct observation obs;

	if (s->has_prev && !s->is_released && now->has[M_memory_current]) {
		observe(&obs, &s->prev, now);
		update_steady(s, &obs);
		s->boost = MAX(s->boost / 2, 1);
		tick(s, &obs, now);
	}
	s->prev = *now;
	s->has_prev = true;
}

/* -- life ------------------------------------------------------------------------------------- */

static int register_found(struct squeezer *s, int which, const char *file, struct err *err)
{
	char path[CGROUP_PATH_MAX + 32], value[32];
	struct undo_entry entry = {.kind = UNDO_WRITE, .path = path, .value = value};
	struct found *f = &s->found[which];
	int r = cgroup_read_number(s->o.cg, file, &f->value);

	f->file = file;
	if (r < 0) {
		(void)err_errno(err, r, "cannot read %s of the workload's group %s", file,
				s->o.cg->path);
		return err_hint(err, "analyzer check --feature memory tells why");
	}
	(void)snprintf(path, sizeof(path), "%s/%s", s->o.cg->path, file);
	if (f->value == NUM_MAX)
		(void)snprintf(value, sizeof(value), "max");
	else
		(void)snprintf(value, sizeof(value), "%" PRId64, f->value);
	if (s->o.is_dry_run)
		return 0; /* nothing will be written, nothing is to be put back */
	f->undo_id = undo_add(s->o.undo, &entry, err);
	return MIN(f->undo_id, 0);
}

static int watch(struct squeezer *s, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_files(struct squeezer *s, struct err *err)
{
	int r = 0;

	s->current_fd = openat(s->o.cg->dirfd, "memory.current", O_RDONLY | O_CLOEXEC);
	s->events_fd = openat(s->o.cg->dirfd, "memory.events", O_RDONLY | O_CLOEXEC);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->current_fd < 0 || s->epoll_fd < 0)
		return err_errno(err, -errno, "cannot watch the group %s", s->o.cg->path);
	/* A plain file of a fake tree cannot be polled, and nothing would wake us there. */
	if (s->events_fd >= 0 && !s->o.cg->is_fake)
		r = watch(s, s->events_fd, EPOLLPRI);
	if (r == 0 && !s->o.is_dry_run) {
		r = actuator_start(&s->actuator, s->o.cg, err);
		if (r < 0)
			return r;
		r = watch(s, actuator_fd(s->actuator), EPOLLIN);
	}
	return r < 0 ? err_errno(err, r, "cannot watch the group %s", s->o.cg->path) : 0;
}

int squeezer_new(struct squeezer **ret, const struct squeezer_opts *opts, struct err *err)
{
	struct squeezer *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_errno(err, -ENOMEM, "cannot start the squeezer");
	s->o = *opts;
	s->epoll_fd = s->events_fd = s->current_fd = -1;
	s->limit = NUM_MAX;
	s->boost = 1;
	if (opts->cfg->mode == MODE_DYNAMIC) {
		s->law = law_find(opts->cfg->law);
		s->law->init(&s->law_state, opts->cfg);
	}
	r = register_found(s, FOUND_MAX, "memory.max", err);
	if (r == 0)
		r = register_found(s, FOUND_HIGH, "memory.high", err);
	if (r == 0)
		r = open_files(s, err);
	if (r < 0) {
		(void)squeezer_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int squeezer_start(struct squeezer *s, int64_t t0_mono_ns, struct err *err)
{
	int64_t limit = s->o.cfg->init_limit.bytes;
	struct decision d;
	int r;

	s->t0_mono_ns = t0_mono_ns;
	if (limit == 0 || limit == NUM_MAX || (!s->law && s->o.cfg->limit_phase != PHASE_START))
		return 0;
	/* This knob is no limit: one written to memory.max would never be raised again. */
	if (s->o.cfg->knob == KNOB_RECLAIM)
		return 0;
	d = new_decision(s, NULL, ACTION_TIGHTEN, "init_limit, before the workload starts");
	r = write_limit(s, s->o.cfg->knob == KNOB_HIGH ? FOUND_HIGH : FOUND_MAX, limit);
	if (r < 0)
		return err_errno(err, r, "cannot set %s of %s", knob_file(s->o.cfg->knob),
				 s->o.cg->path);
	s->limit = limit;
	s->is_done = true;
	tell(s, &d, 0);
	return 0;
}

void squeezer_executed(struct squeezer *s)
{
	s->exec_mono_ns = clock_mono_ns();
}

int squeezer_fd(const struct squeezer *s)
{
	return s->epoll_fd;
}

void squeezer_release(struct squeezer *s, const char *reason)
{
	bool is_idle = s->limit == NUM_MAX && !(s->actuator && actuator_is_busy(s->actuator));

	if (!s->is_released && !is_idle)
		release(s, NULL, reason);
	s->is_released = true;
	s->is_paused = false;
}

void squeezer_pause(struct squeezer *s, const char *reason)
{
	if (s->is_released)
		return;
	squeezer_release(s, reason);
	s->is_paused = true;
}

void squeezer_resume(struct squeezer *s)
{
	if (!s->is_paused)
		return;
	s->is_released = s->is_paused = false;
	s->has_prev = false; /* the gap is no interval to judge by */
	s->is_done = false;
}

int64_t squeezer_limit(const struct squeezer *s)
{
	return s->limit;
}

pid_t squeezer_actuator_pid(const struct squeezer *s)
{
	return s->actuator ? actuator_pid(s->actuator) : 0;
}

int64_t squeezer_free(struct squeezer *s)
{
	struct err ignored; /* what fails stays in the journal for the guard */
	int64_t cpu_ns;

	if (!s)
		return -1;
	cpu_ns = actuator_stop(s->actuator);
	for (size_t i = 0; i < ARRAY_SIZE(s->found); i++) {
		if (s->found[i].undo_id > 0)
			(void)undo_run(s->o.undo, s->found[i].undo_id, &ignored);
	}
	close_fd(&s->epoll_fd);
	close_fd(&s->events_fd);
	close_fd(&s->current_fd);
	free(s);
	return cpu_ns;
}
