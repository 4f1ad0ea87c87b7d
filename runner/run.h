/*
 * One run: the workload once, under one setting, from the making of its group to its removal.
 *
 * run_execute does all of it with an event loop of its own; what runs of a session share comes
 * in run_env, borrowed.
 */
#pragma once

#include "cgroup/cgroup.h"
#include "model/run.h"
#include "runner/guard.h"
#include "runner/session.h"
#include "store/resdir.h"
#include "store/store.h"

struct events_writer;

struct run_env {
	const struct session_opts *opts;
	const struct cgroup_tree *tree; /* NULL: no group can be made */
	const struct cgroup_place *place;
	struct guard *guard;
	struct store *store;
	const struct resdir *dir;
	struct events_writer **events; /* of the session; *events is NULL until a run is traced */
	int signal_fd;
	sigset_t child_sigmask;
	sigset_t child_ignored;
	bool is_one_of_many; /* then stdin is /dev/null */
	const char *environment_json, *command_json, *compressor;
	int run_count;
};

struct run_spec {
	char name[64];
	enum run_kind kind;
	const struct squeezer_config *cfg; /* NULL: baseline */
	int repeat_index, run_order;
	bool is_traced;
};

struct run_result {
	int exit_status;    /* as the manual's table says */
	int64_t peak_bytes; /* memory.peak, else the largest memory.current; -1 = not known */
	bool ends_session;  /* interrupted, timed out, exec or recording failed */
	enum end_reason reason;
};

/* Negative: analyzer failed; *ret is filled as far as known. */
int run_execute(const struct run_env *env, const struct run_spec *spec, struct run_result *ret,
		struct err *err);
