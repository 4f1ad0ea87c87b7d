/* The list params_ranges: the points of a static sweep. */
#include "squeezer/config_keys.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

/* A child of val: of an object by its number and its key, of a list by its number. */
static struct config_value child(const struct config_value *val, size_t index, const char *key,
				 struct json_object *json)
{
	return (struct config_value){
		.scan = val->scan,
		.place = json_scan_child(val->scan, val->place, index),
		.json = json,
		.key = key,
	};
}

static int check_list(const struct config_value *val, const char *what, struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];

	if (!json_object_is_type(val->json, json_type_array))
		return config_value_fail(val, err, "%s is not a list of %s",
					 config_shown(shown, val), what);
	if (json_object_array_length(val->json) == 0)
		return config_value_fail(val, err, "the list is empty; %s are expected", what);
	return 0;
}

static int add_points(struct squeezer_config *cfg, const struct config_value *val, struct err *err)
{
	char shown[CONFIG_SHOWN_MAX];
	double pct;
	int r;

	r = check_list(val, "numbers", err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < json_object_array_length(val->json); i++) {
		struct config_value item =
			child(val, i, "range", json_object_array_get_idx(val->json, i));

		r = config_number(&item, "a number", &pct, err);
		if (r < 0)
			return r;
		if (!(pct > 0 && pct < 100))
			return config_value_fail(&item, err,
						 "%s is out of range; more than 0, less than 100 "
						 "(percent below the baseline's peak)",
						 config_shown(shown, &item));
		if (cfg->n_range == CONFIG_RANGE_MAX)
			return config_value_fail(&item, err, "more than %d numbers in all",
						 CONFIG_RANGE_MAX);
		cfg->range_pct[cfg->n_range++] = pct;
	}
	return 0;
}

static int set_member(struct squeezer_config *cfg, const struct config_value *val, struct err *err)
{
	static const char *const names[] = {"with_baseline", "param", "range"};
	char shown[CONFIG_SHOWN_MAX];
	const char *near;
	double v;
	int r;

	if (strcmp(val->key, "range") == 0)
		return add_points(cfg, val, err);
	if (strcmp(val->key, "param") == 0) {
		if (!json_object_is_type(val->json, json_type_string) ||
		    strcmp(json_object_get_string(val->json), "memory") != 0)
			return config_value_fail(val, err, "%s is not known; only \"memory\" is",
						 config_shown(shown, val));
		return 0;
	}
	if (strcmp(val->key, "with_baseline") == 0) {
		r = config_number(val, "0 or 1", &v, err);
		if (r < 0)
			return r;
		if (v != 0 && v != 1)
			return config_value_fail(val, err, "%s is out of range; 0 or 1",
						 config_shown(shown, val));
		return 0;
	}
	json_scan_fail(val->scan, val->scan->places[val->place].key_offset, err,
		       "key \"%.64s\" is not known in params_ranges", val->key);
	near = config_nearest(val->key, names, ARRAY_SIZE(names));
	return near ? err_hint(err, "did you mean \"%s\"?", near)
		    : err_hint(err, "the keys are with_baseline, param and range");
}

static int set_entry(struct squeezer_config *cfg, const struct config_value *val, struct err *err)
{
	static const char *const required[] = {"param", "range"};
	struct json_object_iterator it, end;
	char shown[CONFIG_SHOWN_MAX];
	int r;

	if (!json_object_is_type(val->json, json_type_object))
		return config_value_fail(val, err, "%s is not an object", config_shown(shown, val));
	it = json_object_iter_begin(val->json);
	end = json_object_iter_end(val->json);
	for (size_t i = 0; !json_object_iter_equal(&it, &end); i++, json_object_iter_next(&it)) {
		struct config_value member = child(val, i, json_object_iter_peek_name(&it),
						   json_object_iter_peek_value(&it));

		r = set_member(cfg, &member, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
		if (!json_object_object_get_ex(val->json, required[i], NULL))
			return config_value_fail(val, err, "key \"%s\" is missing here",
						 required[i]);
	}
	return 0;
}

int config_ranges_set(struct squeezer_config *cfg, const struct config_value *val, struct err *err)
{
	int r;

	r = check_list(val, "objects", err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < json_object_array_length(val->json); i++) {
		struct config_value entry =
			child(val, i, "params_ranges", json_object_array_get_idx(val->json, i));

		r = set_entry(cfg, &entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}
