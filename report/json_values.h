/*
 * Values of summary.json: null where there is none. What is returned belongs to whom it is added
 * to. json-c asserts when it is without memory: for some kilobytes that is accepted.
 */
#pragma once

#include "base/str.h"
#include "report/run_view.h"

#include <json-c/json.h>

struct json_object *json_text(const char *text); /* NULL: null */
struct json_object *json_int(int64_t v);         /* READ_NULL and "max": null */
struct json_object *json_number(double v);       /* NAN: null */
struct json_object *json_parsed(const char *text);
struct json_object *json_frame(const struct frame_row *f);

void json_add(struct json_object *o, const char *key, struct json_object *v);
void json_push(struct json_object *array, struct json_object *v);

/* All of *o as text, with a newline; *o is gone. */
void json_print(struct str *out, struct json_object *o);

/* A whole row of `site` with its stack. In summary_json.c. */
struct json_object *json_site(const struct site_view *s);

/* A run's `pressure`, and what of it `findings` has: null when there is nothing of it. In
 * json_pressure.c. */
struct json_object *json_pressure(const struct run_view *v);
struct json_object *json_pressure_findings(const struct run_view *v);

/* Decisions that took or brought something; places that met faults. */
struct json_object *json_decisions(const struct decision_effect *effects, size_t n);
struct json_object *json_places(const struct fault_place_row *rows, size_t n);
