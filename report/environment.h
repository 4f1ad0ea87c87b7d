/*
 * A run's `environment` (JSON written by the recorder) as the reports use it.
 *
 * Expected is an object: "page_size" in bytes; "features", an object of name -> true, false, or
 * a string ("yes", or the reason why not), or {"ok": bool, "why": string}; every other member is
 * shown as it is, nested ones with a dot between the names, lists by the
 * "path" of their members. Anything else in it is ignored: it
 * may come from a newer recorder.
 */
#pragma once

#include "base/str.h"

/* NAN when not recorded. */
double environment_page_size(const char *json);

typedef void environment_fn(void *arg, const char *name, const char *value);

/* Calls fn for every feature that is missing; value is the reason or "". */
void environment_missing(const char *json, environment_fn *fn, void *arg);

/* Calls fn for every member that is no feature. */
void environment_settings(const char *json, environment_fn *fn, void *arg);

/* A JSON array of strings as a person would type it in a shell; control characters become '?'.
 * What is no such array is taken as it is. */
void command_line(struct str *out, const char *json);
