/*
 * The actuator: a process that does the writes that may block for seconds.
 *
 * A write to memory.reclaim cannot be cancelled in bounded time (0.2–5.5 s from the signal to its
 * return were measured on 6.1 and 6.12), and a process one of whose threads sits in it cannot
 * die. In a process of its own nobody waits for it: to cancel is to signal it and to ignore its
 * result. It asks for small steps, sized to about 50 ms each, and looks after each whether to
 * stop, whether time is up, and whether anything moved.
 *
 * Life: actuator_start (after the group exists) → actuator_reclaim → fd readable →
 * actuator_result → … → actuator_stop. One request at a time.
 */
#pragma once

#include "cgroup/cgroup.h"
#include "model/decision.h"

struct actuator;

struct actuator_request {
	int64_t target_bytes;   /* reclaim until memory.current is at most this */
	int64_t max_step_bytes; /* largest single request */
	int64_t timeout_ns;
	/* When reached: write this into then_file (memory.max or memory.high), if usage is still
	 * at most this; -1 = no. A static limit is exact, and between our look and the write the
	 * workload must not grow past it: so the one who reclaims writes. */
	int64_t then_limit_bytes;
	char then_file[16];
};

struct actuator_result {
	enum outcome outcome; /* ok: target reached; partial; timeout; error */
	int error;            /* errno of OUTCOME_ERROR */
	int64_t usage_bytes;  /* memory.current afterwards */
	int64_t took_ns;
	int64_t cpu_ns; /* of the actuator since its start: reclaim runs on its account */
	bool wrote_limit;
};

int actuator_start(struct actuator **ret, const struct cgroup *cg, struct err *err);

/* Readable when a result waits. Borrowed. */
int actuator_fd(const struct actuator *a);
pid_t actuator_pid(const struct actuator *a);

bool actuator_is_busy(const struct actuator *a);

/* -EBUSY while a request is running. */
int actuator_reclaim(struct actuator *a, const struct actuator_request *req, struct err *err);

/* Takes the result: 1 = *ret filled, 2 = that of a cancelled request was thrown away, 0 = none
 * waits, -EPIPE = died. */
int actuator_result(struct actuator *a, struct actuator_result *ret);

/* Signals it to stop and forgets the request; its late answer is thrown away. */
void actuator_cancel(struct actuator *a);

/* Ends the process without waiting for it; NULL allowed. Returns its CPU time in ns as far as
 * it has told. */
int64_t actuator_stop(struct actuator *a);
