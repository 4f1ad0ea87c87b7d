/* What the squeezer saw and did, as plain data: one row of table `decision`. */
#pragma once

#include "base/base.h"

enum action { ACTION_HOLD, ACTION_TIGHTEN, ACTION_RELAX, ACTION_RELEASE };
enum outcome { OUTCOME_OK, OUTCOME_PARTIAL, OUTCOME_TIMEOUT, OUTCOME_ERROR, OUTCOME_SKIPPED };

struct decision {
	int64_t t_ns; /* since the run's first sample; when it was taken */
	enum action action;
	char reason[96];      /* for a reader: "fault rate 12003/s is over 10000/s" */
	double fault_rate;    /* major faults per second; NAN = not known */
	double stall_some;    /* fraction of the interval, 0 … 1; NAN = not known */
	double stall_full;    /* likewise */
	double refault_ratio; /* refaults / reclaimed pages of the interval; NAN = not known */
	int64_t usage_bytes;  /* memory.current when decided; -1 = not known */
	int64_t limit_before; /* NUM_MAX = none */
	int64_t limit_after;
	enum outcome outcome;
	int64_t took_ns; /* from the decision to the outcome */
};

const char *action_name(enum action a);
const char *outcome_name(enum outcome o);
