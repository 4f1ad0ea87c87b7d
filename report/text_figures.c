#include "report/text_internal.h"
#include "report/text_layout.h"

#include <string.h>

/*
 * One setting:
 *
 *   peak                      640.0 MiB  memory.peak, else the largest
 *                                        memory.current
 *   zswap ratio                     n/a (nothing was in zswap)
 *                                        original / compressed size
 *
 * Several:
 *                              baseline   limit 80 %
 *   peak                      640.0 MiB    512.0 MiB
 *     memory.peak, else the largest memory.current
 */
#define INDENT 2
#define LABEL_WIDTH 25
#define CELL_WIDTH 13
#define DEFINITION_AT (INDENT + LABEL_WIDTH + CELL_WIDTH + 2)

static void add_cells(struct str *out, const char *label, const struct figure *const figs[],
		      size_t n, enum figure_unit unit)
{
	char buf[CELL_MAX];

	str_addf(out, "%*s%-*s", INDENT, "", LABEL_WIDTH, label);
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%*s", CELL_WIDTH, text_value(buf, figs[i], unit));
}

static bool has_repeats(const struct run_group *const groups[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (groups[i]->n > 1)
			return true;
	}
	return false;
}

static bool has_spread(const struct run_group *const groups[], size_t n, enum figure_id id)
{
	for (size_t i = 0; i < n; i++) {
		if (!groups[i]->median[id].why && groups[i]->min[id].v != groups[i]->max[id].v)
			return true;
	}
	return false;
}

/* Lines for the least and the largest of the repeats, where they differ. */
static void add_spread(struct str *out, const struct run_group *const groups[], size_t n,
		       enum figure_id id)
{
	const struct figure *least[TEXT_COLUMNS], *most[TEXT_COLUMNS];

	if (!has_repeats(groups, n) || !has_spread(groups, n, id))
		return;
	for (size_t i = 0; i < n; i++) {
		least[i] = &groups[i]->min[id];
		most[i] = &groups[i]->max[id];
	}
	add_cells(out, "  least of the runs", least, n, figure_infos[id].unit);
	str_add(out, "\n");
	add_cells(out, "  largest of the runs", most, n, figure_infos[id].unit);
	str_add(out, "\n");
}

static void add_single(struct str *out, const struct run_group *const groups[], enum figure_id id)
{
	const struct figure_info *info = &figure_infos[id];
	const struct figure *fig = &groups[0]->median[id];
	_cleanup_str_ struct str reason = {0};

	add_cells(out, info->label, &fig, 1, info->unit);
	if (fig->why) {
		str_addf(&reason, "(%s)", fig->why);
		str_add(out, " ");
		text_wrap(out, DEFINITION_AT - 1, DEFINITION_AT, reason.data ? reason.data : "");
		str_addf(out, "%*s", DEFINITION_AT, "");
	} else {
		str_add(out, "  ");
	}
	text_wrap(out, DEFINITION_AT, DEFINITION_AT, info->definition);
	add_spread(out, groups, 1, id);
}

static bool all_lack_for(const struct run_group *const groups[], size_t n, enum figure_id id)
{
	for (size_t i = 0; i < n; i++) {
		if (!groups[i]->median[id].why ||
		    strcmp(groups[i]->median[id].why, groups[0]->median[id].why) != 0)
			return false;
	}
	return true;
}

static void add_reasons(struct str *text, const struct run_group *const groups[], size_t n,
			enum figure_id id)
{
	if (all_lack_for(groups, n, id)) {
		str_addf(text, "; n/a (%s)", groups[0]->median[id].why);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (groups[i]->median[id].why)
			str_addf(text, "; %s: n/a (%s)", groups[i]->first->row.name,
				 groups[i]->median[id].why);
	}
}

static void add_columns(struct str *out, const struct run_group *const groups[], size_t n,
			enum figure_id id)
{
	const struct figure_info *info = &figure_infos[id];
	const struct figure *figs[TEXT_COLUMNS];
	_cleanup_str_ struct str text = {0};

	for (size_t i = 0; i < n; i++)
		figs[i] = &groups[i]->median[id];
	add_cells(out, info->label, figs, n, info->unit);
	str_add(out, "\n");
	add_spread(out, groups, n, id);
	str_add(&text, info->definition);
	add_reasons(&text, groups, n, id);
	text_para(out, INDENT + 2, "%s", text.data ? text.data : "");
}

static void add_heading(struct str *out, const struct run_group *const groups[], size_t n)
{
	str_addf(out, "%*s", INDENT + LABEL_WIDTH, "");
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%*.*s", CELL_WIDTH, CELL_WIDTH - 1, groups[i]->first->row.name);
	str_add(out, "\n");
	if (!has_repeats(groups, n))
		return;
	str_addf(out, "%*s", INDENT + LABEL_WIDTH, "");
	for (size_t i = 0; i < n; i++) {
		char buf[CELL_MAX];

		(void)snprintf(buf, sizeof(buf), "median of %zu", groups[i]->n);
		str_addf(out, "%*s", CELL_WIDTH, groups[i]->n > 1 ? buf : "1 run");
	}
	str_add(out, "\n");
}

void text_figures(struct str *out, enum figure_section section,
		  const struct run_group *const groups[], size_t n)
{
	if (n > 1 || has_repeats(groups, n))
		add_heading(out, groups, n);
	for (int i = 0; i < FIG_COUNT; i++) {
		if (figure_infos[i].section != section)
			continue;
		if (n == 1)
			add_single(out, groups, (enum figure_id)i);
		else
			add_columns(out, groups, n, (enum figure_id)i);
	}
}
