/*
 * The one guard: what we changed on the machine is put back however we end, kill -9 included.
 *
 * guard_start forks the guard process (before any thread exists) and gives the undo interface to
 * everybody else. The guard sits in a session of its own with signals ignored and memory locked,
 * and watches a pipe. When the pipe ends (analyzer is dead) it replays the journal: writes and
 * continued processes at once, then it waits for the workload's group to be empty, removes it
 * and disables our controllers. When the heartbeat is older than 2 s (analyzer is stopped) it
 * puts the writes back and goes on watching. guard_stop puts back what is still registered.
 *
 * Used from one thread. Borrows root.
 */
#pragma once

#include "base/root.h"
#include "base/undo.h"

struct guard;

#define GUARD_BEAT_NS (500 * NS_PER_MS)
/* Without a beat for so long the guard puts the writes back. */
#define GUARD_STALE_NS (2 * NS_PER_S)

int guard_start(struct guard **ret, const struct root *root, struct err *err);

/* The interface for others to register with; valid until guard_stop. */
struct undo *guard_undo(struct guard *g);

/* To be called every GUARD_BEAT_NS while the event loop is alive. */
void guard_beat(struct guard *g);

/* The guard's pid, to tell it from the workload's processes when reaping. */
pid_t guard_pid(const struct guard *g);

/*
 * Puts back everything still registered, newest first, ends the guard and frees; NULL allowed.
 * On failure (a group that does not become empty) the guard is left behind to finish, and the
 * error says what is pending.
 */
int guard_stop(struct guard *g, struct err *err);
