/*
 * A run and what happens in it, as plain data: what runner/ hands to store/ for the tables
 * `run`, `event`, `loss` and `process`. Times are ns since the run's first sample, except
 * started_mono_ns. Strings are borrowed for the call.
 */
#pragma once

#include "base/base.h"

enum run_kind { RUN_BASELINE, RUN_STATIC, RUN_DYNAMIC, RUN_OBSERVE };

enum end_reason {
	END_NONE, /* NULL in the database: still running, or the recorder died */
	END_EXITED,
	END_SIGNALLED,
	END_EXEC_FAILED,
	END_TIMEOUT,
	END_INTERRUPTED,
	END_CGROUP_REMOVED,
	END_RECORDING_FAILED,
};

const char *run_kind_name(enum run_kind kind);
const char *end_reason_name(enum end_reason reason); /* NULL for END_NONE */

/* Known when the run starts. */
struct run_begin {
	const char *name; /* "baseline", "limit 98 %" */
	enum run_kind kind;
	const char *policy;  /* "none", "static", or the law */
	const char *knob;    /* "memory.max", … ; NULL without a squeezer */
	int64_t limit_bytes; /* of a static run; -1 = none */
	const char *command_json;
	const char *started_at; /* ISO 8601, Z */
	int64_t started_mono_ns;
	int64_t period_ns;            /* of the sampler */
	int repeat_index;             /* 0, 1, … */
	int run_order;                /* 0, 1, … within the session */
	const char *compressor;       /* read back from zswap; NULL = none */
	const char *config_json;      /* the effective squeezer configuration; NULL = none */
	const char *environment_json; /* kernel, page size, features, settings read back */
};

/* Known when it is over. */
struct run_end {
	int64_t exec_t_ns;        /* gate opened; -1 = never */
	int64_t group_empty_t_ns; /* -1 = not seen */
	int64_t duration_ns;      /* gate opened → main process ended; -1 = not known */
	int exit_code;            /* -1 = it did not exit by itself */
	int term_signal;          /* 0 = none */
	enum end_reason reason;
	int64_t tool_cpu_ns;
	int64_t tool_rss_bytes;
	int64_t actuator_cpu_ns; /* -1 = no actuator */
};
