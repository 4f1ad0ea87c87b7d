/*
 * The layout of profile.db: the interface that other programs read.
 *
 * schema_create() makes every table and view in an empty database. The table `sample` has one
 * column for each row of model/metrics.def, so that a new metric needs no second place. Nothing
 * is ever migrated: the recorder writes this version only, readers accept every older one and
 * refuse a newer one.
 */
#pragma once

#include "base/err.h"

#include <sqlite3.h>

/* 1 had no table of traces, from `module` to `tracer_stat`; 2 none of faults and scans. */
#define SCHEMA_VERSION 3
#define SCHEMA_APPLICATION_ID 0x616e6c7a /* "anlz"; `file` and SQLite tools show it */

/* A gap of more than this many sampling periods is a hole: no rate is derived across it. */
#define SCHEMA_HOLE_PERIODS 3

/* All tables, views and rows of `metric`, in one transaction. db must not be in one. */
int schema_create(sqlite3 *db, struct err *err);
