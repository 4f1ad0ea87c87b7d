/* ELF files; see elf.h. */
#include "tracer/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

/* More than any real file has; a sparse file may claim anything and have it. */
#define SYMBOLS_MAX ((uint64_t)256 << 20)
#define STRINGS_MAX ((uint64_t)512 << 20)
#define SMALL_MAX ((uint64_t)1 << 20)

struct table {
	const Elf64_Sym *symbol; /* libelf's, as all data here */
	size_t n;
	const char *string;
	size_t string_size; /* the last byte is NUL */
	bool is_dynamic;
};

struct symbols {
	bool is_read;
	struct table table[2];
	size_t n;
	const char *problem;
};

struct elf_file {
	Elf *elf;
	int fd;
	uint64_t size;
	bool is_shared; /* a library, or a program that may be loaded anywhere */
	const Elf64_Phdr *segment;
	size_t n_segments;
	const char *interp;
	const Elf64_Dyn *dynamic;
	size_t n_dynamic;
	struct symbols *symbols; /* owned; read when first asked for: most files are only */
				 /* asked what they are linked to */
};

/* Bytes of the file; NULL where they are not in it or more than max. */
static const void *chunk(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t max,
			 Elf_Type type)
{
	Elf_Data *d;

	if (size == 0 || size > max || offset > f->size || size > f->size - offset)
		return NULL;
	d = elf_getdata_rawchunk(f->elf, offset, size, type);
	return d && d->d_size == size ? d->d_buf : NULL;
}

static bool is_in(uint64_t value, uint64_t start, uint64_t size)
{
	return value >= start && value - start < size;
}

int64_t elf_file_offset(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];

		if (p->p_type == PT_LOAD && is_in(vaddr, p->p_vaddr, p->p_filesz))
			return p->p_offset + (vaddr - p->p_vaddr);
	}
	return -1;
}

static bool is_code(const Elf64_Phdr *p)
{
	return p->p_type == PT_LOAD && (p->p_flags & PF_X) && p->p_filesz > 0;
}

uint64_t elf_file_vaddr(const struct elf_file *f, uint64_t offset)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];

		if (is_code(p) && is_in(offset, p->p_offset, p->p_filesz))
			return p->p_vaddr + (offset - p->p_offset);
	}
	return UINT64_MAX;
}

size_t elf_file_code(const struct elf_file *f, uint64_t vaddr, void *buf, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		uint64_t skip = vaddr - p->p_vaddr;

		if (!is_code(p) || !is_in(vaddr, p->p_vaddr, p->p_filesz))
			continue;
		n = MIN(n, p->p_filesz - skip);
		while (done < n) {
			ssize_t r = pread(f->fd, (char *)buf + done, n - done,
					  p->p_offset + skip + done);

			if (r < 0 && errno == EINTR)
				continue;
			if (r <= 0)
				break;
			done += r;
		}
		break;
	}
	return done;
}

bool elf_file_code_segment(const struct elf_file *f, size_t nth, uint64_t *ret_vaddr,
			   uint64_t *ret_size)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		if (!is_code(&f->segment[i]) || nth-- > 0)
			continue;
		*ret_vaddr = f->segment[i].p_vaddr;
		*ret_size = f->segment[i].p_filesz;
		return true;
	}
	return false;
}

static bool dynamic_value(const struct elf_file *f, int64_t tag, uint64_t *ret)
{
	for (size_t i = 0; i < f->n_dynamic && f->dynamic[i].d_tag != DT_NULL; i++) {
		if (f->dynamic[i].d_tag == tag) {
			*ret = f->dynamic[i].d_un.d_val;
			return true;
		}
	}
	return false;
}

/* What the dynamic segment gives an address and we know the size of. */
static const void *dynamic_chunk(const struct elf_file *f, int64_t tag, uint64_t size, uint64_t max,
				 Elf_Type type)
{
	uint64_t vaddr;
	int64_t offset;

	if (!dynamic_value(f, tag, &vaddr))
		return NULL;
	offset = elf_file_offset(f, vaddr);
	return offset < 0 ? NULL : chunk(f, offset, size, max, type);
}

/*
 * The number of dynamic symbols is nowhere written but in the old hash table. The new one has a
 * chain per bucket, ended by an odd word: the last symbol is the end of the chain that starts
 * last. Symbols before `first` are not in it.
 */
static uint64_t gnu_hash_count(const struct elf_file *f)
{
	const uint32_t *head = dynamic_chunk(f, DT_GNU_HASH, 16, 16, ELF_T_WORD), *word;
	uint64_t vaddr = 0, buckets, first, last = 0, base;
	int64_t offset;

	if (!head || !dynamic_value(f, DT_GNU_HASH, &vaddr))
		return 0;
	buckets = head[0];
	first = head[1];
	base = elf_file_offset(f, vaddr) + 16 + (uint64_t)head[2] * 8;
	word = chunk(f, base, buckets * 4, SYMBOLS_MAX, ELF_T_WORD);
	for (uint64_t i = 0; word && i < buckets; i++)
		last = MAX(last, word[i]);
	if (last < first)
		return first;
	offset = base + buckets * 4 + (last - first) * 4;
	/* A chain is a few words long; one that does not end makes the table unusable. */
	for (int i = 0; i < 4096; i++, last++, offset += 4) {
		word = chunk(f, offset, 4, 4, ELF_T_WORD);
		if (!word)
			return 0;
		if (*word & 1)
			return last + 1;
	}
	return 0;
}

static bool set_strings(struct table *t, const char *string, uint64_t size)
{
	if (!string || size == 0 || string[size - 1] != '\0')
		return false;
	t->string = string;
	t->string_size = size;
	return true;
}

/* From the dynamic segment and not from a section: it is there even where section headers were
 * removed, and it is what ld.so believes. */
static void find_dynsym(const struct elf_file *f)
{
	struct table *t = &f->symbols->table[f->symbols->n];
	const uint32_t *hash;
	uint64_t n, size;

	if (!dynamic_value(f, DT_SYMTAB, &n))
		return;
	hash = dynamic_chunk(f, DT_HASH, 8, 8, ELF_T_WORD);
	n = hash ? hash[1] : gnu_hash_count(f);
	t->symbol = dynamic_chunk(f, DT_SYMTAB, n * sizeof(*t->symbol), SYMBOLS_MAX, ELF_T_SYM);
	t->n = n;
	t->is_dynamic = true;
	if (t->symbol && dynamic_value(f, DT_STRSZ, &size) &&
	    set_strings(t, dynamic_chunk(f, DT_STRTAB, size, STRINGS_MAX, ELF_T_BYTE), size))
		f->symbols->n++;
	else
		f->symbols->problem = "its dynamic symbol table is damaged";
}

static void find_symtab(const struct elf_file *f)
{
	struct table *t = &f->symbols->table[f->symbols->n];
	Elf_Scn *section = NULL, *strings;
	const Elf64_Shdr *h = NULL, *s;

	while ((section = elf_nextscn(f->elf, section))) {
		h = elf64_getshdr(section);
		if (h && h->sh_type == SHT_SYMTAB)
			break;
	}
	if (!section)
		return;
	f->symbols->problem = "its symbol table is damaged";
	strings = elf_getscn(f->elf, h->sh_link);
	s = strings ? elf64_getshdr(strings) : NULL;
	if (!s || s->sh_type == SHT_NOBITS)
		return;
	t->symbol = chunk(f, h->sh_offset, h->sh_size, SYMBOLS_MAX, ELF_T_SYM);
	t->n = h->sh_size / sizeof(*t->symbol);
	if (t->symbol && set_strings(t, chunk(f, s->sh_offset, s->sh_size, STRINGS_MAX, ELF_T_BYTE),
				     s->sh_size)) {
		f->symbols->n++;
		f->symbols->problem = NULL;
	}
}

static const struct symbols *symbols(const struct elf_file *f)
{
	if (!f->symbols->is_read) {
		f->symbols->is_read = true;
		find_symtab(f);
		find_dynsym(f);
	}
	return f->symbols;
}

static void find_dynamic(struct elf_file *f)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		const char *path;

		if (p->p_type == PT_DYNAMIC) {
			f->n_dynamic = p->p_filesz / sizeof(*f->dynamic);
			f->dynamic = chunk(f, p->p_offset, f->n_dynamic * sizeof(*f->dynamic),
					   SMALL_MAX, ELF_T_DYN);
			if (!f->dynamic)
				f->n_dynamic = 0;
		} else if (p->p_type == PT_INTERP) {
			path = chunk(f, p->p_offset, p->p_filesz, 4096, ELF_T_BYTE);
			if (path && path[p->p_filesz - 1] == '\0')
				f->interp = path;
		}
	}
}

static int check_header(struct elf_file *f, const char *name, struct err *err)
{
	const char *ident = elf_getident(f->elf, NULL);
	const Elf64_Ehdr *h;

	if (elf_kind(f->elf) != ELF_K_ELF || !ident)
		return err_set(err, -ENOEXEC, "%s: not an ELF file", name);
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -ENOTSUP, "%s: not for x86-64", name);
	h = elf64_getehdr(f->elf);
	if (!h)
		return err_set(err, -EBADMSG, "%s: damaged: %s", name, elf_errmsg(-1));
	if (h->e_machine != EM_X86_64)
		return err_set(err, -ENOTSUP, "%s: not for x86-64", name);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return err_set(err, -ENOTSUP, "%s: neither a program nor a shared library", name);
	f->is_shared = h->e_type == ET_DYN;
	return 0;
}

static int check_segments(struct elf_file *f, const char *name, struct err *err)
{
	if (elf_getphdrnum(f->elf, &f->n_segments) < 0 || f->n_segments == 0)
		return err_set(err, -EBADMSG, "%s: damaged: no program headers", name);
	f->segment = elf64_getphdr(f->elf);
	if (!f->segment)
		return err_set(err, -EBADMSG, "%s: damaged: %s", name, elf_errmsg(-1));
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];

		if (p->p_type == PT_LOAD &&
		    (p->p_offset > f->size || p->p_filesz > f->size - p->p_offset))
			return err_set(err, -EBADMSG, "%s: truncated: a segment ends behind it",
				       name);
	}
	return 0;
}

static void file_closep(struct elf_file **f)
{
	elf_file_close(*f);
}

int elf_file_open(struct elf_file **ret, int fd, const char *name, struct err *err)
{
	_cleanup_(file_closep) struct elf_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int r;

	if (!f)
		return err_errno(err, -ENOMEM, "%s", name);
	f->fd = -1;
	f->symbols = calloc(1, sizeof(*f->symbols));
	if (!f->symbols)
		return err_errno(err, -ENOMEM, "%s", name);
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return err_errno(err, -errno, "%s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -ENOEXEC, "%s: not a regular file", name);
	f->size = st.st_size;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return err_set(err, -ENOSYS, "libelf: %s", elf_errmsg(-1));
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	if (!f->elf)
		return err_set(err, -ENOEXEC, "%s: %s", name, elf_errmsg(-1));
	r = check_header(f, name, err);
	if (r < 0)
		return r;
	r = check_segments(f, name, err);
	if (r < 0)
		return r;
	find_dynamic(f);
	*ret = TAKE_PTR(f);
	return 0;
}

void elf_file_close(struct elf_file *f)
{
	if (!f)
		return;
	(void)elf_end(f->elf);
	closep(&f->fd);
	free(f->symbols);
	free(f);
}

int elf_file_build_id(const struct elf_file *f, uint8_t id[BUILD_ID_MAX])
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segment[i];
		size_t at = 0, next, name, desc;
		GElf_Nhdr h;
		Elf_Data *d;

		if (p->p_type != PT_NOTE || p->p_filesz > SMALL_MAX)
			continue;
		d = elf_getdata_rawchunk(f->elf, p->p_offset, p->p_filesz,
					 p->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		while (d && at < d->d_size && (next = gelf_getnote(d, at, &h, &name, &desc)) > 0) {
			if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz > 0 &&
			    h.n_descsz <= BUILD_ID_MAX &&
			    memcmp((char *)d->d_buf + name, "GNU", 4) == 0) {
				memcpy(id, (char *)d->d_buf + desc, h.n_descsz);
				return h.n_descsz;
			}
			at = next;
		}
	}
	return 0;
}

const char *elf_file_interp(const struct elf_file *f)
{
	return f->interp;
}

/* One string is read at a time: the table of them may be large. */
static const char *dynamic_string(const struct elf_file *f, uint64_t at)
{
	uint64_t vaddr, size;
	int64_t offset;
	const char *s;

	if (!dynamic_value(f, DT_STRTAB, &vaddr) || !dynamic_value(f, DT_STRSZ, &size) ||
	    at >= size)
		return NULL;
	offset = elf_file_offset(f, vaddr);
	size = MIN(size - at, 4096);
	if (offset < 0 || offset + at > f->size)
		return NULL;
	size = MIN(size, f->size - (offset + at));
	s = chunk(f, offset + at, size, 4096, ELF_T_BYTE);
	return s && memchr(s, '\0', size) ? s : NULL;
}

const char *elf_file_string(const struct elf_file *f, enum elf_string kind, size_t nth)
{
	static const int64_t tags[] = {[ELF_SONAME] = DT_SONAME,
				       [ELF_NEEDED] = DT_NEEDED,
				       [ELF_RPATH] = DT_RPATH,
				       [ELF_RUNPATH] = DT_RUNPATH};

	for (size_t i = 0; i < f->n_dynamic && f->dynamic[i].d_tag != DT_NULL; i++) {
		if (f->dynamic[i].d_tag == tags[kind] && nth-- == 0)
			return dynamic_string(f, f->dynamic[i].d_un.d_val);
	}
	return NULL;
}

bool elf_file_is_static(const struct elf_file *f)
{
	uint64_t v;

	if (f->interp || dynamic_value(f, DT_NEEDED, &v))
		return false;
	return !f->is_shared || (dynamic_value(f, DT_FLAGS_1, &v) && (v & DF_1_PIE));
}

const char *elf_file_problem(const struct elf_file *f)
{
	return symbols(f)->problem;
}

bool elf_file_next_function(const struct elf_file *f, struct elf_cursor *c,
			    struct elf_function *ret)
{
	const struct symbols *all = symbols(f);

	for (; c->table < all->n; c->table++, c->i = 0) {
		const struct table *t = &all->table[c->table];

		while (c->i < t->n) {
			const Elf64_Sym *s = &t->symbol[c->i++];
			unsigned type = ELF64_ST_TYPE(s->st_info);

			/* Undefined ones may have an address, that of their PLT entry. */
			if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
			    s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS ||
			    s->st_name >= t->string_size)
				continue;
			*ret = (struct elf_function){
				.name = t->string + s->st_name,
				.vaddr = s->st_value,
				.size = s->st_size,
				.is_ifunc = type == STT_GNU_IFUNC,
				.is_local = ELF64_ST_BIND(s->st_info) == STB_LOCAL,
				.is_dynamic = t->is_dynamic,
			};
			return true;
		}
	}
	return false;
}
