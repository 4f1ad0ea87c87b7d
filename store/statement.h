/*
 * What everybody who uses prepared statements shares: release at the end of a scope, and binding
 * with our structs' words for "not known" turned into NULL. A failed bind leaves NULL.
 */
#pragma once

#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>

static inline void statement_done(sqlite3_stmt **st)
{
	(void)sqlite3_finalize(*st); /* repeats the error of the last step */
}

#define _cleanup_statement_ _cleanup_(statement_done)

static inline void bind_real(sqlite3_stmt *st, int at, double v)
{
	if (isnan(v))
		sqlite3_bind_null(st, at);
	else
		sqlite3_bind_double(st, at, v);
}

/* -1 stands for "not known". */
static inline void bind_known(sqlite3_stmt *st, int at, int64_t v)
{
	if (v < 0)
		sqlite3_bind_null(st, at);
	else
		sqlite3_bind_int64(st, at, v);
}

static inline void bind_text(sqlite3_stmt *st, int at, const char *text)
{
	sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC); /* NULL binds NULL */
}

static inline int step(sqlite3_stmt *st)
{
	int r = sqlite3_step(st);

	(void)sqlite3_reset(st); /* gives the same error again; the connection keeps its text */
	return r == SQLITE_DONE ? 0 : -EIO;
}
