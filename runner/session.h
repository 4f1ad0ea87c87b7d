/*
 * One invocation of analyzer: plans the runs, holds what they share, executes them in order.
 *
 * session_run does all of it: group placement, guard, results directory, database, runs, and
 * puts the machine back. It prints nothing but through the log; progress goes to a callback.
 * Runs on the caller's thread with its own event loop; takes over signals until it returns.
 */
#pragma once

#include "base/log.h"
#include "bpf/events.h"
#include "model/kinds.h"
#include "squeezer/config.h"

/* What is shown while a run goes on. Unknown figures are -1 or NAN. */
struct progress {
	const char *run_name;
	int run_index, run_count;
	const char *phase; /* starting, baseline, growing, squeezing, holding, finishing, naming */
	int64_t elapsed_ns;
	int64_t usage_bytes, peak_bytes, limit_bytes;
	double fault_rate, stall_full;
	double done; /* in phase naming: 0 … 1 of the stacks have names; else NAN */
};

enum trace_choice {
	TRACE_AUTO, /* a session of one run is traced where this machine permits */
	TRACE_NONE,
	TRACE_ASKED, /* in a session of several runs: one more run of each setting */
};

struct session_opts {
	char *const *argv;
	int64_t period_ns;
	const char *output_dir; /* NULL: a new name */
	bool is_output_forced;
	const struct squeezer_config *cfg; /* NULL: baseline */
	const char *config_path;           /* the -r file, copied into the results; NULL = none */
	int repeat;                        /* ≥ 1 */
	const char *user, *stdin_path;
	int64_t timeout_ns; /* 0 = none */
	bool is_dry_run;
	enum trace_choice trace;
	unsigned trace_parts; /* of enum trace_part, with TRACE_ASKED; else all */
	enum trace_policy trace_policy;
	int64_t events_max_bytes; /* of events.zst; 0 = 4 GiB or a tenth of the free space */
	const char *cgroup_parent, *cgname, *cgpath;
	const struct root *root;
	struct log *log;
	void (*on_progress)(void *ctx, const struct progress *p);
	void *ctx;
};

struct session_result {
	char dir[512];   /* the results directory; "" = none was made */
	int exit_status; /* as the manual's table says */
};

/*
 * 0: the runs were executed, exit_status is theirs. Negative: analyzer failed (status 125) or a
 * run could not be executed; exit_status says which, dir is set if there is something to report.
 */
int session_run(const struct session_opts *opts, struct session_result *ret, struct err *err);
