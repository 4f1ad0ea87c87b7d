/* `analyzer recover`: puts back what a killed analyzer has left. */
#include "cli/cli.h"
#include "runner/recover.h"

#include <getopt.h>
#include <json-c/json.h>

static const char help[] =
	"usage: analyzer recover [--json]\n"
	"\n"
	"Puts back what was changed by an analyzer that was killed together with its\n"
	"guard: limits, settings, frozen or stopped processes, controllers, groups. What\n"
	"belongs to one that still runs is left alone.\n"
	"\n"
	"Exit status: 0 nothing is left; 1 something could not be put back; 2 wrong usage.\n";

struct telling {
	struct str *text;         /* either */
	struct json_object *list; /* or */
};

static const char *what(const struct journal_entry *e)
{
	switch (e->kind) {
	case UNDO_WRITE:
	case UNDO_CONTROLLER:
		break;
	case UNDO_GROUP:
		return "removed";
	case UNDO_CONTINUE:
		return "continued";
	}
	return e->value;
}

static void tell(void *ctx, const struct recovery *r)
{
	const struct telling *t = ctx;
	struct json_object *o;

	if (t->text && r->problem)
		str_addf(t->text, "left  %s: %s\n", r->entry->path, r->problem->msg);
	else if (t->text)
		str_addf(t->text, "done  %s: %s\n", r->entry->path, what(r->entry));
	if (!t->list)
		return;
	o = json_object_new_object();
	json_object_object_add(o, "journal", json_object_new_string(r->journal));
	json_object_object_add(o, "path", json_object_new_string(r->entry->path));
	json_object_object_add(o, "value", json_object_new_string(what(r->entry)));
	json_object_object_add(o, "problem",
			       r->problem ? json_object_new_string(r->problem->msg) : NULL);
	json_object_array_add(t->list, o);
}

static void sum_up(struct str *text, const struct recover_totals *t)
{
	if (t->journals == 0)
		str_add(text, "Nothing was left behind");
	else
		str_addf(text, "%d put back, %d left, of %d dead analyzer%s", t->put_back, t->left,
			 t->journals, t->journals == 1 ? "" : "s");
	if (t->in_use > 0)
		str_addf(text, "; %d still run%s", t->in_use, t->in_use == 1 ? "s" : "");
	str_add(text, ".\n");
	if (t->left > 0)
		str_add(text, "A group that has processes stays until they end: call this again "
			      "then.\n");
}

static int recover_all(struct cli *cli, bool is_json, const struct root *root)
{
	_cleanup_str_ struct str text = {0};
	struct telling t = {.text = is_json ? NULL : &text};
	struct recover_totals totals;
	struct err err;
	int r;

	if (is_json)
		t.list = json_object_new_array();
	if (recover(root, tell, &t, &totals, &err) < 0) {
		json_object_put(t.list);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	if (is_json) {
		str_addf(&text, "%s\n",
			 json_object_to_json_string_ext(t.list, JSON_C_TO_STRING_PRETTY));
		json_object_put(t.list);
	} else {
		sum_up(&text, &totals);
	}
	r = cli_print_str(cli, &text);
	return r ? r : totals.left > 0 ? STATUS_NEGATIVE : 0;
}

int cmd_recover(struct cli *cli, int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool is_json = false;
	struct root root;
	struct err err;
	int r;

	optind = 0;
	opterr = 0;
	while ((r = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
		if (r == 'h')
			return cli_print(cli, help);
		if (r != 'j')
			return cli_usage(cli, "recover", "recover: unknown option: %.200s",
					 argv[optind - 1]);
		is_json = true;
	}
	if (optind < argc)
		return cli_usage(cli, "recover", "recover takes no further words");
	if (root_open(&root, cli->root_dir, &err) < 0)
		return cli_fail(cli, STATUS_FAILED, &err);
	r = recover_all(cli, is_json, &root);
	root_close(&root);
	return r;
}
