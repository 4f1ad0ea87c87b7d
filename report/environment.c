#include "report/environment.h"

#include "base/fmt.h"

#include <json-c/json.h>
#include <math.h>
#include <stdarg.h>
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

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (o && json_object_is_type(o, json_type_object))
		(void)json_object_object_get_ex(o, name, &v); /* v stays NULL */
	return v;
}

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *v = member(o, name);

	return v ? json_object_get_string(v) : NULL;
}

/* Parts are apart by "; ", what belongs to a part by ", ". */
static void add_part(struct str *s, const char *fmt, ...) _printf_(2, 3);

static void add_part(struct str *s, const char *fmt, ...)
{
	char buf[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf, sizeof(buf), fmt, ap); /* cut when longer: a name from outside */
	va_end(ap);
	str_addf(s, "%s%s", s->len > 0 ? "; " : "", buf);
}

static void add_hardware(struct str *s, struct json_object *o)
{
	const char *kernel = text_of(o, "kernel");
	int64_t cpus = json_object_get_int64(member(o, "cpus"));
	int64_t memory = json_object_get_int64(member(o, "memory_bytes"));
	int64_t page = json_object_get_int64(member(o, "page_size"));
	char buf[FMT_MAX];

	if (kernel)
		add_part(s, "Linux %s", kernel);
	if (cpus > 0)
		add_part(s, "%lld CPU%s", (long long)cpus, cpus == 1 ? "" : "s");
	if (memory > 0)
		add_part(s, "%s of memory", fmt_bytes(buf, memory));
	if (page > 0)
		add_part(s, "%lld KiB pages", (long long)page / 1024);
}

static void add_swap(struct str *s, struct json_object *o)
{
	struct json_object *list = member(o, "swap_devices");

	if (!list || !json_object_is_type(list, json_type_array))
		return;
	if (json_object_array_length(list) == 0)
		add_part(s, "no swap");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *dev = json_object_array_get_idx(list, i);
		const char *path = text_of(dev, "path");
		int64_t size = json_object_get_int64(member(dev, "size_bytes"));
		char buf[FMT_MAX];

		add_part(s, "swap %s%s%s", path ? path : "?", size > 0 ? " of " : "",
			 size > 0 ? fmt_bytes(buf, size) : "");
	}
}

/* "zswap on (zstd, zsmalloc, pool 40 % at most)" */
static void add_zswap(struct str *s, struct json_object *o)
{
	struct json_object *zswap = member(o, "zswap");
	const char *enabled = text_of(zswap, "enabled"), *pool = text_of(zswap, "zpool");
	const char *compressor = text_of(zswap, "compressor");
	const char *percent = text_of(zswap, "max_pool_percent");
	_cleanup_str_ struct str how = {0};

	if (enabled && strcmp(enabled, "Y") != 0 && strcmp(enabled, "1") != 0) {
		add_part(s, "zswap off");
		return;
	}
	if (compressor)
		str_add(&how, compressor);
	if (pool)
		str_addf(&how, "%s%s", how.len ? ", " : "", pool);
	if (percent)
		str_addf(&how, "%spool %s %% at most", how.len ? ", " : "", percent);
	if (how.len > 0)
		add_part(s, "zswap %s(%s)", enabled ? "on " : "", how.data);
	else if (enabled)
		add_part(s, "zswap on");
}

static void add_paging(struct str *s, struct json_object *o)
{
	const char *text;
	int64_t cluster;

	if ((text = text_of(o, "thp")))
		add_part(s, "THP %s", text);
	if ((text = text_of(o, "swappiness")))
		add_part(s, "swappiness %s", text);
	cluster = json_object_get_int64(member(o, "page_cluster"));
	if (member(o, "page_cluster") && cluster >= 0 && cluster < 16)
		add_part(s, "page-cluster %lld (%d page%s)", (long long)cluster, 1 << cluster,
			 cluster ? "s" : "");
}

void environment_paging(struct str *out, const char *json)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_object);

	if (o)
		add_paging(out, o);
}

void environment_machine(struct str *out, const char *json)
{
	_cleanup_json_ struct json_object *o = parse(json, json_type_object);
	_cleanup_str_ struct str s = {0};

	if (!o)
		return;
	add_hardware(&s, o);
	add_swap(&s, o);
	add_zswap(&s, o);
	add_paging(&s, o);
	if (s.len > 0)
		str_add(out, s.data);
	out->failed |= s.failed;
}

static void add_printable(struct str *out, const char *text)
{
	for (const char *p = text; *p; p++)
		str_addn(out, (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : p, 1);
}

void command_word(struct str *out, const char *arg)
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
		command_word(out, arg ? json_object_get_string(arg) : "");
	}
}
