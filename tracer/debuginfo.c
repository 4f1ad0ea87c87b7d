#include "tracer/debuginfo.h"

#include <dwarf.h>

#include "tracer/spans.h"

/* No compiler nests inlined functions or blocks so deep. */
#define INLINE_MAX 64
#define NEST_MAX 32

struct unit {
	Dwarf_Die die;        /* with the line table */
	Dwarf_Die code;       /* with the functions: the same, or that of the split file */
	bool is_read;         /* functions are */
	Dwarf_Die *functions; /* owned */
	size_t n_functions, size;
	struct spans spans; /* value: index of functions */
};

struct debuginfo {
	struct unit *units; /* owned */
	size_t n_units, size;
	struct spans spans; /* value: index of units */
};

/* The die's code as spans of that value; their number, or -1: no memory. */
static int add_ranges(struct spans *spans, Dwarf_Die *die, size_t value)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	int n = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		if (!spans_add(spans, low, high, value))
			return -1;
		n++;
	}
	return n;
}

/* -- units --------------------------------------------------------------------------------- */

static bool add_unit(struct debuginfo *d, Dwarf_Die *die, Dwarf_Die *code)
{
	if (d->n_units == d->size) {
		size_t size = d->size ? d->size * 2 : 64;
		struct unit *units = reallocarray(d->units, size, sizeof(*units));

		if (!units)
			return false;
		d->units = units;
		d->size = size;
	}
	if (add_ranges(&d->spans, die, d->n_units) < 0)
		return false;
	d->units[d->n_units++] = (struct unit){.die = *die, .code = *code};
	return true;
}

struct debuginfo *debuginfo_new(Dwarf *dwarf)
{
	struct debuginfo *d = calloc(1, sizeof(*d));
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	uint8_t type;
	bool ok = d != NULL;

	while (ok && dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
		if (type == DW_UT_compile)
			ok = add_unit(d, &die, &die);
		else if (type == DW_UT_skeleton)
			ok = add_unit(d, &die, dwarf_tag(&split) > 0 ? &split : &die);
	}
	if (!ok || d->spans.n == 0) {
		debuginfo_free(d);
		return NULL;
	}
	spans_sort(&d->spans);
	return d;
}

void debuginfo_free(struct debuginfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_units; i++) {
		free(d->units[i].functions);
		spans_done(&d->units[i].spans);
	}
	free(d->units);
	spans_done(&d->spans);
	free(d);
}

/* -- functions ----------------------------------------------------------------------------- */

static void add_function(struct unit *u, Dwarf_Die *die)
{
	if (u->n_functions == u->size) {
		size_t size = u->size ? u->size * 2 : 64;
		Dwarf_Die *functions = reallocarray(u->functions, size, sizeof(*functions));

		if (!functions)
			return; /* a name less */
		u->functions = functions;
		u->size = size;
	}
	if (add_ranges(&u->spans, die, u->n_functions) > 0)
		u->functions[u->n_functions++] = *die;
}

/* Functions below a die: in namespaces and types, and nested in functions. */
static void add_functions(struct unit *u, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth == NEST_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_function(u, &die);
			add_functions(u, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_lexical_block:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
			add_functions(u, &die, depth + 1);
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* The block or inlined function in parent that the address is in. */
static bool find_scope(Dwarf_Die *parent, uint64_t address, Dwarf_Die *ret)
{
	Dwarf_Die die;

	if (dwarf_child(parent, &die) != 0)
		return false;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(&die, address) == 1) {
				*ret = die;
				return true;
			}
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

static void name_function(Dwarf_Die *die, struct place *ret)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		ret->function = dwarf_formstring(&attr);
	ret->is_bare = !ret->function;
	if (ret->is_bare)
		ret->function = dwarf_diename(die);
}

/* -- lines --------------------------------------------------------------------------------- */

static void line_of_address(struct unit *u, uint64_t address, struct place *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(&u->die, address);

	if (!line)
		return;
	ret->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &ret->line) != 0)
		ret->line = 0;
}

/* Where an inlined function was called. */
static void line_of_call(Dwarf_Die *die, struct place *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word number;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t n;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &number) == 0)
		ret->line = (int)number;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &number) == 0 &&
	    dwarf_diecu(die, &unit, NULL, NULL) && dwarf_getsrcfiles(&unit, &files, &n) == 0)
		ret->file = dwarf_filesrc(files, number, NULL, NULL);
}

int debuginfo_find(struct debuginfo *d, uint64_t address, struct place *ret, int max)
{
	const struct span *span = spans_find(&d->spans, address);
	struct unit *u = span ? &d->units[span->value] : NULL;
	struct place place = {0};
	Dwarf_Die chain[INLINE_MAX], scope;
	int depth = 0, n = 0;

	if (!u || max < 1)
		return 0;
	if (!u->is_read) {
		u->is_read = true;
		add_functions(u, &u->code, 0);
		spans_sort(&u->spans);
	}
	line_of_address(u, address, &place);
	span = spans_find(&u->spans, address);
	if (!span) {
		*ret = place;
		return place.file != NULL;
	}
	chain[depth++] = scope = u->functions[span->value];
	while (depth < INLINE_MAX && find_scope(&scope, address, &scope)) {
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			chain[depth++] = scope;
	}
	while (depth-- > 0 && n < max) {
		name_function(&chain[depth], &place);
		place.is_inline = depth > 0;
		ret[n++] = place;
		place = (struct place){0};
		if (depth > 0)
			line_of_call(&chain[depth], &place);
	}
	return n;
}
