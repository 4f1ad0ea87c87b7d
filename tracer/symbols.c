#include "tracer/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "tracer/debuginfo.h"
#include "tracer/symtab.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define PLACES_MAX 64

struct file {
	int fd; /* -1 = none */
	Elf *elf;
};

struct symbols_module {
	struct symbols_module *next;
	struct file file, debug; /* debug: the separate one, if any */
	struct symtab symtab;
	Dwarf *dwarf;
	struct debuginfo *info;
};

struct symbols {
	struct symbols_module *modules; /* owned */
	char **strings;                 /* owned; open addressing, NULL = empty slot */
	size_t n_slots, n_strings;
};

/* -- strings ------------------------------------------------------------------------------- */

static char **find_string(char **slots, size_t n, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t i;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3;
	i = hash >> 16 & (n - 1);
	while (slots[i] && strcmp(slots[i], text) != 0)
		i = (i + 1) & (n - 1);
	return &slots[i];
}

static bool reserve_string(struct symbols *s)
{
	size_t n = s->n_slots ? s->n_slots * 2 : 1024;
	char **slots;

	if (s->n_slots && s->n_strings < s->n_slots / 2)
		return true;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < s->n_slots; i++) {
		if (s->strings[i])
			*find_string(slots, n, s->strings[i]) = s->strings[i];
	}
	free(s->strings);
	s->strings = slots;
	s->n_slots = n;
	return true;
}

/* The one copy of the text that lives until symbols_free; NULL for NULL or without memory. */
static const char *intern(struct symbols *s, const char *text)
{
	char **slot;

	if (!text || !reserve_string(s))
		return NULL;
	slot = find_string(s->strings, s->n_slots, text);
	if (!*slot) {
		*slot = strdup(text);
		s->n_strings += *slot != NULL;
	}
	return *slot;
}

static bool is_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
}

/* Without the symbol's version, demangled if it is mangled. */
static const char *intern_function(struct symbols *s, const char *raw)
{
	_cleanup_free_ char *name = NULL, *plain = NULL;

	if (!raw)
		return NULL;
	name = strndup(raw, strcspn(raw, "@"));
	if (!name)
		return NULL;
	if (is_mangled(name))
		plain = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	return intern(s, plain ? plain : name);
}

/* -- files --------------------------------------------------------------------------------- */

static void file_close(struct file *f)
{
	if (f->elf)
		(void)elf_end(f->elf);
	close_fd(&f->fd);
	f->elf = NULL;
}

/* Takes the descriptor over. */
static bool file_open(struct file *f, int fd)
{
	f->fd = fd;
	if (fd >= 0)
		f->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (f->elf && elf_kind(f->elf) == ELF_K_ELF)
		return true;
	file_close(f);
	return false;
}

static bool has_build_id(Elf *elf, const void *id, int len)
{
	const void *own;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &own);

	return len > 0 && MIN(n, BUILD_ID_MAX) == len && memcmp(own, id, len) == 0;
}

static bool has_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr mem, *sh = gelf_getshdr(scn, &mem);
		const char *own = sh ? elf_strptr(elf, names, sh->sh_name) : NULL;

		if (own && sh->sh_type != SHT_NOBITS && strcmp(own, name) == 0)
			return true;
	}
	return false;
}

/* Opens the separate debug file at that path, if it belongs to the build id. */
static bool try_debug(struct symbols_module *mod, const char *path, const void *id, int len)
{
	if (!file_open(&mod->debug, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)))
		return false;
	if (has_build_id(mod->debug.elf, id, len))
		return true;
	file_close(&mod->debug);
	return false;
}

/* Debug files are believed by their build id alone: a file without one has none. */
static bool find_debug(struct symbols_module *mod, const char *module_path)
{
	const uint8_t *id;
	const void *own;
	ssize_t len = dwelf_elf_gnu_build_id(mod->file.elf, &own);
	const char *slash = strrchr(module_path, '/'), *link;
	int dir = slash ? (int)(slash - module_path) : 0;
	char path[4096], hex[2 * BUILD_ID_MAX + 1];
	GElf_Word crc;

	if (len < 2 || len > BUILD_ID_MAX)
		return false;
	id = own;
	for (ssize_t i = 0; i < len; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", id[i]);
	(void)snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
	if (try_debug(mod, path, id, len))
		return true;
	link = dwelf_elf_gnu_debuglink(mod->file.elf, &crc);
	if (!link || !slash)
		return false;
	(void)snprintf(path, sizeof(path), "%.*s/%s", dir, module_path, link);
	if (try_debug(mod, path, id, len))
		return true;
	(void)snprintf(path, sizeof(path), "%.*s/.debug/%s", dir, module_path, link);
	if (try_debug(mod, path, id, len))
		return true;
	(void)snprintf(path, sizeof(path), DEBUG_ROOT "%.*s/%s", dir, module_path, link);
	return try_debug(mod, path, id, len);
}

/* -- modules ------------------------------------------------------------------------------- */

static void module_free(struct symbols_module *mod)
{
	if (!mod)
		return;
	debuginfo_free(mod->info);
	symtab_done(&mod->symtab);
	if (mod->dwarf)
		(void)dwarf_end(mod->dwarf);
	file_close(&mod->debug);
	file_close(&mod->file);
	free(mod);
}

static void module_freep(struct symbols_module **mod)
{
	module_free(*mod);
}

/* The file as it was traced, or NULL and why not. */
static const char *open_traced(struct symbols_module *mod, const struct module *m, int fd)
{
	int own;

	if (fd < 0 && m->build_id_len <= 0)
		return "it has no build id to know it by";
	own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
		      : open(m->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (own < 0)
		return errno == ENOENT ? "deleted since it was traced" : "it cannot be read";
	if (!file_open(&mod->file, own))
		return fd < 0 ? "replaced since it was traced" : "no ELF file";
	if (fd < 0 && !has_build_id(mod->file.elf, m->build_id, m->build_id_len))
		return "replaced since it was traced";
	return NULL;
}

static void read_names(struct symbols_module *mod, const char *path)
{
	Elf *elf = mod->file.elf;

	if (!has_section(elf, ".debug_info") && !has_section(elf, ".zdebug_info") &&
	    find_debug(mod, path))
		elf = mod->debug.elf;
	mod->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (mod->dwarf)
		mod->info = debuginfo_new(mod->dwarf);
	if (symtab_read(&mod->symtab, mod->file.elf, SHT_SYMTAB))
		return;
	symtab_done(&mod->symtab);
	if (mod->debug.elf && symtab_read(&mod->symtab, mod->debug.elf, SHT_SYMTAB))
		return;
	symtab_done(&mod->symtab);
	(void)symtab_read(&mod->symtab, mod->file.elf, SHT_DYNSYM); /* else no names */
}

struct symbols_module *symbols_module(struct symbols *s, const struct module *m, int fd,
				      const char **ret_why)
{
	_cleanup_(module_freep) struct symbols_module *mod = calloc(1, sizeof(*mod));
	const char *why;

	if (!mod) {
		*ret_why = "out of memory";
		return NULL;
	}
	mod->file.fd = mod->debug.fd = -1;
	why = open_traced(mod, m, fd);
	if (why) {
		*ret_why = why;
		return NULL;
	}
	read_names(mod, m->path);
	mod->next = s->modules;
	s->modules = mod;
	return TAKE_PTR(mod);
}

int symbols_new(struct symbols **ret, struct err *err)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(err, -ENOMEM, "Cannot look up symbols");
	elf_version(EV_CURRENT);
	*ret = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	while (s->modules) {
		struct symbols_module *next = s->modules->next;

		module_free(s->modules);
		s->modules = next;
	}
	for (size_t i = 0; i < s->n_slots; i++)
		free(s->strings[i]);
	free(s->strings);
	free(s);
}

/* -- lookup -------------------------------------------------------------------------------- */

/* Debug information has no mangled names for functions private to a file, the symbol table has. */
static const char *outermost(const struct symbols_module *m, const struct place *place,
			     uint64_t address)
{
	const char *symbol;

	if (place->is_inline || (place->function && !place->is_bare))
		return place->function;
	symbol = symtab_find(&m->symtab, address);
	return place->function && !(symbol && is_mangled(symbol)) ? place->function : symbol;
}

int symbols_lookup(struct symbols *s, struct symbols_module *m, struct frame_ref ref,
		   struct frame *ret, int max)
{
	struct place places[PLACES_MAX] = {0};
	uint64_t address = ref.offset - 1;
	int n = 0;

	*ret = (struct frame){.ref = ref};
	if (!m)
		return 1;
	if (m->info)
		n = debuginfo_find(m->info, address, places, MIN(max, PLACES_MAX));
	n = MAX(n, 1);
	places[n - 1].function = outermost(m, &places[n - 1], address);
	for (int i = 0; i < n; i++)
		ret[i] = (struct frame){.ref = ref,
					.function = intern_function(s, places[i].function),
					.file = intern(s, places[i].file),
					.line = places[i].line,
					.is_inline = places[i].is_inline};
	return n;
}
