#include "report/environment.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

static void json_put(struct json_object **o)
{
	(void)json_object_put(*o); /* tells only whether it was the last reference */
}

#define _cleanup_json_ _cleanup_(json_put)

static struct json_object *parse(const char *json, enum json_type type)
{
	struct json_object *o = json ? json_tokener_parse(json) : NULL;

	if (o && json_object_is_type(o, type))
		return o;
	json_put(&o);
	return NULL;
}

double environment_page_size(const char *json)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_object);
	struct json_object *size;

	if (!o || !json_object_object_get_ex(o, "page_size", &size) ||
	    json_object_get_int64(size) <= 0)
		return NAN;
	return (double)json_object_get_int64(size);
}

static bool is_yes(const char *word)
{
	return strcmp(word, "yes") == 0 || strcmp(word, "ok") == 0;
}

/* NULL = the feature is there, else the reason or "". */
static const char *feature_lack(struct json_object *v)
{
	struct json_object *ok, *why;

	switch (json_object_get_type(v)) {
	case json_type_boolean:
		return json_object_get_boolean(v) ? NULL : "";
	case json_type_string:
		return is_yes(json_object_get_string(v)) ? NULL : json_object_get_string(v);
	case json_type_object:
		if (json_object_object_get_ex(v, "ok", &ok) && json_object_get_boolean(ok))
			return NULL;
		return json_object_object_get_ex(v, "why", &why) ? json_object_get_string(why) : "";
	default:
		return NULL;
	}
}

void environment_missing(const char *json, environment_fn *fn, void *arg)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_object);
	struct json_object *features;

	if (!o || !json_object_object_get_ex(o, "features", &features) ||
	    !json_object_is_type(features, json_type_object))
		return;
	json_object_object_foreach(features, name, v)
	{
		const char *lack = feature_lack(v);

		if (lack)
			fn(arg, name, lack);
	}
}

/* Swap devices and the like: of objects their path, of anything else the text. */
static void add_list(struct str *out, struct json_object *array)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *v = json_object_array_get_idx(array, i), *path = v;

		if (json_object_is_type(v, json_type_object))
			(void)json_object_object_get_ex(v, "path", &path); /* NULL: none */
		str_addf(out, "%s%s", i ? " " : "", path ? json_object_get_string(path) : "?");
	}
	if (json_object_array_length(array) == 0)
		str_add(out, "none");
}

/* One level of nesting is what the recorder writes (zswap's parameters). */
static void each_setting(struct json_object *o, const char *prefix, environment_fn *fn, void *arg)
{
	json_object_object_foreach(o, name, v)
	{
		_cleanup_str_ struct str full = {0}, list = {0};

		if (!v || (!prefix && strcmp(name, "features") == 0))
			continue;
		if (json_object_is_type(v, json_type_object) && !prefix) {
			each_setting(v, name, fn, arg);
			continue;
		}
		str_addf(&full, "%s%s%s", prefix ? prefix : "", prefix ? "." : "", name);
		if (full.failed)
			return;
		if (json_object_is_type(v, json_type_array))
			add_list(&list, v);
		if (list.data)
			fn(arg, full.data, list.data);
		else if (!json_object_is_type(v, json_type_object))
			fn(arg, full.data, json_object_get_string(v));
	}
}

void environment_settings(const char *json, environment_fn *fn, void *arg)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_object);

	if (o)
		each_setting(o, NULL, fn, arg);
}

static void add_printable(struct str *out, const char *text)
{
	for (const char *p = text; *p; p++)
		str_addn(out, (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : p, 1);
}

static void add_argument(struct str *out, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./=:,+@%^";
	const char *p;

	if (*arg && strspn(arg, plain) == strlen(arg)) {
		str_add(out, arg);
		return;
	}
	str_add(out, "'");
	for (p = strchr(arg, '\''); p; arg = p + 1, p = strchr(arg, '\'')) {
		_cleanup_free_ char *part = strndup(arg, (size_t)(p - arg));

		add_printable(out, part ? part : "");
		str_add(out, "'\\''");
	}
	add_printable(out, arg);
	str_add(out, "'");
}

void command_line(struct str *out, const char *json)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_array);

	if (!o) {
		add_printable(out, json ? json : "(command not recorded)");
		return;
	}
	for (size_t i = 0; i < json_object_array_length(o); i++) {
		struct json_object *arg = json_object_array_get_idx(o, i);

		str_add(out, i ? " " : "");
		add_argument(out, arg ? json_object_get_string(arg) : "");
	}
}
