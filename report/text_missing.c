#include "report/text_internal.h"
#include "report/text_layout.h"

#include <string.h>

#define NO_MEMORY "no memory controller on cgroup v2"
#define NO_SWAP "the host has no swap"
#define NOT_IN_STAT "not in this kernel's memory.stat"

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && strcmp(text + a - b, end) == 0;
}

static bool is_stat_reason(const char *why)
{
	return ends_with(why, " in memory.stat") || strncmp(why, "no workingset_", 14) == 0;
}

static bool is_memory_reason(const char *why)
{
	/* Pressure is there without the controller too. */
	return is_stat_reason(why) ||
	       (strncmp(why, "no memory.", 10) == 0 && strcmp(why, "no memory.pressure") != 0);
}

bool text_lacks_memory(const struct run_view *v)
{
	const char *used = v->fig[FIG_used_max_bytes].why, *anon = v->fig[FIG_anon_max_bytes].why;

	return used && anon && is_memory_reason(used) && is_memory_reason(anon);
}

const char *text_reason(const struct run_view *v, enum figure_id id)
{
	const char *why = v->fig[id].why;

	if (!why)
		return ""; /* a setting that has the figure, beside one that has not */
	if (strcmp(why, "no floor found") == 0 && v->fig[FIG_floor_bytes].why)
		why = v->fig[FIG_floor_bytes].why;
	if (text_lacks_memory(v) && (is_memory_reason(why) || strcmp(why, NO_SWAP) == 0))
		return NO_MEMORY;
	return is_stat_reason(why) ? NOT_IN_STAT : why;
}

static void add(struct text_missing *m, enum figure_id id, const char *why, unsigned int columns)
{
	if (m->n < ARRAY_SIZE(m->items)) /* else every figure of every column is in */
		m->items[m->n++] = (struct text_missing_item){
			.why = why,
			.label = figure_infos[id].label,
			.columns = columns,
		};
}

void text_missing_add(struct text_missing *m, enum figure_id id)
{
	unsigned int done = 0;

	for (size_t i = 0; i < m->n_groups; i++) {
		const char *why = text_reason(m->groups[i]->first, id);
		unsigned int columns = 0;

		if (!m->groups[i]->median[id].why || done & 1U << i)
			continue;
		for (size_t j = i; j < m->n_groups; j++) {
			if (m->groups[j]->median[id].why &&
			    strcmp(text_reason(m->groups[j]->first, id), why) == 0)
				columns |= 1U << j;
		}
		add(m, id, why, columns);
		done |= columns;
	}
}

static bool is_same(const struct text_missing_item *a, const struct text_missing_item *b)
{
	return a->columns == b->columns && strcmp(a->why, b->why) == 0;
}

static bool has_before(const struct text_missing *m, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (is_same(&m->items[i], &m->items[at]))
			return true;
	}
	return false;
}

static bool is_one_reason(const struct text_missing *m)
{
	for (size_t i = 1; i < m->n; i++) {
		if (!is_same(&m->items[0], &m->items[i]))
			return false;
	}
	return m->n > 0;
}

/* " in 'baseline', 'limit 80%'"; nothing when it is all of them. */
static void add_columns(struct str *s, const struct text_missing *m, unsigned int columns)
{
	const char *sep = " in";

	if (columns == (1U << m->n_groups) - 1)
		return;
	for (size_t i = 0; i < m->n_groups; i++) {
		if (!(columns & 1U << i))
			continue;
		str_addf(s, "%s '%s'", sep, text_run_name(m->groups[i]->first));
		sep = ",";
	}
}

void text_missing_print(struct str *out, const struct text_missing *m, bool is_whole)
{
	if (is_whole && is_one_reason(m)) {
		text_para(out, TEXT_INDENT, "n/a (%s)", m->items[0].why);
		return;
	}
	for (size_t i = 0; i < m->n; i++) {
		const struct text_missing_item *item = &m->items[i];
		_cleanup_str_ struct str s = {0};

		if (has_before(m, i))
			continue;
		str_addf(&s, "n/a (%s)", item->why);
		add_columns(&s, m, item->columns);
		for (size_t j = i; j < m->n; j++) {
			if (is_same(item, &m->items[j]))
				str_addf(&s, "%s %s", j == i ? ":" : ",", m->items[j].label);
		}
		str_addf(out, "%*s", TEXT_INDENT, "");
		text_wrap(out, TEXT_INDENT, TEXT_INDENT + 2, s.data ? s.data : "");
	}
}
