#include "tracer/modules.h"

#include "tracer/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define MODULES_MAX 0xfff0 /* ids have 16 bits, the last ones mean something else */

/* Descriptors left to others: without one for the gate's question the kernel refuses the
 * workload's open. */
#define FILES_SPARE 32

struct entry {
	struct module_file file;
	struct elf_file *elf; /* NULL: no ELF file */
};

struct modules {
	pthread_mutex_t lock;
	struct entry **entries;
	size_t n, cap;
	struct module_file *vdso;
};

/* -- the registry --------------------------------------------------------------------------------
 */

static void entry_free(struct entry *e)
{
	cfi_close(e->file.cfi);
	elf_file_close(e->elf);
	close_fd(&e->file.fd);
	free(e->file.m.path);
	free(e);
}

static struct entry *entry_new(int fd, const char *path, const struct stat *st)
{
	struct entry *e = calloc(1, sizeof(*e));
	struct err err;

	if (!e)
		return NULL;
	e->file.dev = st->st_dev;
	e->file.ino = st->st_ino;
	e->file.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	e->file.m.path = strdup(path);
	if (e->file.fd < 0 || e->file.fd >= sysconf(_SC_OPEN_MAX) - FILES_SPARE ||
	    !e->file.m.path) {
		entry_free(e);
		return NULL;
	}
	if (elf_file_open(&e->elf, fd, path, &err) == 0)
		e->file.m.build_id_len = elf_file_build_id(e->elf, e->file.m.build_id);
	return e;
}

static struct module_file *find(const struct modules *ms, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < ms->n; i++) {
		if (ms->entries[i]->file.ino == ino && ms->entries[i]->file.dev == dev)
			return &ms->entries[i]->file;
	}
	return NULL;
}

static int grow(struct modules *ms)
{
	size_t cap = ms->cap ? 2 * ms->cap : 64;
	struct entry **grown;

	if (ms->n < ms->cap)
		return 0;
	if (ms->n >= MODULES_MAX)
		return -ENOSPC;
	grown = realloc(ms->entries, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ms->entries = grown;
	ms->cap = cap;
	return 0;
}

static struct module_file *add(struct modules *ms, int fd, const char *path, bool is_private)
{
	struct module_file *m;
	struct entry *e;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	m = find(ms, st.st_dev, st.st_ino);
	if (m)
		return m;
	e = grow(ms) == 0 ? entry_new(fd, path, &st) : NULL;
	if (!e)
		return NULL;
	e->file.is_private = is_private;
	ms->entries[ms->n++] = e;
	e->file.m.id = (uint32_t)ms->n;
	return &e->file;
}

struct module_file *modules_add(struct modules *ms, int fd, const char *path, bool is_private)
{
	struct module_file *m;

	(void)pthread_mutex_lock(&ms->lock);
	m = add(ms, fd, path, is_private);
	(void)pthread_mutex_unlock(&ms->lock);
	return m;
}

/* The code that the kernel maps into every process: in no file, so a copy of our own is one. */
static struct module_file *add_vdso(struct modules *ms)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = -1;

	if (!image)
		return NULL;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		return NULL;
	return modules_add(ms, fd, "[vdso]", true);
}

int modules_new(struct modules **ret, struct err *err)
{
	struct modules *ms = calloc(1, sizeof(*ms));

	if (!ms)
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	(void)pthread_mutex_init(&ms->lock, NULL);
	ms->vdso = add_vdso(ms);
	*ret = ms;
	return 0;
}

void modules_free(struct modules *ms)
{
	if (!ms)
		return;
	for (size_t i = 0; i < ms->n; i++)
		entry_free(ms->entries[i]);
	(void)pthread_mutex_destroy(&ms->lock);
	free(ms->entries);
	free(ms);
}

static struct entry *get(struct modules *ms, uint32_t id)
{
	struct entry *e;

	(void)pthread_mutex_lock(&ms->lock);
	e = id > 0 && id <= ms->n ? ms->entries[id - 1] : NULL;
	(void)pthread_mutex_unlock(&ms->lock);
	return e;
}

struct module_file *modules_get(struct modules *ms, uint32_t id)
{
	struct entry *e = get(ms, id);

	return e ? &e->file : NULL;
}

static dev_t device(uint64_t dev)
{
	return makedev((unsigned)(dev >> 20), (unsigned)(dev & 0xfffff));
}

struct module_file *modules_find(struct modules *ms, uint64_t dev, uint64_t ino)
{
	struct module_file *m;

	(void)pthread_mutex_lock(&ms->lock);
	m = find(ms, device(dev), ino);
	(void)pthread_mutex_unlock(&ms->lock);
	return m;
}

size_t modules_count(struct modules *ms)
{
	size_t n;

	(void)pthread_mutex_lock(&ms->lock);
	n = ms->n;
	(void)pthread_mutex_unlock(&ms->lock);
	return n;
}

struct cfi *modules_cfi(struct modules *ms, uint32_t id)
{
	struct entry *e = get(ms, id);
	struct err err;

	if (!e || e->file.has_no_cfi)
		return NULL;
	if (!e->file.cfi && cfi_open(&e->file.cfi, e->file.fd, e->file.m.path, &err) < 0)
		e->file.has_no_cfi = true;
	return e->file.cfi;
}

/* -- where a process has them --------------------------------------------------------------------
 */

struct map_line {
	uint64_t start, end, pgoff, ino;
	unsigned major, minor;
	char perms[8];
	char path[1024];
};

static bool parse_line(const char *line, struct map_line *m)
{
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, m->perms, &m->pgoff, &m->major, &m->minor, &m->ino, &at) < 7)
		return false;
	(void)snprintf(m->path, sizeof(m->path), "%s", line + at);
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

/* Files that the gate has not seen (another mount, a file system whose maps name another device)
 * are opened through the mapping itself. */
static struct module_file *file_of(struct modules *ms, uint32_t pid, const struct map_line *m)
{
	struct module_file *f;
	char path[96];
	_cleanup_close_ int fd = -1;

	(void)pthread_mutex_lock(&ms->lock);
	f = find(ms, makedev(m->major, m->minor), m->ino);
	(void)pthread_mutex_unlock(&ms->lock);
	if (f)
		return f;
	(void)snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		       m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? NULL : modules_add(ms, fd, m->path, false);
}

/* Mappings begin at a page, segments need not. -ENOENT: no code of this file is there. */
static int bias_of(const struct elf_file *f, const struct map_line *m, uint64_t *ret)
{
	uint64_t vaddr, size;

	for (size_t i = 0; elf_file_code_segment(f, i, &vaddr, &size); i++) {
		uint64_t at = (uint64_t)elf_file_offset(f, vaddr);

		if (m->pgoff >= (at & ~UINT64_C(4095)) && m->pgoff < at + size) {
			*ret = m->start - (vaddr + m->pgoff - at);
			return 0;
		}
	}
	return -ENOENT;
}

static void set_range(struct modules *ms, struct module_file *f, const struct map_line *m,
		      struct table_range *r)
{
	struct entry *e = f ? get(ms, f->m.id) : NULL;

	*r = (struct table_range){.start = m->start, .end = m->end, .module = MODULE_ANONYMOUS};
	if (f && f == ms->vdso)
		r->bias = m->start;
	else if (!e || !e->elf || bias_of(e->elf, m, &r->bias) < 0)
		return;
	r->module = f->m.id;
}

static void add_range(struct modules *ms, uint32_t pid, const struct map_line *m, struct table *t)
{
	struct module_file *f = NULL;

	if (strcmp(m->path, "[vdso]") == 0)
		f = ms->vdso;
	else if (m->ino != 0)
		f = file_of(ms, pid, m);
	set_range(ms, f, m, &t->range[t->n++]);
}

static void end_table(struct table *t)
{
	for (uint32_t i = t->n; i < TABLE_RANGES; i++)
		t->range[i] = (struct table_range){.start = UINT64_MAX};
}

int modules_from_maps(struct modules *ms, const struct record_maps *maps, struct table *ret)
{
	ret->exec_pages = maps->exec_pages;
	ret->generation = (uint32_t)maps->generation;
	ret->n = 0;
	if (maps->n >= MAPS_MAX)
		return -ENOSPC; /* there are more */
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct map_entry *e = &maps->entry[i];
		struct map_line m = {.start = e->start, .end = e->end, .pgoff = e->pgoff * 4096};
		struct module_file *f = NULL;

		if (e->start == maps->vdso) {
			f = ms->vdso;
		} else if (e->dev) {
			f = modules_find(ms, e->dev, e->ino);
			if (!f)
				return -ENOENT;
		}
		set_range(ms, f, &m, &ret->range[ret->n++]);
	}
	end_table(ret);
	return ret->n ? 0 : -ENOENT;
}

static bool is_of_no_file(const struct map_line *m)
{
	return m->ino == 0 && strcmp(m->path, "[vdso]") != 0;
}

/* Code of no file has no names, and may be in any number of pieces: files go first. */
static void drop_code_of_no_file(struct table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (t->range[i].module != MODULE_ANONYMOUS)
			t->range[n++] = t->range[i];
	}
	t->n = n;
}

int modules_read_maps(struct modules *ms, uint32_t pid, struct table *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	bool is_full = false;
	struct map_line m;
	size_t cap = 0;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	ret->exec_pages = ret->n = 0;
	while (getline(&line, &cap, f) > 0) {
		if (!parse_line(line, &m) || m.perms[2] != 'x' || strcmp(m.path, "[vsyscall]") == 0)
			continue;
		/* The kernel's page for probes comes with the first one that is hit. */
		if (strcmp(m.path, "[uprobes]") == 0)
			continue;
		/* As the kernel counts: code that can be written is data to it. */
		if (m.perms[1] != 'w')
			ret->exec_pages += (m.end - m.start) / 4096;
		if (ret->n == TABLE_RANGES && !is_full) {
			is_full = true;
			drop_code_of_no_file(ret);
		}
		if (ret->n < TABLE_RANGES && !(is_full && is_of_no_file(&m)))
			add_range(ms, pid, &m, ret);
	}
	if (ret->n == 0)
		return -ESRCH;
	end_table(ret);
	return 0;
}

const char *modules_mapped(uint32_t pid, uint64_t address, char *buf, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	struct map_line m;
	size_t cap = 0;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0) {
		if (!parse_line(line, &m) || address < m.start || address >= m.end)
			continue;
		(void)snprintf(buf, size, "%s", m.path);
		return m.path[0] ? buf : NULL;
	}
	return NULL;
}

size_t modules_ranges(const struct table *t, struct range ret[TABLE_RANGES])
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t id = t->range[i].module;

		ret[i] = (struct range){.start = t->range[i].start,
					.end = t->range[i].end,
					.bias = t->range[i].bias,
					.module = id == MODULE_ANONYMOUS ? 0 : (uint32_t)id};
	}
	return t->n;
}
