#include "tracer/cfi.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tracer/expr.h"

#define TABLES 2 /* .eh_frame, .debug_frame */

struct slot {
	uint64_t vaddr;
	struct row row; /* kind 0 = empty slot */
};

struct cfi {
	/* The file as far as unwinding needs it, the rest is holes. Not a mapping of the file: one
	 * that the workload truncates meanwhile would kill us. */
	uint8_t *image;
	uint64_t size;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *table[TABLES]; /* NULL = the file has none */

	struct slot *slots; /* rows by address, open addressing; NULL = none yet */
	size_t n_slots, n_used;
};

/* -- the image ----------------------------------------------------------------------------- */

/* false where the file does not have these bytes. */
static bool fetch(struct cfi *c, int fd, uint64_t off, uint64_t len)
{
	if (off > c->size || len > c->size - off)
		return false;
	while (len > 0) {
		ssize_t n = pread(fd, c->image + off, MIN(len, (uint64_t)1 << 30), (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		off += n;
		len -= n;
	}
	return true;
}

/* .eh_frame_hdr and what follows it in its segment: .eh_frame, as every linker lays it out. This
 * way a file without section headers can be unwound too. */
static bool fetch_segments(struct cfi *c, int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr hdr = {0}, ph;

	if (head->e_phentsize != sizeof(ph) ||
	    !fetch(c, fd, head->e_phoff, (uint64_t)head->e_phnum * sizeof(ph)))
		return false;
	for (unsigned int i = 0; i < head->e_phnum; i++) {
		memcpy(&ph, c->image + head->e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_GNU_EH_FRAME)
			hdr = ph;
	}
	if (hdr.p_type == PT_NULL)
		return true;
	for (unsigned int i = 0; i < head->e_phnum; i++) {
		memcpy(&ph, c->image + head->e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && hdr.p_offset >= ph.p_offset &&
		    hdr.p_offset - ph.p_offset < ph.p_filesz)
			return fetch(c, fd, hdr.p_offset,
				     ph.p_filesz - (hdr.p_offset - ph.p_offset));
	}
	return true;
}

static bool is_wanted(const char *name)
{
	static const char *const wanted[] = {".eh_frame", ".eh_frame_hdr", ".debug_frame",
					     ".zdebug_frame"};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (strcmp(name, wanted[i]) == 0)
			return true;
	}
	return false;
}

/* Sections that are left out become such without contents, so that nobody reads the holes. */
static bool fetch_sections(struct cfi *c, int fd, const Elf64_Ehdr *head)
{
	Elf64_Shdr names, sh;

	if (head->e_shnum == 0)
		return true;
	if (head->e_shentsize != sizeof(sh) || head->e_shstrndx >= head->e_shnum ||
	    !fetch(c, fd, head->e_shoff, (uint64_t)head->e_shnum * sizeof(sh)))
		return false;
	memcpy(&names, c->image + head->e_shoff + head->e_shstrndx * sizeof(names), sizeof(names));
	if (names.sh_type != SHT_STRTAB || names.sh_size == 0 ||
	    !fetch(c, fd, names.sh_offset, names.sh_size) ||
	    c->image[names.sh_offset + names.sh_size - 1] != '\0')
		return false;
	for (unsigned int i = 0; i < head->e_shnum; i++) {
		uint8_t *at = c->image + head->e_shoff + i * sizeof(sh);
		bool have;

		memcpy(&sh, at, sizeof(sh));
		if (i == head->e_shstrndx || sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL)
			continue;
		have = sh.sh_name < names.sh_size &&
		       is_wanted((const char *)c->image + names.sh_offset + sh.sh_name) &&
		       fetch(c, fd, sh.sh_offset, sh.sh_size);
		if (!have)
			sh.sh_type = SHT_NOBITS;
		memcpy(at, &sh, sizeof(sh));
	}
	return true;
}

static int load(struct cfi *c, int fd, const char *name, struct err *err)
{
	Elf64_Ehdr head;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "Cannot read %s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(head))
		return err_set(err, -ENOEXEC, "%s is no ELF file", name);
	c->size = st.st_size;
	c->image = mmap(NULL, c->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->image == MAP_FAILED) {
		c->image = NULL;
		return err_errno(err, -errno, "Cannot read %s", name);
	}
	if (!fetch(c, fd, 0, sizeof(head)))
		return err_set(err, -ENOEXEC, "%s is no ELF file", name);
	memcpy(&head, c->image, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_machine != EM_X86_64)
		return err_set(err, -ENOEXEC, "%s is no ELF file for x86-64", name);
	if (!fetch_segments(c, fd, &head) || !fetch_sections(c, fd, &head))
		return err_set(err, -ENOEXEC, "%s is damaged", name);
	return 0;
}

/* -- opening ------------------------------------------------------------------------------- */

int cfi_open(struct cfi **ret, int fd, const char *name, struct err *err)
{
	struct cfi *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_errno(err, -ENOMEM, "Cannot read %s", name);
	r = load(c, fd, name, err);
	if (r < 0) {
		cfi_close(c);
		return r;
	}
	elf_version(EV_CURRENT);
	c->elf = elf_memory((char *)c->image, c->size);
	if (c->elf) {
		c->table[0] = dwarf_getcfi_elf(c->elf);
		c->dwarf = dwarf_begin_elf(c->elf, DWARF_C_READ, NULL);
	}
	if (c->dwarf)
		c->table[1] = dwarf_getcfi(c->dwarf);
	*ret = c;
	return 0;
}

void cfi_close(struct cfi *c)
{
	if (!c)
		return;
	if (c->table[0])
		(void)dwarf_cfi_end(c->table[0]);
	if (c->dwarf)
		(void)dwarf_end(c->dwarf); /* with table[1] */
	if (c->elf)
		(void)elf_end(c->elf);
	if (c->image)
		(void)munmap(c->image, c->size);
	free(c->slots);
	free(c);
}

/* -- rules --------------------------------------------------------------------------------- */

/* Where a register of the caller is. */
enum rule { RULE_UNDEFINED, RULE_SAME, RULE_VALUE, RULE_SAVED, RULE_UNKNOWN };

static Dwarf_Frame *find_frame(struct cfi *c, uint64_t pc)
{
	for (size_t i = 0; i < TABLES; i++) {
		Dwarf_Frame *frame;

		if (c->table[i] && dwarf_cfi_addrframe(c->table[i], pc, &frame) == 0)
			return frame;
	}
	return NULL;
}

static bool get_cfa(Dwarf_Frame *frame, const struct expr_env *env, struct expr_value *ret)
{
	Dwarf_Op *ops;
	size_t n;
	bool is_value;

	return dwarf_frame_cfa(frame, &ops, &n) == 0 && n > 0 &&
	       expr_eval(env, ops, n, ret, &is_value);
}

static enum rule get_rule(Dwarf_Frame *frame, int reg, const struct expr_env *env,
			  struct expr_value *ret)
{
	Dwarf_Op space[3], *ops;
	size_t n;
	bool is_value;

	if (dwarf_frame_register(frame, reg, space, &ops, &n) != 0)
		return RULE_UNKNOWN;
	if (n == 0)
		return ops ? RULE_UNDEFINED : RULE_SAME;
	if (!expr_eval(env, ops, n, ret, &is_value))
		return RULE_UNKNOWN;
	return is_value ? RULE_VALUE : RULE_SAVED;
}

/* -- rows ---------------------------------------------------------------------------------- */

static bool fits(uint64_t off, s32 *ret)
{
	*ret = (s32)off;
	return (int64_t)off == *ret;
}

static bool rbp_row(enum rule rule, const struct expr_value *v, struct row *row)
{
	if (rule == RULE_SAME)
		return true;
	row->rbp_base = v->base;
	return rule == RULE_SAVED && v->base != ROW_NONE && !v->is_deref &&
	       fits(v->off, &row->rbp_off);
}

/* A row takes the CFA for the caller's rsp; a signal frame saves it, and says where both ways. */
static bool is_rsp_cfa(enum rule rule, struct expr_value v, const struct expr_value *cfa)
{
	if (rule == RULE_SAVED) {
		if (v.is_deref)
			return false;
		v.is_deref = true;
	} else if (rule != RULE_VALUE) {
		return false;
	}
	if (v.base == ROW_CFA)
		return v.off == 0 && !v.is_deref;
	return v.base == cfa->base && v.is_deref == cfa->is_deref && v.off == cfa->off;
}

static struct row make_row(Dwarf_Frame *frame, uint64_t pc)
{
	static const struct expr_value whole = {.base = ROW_CFA};
	struct row complex = {.kind = ROW_COMPLEX}, row = {.kind = ROW_CFI};
	struct expr_env env = {.pc = pc};
	struct expr_value cfa, ra = {0}, rsp = {0}, rbp = {0};
	enum rule ra_rule, rsp_rule, rbp_rule;
	bool is_signal = false, has_cfa;

	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) != REG_RIP)
		return complex;
	complex.is_signal = row.is_signal = is_signal;
	has_cfa = get_cfa(frame, &env, &cfa);
	env.cfa = &whole;
	ra_rule = get_rule(frame, REG_RIP, &env, &ra);
	rsp_rule = get_rule(frame, REG_RSP, &env, &rsp);
	rbp_rule = get_rule(frame, REG_RBP, &env, &rbp);
	if (ra_rule == RULE_UNDEFINED)
		return (struct row){.kind = ROW_END};
	if (!has_cfa || cfa.base == ROW_NONE || !fits(cfa.off, &row.cfa_off))
		return complex;
	row.cfa_base = cfa.base;
	row.cfa_deref = cfa.is_deref;
	if (ra_rule != RULE_SAVED || (ra.base != ROW_CFA && ra.base != ROW_RSP) || ra.is_deref ||
	    !fits(ra.off, &row.ra_off))
		return complex;
	row.ra_base = ra.base;
	if (!is_rsp_cfa(rsp_rule, rsp, &cfa) || !rbp_row(rbp_rule, &rbp, &row))
		return complex;
	return row;
}

/* The address's slot: the one that has it, else the empty one where it belongs. */
static struct slot *find_slot(struct slot *slots, size_t n, uint64_t vaddr)
{
	size_t i = vaddr * 0x9e3779b97f4a7c15 >> 32 & (n - 1);

	while (slots[i].row.kind && slots[i].vaddr != vaddr)
		i = (i + 1) & (n - 1);
	return &slots[i];
}

/* Room for one more; without memory for it the row is worked out again each time. */
static bool reserve(struct cfi *c)
{
	size_t n = c->n_slots ? c->n_slots * 2 : 256;
	struct slot *slots;

	if (c->n_slots && c->n_used < c->n_slots / 2)
		return true;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < c->n_slots; i++) {
		if (c->slots[i].row.kind)
			*find_slot(slots, n, c->slots[i].vaddr) = c->slots[i];
	}
	free(c->slots);
	c->slots = slots;
	c->n_slots = n;
	return true;
}

struct row cfi_row(struct cfi *c, uint64_t vaddr)
{
	struct row row = {.kind = ROW_GUESS};
	_cleanup_free_ Dwarf_Frame *frame = NULL;

	if (c->slots) {
		const struct slot *s = find_slot(c->slots, c->n_slots, vaddr);

		if (s->row.kind)
			return s->row;
	}
	frame = find_frame(c, vaddr - 1);
	if (frame)
		row = make_row(frame, vaddr - 1);
	if (reserve(c)) {
		*find_slot(c->slots, c->n_slots, vaddr) = (struct slot){vaddr, row};
		c->n_used++;
	}
	return row;
}

/* -- full evaluation ----------------------------------------------------------------------- */

/* The caller's register; false = not known. */
static bool caller_reg(Dwarf_Frame *frame, int reg, const struct expr_env *env, uint64_t *ret)
{
	struct expr_value v;
	enum rule rule = get_rule(frame, reg, env, &v);

	/* What callees preserve is the same unless told otherwise; libdw's table of that has rax
	 * where it means rbx. */
	if (reg == REG_RBX && rule == RULE_UNDEFINED)
		rule = RULE_SAME;
	switch (rule) {
	case RULE_SAME:
		*ret = env->regs->r[reg];
		return env->regs->known >> reg & 1;
	case RULE_VALUE:
		*ret = v.off;
		return true;
	case RULE_SAVED:
		return env->read(env->ctx, v.off, ret);
	default:
		return false;
	}
}

int cfi_step(struct cfi *c, uint64_t bias, struct cfi_regs *regs, cfi_read_fn *read, void *ctx,
	     bool *ret_is_signal)
{
	uint64_t pc = regs->r[REG_RIP] - 1;
	struct expr_env env = {.regs = regs, .pc = pc, .read = read, .ctx = ctx};
	_cleanup_free_ Dwarf_Frame *frame = find_frame(c, pc - bias);
	struct cfi_regs caller = {0};
	struct expr_value cfa, ra;

	if (!frame || dwarf_frame_info(frame, NULL, NULL, ret_is_signal) != REG_RIP)
		return -ENODATA;
	if (get_rule(frame, REG_RIP, &env, &ra) == RULE_UNDEFINED)
		return 0;
	if (!get_cfa(frame, &env, &cfa))
		return -ENODATA;
	env.cfa = &cfa;
	for (int i = 0; i < CFI_REGS; i++) {
		if (caller_reg(frame, i, &env, &caller.r[i]))
			caller.known |= 1u << i;
	}
	if (!(caller.known >> REG_RIP & 1))
		return -ENODATA;
	*regs = caller;
	return 1;
}
