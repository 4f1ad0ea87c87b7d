#include "report/json_values.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

struct json_object *json_text(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

struct json_object *json_int(int64_t v)
{
	/* "max" is no number of bytes: there is no limit. */
	return v == READ_NULL || v == NUM_MAX ? NULL : json_object_new_int64(v);
}

/* Whole numbers without a point, others with what a measurement is good for, not %.17g. */
struct json_object *json_number(double v)
{
	char text[40];

	if (!isfinite(v))
		return NULL;
	if (v == floor(v) && fabs(v) < 9e15)
		return json_object_new_int64((int64_t)v);
	(void)snprintf(text, sizeof(text), "%.9g", v);
	return json_object_new_double_s(v, text);
}

/* JSON kept as text in the database goes in as what it is. */
struct json_object *json_parsed(const char *text)
{
	struct json_object *o = text ? json_tokener_parse(text) : NULL;

	return o ? o : json_text(text);
}

void json_add(struct json_object *o, const char *key, struct json_object *v)
{
	(void)json_object_object_add(o, key, v); /* fails only without memory */
}

void json_push(struct json_object *array, struct json_object *v)
{
	(void)json_object_array_add(array, v); /* likewise */
}

struct json_object *json_frame(const struct frame_row *f)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "function", json_text(f->function));
	json_add(o, "file", json_text(f->file));
	json_add(o, "line", json_int(f->line));
	json_add(o, "module", json_text(f->module));
	json_add(o, "offset", json_int(f->offset));
	json_add(o, "inline", json_object_new_boolean(f->is_inline == 1));
	return o;
}

void json_print(struct str *out, struct json_object *o)
{
	const int flags =
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text = o ? json_object_to_json_string_ext(o, flags) : NULL;

	if (text) {
		str_add(out, text);
		str_add(out, "\n");
	} else {
		out->failed = true;
	}
	(void)json_object_put(o); /* tells only whether it was the last reference */
}
