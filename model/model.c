#include "model/decision.h"
#include "model/run.h"
#include "model/sample.h"

#include <string.h>

const struct metric metrics[METRIC_COUNT] = {
#define METRIC(name_, file_, key_, kind_, unit_, scope_, help_) \
	{                                                       \
		.name = #name_,                                 \
		.file = file_,                                  \
		.key = key_,                                    \
		.kind = METRIC_##kind_,                         \
		.unit = unit_,                                  \
		.scope = METRIC_##scope_,                       \
		.help = help_,                                  \
	},
#include "model/metrics.def"
#undef METRIC
};

const char *metric_kind_name(enum metric_kind kind)
{
	static const char *const names[] = {"gauge", "counter", "limit"};

	return names[kind];
}

const char *metric_scope_name(enum metric_scope scope)
{
	return scope == METRIC_GROUP ? "group" : "host";
}

int metric_find(const char *name)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		if (strcmp(metrics[i].name, name) == 0)
			return i;
	}
	return -1;
}

const char *action_name(enum action a)
{
	static const char *const names[] = {"hold", "tighten", "relax", "release"};

	return names[a];
}

const char *outcome_name(enum outcome o)
{
	static const char *const names[] = {"ok", "partial", "timeout", "error", "skipped"};

	return names[o];
}

const char *run_kind_name(enum run_kind kind)
{
	static const char *const names[] = {"baseline", "static", "dynamic", "observe"};

	return names[kind];
}

const char *end_reason_name(enum end_reason reason)
{
	static const char *const names[] = {
		NULL,      "exited",      "signalled",      "exec_failed",
		"timeout", "interrupted", "cgroup_removed", "recording_failed",
	};

	return names[reason];
}
