#include "report/text_internal.h"
#include "report/text_layout.h"

#include <string.h>

/*
 * One setting:
 *   swapped out               17.7 MiB  largest; median 6.1 MiB
 *
 * Several: every figure has a line of its own, and its definition where there is
 * room, else in the end.
 *                           baseline    limit 80%
 *   swapped out                  0 B     17.7 MiB  largest: in swap and not ...
 *   median swapped out           0 B      6.1 MiB  over time
 */

/* Names of settings may widen a column, as long as most definitions still fit beside. */
#define CELL_WIDEST 14

struct block {
	struct str *out;
	const struct run_group *const *groups;
	size_t n;
	int cell; /* width of a value */
	struct text_missing missing;
	struct str definitions; /* owned; for which there was no room */
	size_t n_lines;
	enum figure_section section, last; /* of the line that is being added, of the one before */
};

static const struct figure *median(const struct block *b, size_t i, enum figure_id id)
{
	return &b->groups[i]->median[id];
}

static void add_cell(struct block *b, const struct figure *f, enum figure_id id)
{
	char buf[CELL_MAX];

	str_addf(b->out, "%*s", b->cell, text_value(buf, f, figure_infos[id].unit));
}

/* Sections of a block are apart by a blank line. */
static void add_label(struct block *b, const char *label)
{
	if (b->n_lines > 0 && b->section != b->last)
		str_add(b->out, "\n");
	b->last = b->section;
	str_addf(b->out, "%*s%-*s", TEXT_INDENT, "", TEXT_LABEL, label);
	b->n_lines++;
}

/* -- one setting ------------------------------------------------------------------------------ */

/* "median @" -> "median 6.1 MiB" */
static void add_also(struct str *s, const struct text_also *also, const struct figure *f)
{
	const char *at = strchr(also->text, '@');
	char buf[CELL_MAX];

	str_addn(s, also->text, (size_t)(at - also->text));
	str_add(s, text_value(buf, f, figure_infos[also->id].unit));
	str_add(s, at + 1);
}

static void add_row(struct block *b, enum figure_id id, const char *definition)
{
	const size_t at = TEXT_INDENT + TEXT_LABEL + (size_t)b->cell + 2;

	add_label(b, figure_infos[id].label);
	add_cell(b, median(b, 0, id), id);
	str_add(b->out, "  ");
	text_wrap(b->out, at, at, definition);
}

static void add_single_spread(struct block *b, enum figure_id id)
{
	const struct run_group *g = b->groups[0];
	char label[TEXT_LABEL + 1], buf[CELL_MAX];

	if (g->min[id].why || !(g->min[id].v < g->max[id].v))
		return;
	(void)snprintf(label, sizeof(label), "  %zu runs: from", g->n);
	add_label(b, label);
	add_cell(b, &g->min[id], id);
	str_addf(b->out, "  to %s\n", text_value(buf, &g->max[id], figure_infos[id].unit));
}

static void add_single(struct block *b, const struct text_line *line)
{
	_cleanup_str_ struct str s = {0};
	bool has_main = !median(b, 0, line->id)->why;
	const char *sep = line->lead ? "; " : "";
	size_t n_also = 0;

	if (!has_main)
		text_missing_add(&b->missing, line->id);
	else if (line->lead)
		str_add(&s, line->lead);
	for (size_t i = 0; i < TEXT_ALSO_MAX && line->also[i].text; i++) {
		const struct text_also *also = &line->also[i];
		const struct figure *f = median(b, 0, also->id);

		if (has_main && f->why) {
			/* Of nothing there is nothing more to say. */
			if (median(b, 0, line->id)->v != 0)
				text_missing_add(&b->missing, also->id);
		} else if (has_main) {
			str_add(&s, n_also++ ? ", " : sep);
			add_also(&s, also, f);
		} else if (!f->why) {
			add_row(b, also->id, figure_infos[also->id].definition);
		}
	}
	if (!has_main)
		return;
	add_row(b, line->id, n_also && s.data ? s.data : figure_infos[line->id].definition);
	if (line->has_spread)
		add_single_spread(b, line->id);
}

/* -- several ---------------------------------------------------------------------------------- */

static bool in_none(const struct block *b, enum figure_id id)
{
	for (size_t i = 0; i < b->n; i++) {
		if (!median(b, i, id)->why)
			return false;
	}
	return true;
}

static void add_spread_row(struct block *b, enum figure_id id, const char *label, bool is_max)
{
	add_label(b, label);
	for (size_t i = 0; i < b->n; i++)
		add_cell(b, is_max ? &b->groups[i]->max[id] : &b->groups[i]->min[id], id);
	str_add(b->out, "\n");
}

static void add_spread(struct block *b, enum figure_id id)
{
	bool has_spread = false;

	for (size_t i = 0; i < b->n; i++)
		has_spread |= !b->groups[i]->min[id].why &&
			      b->groups[i]->min[id].v < b->groups[i]->max[id].v;
	if (!has_spread)
		return;
	add_spread_row(b, id, "  least of the runs", false);
	add_spread_row(b, id, "  largest of the runs", true);
}

/* Without room for the definition it goes to the end of the block; the label alone says what a
 * detail of the line before is. Three settings leave room for so few that the end would be a
 * page of its own: there the labels have to do. */
static void add_columns(struct block *b, enum figure_id id, bool is_detail)
{
	const struct figure_info *info = &figure_infos[id];
	size_t at = TEXT_INDENT + TEXT_LABEL + b->n * (size_t)b->cell + 2;

	add_label(b, info->label);
	for (size_t i = 0; i < b->n; i++)
		add_cell(b, median(b, i, id), id);
	if (at + strlen(info->definition) <= TEXT_WIDTH)
		str_addf(b->out, "  %s", info->definition);
	else if (!is_detail && b->n < TEXT_COLUMNS)
		str_addf(&b->definitions, "%s%s: %s", b->definitions.len > 0 ? "; " : "",
			 info->label, info->definition);
	str_add(b->out, "\n");
}

static void add_definitions(struct block *b)
{
	if (b->definitions.len > 0)
		text_para(b->out, TEXT_INDENT, "(%s)", b->definitions.data);
	b->out->failed |= b->definitions.failed;
	str_done(&b->definitions);
}

static void add_several(struct block *b, const struct text_line *line)
{
	bool has_main = !in_none(b, line->id);

	text_missing_add(&b->missing, line->id);
	if (has_main)
		add_columns(b, line->id, false);
	if (has_main && line->has_spread)
		add_spread(b, line->id);
	for (size_t i = 0; i < TEXT_ALSO_MAX && line->also[i].text; i++) {
		enum figure_id id = line->also[i].id;

		if (!in_none(b, id))
			add_columns(b, id, true);
		else if (has_main)
			text_missing_add(&b->missing, id);
	}
}

/* -- both ------------------------------------------------------------------------------------- */

static int find_cell(const struct run_group *const groups[], size_t n)
{
	size_t longest = 0;

	if (n == 1)
		return TEXT_CELL;
	for (size_t i = 0; i < n; i++)
		longest = MAX(longest, strlen(text_run_name(groups[i]->first)));
	return (int)MIN(MAX(longest + 1, (size_t)TEXT_CELL - 1),
			(size_t)(n == 2 ? CELL_WIDEST : TEXT_CELL));
}

static void add_heading(struct block *b)
{
	str_addf(b->out, "%*s", TEXT_INDENT + TEXT_LABEL, "");
	for (size_t i = 0; i < b->n; i++)
		str_addf(b->out, "%*.*s", b->cell, b->cell - 1, text_run_name(b->groups[i]->first));
	str_add(b->out, "\n");
}

static bool is_in(const struct text_line *line, enum figure_section first, enum figure_section last)
{
	enum figure_section section = figure_infos[line->id].section;

	return section >= first && section <= last;
}

static bool has_any(const struct block *b, enum figure_section first, enum figure_section last)
{
	for (int id = 0; id < FIG_COUNT; id++) {
		if (figure_infos[id].section >= first && figure_infos[id].section <= last &&
		    !in_none(b, (enum figure_id)id))
			return true;
	}
	return false;
}

bool text_figures(struct str *out, enum figure_section first, enum figure_section last,
		  const struct run_group *const groups[], size_t n)
{
	struct block b = {
		.out = out,
		.groups = groups,
		.n = n,
		.cell = find_cell(groups, n),
		.missing = {.groups = groups, .n_groups = n},
	};

	if (n > 1 && has_any(&b, first, last))
		add_heading(&b);
	for (size_t i = 0; i < n_text_lines; i++) {
		if (!is_in(&text_lines[i], first, last))
			continue;
		b.section = figure_infos[text_lines[i].id].section;
		if (n == 1)
			add_single(&b, &text_lines[i]);
		else
			add_several(&b, &text_lines[i]);
	}
	add_definitions(&b);
	text_missing_print(out, &b.missing, b.n_lines == 0);
	return b.n_lines > 0;
}
