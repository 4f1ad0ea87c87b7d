#include "report/environment.h"
#include "report/text_internal.h"
#include "report/text_layout.h"

#include <string.h>

#define REMARK_AT 50

/* A command to copy, with a remark if there is room. It is never wrapped: a long path sticks out,
 * but can still be copied. */
static void add_hint(struct str *out, const char *command, const char *remark)
{
	size_t at = TEXT_INDENT + strlen(command), to = MAX(at, (size_t)REMARK_AT);

	str_addf(out, "%*s%s", TEXT_INDENT, "", command);
	if (to + 4 + strlen(remark) <= TEXT_WIDTH)
		str_addf(out, "%*s  # %s", (int)(to - at), "", remark);
	str_add(out, "\n");
}

static void add_json(struct str *out, const struct report *r)
{
	_cleanup_str_ struct str s = {0};

	str_add(&s, "analyzer report ");
	command_word(&s, r->path);
	str_add(&s, " --format json");
	if (s.data)
		add_hint(out, s.data, "every figure of every run");
}

/* The command itself where it fits. */
static void add_limit(struct str *out, const struct report *r)
{
	_cleanup_str_ struct str s = {0};
	const char *command = r->runs[0].command;

	str_addf(&s, "analyzer -n 3 --limit 80%% -- %s",
		 strlen(command) <= 45 ? command : "COMMAND");
	if (s.data)
		add_hint(out, s.data, "baseline and 80 % of it");
}

static void count(void *arg, const char *name, const char *why)
{
	(void)name, (void)why;
	++*(size_t *)arg;
}

void text_next(struct str *out, const struct report *r)
{
	size_t n_missing = 0;

	environment_missing(r->runs[0].row.environment, count, &n_missing);
	str_add(out, "\nNext:\n");
	add_json(out, r);
	if (n_missing > 0)
		add_hint(out, "analyzer check", "why, and how to fix it");
	if ((!r->baseline || r->n_groups == 1) && !text_lacks_memory(&r->runs[0]))
		add_limit(out, r);
}
