#include "tracer/check.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <string.h>

#define CODES_MAX 4   /* processes take turns */
#define FILES_MAX 128 /* with more, all are closed and opened anew as needed */

enum { RBX = 3, RBP = 6, R12 = 12, RIP = 16 };

/* Read, not mapped: a mapping that the workload truncates would kill us. Read are the section
 * headers and what unwinding asks for. */
struct file {
	uint32_t module;
	Elf *elf;            /* NULL: cannot be unwound through */
	uint64_t vaddr, end; /* of its segments, the first one's as it is aligned */
};

/* The code of a process, as libdwfl knows it. */
struct code {
	struct range *ranges; /* NULL = free */
	size_t n;
	Dwfl *dwfl; /* NULL: no file can be unwound through */
	uint64_t last_use;
};

struct walk {
	const struct range *ranges;
	size_t n_ranges;
	const struct capture *capture;
	const struct frame_ref *expected;
	uint32_t n, at;
	bool is_exact; /* the next frame's pc is no return address */
	bool is_different, is_end, is_missing;
};

struct check {
	struct modules *modules;
	struct file *files;
	size_t n_files, cap_files;
	struct code codes[CODES_MAX];
	uint64_t n_checks;
	struct walk walk;
};

/* -- files --------------------------------------------------------------------------------------
 */

/* Where libdwfl takes a file's start to be: it finds the bias from that. */
static bool find_span(struct file *f)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(f->elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &ph))
			return false;
		if (ph.p_type != PT_LOAD)
			continue;
		if (f->end == 0)
			f->vaddr = ph.p_vaddr & -ph.p_align;
		f->end = MAX(f->end, ph.p_vaddr + ph.p_memsz);
	}
	return f->end > f->vaddr;
}

static void open_elf(struct file *f, int fd)
{
	GElf_Ehdr head;

	f->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (f->elf && elf_kind(f->elf) == ELF_K_ELF && gelf_getehdr(f->elf, &head) &&
	    head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_machine == EM_X86_64 && find_span(f))
		return;
	(void)elf_end(f->elf);
	f->elf = NULL;
}

/* NULL: no memory. */
static const struct file *get_file(struct check *c, uint32_t module)
{
	const struct module_file *m;
	struct file *f;

	for (size_t i = 0; i < c->n_files; i++) {
		if (c->files[i].module == module)
			return &c->files[i];
	}
	if (c->n_files == c->cap_files) {
		size_t cap = c->cap_files ? 2 * c->cap_files : FILES_MAX;

		f = realloc(c->files, cap * sizeof(*f));
		if (!f)
			return NULL;
		c->files = f;
		c->cap_files = cap;
	}
	f = &c->files[c->n_files++];
	*f = (struct file){.module = module};
	m = modules_get(c->modules, module);
	if (m)
		open_elf(f, m->fd);
	return f;
}

static void code_done(struct code *code)
{
	if (code->dwfl)
		dwfl_end(code->dwfl);
	free(code->ranges);
	*code = (struct code){0};
}

static void forget_all(struct check *c)
{
	for (size_t i = 0; i < CODES_MAX; i++)
		code_done(&c->codes[i]);
	for (size_t i = 0; i < c->n_files; i++)
		(void)elf_end(c->files[i].elf);
	c->n_files = 0;
}

/* -- what libdwfl asks for ----------------------------------------------------------------------
 */

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **ret_name, Elf **ret)
{
	(void)mod;
	(void)name;
	(void)base;
	(void)ret_name;
	*ret = elf_begin(-1, ELF_C_READ, *userdata); /* one more reference */
	return -1;
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret)
{
	(void)mod;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret;
	return -1;
}

/* There is one thread. */
static pid_t next_thread(Dwfl *dwfl, void *ctx, void **ret)
{
	pid_t tid = *ret ? 0 : 1;

	(void)dwfl;
	*ret = ctx;
	return tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *ctx)
{
	struct walk *w = ctx;
	const struct capture *c = w->capture;
	uint64_t off = address - c->base;

	(void)dwfl;
	if (address < c->base || c->len < sizeof(*ret) || off > c->len - sizeof(*ret)) {
		w->is_missing = true;
		return false;
	}
	memcpy(ret, c->bytes + off, sizeof(*ret));
	return true;
}

/* The first frame's pc is taken for exact. Here it is a return address, so its rules are those of
 * the byte before. */
static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
	const struct capture *c = ((const struct walk *)ctx)->capture;
	const Dwarf_Word rbp_rsp[] = {c->rbp, c->rsp}, rbx = c->rbx;
	const Dwarf_Word r12_r15[] = {c->r12, c->r13, c->r14, c->r15}, rip = c->ip;

	dwfl_thread_state_register_pc(thread, c->ip - 1);
	return dwfl_thread_state_registers(thread, RBP, ARRAY_SIZE(rbp_rsp), rbp_rsp) &&
	       dwfl_thread_state_registers(thread, RIP, 1, &rip) &&
	       (!c->has_registers ||
		(dwfl_thread_state_registers(thread, RBX, 1, &rbx) &&
		 dwfl_thread_state_registers(thread, R12, ARRAY_SIZE(r12_r15), r12_r15)));
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
};

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* -- the code of a process ----------------------------------------------------------------------
 */

static void report_file(struct check *c, Dwfl *dwfl, const struct range *r)
{
	const struct file *f = get_file(c, r->module);
	Dwfl_Module *mod;
	void **userdata;
	char name[16];

	if (!f || !f->elf || f->vaddr + r->bias >= f->end + r->bias)
		return;
	(void)snprintf(name, sizeof(name), "%u", r->module);
	mod = dwfl_report_module(dwfl, name, f->vaddr + r->bias, f->end + r->bias);
	if (!mod)
		return;
	(void)dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = f->elf;
}

/* Several ranges of one file have one bias, as a rule; reported twice is the same module. */
static Dwfl *report(struct check *c, const struct range *ranges, size_t n)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	dwfl_report_begin(dwfl);
	for (size_t i = 0; i < n; i++) {
		if (ranges[i].module)
			report_file(c, dwfl, &ranges[i]);
	}
	if (dwfl_report_end(dwfl, NULL, NULL) == 0 &&
	    dwfl_attach_state(dwfl, NULL, 1, &thread_callbacks, &c->walk))
		return dwfl;
	dwfl_end(dwfl);
	return NULL;
}

static bool is_of(const struct code *code, const struct range *ranges, size_t n)
{
	if (!code->ranges || code->n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct range *a = &code->ranges[i], *b = &ranges[i];

		if (a->start != b->start || a->end != b->end || a->bias != b->bias ||
		    a->module != b->module)
			return false;
	}
	return true;
}

/* Kept from last time, or made in place of the one that was not used for longest. NULL: cannot
 * be made. */
static Dwfl *get_dwfl(struct check *c, const struct range *ranges, size_t n)
{
	struct code *code = &c->codes[0];

	for (size_t i = 0; i < CODES_MAX; i++) {
		if (is_of(&c->codes[i], ranges, n)) {
			c->codes[i].last_use = c->n_checks;
			return c->codes[i].dwfl;
		}
		if (c->codes[i].last_use < code->last_use)
			code = &c->codes[i];
	}
	code_done(code);
	if (c->n_files > FILES_MAX)
		forget_all(c);
	code->ranges = malloc(n * sizeof(*ranges));
	if (!code->ranges)
		return NULL;
	memcpy(code->ranges, ranges, n * sizeof(*ranges));
	code->n = n;
	code->last_use = c->n_checks;
	code->dwfl = report(c, ranges, n);
	return code->dwfl;
}

/* -- the walk ------------------------------------------------------------------------------------
 */

/* By the byte of the call, or of the interrupted instruction. */
static bool is_expected(const struct walk *w, uint64_t address)
{
	const struct frame_ref *f = &w->expected[w->at];
	const struct range *r = NULL;

	for (size_t i = 0; i < w->n_ranges && !r; i++) {
		if (address >= w->ranges[i].start && address < w->ranges[i].end)
			r = &w->ranges[i];
	}
	return r && f->module == r->module && f->offset == address + 1 - r->bias;
}

/* What the file says of the way on from there; false = nothing. Where that is so, libdwfl would
 * go by rbp and a guess. */
static bool read_rules(struct walk *w, Dwfl *dwfl, uint64_t address)
{
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, address);
	_cleanup_free_ Dwarf_Frame *frame = NULL;
	Dwarf_Op mem[3], *ops;
	Dwarf_Addr bias;
	size_t n;
	Dwarf_CFI *cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;

	if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0 ||
	    dwarf_frame_info(frame, NULL, NULL, &w->is_exact) != RIP ||
	    dwarf_frame_register(frame, RIP, mem, &ops, &n) != 0)
		return false;
	w->is_end = n == 0 && ops == mem; /* undefined */
	return true;
}

static int on_frame(Dwfl_Frame *state, void *ctx)
{
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(state));
	struct walk *w = ctx;
	Dwarf_Addr address;

	if (!dwfl_frame_pc(state, &address, NULL))
		return DWARF_CB_ABORT;
	address -= !w->is_exact;
	if (w->at == w->n || !is_expected(w, address)) {
		w->is_different = true;
		return DWARF_CB_ABORT;
	}
	w->at++;
	return read_rules(w, dwfl, address) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* libdwfl says "end" too where it could not read a return address. */
enum check_verdict check_stack(struct check *c, const struct range *ranges, size_t n_ranges,
			       const struct capture *capture, const struct frame_ref *expected,
			       uint32_t n, enum stack_quality quality)
{
	struct walk *w = &c->walk;
	Dwfl *dwfl;
	bool is_done;

	c->n_checks++;
	if (quality != STACK_FULL || n_ranges == 0)
		return CHECK_UNDECIDED;
	dwfl = get_dwfl(c, ranges, n_ranges);
	if (!dwfl)
		return CHECK_UNDECIDED;
	*w = (struct walk){.ranges = ranges,
			   .n_ranges = n_ranges,
			   .capture = capture,
			   .expected = expected,
			   .n = n,
			   .is_exact = true};
	is_done = dwfl_getthread_frames(dwfl, 1, on_frame, w) == 0;
	if (w->is_different || (w->is_end && w->at < n))
		return CHECK_DIFFERENT;
	return w->at == n && (w->is_end || (is_done && !w->is_missing)) ? CHECK_EQUAL
									: CHECK_UNDECIDED;
}

/* -- the object ----------------------------------------------------------------------------------
 */

int check_new(struct check **ret, struct modules *ms, struct err *err)
{
	struct check *c = calloc(1, sizeof(*c));

	if (!c)
		return err_errno(err, -ENOMEM, "cannot check stacks");
	(void)elf_version(EV_CURRENT);
	c->modules = ms;
	*ret = c;
	return 0;
}

void check_free(struct check *c)
{
	if (!c)
		return;
	forget_all(c);
	free(c->files);
	free(c);
}
