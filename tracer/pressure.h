/*
 * Holds the workload while the reader is behind: the group is frozen when a ring is half full,
 * which neither shells nor parents see, and thawed when all rings are nearly empty.
 *
 * A thread of its own, since the reader may be busy for longer than half a ring lasts. Should
 * analyzer die, the guard thaws the group.
 *
 * Life: pressure_start → pressure_relieve after each reading of the rings → pressure_stop.
 */
#pragma once

#include "cgroup/cgroup.h"
#include "tracer/kernel.h"

struct pressure;

struct pressure_totals {
	int64_t pauses, paused_ns;
};

int pressure_start(struct pressure **ret, struct kernel *k, const struct cgroup *cg,
		   struct err *err);

/* The rings have been read: thaws if they are nearly empty. The reader's thread. */
void pressure_relieve(struct pressure *p);

/* So far; NULL: none. Any thread. */
struct pressure_totals pressure_totals(struct pressure *p);

/* Thaws and ends; NULL allowed. Returns what pressure_totals would. */
struct pressure_totals pressure_stop(struct pressure *p);

/* Bytes in the fullest ring. */
uint64_t pressure_fill(struct kernel *k);
