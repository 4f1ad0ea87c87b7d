/*
 * The interface by which anyone registers what must be put back, however we end.
 *
 * Rule: register first, change afterwards; put back and forget with undo_run(). If this process
 * dies in between, the guard process replays what is registered, newest first (runner/guard.h
 * implements this interface). Entries are plain text, kept in a journal outside this process.
 */
#pragma once

#include "base/err.h"

enum undo_kind {
	UNDO_WRITE,      /* write `value` into the file `path` */
	UNDO_CONTROLLER, /* write `value` ("-memory") into `path`, if its group has no child left */
	UNDO_GROUP,      /* wait until the cgroup at `path` is empty, then remove it */
	UNDO_CONTINUE, /* only when analyzer is dead: SIGCONT to who is stopped in the group `path`
			*/
};

struct undo_entry {
	enum undo_kind kind;
	const char *path;  /* absolute, below the system root */
	const char *value; /* NULL for UNDO_GROUP and UNDO_CONTINUE */
};

struct undo;

struct undo_ops {
	int (*add)(struct undo *u, const struct undo_entry *entry, struct err *err);
	int (*run)(struct undo *u, int id, struct err *err);
	void (*drop)(struct undo *u, int id);
};

struct undo {
	const struct undo_ops *ops;
};

/* Registers; returns an id > 0 or a negative errno (then nothing may be changed). */
static inline int undo_add(struct undo *u, const struct undo_entry *entry, struct err *err)
{
	return u->ops->add(u, entry, err);
}

/* Puts back now and forgets. A file that is gone needs no restoring: 0. */
static inline int undo_run(struct undo *u, int id, struct err *err)
{
	return u->ops->run(u, id, err);
}

/* Forgets: what was changed is meant to stay, or went away by itself. */
static inline void undo_drop(struct undo *u, int id)
{
	u->ops->drop(u, id);
}
