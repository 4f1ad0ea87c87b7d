/*
 * A traced run's result as rows; internal to store.c, in its own file for its size. Called on the
 * writer thread, within its transaction.
 */
#pragma once

#include "model/site.h"

#include <sqlite3.h>

/* Frames and stacks get ids behind those of earlier runs. 0, or -EIO: the connection has the
 * message. */
int trace_write(sqlite3 *db, int64_t run_id, const struct trace_result *t);
