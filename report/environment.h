/*
 * A run's `environment` (JSON written by the recorder) as the reports use it.
 *
 * Expected is an object: "features", an object of name -> true, false, or a string ("yes", or the
 * reason why not), or {"ok": bool, "why": string}; "kernel", "cpus", "memory_bytes", "page_size"
 * in bytes, "swap_devices" (a list of {"path", "size_bytes"}), "zswap" (its parameters), "thp",
 * "swappiness", "page_cluster". Any may lack; anything else in it is ignored: it may come from a
 * newer recorder.
 */
#pragma once

#include "base/str.h"

/* NAN when not recorded. */
double environment_page_size(const char *json);

typedef void environment_fn(void *arg, const char *name, const char *value);

/* Calls fn for every feature that is missing; value is the reason or "". */
void environment_missing(const char *json, environment_fn *fn, void *arg);

/* The machine in a sentence; nothing when nothing is known. */
void environment_machine(struct str *out, const char *json);

/* Of it what decides how many pages a fault brings: readahead, huge pages. */
void environment_paging(struct str *out, const char *json);

/* A JSON array of strings as a person would type it in a shell; control characters become '?'.
 * What is no such array is taken as it is. */
void command_line(struct str *out, const char *json);

/* One word of it, quoted where a shell would need it. */
void command_word(struct str *out, const char *word);
