/*
 * The write side of profile.db (schema in store/schema.c).
 *
 * Life: store_open (creates the file, starts the writer thread) → store_run_begin →
 * store_put_… from one thread → store_run_end → … → store_close (everything committed, the file
 * stands alone). The put functions copy into a bounded queue and never block: SQLite commits
 * once a second on the writer thread; what does not fit into the queue is counted and becomes a
 * row of `loss`. After the first failed write (disk full, file gone) recording is over:
 * store_failure() tells, store_event_fd() becomes readable, later puts are ignored, rows that
 * were committed stay readable.
 */
#pragma once

#include "base/err.h"
#include "model/decision.h"
#include "model/fault.h"
#include "model/run.h"
#include "model/sample.h"
#include "model/site.h"

struct store;

/* Creates profile.db in the directory dirfd, owned by uid:gid (-1 = leave). path is the
 * directory's name, for SQLite and for messages. */
int store_open(struct store **ret, int dirfd, const char *path, uid_t uid, gid_t gid,
	       struct err *err);

/* Readable once recording has failed; for the event loop. Borrowed. */
int store_event_fd(const struct store *s);

/* 0, or the negative errno and message of the failure. */
int store_failure(struct store *s, struct err *err);

/* Inserts the row and commits it, so that a run that dies at once is known. Waits for the disk. */
int store_run_begin(struct store *s, const struct run_begin *run, int64_t *ret_run_id,
		    struct err *err);

void store_put_sample(struct store *s, int64_t run_id, const struct sample *sample);
void store_put_decision(struct store *s, int64_t run_id, const struct decision *d);

/* kind: oom_kill, warning, limit_restored, …; detail a sentence. */
void store_put_event(struct store *s, int64_t run_id, int64_t t_ns, const char *kind,
		     const char *detail);
void store_put_loss(struct store *s, int64_t run_id, const char *source, int64_t count,
		    const char *detail);

void store_put_tracer_stat(struct store *s, int64_t run_id, const struct tracer_stat *stat);

/* From any thread; the strings of faults are borrowed until store_run_end. */
void store_put_faults(struct store *s, int64_t run_id, const struct fault *faults, size_t n);
/* sites: those whose figures have changed since the last scan. */
void store_put_scan(struct store *s, int64_t run_id, const struct scan *scan,
		    const struct site_sample *sites, size_t n);

/* What a traced run leaves; once per run. Waits until all of it is committed, in one transaction:
 * seconds for tens of thousands of sites. */
int store_write_trace(struct store *s, int64_t run_id, const struct trace_result *t,
		      struct err *err);

/* Queues the end of a run; waits until all of the run is committed. */
int store_run_end(struct store *s, int64_t run_id, const struct run_end *end, struct err *err);

/* Commits, turns WAL into a file that stands alone, closes; NULL allowed. */
int store_close(struct store *s, struct err *err);
