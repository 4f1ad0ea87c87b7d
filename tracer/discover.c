/* Finding allocators; see discover.h. */
#include "tracer/discover.h"

#include <errno.h>
#include <string.h>

#include "tracer/insn.h"
#include "tracer/place.h"

enum family { MALLOC, LIBC, JEMALLOC, TCMALLOC, MIMALLOC, CXX, MMAP, UNWINDER, LOADER, FAMILIES };

#define NO CALL_NO_ARG
#define BIT(x) (1u << (x))

struct function {
	const char *name;
	uint8_t family, kind, size_arg, count_arg, ptr_arg, flags;
};

static const struct function functions[] = {
#define FUNCTION(family, name, kind, size_arg, count_arg, ptr_arg, flags) \
	{name, family, CALL_##kind, size_arg, count_arg, ptr_arg, flags},
#include "tracer/functions.def"
#undef FUNCTION
};

#define FUNCTIONS ARRAY_SIZE(functions)

/* A bigger function than any allocator's is not searched for branches. */
#define CODE_MAX 65536

struct match {
	uint64_t vaddr, size;
	uint16_t function; /* index in functions */
	bool is_local, is_dynamic;
};

struct search {
	const struct elf_file *f;
	uint16_t by_name[FUNCTIONS]; /* indexes, sorted by name */
	struct match *match;         /* owned */
	size_t n, size;
	bool is_ifunc[FUNCTIONS];
	bool has_functions, has_ifunc;
	bool is_libc; /* programs are started by it */
	/* ld.so's own malloc serves only until libc's is there, and never releases. */
	bool is_loader;
	bool is_global[FUNCTIONS];
	unsigned kinds[FAMILIES]; /* bits of enum call_kind: what counts */
	bool has_pvalloc;
};

const char *probe_function_name(unsigned id)
{
	return id >= 1 && id <= FUNCTIONS ? functions[id - 1].name : NULL;
}

unsigned probe_function_count(void)
{
	return FUNCTIONS;
}

void probes_done(struct probes *p)
{
	free(p->p);
	*p = (struct probes){0};
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(functions[*(const uint16_t *)a].name, functions[*(const uint16_t *)b].name);
}

/* Index in functions, -1 = none of them. */
static int look_up(const struct search *s, const char *name, size_t len)
{
	size_t from = 0, to = FUNCTIONS;

	while (from < to) {
		size_t i = from + (to - from) / 2;
		const char *have = functions[s->by_name[i]].name;
		int c = strncmp(name, have, len);

		if (c == 0 && have[len] == '\0')
			return s->by_name[i];
		if (c > 0)
			from = i + 1;
		else
			to = i;
	}
	return -1;
}

/* Without version, and without what jemalloc's smallocx_ ends in. */
static size_t name_length(const char *name)
{
	static const char smallocx[] = "smallocx_";
	const char *p = strstr(name, smallocx);

	return p ? (size_t)(p - name) + sizeof(smallocx) - 1 : strcspn(name, "@");
}

static int push(struct search *s, const struct match *m)
{
	if (s->n == s->size) {
		size_t size = s->size ? s->size * 2 : 64;
		struct match *p = realloc(s->match, size * sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->match = p;
		s->size = size;
	}
	s->match[s->n++] = *m;
	return 0;
}

static int consider(struct search *s, const struct elf_function *fn)
{
	struct match m = {fn->vaddr, fn->size, 0, fn->is_local, fn->is_dynamic};
	uint8_t byte;
	int i;

	s->has_functions = true;
	/* Of the mangled names, nearly all that there are, only operators. */
	if (fn->name[0] == '_' && fn->name[1] == 'Z' && fn->name[2] != 'n' && fn->name[2] != 'd')
		return 0;
	if (strncmp(fn->name, "__libc_start_main", 17) == 0)
		s->is_libc = true;
	i = look_up(s, fn->name, name_length(fn->name));
	if (i < 0 || elf_file_code(s->f, fn->vaddr, &byte, 1) != 1)
		return 0;
	if (fn->is_ifunc) {
		s->is_ifunc[i] = s->has_ifunc = true;
		return 0;
	}
	m.function = i;
	if (!fn->is_local)
		s->is_global[i] = true;
	return push(s, &m);
}

/* A function that is chosen at run time: compilers name what is chosen from "<name>.<what for>". */
static int consider_chosen(struct search *s, const struct elf_function *fn)
{
	static const char *const other[] = {".resolver",  ".ifunc", ".cold",      ".part",
					    ".constprop", ".isra",  ".localalias"};
	const char *dot = strchr(fn->name, '.');
	struct match m = {fn->vaddr, fn->size, 0, false, true};
	int i;

	if (!dot || dot == fn->name || fn->is_ifunc)
		return 0;
	i = look_up(s, fn->name, dot - fn->name);
	if (i < 0 || !s->is_ifunc[i])
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(other); k++) {
		if (strstr(dot, other[k]))
			return 0;
	}
	m.function = i;
	s->is_global[i] = true;
	return push(s, &m);
}

static int find_names(struct search *s)
{
	struct elf_cursor c = {0};
	struct elf_function fn;
	int r = 0;

	for (size_t i = 0; i < FUNCTIONS; i++)
		s->by_name[i] = i;
	qsort(s->by_name, FUNCTIONS, sizeof(s->by_name[0]), compare_names);
	while (r == 0 && elf_file_next_function(s->f, &c, &fn))
		r = consider(s, &fn);
	c = (struct elf_cursor){0};
	while (r == 0 && s->has_ifunc && elf_file_next_function(s->f, &c, &fn))
		r = consider_chosen(s, &fn);
	return r;
}

/*
 * A function called free need not be C's. It is where other files' calls arrive at it; a static
 * program has no such mark, there the one that its C library calls is the global one. All other
 * names are unmistakable.
 */
static bool is_meant(const struct search *s, const struct match *m)
{
	unsigned family = functions[m->function].family;

	if (s->is_loader || family == LOADER)
		return s->is_loader && family == LOADER;
	if ((family != MALLOC && family != MMAP) || m->is_dynamic)
		return true;
	return elf_file_is_static(s->f) && (family == MALLOC || s->is_libc) &&
	       (!m->is_local || !s->is_global[m->function]);
}

/* Both ends must be there: what allocates and what releases. */
static bool is_whole(const struct search *s, unsigned family)
{
	static const unsigned starts = BIT(CALL_ALLOC) | BIT(CALL_REALLOC) | BIT(CALL_MEMALIGN) |
				       BIT(CALL_MMAP),
			      ends = BIT(CALL_FREE) | BIT(CALL_MUNMAP);

	/* Not allocators, but what the tracer must know of beside them. */
	if (family == UNWINDER || family == LOADER)
		return s->kinds[family] != 0;
	return (s->kinds[family] & starts) && (s->kinds[family] & ends);
}

/* Leaves those that count. */
static void choose(struct search *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct function *fn = &functions[s->match[i].function];

		if (!is_meant(s, &s->match[i]))
			continue;
		s->kinds[fn->family] |= BIT(fn->kind);
		s->match[n++] = s->match[i];
	}
	s->n = n;
	n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct function *fn = &functions[s->match[i].function];

		if (!is_whole(s, fn->family))
			continue;
		if (fn->family == MALLOC && fn->flags & CALL_ROUND_PAGE)
			s->has_pvalloc = true;
		s->match[n++] = s->match[i];
	}
	s->n = n;
}

static int compare_matches(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

/* One per address: the first name in the table. Sizes may differ between the two symbol tables. */
static void merge(struct search *s)
{
	size_t n = 0;

	if (s->n > 0)
		qsort(s->match, s->n, sizeof(s->match[0]), compare_matches);
	for (size_t i = 0; i < s->n; i++) {
		if (n > 0 && s->match[n - 1].vaddr == s->match[i].vaddr)
			s->match[n - 1].size = MAX(s->match[n - 1].size, s->match[i].size);
		else
			s->match[n++] = s->match[i];
	}
	s->n = n;
}

/* skip[i] belongs to match[i]. */
static int find_places(const struct search *s, struct place_skip *skip, struct err *err)
{
	_cleanup_free_ uint8_t *code = malloc(CODE_MAX);

	if (!code)
		return err_errno(err, -ENOMEM, "looking for allocators");
	for (size_t i = 0; i < s->n; i++) {
		const struct match *m = &s->match[i];
		bool is_known = m->size <= CODE_MAX &&
				elf_file_code(s->f, m->vaddr, code, m->size) == m->size;

		skip[i].from = m->vaddr;
		skip[i].to = m->vaddr + (is_known ? place_probe(code, m->size) : 0);
	}
	return place_check(s->f, skip, s->n, err);
}

static int compare_probes(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool has_return(unsigned kind)
{
	return kind != CALL_FREE && kind != CALL_MUNMAP && kind != CALL_UNWIND &&
	       kind != CALL_LOADED;
}

static bool is_stepped(const struct search *s, uint64_t vaddr)
{
	uint8_t code[INSN_MAX];
	struct insn in;

	return insn_decode(&in, code, elf_file_code(s->f, vaddr, code, sizeof(code))) < 0 ||
	       !in.is_emulated;
}

static int make_probes(struct probes *ret, const struct search *s, struct err *err)
{
	_cleanup_free_ struct place_skip *skip = calloc(s->n, sizeof(*skip));
	_cleanup_free_ struct probe *p = calloc(s->n, sizeof(*p));
	int r;

	if (!skip || !p)
		return err_errno(err, -ENOMEM, "looking for allocators");
	r = find_places(s, skip, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n; i++) {
		const struct function *fn = &functions[s->match[i].function];
		uint64_t vaddr = skip[i].is_entered ? skip[i].from : skip[i].to;
		unsigned flags = fn->flags | (is_stepped(s, vaddr) ? CALL_STEPPED : 0);

		p[i] = (struct probe){
			.offset = elf_file_offset(s->f, vaddr),
			.cookie = CALL_COOKIE(fn->kind, fn->size_arg, fn->count_arg, fn->ptr_arg,
					      flags, s->match[i].function + 1),
			.has_return = has_return(fn->kind),
		};
	}
	qsort(p, s->n, sizeof(*p), compare_probes);
	ret->p = TAKE_PTR(p);
	ret->n = s->n;
	return 0;
}

static void add_family(struct probes *ret, const char *name)
{
	size_t n = strlen(ret->families);

	(void)snprintf(ret->families + n, sizeof(ret->families) - n, "%s%s", n > 0 ? ", " : "",
		       name);
}

/* malloc in the file of another allocator is that allocator's. */
static void name_families(struct probes *ret, const struct search *s)
{
	bool is_other = is_whole(s, JEMALLOC) || is_whole(s, TCMALLOC) || is_whole(s, MIMALLOC);

	if (is_whole(s, MALLOC) && s->is_libc)
		add_family(ret, s->has_pvalloc ? "glibc" : "musl");
	else if ((is_whole(s, MALLOC) || is_whole(s, LIBC)) && !is_other)
		add_family(ret, "malloc");
	if (is_whole(s, JEMALLOC))
		add_family(ret, "jemalloc");
	if (is_whole(s, TCMALLOC))
		add_family(ret, "tcmalloc");
	if (is_whole(s, MIMALLOC))
		add_family(ret, "mimalloc");
	if (is_whole(s, CXX))
		add_family(ret, "c++");
	if (is_whole(s, MMAP) && ret->families[0] == '\0')
		add_family(ret, "mmap");
	if (is_whole(s, UNWINDER))
		add_family(ret, "unwinder");
	if (is_whole(s, LOADER))
		add_family(ret, "loader");
}

static void find_problem(struct probes *ret, const struct search *s)
{
	const char *problem = elf_file_problem(s->f), *name = NULL;

	for (size_t i = 0; i < FUNCTIONS && !name; i++) {
		if (s->is_ifunc[i] && !s->is_global[i])
			name = functions[i].name;
	}
	if (name)
		(void)snprintf(ret->problem, sizeof(ret->problem),
			       "%s is chosen at run time, from functions without known names",
			       name);
	else if (problem)
		(void)snprintf(ret->problem, sizeof(ret->problem), "%s", problem);
	else if (elf_file_is_static(s->f) && s->n == 0)
		(void)snprintf(ret->problem, sizeof(ret->problem), "%s",
			       s->has_functions ? "a static program without a known allocator"
						: "a static program, stripped of its symbols");
	else if (s->kinds[MALLOC] && !is_whole(s, MALLOC))
		(void)snprintf(ret->problem, sizeof(ret->problem),
			       "of malloc and free it has only one");
}

static void search_done(struct search *s)
{
	free(s->match);
}

int discover(struct probes *ret, const struct elf_file *f, struct err *err)
{
	_cleanup_(search_done) struct search s = {.f = f};
	const char *soname = elf_file_string(f, ELF_SONAME, 0);
	int r = 0;

	*ret = (struct probes){0};
	if (find_names(&s) < 0)
		return err_errno(err, -ENOMEM, "looking for allocators");
	s.is_loader = soname && strcmp(soname, "ld-linux-x86-64.so.2") == 0;
	choose(&s);
	merge(&s);
	if (s.n > 0)
		r = make_probes(ret, &s, err);
	if (r < 0)
		return r;
	name_families(ret, &s);
	find_problem(ret, &s);
	return 0;
}
