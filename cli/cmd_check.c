/* `analyzer check`: what this machine can do, why not, how to fix it. */
#include "cgroup/features.h"
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <string.h>

#include "base/fmt.h"

static const char help[] =
	"usage: analyzer check [--json] [--feature NAME] [--cgpath MOUNT]\n"
	"\n"
	"What this machine can do, why not, and how to fix it. Changes nothing and works\n"
	"without root.\n"
	"\n"
	"  analyzer check                       the whole screen\n"
	"  analyzer check --feature psi         for scripts: exit 0 if there, else 1\n"
	"\n"
	"      --json               the same for programs\n"
	"      --feature NAME       one feature; an unknown name lists them\n"
	"      --cgpath MOUNT       the cgroup v2 mount (default: as mounted)\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 1 a needed feature (--feature: this one) is missing; 2 bad usage.\n";

/* Columns: states at 2, titles at 8, details at 34, remedies at 10; nothing beyond 79. */
#define WIDTH 79
#define COL_DETAIL 34
#define COL_REMEDY 10

struct verdict {
	int problems, warnings;
	bool lacks_needed, lacks_squeezing;
};

static struct verdict judge(const struct features *features)
{
	struct verdict v = {0};

	for (size_t i = 0; i < FEATURE_COUNT; i++) {
		const struct feature *f = &features->f[i];

		v.problems += f->state == FEATURE_NO;
		v.warnings += f->state == FEATURE_WARN;
		v.lacks_needed |= f->state == FEATURE_NO && f->group == FEATURE_NEEDED;
		v.lacks_squeezing |= f->state == FEATURE_NO && f->group == FEATURE_SQUEEZING;
	}
	return v;
}

static const char *summary(const struct features *features, const struct verdict *v)
{
	if (features->f[FEATURE_CGROUP2].state == FEATURE_NO)
		return "A run would have no group of its own: no figures of it.";
	if (v->lacks_needed)
		return "A run would work without squeezing.";
	if (v->lacks_squeezing)
		return "A run would work, squeezing in part.";
	if (v->problems || v->warnings)
		return "A run would work with reduced reports.";
	return "Everything works here.";
}

/* The length of text's first piece, which is not divided: up to a "; ", so that commands stay
 * whole when they are copied from the screen, or a word where that is too long for a line. */
static size_t piece_length(const char *text, size_t room)
{
	const char *semicolon = strstr(text, "; ");
	size_t n = semicolon ? (size_t)(semicolon + 1 - text) : strlen(text);

	return semicolon && n <= room ? n : strcspn(text, " ");
}

/* Text from column at on, wrapped at WIDTH to column indent; ends the line. */
static void add_wrapped(struct str *out, const char *text, size_t at, size_t indent)
{
	bool first = true, is_start = true;

	while (*text) {
		size_t n = is_start ? piece_length(text, WIDTH - indent) : strcspn(text, " ");

		if (!first && at + 1 + n > WIDTH) {
			str_addf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			str_add(out, " ");
			at++;
		}
		str_addn(out, text, n);
		at += n;
		first = false;
		is_start = text[n - 1] == ';';
		text += n;
		text += strspn(text, " ");
	}
	str_add(out, "\n");
}

/* "          fix: boot with psi=1" */
static void add_remedy(struct str *out, const char *word, const char *text)
{
	if (!*text)
		return;
	str_addf(out, "%*s%s: ", COL_REMEDY, "", word);
	add_wrapped(out, text, COL_REMEDY + strlen(word) + 2, COL_REMEDY + strlen(word) + 2);
}

static const char *state_word(enum feature_state state)
{
	static const char *const words[] = {"FAIL", "ok", "warn", "unknown"};

	return words[state];
}

static const char *state_color(enum feature_state state)
{
	static const char *const colors[] = {"\033[31m", "\033[32m", "\033[33m", "\033[33m"};

	return colors[state];
}

/* "  warn  swap                      none: anonymous memory cannot be squeezed" */
static void add_feature(struct str *out, const struct feature *f, bool color)
{
	const char *word = state_word(f->state);
	int state_pad = MAX(6 - (int)strlen(word), 1);
	int pad = COL_DETAIL - 2 - (int)strlen(word) - state_pad - (int)strlen(f->title);

	str_addf(out, "  %s%s%s%*s%s", color ? state_color(f->state) : "", word,
		 color ? "\033[0m" : "", state_pad, "", f->title);
	if (f->detail[0]) {
		str_addf(out, "%*s", MAX(pad, 1), "");
		add_wrapped(out, f->detail, COL_DETAIL, COL_DETAIL);
	} else {
		str_add(out, "\n");
	}
	if (f->state == FEATURE_YES)
		return;
	add_remedy(out, "why", f->why);
	add_remedy(out, "fix", f->fix);
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

/* "analyzer 1.0.0 on Linux 6.1.0, 2 CPUs, 1.0 GiB, root" */
static void add_heading(struct str *out, const struct machine *m)
{
	char size[FMT_MAX], line[256];

	(void)snprintf(line, sizeof(line), "analyzer %s on Linux %s, %d CPU%s, %s, %s",
		       ANALYZER_VERSION, m->kernel, m->cpus, plural(m->cpus),
		       m->memory_bytes < 0 ? "-" : fmt_bytes(size, m->memory_bytes),
		       geteuid() == 0 ? "root" : "not root");
	add_wrapped(out, line, 0, 2);
}

static void screen(const struct features *features, const struct machine *m, bool color,
		   struct str *out)
{
	static const char *const titles[] = {"Needed", "Squeezing", "Observing"};
	struct verdict v = judge(features);

	add_heading(out, m);
	for (int group = FEATURE_NEEDED; group <= FEATURE_OBSERVING; group++) {
		str_addf(out, "%s\n", titles[group]);
		for (size_t i = 0; i < FEATURE_COUNT; i++) {
			if ((int)features->f[i].group == group)
				add_feature(out, &features->f[i], color);
		}
	}
	str_addf(out, "%d problem%s, %d warning%s. %s\n", v.problems, plural(v.problems),
		 v.warnings, plural(v.warnings), summary(features, &v));
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void add_int(struct json_object *o, const char *key, int64_t v)
{
	json_object_object_add(o, key, v < 0 ? NULL : json_object_new_int64(v));
}

static struct json_object *feature_json(const struct feature *f)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", f->name);
	add_text(o, "title", f->title);
	add_text(o, "group", feature_group_name(f->group));
	add_text(o, "state", feature_state_name(f->state));
	add_text(o, "detail", f->detail);
	add_text(o, "why", f->state == FEATURE_YES ? "" : f->why);
	add_text(o, "fix", f->state == FEATURE_YES ? "" : f->fix);
	return o;
}

static void as_json(const struct features *features, const struct machine *m, struct str *out)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct verdict v = judge(features);
	const char *text;

	add_text(o, "version", ANALYZER_VERSION);
	add_text(o, "kernel", m->kernel);
	add_int(o, "cpus", m->cpus);
	add_int(o, "memory_bytes", m->memory_bytes);
	json_object_object_add(o, "root", json_object_new_boolean(geteuid() == 0));
	for (size_t i = 0; i < FEATURE_COUNT; i++)
		json_object_array_add(list, feature_json(&features->f[i]));
	json_object_object_add(o, "features", list);
	add_int(o, "problems", v.problems);
	add_int(o, "warnings", v.warnings);
	json_object_object_add(o, "ok", json_object_new_boolean(!v.lacks_needed));
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
							 JSON_C_TO_STRING_NOSLASHESCAPE);
	str_addf(out, "%s\n", text ? text : "{}");
	(void)json_object_put(o); /* the last reference */
}

static int find_feature(struct cli *cli, const struct features *features, const char *name)
{
	_cleanup_str_ struct str names = {0};

	for (int i = 0; i < FEATURE_COUNT; i++) {
		if (strcmp(features->f[i].name, name) == 0)
			return i;
		str_addf(&names, "%s%s", i ? ", " : "", features->f[i].name);
	}
	(void)cli_usage(cli, "check", "check --feature %.100s: not known; there are: %s", name,
			names.data);
	return -1;
}

struct options {
	bool json;
	const char *feature, *cgpath;
};

/* -1: go on, else the exit status. */
static int parse(struct cli *cli, int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"feature", required_argument, NULL, 'f'},
		{"cgpath", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	optind = 0; /* 0: a fresh start, as after another use of getopt */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:h", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			ret->json = true;
			break;
		case 'f':
			ret->feature = optarg;
			break;
		case 'c':
			ret->cgpath = optarg;
			break;
		case 'h':
			return cli_print(cli, help);
		case ':':
			return cli_usage(cli, "check", "check: %.200s needs a value",
					 argv[optind - 1]);
		default:
			return cli_usage(cli, "check", "check: unknown option: %.200s",
					 argv[optind - 1]);
		}
	}
	if (optind < argc)
		return cli_usage(cli, "check", "check takes no further words: %.200s",
				 argv[optind]);
	return -1;
}

int cmd_check(struct cli *cli, int argc, char **argv)
{
	struct options o = {0};
	_cleanup_str_ struct str out = {0};
	struct features features;
	struct machine machine;
	struct root root;
	struct err err;
	int r = parse(cli, argc, argv, &o), which = -1;
	bool is_bad;

	if (r >= 0)
		return r;
	if (root_open(&root, cli->root_dir, &err) < 0)
		return cli_fail(cli, STATUS_FAILED, &err);
	features_probe(&features, &root, o.cgpath);
	machine_probe(&machine, &root);
	root_close(&root);
	if (o.feature) {
		which = find_feature(cli, &features, o.feature);
		if (which < 0)
			return STATUS_USAGE;
	}
	is_bad =
		which >= 0 ? features.f[which].state != FEATURE_YES : judge(&features).lacks_needed;
	if (o.json)
		as_json(&features, &machine, &out);
	else if (which >= 0)
		add_feature(&out, &features.f[which], cli_has_color(cli, STDOUT_FILENO));
	else
		screen(&features, &machine, cli_has_color(cli, STDOUT_FILENO), &out);
	r = out.failed ? STATUS_FAILED : cli_print(cli, out.data);
	return r ? r : is_bad ? STATUS_NEGATIVE : 0;
}
