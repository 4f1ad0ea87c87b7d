/*
 * Results directories made by tests: profile.db with the real schema and rows given as SQL.
 *
 * Life: fixture_open -> fixture_sql ... -> fixture_finish (WAL off, closed) -> read it at `dir`
 * -> fixture_remove. Everything asserts: a fixture that cannot be made is a failed test.
 */
#pragma once

#include "base/base.h"

#include <sqlite3.h>

struct fixture {
	char top[64];  /* temporary directory */
	char dir[128]; /* the results directory in it */
	sqlite3 *db;   /* NULL once finished */
};

void fixture_open(struct fixture *f, const char *name);
void fixture_sql(struct fixture *f, const char *sql);
void fixture_finish(struct fixture *f);
void fixture_reopen(struct fixture *f); /* after fixture_finish, for more SQL */
void fixture_remove(struct fixture *f);

/* Compares with tests/golden/<name> byte for byte; UPDATE_GOLDEN=1 rewrites it. */
void assert_golden(const char *name, const char *data, size_t len);
