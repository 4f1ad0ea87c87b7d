/*
 * Results directories made by tests: profile.db with the real schema and rows given as SQL.
 *
 * Life: fixture_open -> fixture_sql ... -> fixture_finish (WAL off, closed) -> read it at `dir`
 * -> fixture_remove. Everything asserts: a fixture that cannot be made is a failed test.
 */
#pragma once

#include "report/report.h"

#include <json-c/json.h>
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

#define MIB 1048576.0

/* The directory as a report; what cannot be reported fails the test. */
void fixture_load(struct report *r, const struct fixture *f);

/* Both forms of it, with the directory named as a user in its parent would; checks the layout. */
void fixture_report(const struct fixture *f, struct str *text, struct str *json);

/* A figure has this value, or is missing for this reason. */
void assert_fig(const struct run_view *v, enum figure_id id, double expected);
void assert_missing(const struct run_view *v, enum figure_id id, const char *why);

/* No line is wider than a terminal, none ends in a blank, all is printable ASCII. */
void assert_layout(const struct str *text);

size_t count_lines(const struct str *text);

/* `part` is in the text, wherever lines were wrapped. */
void assert_has(const struct str *text, const char *part);
void assert_has_not(const struct str *text, const char *part);

/* Both forms against tests/golden/NAME.txt and NAME.json; nobody reads a long text. */
void assert_report(const struct fixture *f, const char *name, size_t max_lines);

/* Its JSON; json_object_put() when done. */
struct json_object *fixture_json(const struct fixture *f);

/* A member and an element, which must be there; members with a value. */
struct json_object *json_at(struct json_object *o, const char *key);
struct json_object *json_nth(struct json_object *o, size_t i);
void assert_json_int(struct json_object *o, const char *key, int64_t expected);
void assert_json_text(struct json_object *o, const char *key, const char *expected);
void assert_json_plain(struct json_object *o, const char *expected); /* without blanks */
