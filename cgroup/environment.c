/* The machine a run was made on: kernel, settings read back, features; see features.h. */
#include "cgroup/features.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/num.h"
#include "cgroup/parse.h"
#include "cgroup/zswap.h"

/* Lists like "0-3,8" are counted by their ranges. */
static int count_cpus(const struct root *root)
{
	char text[256];
	const char *p, *end;
	int64_t a, b;
	int n = 0;
	ssize_t r = root_read(root, "/sys/devices/system/cpu/online", text, sizeof(text));

	end = text + MAX(r, 0);
	for (p = text; p < end; p += p < end) {
		if (num_scan_u63(p, end, &a, &p) < 0)
			break;
		b = a;
		if (p < end && *p == '-' && num_scan_u63(p + 1, end, &b, &p) < 0)
			break;
		n += (int)(b - a + 1);
	}
	return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void machine_probe(struct machine *ret, const struct root *root)
{
	char text[8192];
	struct utsname u;
	ssize_t r = root_read(root, "/proc/sys/kernel/osrelease", ret->kernel, sizeof(ret->kernel));

	if (r < 0)
		(void)snprintf(ret->kernel, sizeof(ret->kernel), "%s",
			       uname(&u) == 0 ? u.release : "unknown");
	ret->cpus = count_cpus(root);
	r = root_read(root, "/proc/meminfo", text, sizeof(text));
	if (r < 0 || parse_flat_key(text, r, "MemTotal", &ret->memory_bytes) < 0)
		ret->memory_bytes = -1;
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void add_number_file(struct json_object *o, const char *key, const struct root *root,
			    const char *path)
{
	char text[64];
	int64_t v;

	if (root_read(root, path, text, sizeof(text)) >= 0 && num_parse_u63(text, &v) == 0)
		json_object_object_add(o, key, json_object_new_int64(v));
}

/* "always madvise [never]": the word in brackets. */
static void add_thp(struct json_object *o, const struct root *root)
{
	char text[128], *open, *close;

	if (root_read(root, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)) < 0)
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close) {
		*close = '\0';
		add_text(o, "thp", open + 1);
	}
}

static void add_zswap(struct json_object *o, const struct root *root)
{
	int fd = root_openat(root, ZSWAP_PARAMETERS, O_RDONLY | O_DIRECTORY);
	struct json_object *zswap;
	char value[ZSWAP_VALUE_MAX];
	struct dirent *e;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	zswap = json_object_new_object();
	while ((e = readdir(dir))) {
		if (e->d_name[0] != '.' && zswap_get(root, e->d_name, value) >= 0)
			add_text(zswap, e->d_name, value);
	}
	json_object_object_add(o, "zswap", zswap);
	(void)closedir(dir); /* only read from */
}

/* One line of /proc/swaps: "/dev/vda partition 1048572 0 -2", sizes in KiB. */
static void add_swap_device(struct json_object *list, char *line)
{
	static const char *const keys[] = {"path", "type", "size_bytes", "used_bytes", "priority"};
	struct json_object *o = json_object_new_object();
	char *rest = line, *word;
	int64_t kib;

	for (size_t i = 0; rest && i < ARRAY_SIZE(keys);) {
		word = strsep(&rest, " \t");
		if (!*word)
			continue;
		if (strstr(keys[i], "_bytes") && num_parse_u63(word, &kib) == 0)
			json_object_object_add(o, keys[i], json_object_new_int64(kib * 1024));
		else
			add_text(o, keys[i], word);
		i++;
	}
	json_object_array_add(list, o);
}

static void add_swaps(struct json_object *o, const struct root *root)
{
	char text[8192], *rest = text, *line;
	struct json_object *list;

	if (root_read(root, "/proc/swaps", text, sizeof(text)) < 0)
		return;
	list = json_object_new_array();
	(void)strsep(&rest, "\n");
	while (rest && (line = strsep(&rest, "\n"))) {
		if (*line)
			add_swap_device(list, line);
	}
	json_object_object_add(o, "swap_devices", list);
}

static void add_features(struct json_object *o, const struct root *root)
{
	struct json_object *all = json_object_new_object();
	struct features features;

	features_probe(&features, root, NULL);
	for (size_t i = 0; i < FEATURE_COUNT; i++) {
		const struct feature *f = &features.f[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "ok", json_object_new_boolean(f->state == FEATURE_YES));
		add_text(one, "state", feature_state_name(f->state));
		if (f->detail[0])
			add_text(one, "detail", f->detail);
		/* Readers show `why` for what is missing: the finding says more than the use. */
		if (f->state != FEATURE_YES)
			add_text(one, "why", f->detail[0] ? f->detail : f->why);
		json_object_object_add(all, f->name, one);
	}
	json_object_object_add(o, "features", all);
}

void features_to_json(const struct root *root, struct str *out)
{
	struct json_object *o = json_object_new_object();
	struct machine m;
	const char *text;

	machine_probe(&m, root);
	add_text(o, "kernel", m.kernel);
	json_object_object_add(o, "page_size", json_object_new_int64(sysconf(_SC_PAGESIZE)));
	json_object_object_add(o, "cpus", json_object_new_int(m.cpus));
	if (m.memory_bytes >= 0)
		json_object_object_add(o, "memory_bytes", json_object_new_int64(m.memory_bytes));
	add_zswap(o, root);
	add_swaps(o, root);
	add_thp(o, root);
	add_number_file(o, "swappiness", root, "/proc/sys/vm/swappiness");
	add_number_file(o, "page_cluster", root, "/proc/sys/vm/page-cluster");
	add_features(o, root);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
							 JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		str_add(out, text);
	else
		out->failed = true;
	(void)json_object_put(o); /* the last reference */
}
