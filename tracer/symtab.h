/*
 * The functions of an ELF symbol table, found by address.
 *
 * Life: symtab_read → symtab_find … → symtab_done. Names live as long as the Elf. Where several
 * names are at one address the public and plain one wins: malloc, not __libc_malloc.
 */
#pragma once

#include <gelf.h>

#include "tracer/spans.h"

struct symtab {
	struct spans spans; /* value: index of names */
	const char **names; /* owned; the strings are the Elf's */
};

/* type: SHT_SYMTAB or SHT_DYNSYM. false: the file has none, or it has no functions. Into an
 * empty one. */
bool symtab_read(struct symtab *t, Elf *elf, unsigned int type);

/* The raw name, or NULL. It may have a version behind an @. */
const char *symtab_find(const struct symtab *t, uint64_t address);

void symtab_done(struct symtab *t);
