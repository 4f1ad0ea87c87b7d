/*
 * A traced run's result as rows; internal to store.c, in its own file for its size. Called on the
 * writer thread, within its transaction.
 */
#pragma once

#include "model/fault.h"
#include "model/site.h"

#include <sqlite3.h>

/* Ids of a run's frames and stacks are this plus 1, 2, … : unique in the file, known before the
 * frames are, and small in a file of one run. */
static inline int64_t trace_id_base(int64_t run_id)
{
	return (run_id - 1) << 32;
}

/* Each: 0, or -EIO: the connection has the message. */
int trace_write(sqlite3 *db, int64_t run_id, const struct trace_result *t);
int trace_write_faults(sqlite3 *db, int64_t run_id, const struct fault *faults, size_t n);
int trace_write_scan(sqlite3 *db, int64_t run_id, const struct scan *scan,
		     const struct site_sample *sites, size_t n);
