#include "cli/opt.h"

#include <assert.h>
#include <string.h>

void opt_parser_init(struct opt_parser *p, const struct opt *table, size_t n)
{
	size_t longs = 0, shorts = 0;

	assert(n < OPT_MAX);
	memset(p, 0, sizeof(*p));
	/* '+': stop at the first word; ':': a missing value is told from an unknown option. */
	p->shorts[shorts++] = '+';
	p->shorts[shorts++] = ':';
	for (size_t i = 0; i < n; i++) {
		if (!table[i].name)
			continue;
		p->longs[longs++] = (struct option){
			.name = table[i].name,
			.has_arg = table[i].arg ? required_argument : no_argument,
			.val = table[i].id,
		};
		if (table[i].id < 256 && table[i].help) {
			p->shorts[shorts++] = table[i].id;
			if (table[i].arg)
				p->shorts[shorts++] = ':';
		}
	}
}

void opt_help(const struct opt *table, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &table[i];
		char left[64], letter[8] = "   ";

		if (!o->name) {
			(void)fprintf(out, "\n%s\n", o->help);
			continue;
		}
		if (!o->help)
			continue;
		if (o->id < 256)
			(void)snprintf(letter, sizeof(letter), "-%c,", o->id);
		(void)snprintf(left, sizeof(left), "%s --%s%s%s", letter, o->name,
			       o->arg ? " " : "", o->arg ? o->arg : "");
		(void)fprintf(out, "  %-31s %s\n", left, o->help);
	}
}
