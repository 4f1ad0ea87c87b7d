/* Reading a configuration file as a whole, and what its keys demand of one another. */
#include "squeezer/config.h"

#include "squeezer/config_keys.h"
#include "squeezer/json_scan.h"
#include "squeezer/law.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>

#define CONFIG_FILE_MAX ((size_t)1 << 20)

/* A file while it is read. */
struct reader {
	struct squeezer_config *cfg;
	struct json_scan scan;
	struct json_object *top;
	struct err *err;
};

void config_init_default(struct squeezer_config *cfg, enum squeeze_mode mode)
{
	*cfg = (struct squeezer_config){
		.mode = mode,
		.knob = KNOB_MAX,
		.max_limit.bytes = NUM_MAX,
		.squeeze_max_pct = 10,
		.squeeze_delta_pct = 1,
		.squeeze_timeout_s = 2,
		.pf_rate_watermark = 10000,
		.tick_ns = 100 * INT64_C(1000000),
		.stall_budget = 0.05,
		.max_step_bytes = 16 << 20,
		.headroom.bytes = -1,
		.limit_phase = PHASE_STEADY,
	};
	if (mode == MODE_DYNAMIC)
		(void)snprintf(cfg->law, sizeof(cfg->law), "%s", laws[0]->name);
}

bool config_needs_baseline(const struct squeezer_config *cfg)
{
	return cfg->mode == MODE_STATICSWEEP || cfg->init_limit.is_pct || cfg->min_limit.is_pct ||
	       cfg->max_limit.is_pct || cfg->headroom.is_pct;
}

static void resolve(struct amount *a, int64_t peak)
{
	double bytes = a->pct / 100 * peak;

	if (!a->is_pct)
		return;
	*a = (struct amount){.bytes = bytes < (double)NUM_MAX ? (int64_t)bytes : NUM_MAX};
}

void config_resolve(struct squeezer_config *cfg, int64_t baseline_peak_bytes)
{
	resolve(&cfg->init_limit, baseline_peak_bytes);
	resolve(&cfg->min_limit, baseline_peak_bytes);
	resolve(&cfg->max_limit, baseline_peak_bytes);
	resolve(&cfg->headroom, baseline_peak_bytes);
	cfg->min_limit.bytes = MIN(cfg->min_limit.bytes, cfg->max_limit.bytes);
}

/* The value of a top-level key; .json NULL and .place the whole file's where it is absent. */
static struct config_value top_value(const struct reader *r, const char *key, bool *ret_given)
{
	struct config_value val = {.scan = &r->scan, .key = key};

	*ret_given = false;
	for (size_t i = 1; i < r->scan.n_places && !*ret_given; i++) {
		if (r->scan.places[i].parent == 0 && strcmp(r->scan.places[i].key, key) == 0) {
			val.place = i;
			*ret_given = true;
		}
	}
	(void)json_object_object_get_ex(r->top, key, &val.json);
	return val;
}

static int unknown_key(const struct reader *r, size_t key_offset, const char *name)
{
	_cleanup_str_ struct str list = {0};
	_cleanup_free_ const char **names = calloc(config_n_keys, sizeof(*names));
	const char *near;

	json_scan_fail(&r->scan, key_offset, r->err, "key \"%.64s\" is not known", name);
	if (!names)
		return -EINVAL;
	for (size_t i = 0; i < config_n_keys; i++) {
		names[i] = config_keys[i].name;
		str_addf(&list, "%s%s", i ? ", " : "", names[i]);
	}
	near = config_nearest(name, names, config_n_keys);
	if (near)
		return err_hint(r->err, "did you mean \"%s\"?", near);
	return err_hint(r->err, "the keys are %s", list.data ? list.data : "");
}

static int set_mode(struct reader *r)
{
	const struct config_key *key = config_key_find("mode");
	struct config_value val;
	bool given;
	int res;

	config_init_default(r->cfg, MODE_DYNAMIC);
	val = top_value(r, "mode", &given);
	if (!given) {
		json_scan_fail(&r->scan, r->scan.places[0].offset, r->err,
			       "key \"mode\" is missing");
		return err_hint(r->err, "add \"mode\": \"dynamic\", \"static\" or \"staticsweep\"");
	}
	res = config_key_set(key, r->cfg, &val, r->err);
	if (res < 0)
		return res;
	config_init_default(r->cfg, r->cfg->mode);
	return 0;
}

static int set_key(struct reader *r, const struct json_place *place)
{
	const struct config_key *key = config_key_find(place->key);
	struct config_value val;
	bool given;

	if (strcmp(place->key, "$schema") == 0)
		return 0; /* editors put it there */
	if (!key)
		return unknown_key(r, place->key_offset, place->key);
	if (!(key->modes & 1u << r->cfg->mode)) {
		json_scan_fail(&r->scan, place->key_offset, r->err,
			       "key \"%s\" has no meaning in mode %s", key->name,
			       squeeze_mode_name(r->cfg->mode));
		return err_hint(r->err, "it belongs to mode %s",
				key->type == KEY_LAW ? "dynamic" : "staticsweep");
	}
	val = top_value(r, key->name, &given);
	return config_key_set(key, r->cfg, &val, r->err);
}

/* a > b, where both are in the same unit; a percentage and bytes cannot be compared yet. */
static bool is_above(const struct amount *a, const struct amount *b)
{
	if (a->is_pct != b->is_pct)
		return false;
	return a->is_pct ? a->pct > b->pct : a->bytes > b->bytes;
}

static int check_bounds(struct reader *r)
{
	struct squeezer_config *cfg = r->cfg;
	const struct amount *init = &cfg->init_limit;
	bool given, has_init = init->is_pct || init->bytes != 0;
	struct config_value val;

	if (is_above(&cfg->min_limit, &cfg->max_limit)) {
		val = top_value(r, "min_limit", &given);
		return config_value_fail(&val, r->err, "it is above max_limit");
	}
	val = top_value(r, "init_limit", &given);
	if (has_init && is_above(init, &cfg->max_limit))
		return config_value_fail(&val, r->err, "it is above max_limit");
	if (has_init && is_above(&cfg->min_limit, init))
		return config_value_fail(&val, r->err, "it is below min_limit");
	return 0;
}

static int check_static(struct reader *r)
{
	const struct amount *init = &r->cfg->init_limit;
	bool given;
	struct config_value val = top_value(r, "init_limit", &given);

	if (!given) {
		val = top_value(r, "mode", &given);
		json_scan_fail(&r->scan, r->scan.places[val.place].offset, r->err,
			       "mode static needs the key \"init_limit\", its limit");
		return err_hint(r->err, "add \"init_limit\": \"512M\" or \"80%%\"");
	}
	if (init->is_pct ? init->pct <= 0 : init->bytes <= 0 || init->bytes == NUM_MAX) {
		char shown[CONFIG_SHOWN_MAX];

		return config_value_fail(&val, r->err, "%s is no limit, and mode static needs one",
					 config_shown(shown, &val));
	}
	return 0;
}

/* What keys demand of one another. */
static int check_together(struct reader *r)
{
	struct squeezer_config *cfg = r->cfg;
	struct config_value val;
	bool given;
	int res = 0;

	if (cfg->mode == MODE_STATIC)
		res = check_static(r);
	else if (!cfg->init_limit.is_pct && cfg->init_limit.bytes == NUM_MAX)
		cfg->init_limit.bytes = 0; /* two spellings of none, one value */
	if (res < 0)
		return res;
	if (cfg->mode == MODE_STATICSWEEP && cfg->n_range == 0) {
		val = top_value(r, "mode", &given);
		json_scan_fail(&r->scan, r->scan.places[val.place].offset, r->err,
			       "mode staticsweep needs the key \"params_ranges\", its limits");
		return err_hint(r->err, "see configs/squeezerstaticconfig.json");
	}
	if (cfg->knob == KNOB_RECLAIM && cfg->mode != MODE_DYNAMIC) {
		val = top_value(r, "knob", &given);
		return config_value_fail(&val, r->err,
					 "memory.reclaim holds no limit, mode %s "
					 "needs memory.max or memory.high",
					 squeeze_mode_name(cfg->mode));
	}
	return check_bounds(r);
}

static int read_tree(struct reader *r)
{
	int res;

	if (!json_object_is_type(r->top, json_type_object)) {
		json_scan_fail(&r->scan, r->scan.places[0].offset, r->err,
			       "a configuration is an object");
		return err_hint(r->err, "the shortest is {\"mode\": \"dynamic\"}");
	}
	res = set_mode(r);
	for (size_t i = 1; i < r->scan.n_places && res >= 0; i++) {
		if (r->scan.places[i].parent == 0)
			res = set_key(r, &r->scan.places[i]);
	}
	return res < 0 ? res : check_together(r);
}

static int build_tree(struct reader *r, const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX + 2);
	int res = 0;

	if (!tok)
		return err_set(r->err, -ENOMEM, "%s: out of memory", r->scan.path);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	/* "continue" is its answer to a bare number at the end, which is no object anyway. */
	r->top = json_tokener_parse_ex(tok, text, len);
	if (json_tokener_get_error(tok) != json_tokener_success &&
	    json_tokener_get_error(tok) != json_tokener_continue)
		res = json_scan_fail(&r->scan, json_tokener_get_parse_end(tok), r->err, "%s",
				     json_tokener_error_desc(json_tokener_get_error(tok)));
	json_tokener_free(tok);
	return res;
}

int config_parse(struct squeezer_config *cfg, const char *path, const char *text, size_t len,
		 struct err *err)
{
	struct squeezer_config read = {0};
	struct reader r = {.cfg = &read, .err = err};
	int res;

	if (len > CONFIG_FILE_MAX)
		return err_set(err, -EINVAL, "%s: larger than 1 MiB, no configuration", path);
	res = json_scan(&r.scan, path, text, len, err);
	if (res == -EINVAL && r.scan.n_places == 0 && !err->hint[0])
		err_hint(err, "the shortest configuration is {\"mode\": \"dynamic\"}");
	if (res >= 0)
		res = build_tree(&r, text + r.scan.start, len - r.scan.start);
	if (res >= 0)
		res = read_tree(&r);
	if (res >= 0)
		*cfg = read;
	json_object_put(r.top);
	json_scan_done(&r.scan);
	return res;
}

/* Reads at most one byte more than is accepted: enough to see that it is too much. */
static int read_file(int fd, const char *path, char *buf, size_t *ret_len, struct err *err)
{
	size_t n = 0;
	ssize_t got = 1;

	while (got != 0 && n <= CONFIG_FILE_MAX) {
		got = read(fd, buf + n, CONFIG_FILE_MAX + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, -errno, "cannot read %s", path);
		n += got;
	}
	*ret_len = n;
	return 0;
}

int config_load(struct squeezer_config *cfg, const char *path, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *buf = NULL;
	size_t len = 0;
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	buf = malloc(CONFIG_FILE_MAX + 1);
	if (!buf)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	r = read_file(fd, path, buf, &len, err);
	if (r < 0)
		return r;
	return config_parse(cfg, path, buf, len, err);
}
