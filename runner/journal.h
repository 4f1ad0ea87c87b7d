/*
 * The undo journal: a small text file that says what must be put back, newest last.
 *
 *     add 3 write max /sys/fs/cgroup/analyzer-812-9ab1/memory.max
 *     done 3
 *
 * It lives in /run/analyzer/<id> (else $XDG_RUNTIME_DIR/analyzer/<id>, else in memory only), so
 * that it survives the process that wrote it. The guard replays it when analyzer dies;
 * journal_put_back() is also how one entry is put back in the ordinary way.
 */
#pragma once

#include "base/root.h"
#include "base/undo.h"

#define JOURNAL_DIR "/run/analyzer"
#define JOURNAL_MAX 128 /* entries that can be open at a time */

struct journal_entry {
	int id;
	enum undo_kind kind;
	char path[1024];
	char value[64];
};

struct journal {
	const struct root *root; /* borrowed */
	int fd;
	char path[256]; /* "" = in memory only */
};

/* Where the journals of a user without rights to JOURNAL_DIR are; false = nowhere. */
bool journal_user_dir(char *ret, size_t size);

/* Creates an empty journal, locked (flock) as long as anybody has it open. Only out of memory makes
 * it fail: without a writable directory the guard still works from the descriptor. */
int journal_create(struct journal *j, const struct root *root, struct err *err);

/* Closes; remove: nothing is left to be put back. */
void journal_close(struct journal *j, bool remove);

int journal_add(struct journal *j, const struct journal_entry *e, struct err *err);
int journal_done(struct journal *j, int id);

/* Reads what is still open, oldest first; returns the number of entries. */
int journal_load(const struct journal *j, struct journal_entry ret[static JOURNAL_MAX]);

/*
 * Puts one entry back. wait_ms: how long a group may take to become empty (-1 = for ever).
 * 0 also when there is nothing left to put back to.
 */
int journal_put_back(const struct root *root, const struct journal_entry *e, int wait_ms,
		     struct err *err);
