#include "report/text_internal.h"
#include "report/text_layout.h"

#include "base/fmt.h"

#include <math.h>
#include <string.h>

#define NAME_WIDTH 11

/* A cell is a figure, or its change against the baseline. */
struct table_column {
	const char *title;
	int width;
	enum figure_id id;
	bool is_change;
};

/* "12.3 %" -> "12.3%": a table has no room for both. */
static void remove_blank(char *text)
{
	size_t len = strlen(text);

	if (len > 2 && strcmp(text + len - 2, " %") == 0)
		memcpy(text + len - 2, "%", 2);
}

static void add_row(struct str *out, const struct report *r, const struct run_group *g,
		    const struct table_column *cols, size_t n)
{
	const struct run_row *row = &g->first->row;
	char buf[CELL_MAX];

	str_add(out, !g->has_ended_well ? "! " : group_lacks_limit(g) ? "~ " : "  ");
	/* A limit speaks for itself; everything else goes by its name. */
	if (row->limit_bytes != READ_NULL)
		str_addf(out, "%-*.*s", NAME_WIDTH, NAME_WIDTH, fmt_bytes(buf, row->limit_bytes));
	else
		str_addf(out, "%-*.*s", NAME_WIDTH, NAME_WIDTH, row->name ? row->name : "-");
	for (size_t i = 0; i < n; i++) {
		const struct table_column *c = &cols[i];

		if (!c->is_change)
			(void)text_value(buf, &g->median[c->id], figure_infos[c->id].unit);
		else if (g == r->baseline)
			buf[0] = '\0';
		else
			(void)text_change(buf, figure_change(g, r->baseline, c->id));
		remove_blank(buf);
		str_addf(out, "%*s", c->width, buf);
	}
	str_add(out, "\n");
}

/* The baseline's line comes first. */
static void add_table(struct str *out, const struct report *r, const char *first_title,
		      const struct table_column *cols, size_t n)
{
	bool has_bad = false, has_loose = false;

	str_addf(out, "  %-*s", NAME_WIDTH, first_title);
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%*s", cols[i].width, cols[i].title);
	str_add(out, "\n");
	if (r->baseline)
		add_row(out, r, r->baseline, cols, n);
	for (size_t i = 0; i < r->n_groups; i++) {
		if (&r->groups[i] != r->baseline)
			add_row(out, r, &r->groups[i], cols, n);
		has_bad |= !r->groups[i].has_ended_well;
		has_loose |= r->groups[i].has_ended_well && group_lacks_limit(&r->groups[i]);
	}
	if (has_bad)
		text_para(out, 2,
			  "! did not end as the baseline did, or was killed for lack of "
			  "memory");
	if (has_loose)
		text_para(out, 2,
			  "~ never held this limit: table decision of profile.db tells why");
}

void text_table_memory(struct str *out, const struct report *r)
{
	static const struct table_column cols[] = {
		{"peak", 11, FIG_peak_bytes, false},
		{"median", 11, FIG_used_median_bytes, false},
		{"floor", 11, FIG_floor_bytes, false},
		{"swapped", 11, FIG_swapped_max_bytes, false},
		{"logical", 11, FIG_logical_max_bytes, false},
	};

	add_table(out, r, "setting", cols, ARRAY_SIZE(cols));
}

void text_table_cost(struct str *out, const struct report *r)
{
	static const struct table_column cols[] = {
		{"major faults", 13, FIG_major_faults, false},
		{"worst rate", 12, FIG_major_faults_max_per_s, false},
		{"stalled", 9, FIG_stalled_full_share, false},
		{"worst", 8, FIG_stalled_full_worst, false},
		{"saving", 11, FIG_saving_median_bytes, false},
		{"CPU time", 10, FIG_cpu_s, false},
	};

	add_table(out, r, "setting", cols, ARRAY_SIZE(cols));
}

void text_table_best(struct str *out, const struct report *r)
{
	static const struct table_column cols[] = {
		{"peak", 10, FIG_peak_bytes, false},
		{"", 7, FIG_peak_bytes, true},
		{"run time", 9, FIG_duration_s, false},
		{"", 8, FIG_duration_s, true},
		{"faults", 8, FIG_major_faults, false},
		{"stall", 7, FIG_stalled_full_share, false},
		{"swap", 10, FIG_swapped_max_bytes, false},
		{"zswap", 7, FIG_zswap_ratio, false},
	};

	add_table(out, r, "limit", cols, ARRAY_SIZE(cols));
	text_para(out, 2,
		  "Changes: on the baseline. Faults: major ones. Stall: share of the time, all "
		  "tasks. Swap: largest. Zswap: its ratio.");
}
