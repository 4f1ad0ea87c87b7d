/*
 * Functions, what is inlined into them, and source lines from DWARF.
 *
 * Life: debuginfo_new → debuginfo_find … → debuginfo_free. The Dwarf is borrowed and must stay
 * open; names live as long as it does. The list of units is read at once, the functions of a unit
 * when it is first asked for.
 */
#pragma once

#include <elfutils/libdw.h>

#include "base/base.h"

struct debuginfo;

/* NULL: no memory, or no unit says which code is its. */
struct debuginfo *debuginfo_new(Dwarf *dwarf);
void debuginfo_free(struct debuginfo *d); /* NULL allowed */

struct place {
	const char *function; /* mangled where the language does; NULL = not known */
	bool is_bare;         /* the function's name without the scopes that it is in */
	const char *file;     /* NULL = not known */
	int line;             /* 0 = not known */
	bool is_inline;
};

/* Innermost first, at most max; 0 = nothing known. Without a function there is one place, with
 * file and line. */
int debuginfo_find(struct debuginfo *d, uint64_t address, struct place *ret, int max);
