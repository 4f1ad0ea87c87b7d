#include "tracer/symtab.h"

#include <string.h>

struct symbol {
	uint64_t low, size;
	uint64_t section_end;
	const char *name;
	bool is_local;
};

struct list {
	struct symbol *v;
	size_t n;
};

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* By address, those with a size first; then the better name last. */
static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	size_t ux = underscores(x->name), uy = underscores(y->name);
	size_t nx = strlen(x->name), ny = strlen(y->name);

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (!x->size != !y->size)
		return x->size ? -1 : 1;
	if (x->is_local != y->is_local)
		return x->is_local ? -1 : 1;
	if (ux != uy)
		return ux > uy ? -1 : 1;
	if (nx != ny)
		return nx > ny ? -1 : 1;
	return strcmp(y->name, x->name);
}

/* A function's symbol: false for everything else. */
static bool get_symbol(Elf *elf, const GElf_Shdr *table, Elf_Data *data, int i, struct symbol *ret)
{
	GElf_Shdr mem, *section;
	GElf_Sym sym;
	const char *name;
	int type;

	if (!gelf_getsym(data, i, &sym))
		return false;
	type = GELF_ST_TYPE(sym.st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
		return false;
	section = gelf_getshdr(elf_getscn(elf, sym.st_shndx), &mem);
	name = elf_strptr(elf, table->sh_link, sym.st_name);
	if (!section || !(section->sh_flags & SHF_EXECINSTR) || !name || !name[0])
		return false;
	*ret = (struct symbol){sym.st_value, sym.st_size, section->sh_addr + section->sh_size, name,
			       GELF_ST_BIND(sym.st_info) == STB_LOCAL};
	return ret->low < ret->section_end;
}

static bool read_table(struct list *l, Elf *elf, Elf_Scn *scn, const GElf_Shdr *table)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n;

	if (!data || table->sh_entsize == 0)
		return false;
	n = data->d_size / table->sh_entsize;
	l->v = calloc(n, sizeof(l->v[0]));
	if (!l->v)
		return false;
	for (size_t i = 0; i < n; i++)
		l->n += get_symbol(elf, table, data, i, &l->v[l->n]);
	if (l->n > 0)
		qsort(l->v, l->n, sizeof(l->v[0]), by_address);
	return l->n > 0;
}

/* A symbol without a size reaches to the next one, and is a mere label if within another. */
static bool add_spans(struct symtab *t, const struct list *l)
{
	uint64_t covered = 0, high;

	for (size_t i = 0; i < l->n; i++) {
		const struct symbol *s = &l->v[i];
		size_t next = i + 1;

		if (s->size == 0 && s->low < covered)
			continue;
		if (s->size > 0) {
			high = s->low + s->size;
			covered = MAX(covered, high);
		} else {
			while (next < l->n && l->v[next].low == s->low)
				next++;
			high = next < l->n ? MIN(l->v[next].low, s->section_end) : s->section_end;
		}
		t->names[i] = s->name;
		if (!spans_add(&t->spans, s->low, high, i))
			return false;
	}
	spans_sort(&t->spans);
	return true;
}

bool symtab_read(struct symtab *t, Elf *elf, unsigned int type)
{
	struct list list = {0};
	Elf_Scn *scn = NULL;
	bool ok = false;

	while (!ok && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr mem, *table = gelf_getshdr(scn, &mem);

		if (!table || table->sh_type != type)
			continue;
		ok = read_table(&list, elf, scn, table);
		if (ok) {
			t->names = calloc(list.n, sizeof(t->names[0]));
			ok = t->names && add_spans(t, &list);
		}
		free(list.v);
		list = (struct list){0};
	}
	return ok;
}

const char *symtab_find(const struct symtab *t, uint64_t address)
{
	const struct span *s = spans_find(&t->spans, address);

	return s ? t->names[s->value] : NULL;
}

void symtab_done(struct symtab *t)
{
	spans_done(&t->spans);
	free(t->names);
	*t = (struct symtab){0};
}
