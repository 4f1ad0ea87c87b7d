/* Unwinding of captures of the own stack: the same frames as glibc's backtrace(), whatever lies
 * on the stack; what is missing or unknown cuts a stack and never makes frames up. */
#include "tracer/unwind.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MODULES_MAX 64
#define NOINLINE __attribute__((noinline, noclone))
#define RAW __attribute__((noinline, noclone, no_sanitize("address", "undefined")))

/* -- this process's code -------------------------------------------------------------------- */

struct used {
	struct frame_ref at;
	struct row row;
};

struct process {
	struct range ranges[MODULES_MAX * 2];
	size_t n_ranges;
	struct cfi *cfis[MODULES_MAX]; /* [module] */
	uint32_t n_modules;
	struct used used[UNWIND_FRAMES_MAX]; /* rows of the last walk, in order */
	int n_used;
};

static struct process proc;
static int (*backtrace)(void **ret, int n); /* glibc's: a sanitiser's own is one frame deeper */

static int vdso_file(const struct dl_phdr_info *info)
{
	const Elf64_Ehdr *head = NULL;
	int fd = memfd_create("vdso", 0);
	size_t len;

	for (int i = 0; i < info->dlpi_phnum && !head; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			head = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	assert_true(fd >= 0 && head);
	len = head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr);
	assert_int_equal(write(fd, head, len), len);
	return fd;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uint32_t module = ++proc.n_modules;
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct err err = {0};
	int fd;

	(void)size;
	(void)ctx;
	assert_true(module < MODULES_MAX);
	fd = strstr(path, "vdso") ? vdso_file(info) : open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(cfi_open(&proc.cfis[module], fd, path, &err), 0);
	close(fd);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			proc.ranges[proc.n_ranges++] =
				(struct range){start, start + ph->p_memsz, info->dlpi_addr, module};
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int setup(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	assert_non_null(libc);
	*(void **)&backtrace = dlsym(libc, "backtrace");
	assert_non_null(backtrace);
	dl_iterate_phdr(add_module, NULL);
	qsort(proc.ranges, proc.n_ranges, sizeof(proc.ranges[0]), by_start);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= proc.n_modules; i++)
		cfi_close(proc.cfis[i]);
	return 0;
}

static struct cfi *get_cfi(void *ctx, uint32_t module)
{
	struct process *p = ctx;

	return p->cfis[module];
}

static void on_row(void *ctx, struct frame_ref at, const struct row *row)
{
	struct process *p = ctx;

	p->used[p->n_used++] = (struct used){at, *row};
}

static const struct range *range_of(uint64_t address)
{
	for (size_t i = 0; i < proc.n_ranges; i++) {
		if (address >= proc.ranges[i].start && address < proc.ranges[i].end)
			return &proc.ranges[i];
	}
	return NULL;
}

static struct unwind_env environment(void)
{
	return (struct unwind_env){proc.ranges, proc.n_ranges, get_cfi, on_row, &proc};
}

/* -- captures ------------------------------------------------------------------------------- */

/* void take_regs(uint64_t regs[8]): rbx, rbp, r12 ... r15 as the caller has them, its rsp after
 * the return and the address returned to. */
void take_regs(uint64_t regs[8]);
__asm__(".text\n.globl take_regs\n.type take_regs, @function\ntake_regs:\n.cfi_startproc\n"
	"mov %rbx, (%rdi)\nmov %rbp, 8(%rdi)\nmov %r12, 16(%rdi)\nmov %r13, 24(%rdi)\n"
	"mov %r14, 32(%rdi)\nmov %r15, 40(%rdi)\nlea 8(%rsp), %rax\nmov %rax, 48(%rdi)\n"
	"mov (%rsp), %rax\nmov %rax, 56(%rdi)\nret\n.cfi_endproc\n.size take_regs, .-take_regs\n");

#define STACK_BYTES (4 << 20)

struct shot {
	struct capture capture;
	void *truth[UNWIND_FRAMES_MAX + 64]; /* of backtrace() */
	int n_truth;
	uint64_t low; /* copy from here, if below rsp: the other stack's end */
};

static struct shot shot;
static uint64_t bytes[STACK_BYTES / 8];

static RAW void copy_words(uint64_t *to, const volatile uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

static uint64_t stack_top(void)
{
	pthread_attr_t attr;
	void *start;
	size_t size;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstack(&attr, &start, &size);
	pthread_attr_destroy(&attr);
	return (uint64_t)start + size;
}

/* The caller's stack into `shot`; level 0 is this function, in the capture and in the truth. */
static RAW int snap(void)
{
	struct capture *c = &shot.capture;
	uint64_t regs[8];

	take_regs(regs);
	*c = (struct capture){regs[7], regs[6], regs[1], regs[0],          regs[2], regs[3],
			      regs[4], regs[5], regs[6], (uint8_t *)bytes, 0,       false};
	if (shot.low)
		c->base = MIN(c->base, shot.low & ~7ull);
	c->len = MIN(stack_top() - c->base, (uint64_t)STACK_BYTES) & ~7ull;
	copy_words(bytes, (const uint64_t *)c->base, c->len / 8);
	shot.n_truth = backtrace(shot.truth, ARRAY_SIZE(shot.truth));
	return 1;
}

static struct frame_ref frames[UNWIND_FRAMES_MAX];

static int walk(const struct capture *c, enum stack_quality *quality)
{
	struct unwind_env env = environment();
	int n;

	proc.n_used = 0;
	n = unwind(&env, c, frames, quality);
	assert_int_equal(proc.n_used, n);
	for (int i = 0; i < n; i++)
		assert_memory_equal(&proc.used[i].at, &frames[i], sizeof(frames[i]));
	return n;
}

/* backtrace() gives the exact pc after a signal frame, a frame_ref has one more. */
static void expect_frames(int from, int n)
{
	for (int i = from; i < n; i++) {
		uint64_t address = (uint64_t)shot.truth[i];
		const struct range *r = range_of(address - 1);

		address += i > 0 && proc.used[i - 1].row.is_signal;
		assert_non_null(r);
		assert_int_equal(frames[i].module, r->module);
		assert_int_equal(frames[i].offset, address - r->bias);
	}
}

static bool read_bytes(void *ctx, uint64_t address, uint64_t *ret)
{
	const struct capture *c = ctx;

	if (address < c->base || address + 8 > c->base + c->len)
		return false;
	memcpy(ret, c->bytes + (address - c->base), 8);
	return true;
}

/* The same chain once more, by full evaluation of every frame. */
static void expect_full_evaluation(int n)
{
	struct capture *c = &shot.capture;
	struct cfi_regs regs = {.known = 0x1f0c8};
	bool is_signal = false;

	regs.r[3] = c->rbx;
	regs.r[6] = c->rbp;
	regs.r[7] = c->rsp;
	memcpy(&regs.r[12], &c->r12, 4 * sizeof(uint64_t));
	regs.r[16] = c->ip;
	for (int i = 0; i < n; i++) {
		const struct range *r;
		int done;

		regs.r[16] += is_signal;
		r = range_of(regs.r[16] - 1);
		assert_non_null(r);
		assert_int_equal(regs.r[16] - r->bias, frames[i].offset);
		done = cfi_step(proc.cfis[r->module], r->bias, &regs, read_bytes, c, &is_signal);
		assert_int_equal(done, i < n - 1);
	}
}

/* And by nothing but the rows told of, as the BPF program does it. */
static void expect_rows_alone(int n)
{
	struct capture *c = &shot.capture;
	uint64_t ip = c->ip, base[4] = {0, 0, c->rsp, c->rbp};

	for (int i = 0; i < n; i++) {
		const struct row *row = &proc.used[i].row;
		const struct range *r = range_of(ip - 1);

		assert_int_equal(ip - r->bias, frames[i].offset);
		if (row->kind == ROW_END) {
			assert_int_equal(i, n - 1);
			return;
		}
		assert_int_equal(row->kind, ROW_CFI);
		base[ROW_CFA] = base[row->cfa_base] + row->cfa_off;
		if (row->cfa_deref)
			assert_true(read_bytes(c, base[ROW_CFA], &base[ROW_CFA]));
		assert_true(read_bytes(c, base[row->ra_base] + row->ra_off, &ip));
		if (row->rbp_base)
			assert_true(
				read_bytes(c, base[row->rbp_base] + row->rbp_off, &base[ROW_RBP]));
		base[ROW_RSP] = base[ROW_CFA];
		ip += row->is_signal;
	}
	fail();
}

/* The stack in `shot` in full; the number of frames. Level 0 is at another call of snap(). */
static int expect_shot(void)
{
	enum stack_quality quality;
	int n = walk(&shot.capture, &quality);

	assert_int_equal(quality, STACK_FULL);
	assert_int_equal(n, shot.n_truth);
	assert_int_equal(proc.used[n - 1].row.kind, ROW_END);
	expect_frames(1, n);
	expect_full_evaluation(n);
	return n;
}

static int rows_used(bool (*is)(const struct row *row))
{
	int n = 0;

	for (int i = 0; i < proc.n_used; i++)
		n += is(&proc.used[i].row);
	return n;
}

static bool is_by_rbp(const struct row *row)
{
	return row->kind == ROW_CFI && row->cfa_base == ROW_RBP && !row->cfa_deref;
}

static bool is_drap(const struct row *row)
{
	return row->kind == ROW_CFI && row->cfa_base == ROW_RBP && row->cfa_deref &&
	       row->rbp_base == ROW_RBP;
}

static bool is_signal_frame(const struct row *row)
{
	return row->kind == ROW_CFI && row->is_signal;
}

static bool is_complex(const struct row *row)
{
	return row->kind == ROW_COMPLEX;
}

/* -- stacks of all kinds -------------------------------------------------------------------- */

static NOINLINE int recurse(int depth)
{
	int r = depth > 0 ? recurse(depth - 1) : snap();

	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

static void recursion(void **state)
{
	(void)state;
	recurse(200);
	assert_true(expect_shot() > 200);
	expect_rows_alone(shot.n_truth);
}

static NOINLINE int with_alloca(int depth, size_t n)
{
	char *p = __builtin_alloca(n);
	int r;

	__asm__ volatile("" : : "r"(p) : "memory");
	r = depth > 0 ? with_alloca(depth - 1, n * 3 % 4093 + 1) : snap();
	__asm__ volatile("" : "+r"(r) : "r"(p) : "memory");
	return r + 1;
}

static void frames_of_variable_size(void **state)
{
	(void)state;
	with_alloca(50, 17);
	expect_shot();
	assert_true(rows_used(is_by_rbp) >= 50);
	expect_rows_alone(shot.n_truth);
}

/* Realigned, of variable size and with arguments on the stack: the CFA is kept in memory. */
static NOINLINE int with_alignment(int depth, size_t n, long a, long b, long c, long d, long e)
{
	_Alignas(64) char aligned[64];
	char *p = __builtin_alloca(n);
	int r;

	__asm__ volatile("" : : "r"(p), "r"(aligned) : "memory");
	r = depth > 0 ? with_alignment(depth - 1, n + 40, b, c, d, e, a) : snap();
	__asm__ volatile("" : "+r"(r) : "r"(p), "r"(aligned), "m"(e), "m"(d) : "memory");
	return r + 1;
}

static void overaligned_frames(void **state)
{
	(void)state;
	with_alignment(20, 8, 1, 2, 3, 4, 5);
	expect_shot();
	assert_true(rows_used(is_drap) >= 20);
	expect_rows_alone(shot.n_truth);
}

static int compare_at_third(const void *a, const void *b)
{
	static int calls;

	if (++calls == 3)
		snap();
	return *(const int *)a - *(const int *)b;
}

static void callback_of_libc(void **state)
{
	int values[] = {4, 3, 2, 1, 9, 8, 7, 6};

	(void)state;
	qsort(values, ARRAY_SIZE(values), sizeof(values[0]), compare_at_third);
	expect_shot();
	expect_rows_alone(shot.n_truth);
}

/* -- signals -------------------------------------------------------------------------------- */

static void handler(int sig)
{
	(void)sig;
	snap();
}

/* The interrupted instruction is the first of its function: only as an exact pc, not as a return
 * address, does it belong to it. */
void trap_first(void);
__asm__(".text\nnop\n.globl trap_first\n.type trap_first, @function\ntrap_first:\n.cfi_startproc\n"
	"ud2\nret\n.cfi_endproc\n.size trap_first, .-trap_first\n");

static void skip_ud2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	snap();
	uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static void in_a_signal_handler(void **state)
{
	struct sigaction sa = {.sa_handler = handler}, old;

	(void)state;
	sigaction(SIGUSR1, &sa, &old);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	expect_shot();
	assert_int_equal(rows_used(is_signal_frame), 1);
	expect_rows_alone(shot.n_truth);
}

static void at_the_first_instruction(void **state)
{
	struct sigaction sa = {.sa_sigaction = skip_ud2, .sa_flags = SA_SIGINFO}, old;
	bool found = false;
	int n;

	(void)state;
	sigaction(SIGILL, &sa, &old);
	trap_first();
	sigaction(SIGILL, &old, NULL);
	n = expect_shot();
	expect_rows_alone(n);
	for (int i = 0; i < n; i++) {
		const struct range *r = range_of((uint64_t)trap_first);

		found |= frames[i].module == r->module &&
			 frames[i].offset == (uint64_t)trap_first + 1 - r->bias;
	}
	assert_true(found);
}

static NOINLINE int raise_on(uint8_t *stack, size_t size)
{
	stack_t ss = {.ss_sp = stack, .ss_size = size}, old;
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, old_sa;

	assert_int_equal(sigaltstack(&ss, &old), 0);
	sigaction(SIGUSR1, &sa, &old_sa);
	/* Below what raise() needs, all of it mapped. */
	shot.low = (uint64_t)__builtin_frame_address(0) - 8192;
	raise(SIGUSR1);
	shot.low = 0;
	sigaction(SIGUSR1, &old_sa, NULL);
	assert_int_equal(sigaltstack(&old, NULL), 0);
	return 1;
}

static void on_an_alternate_stack(void **state)
{
	uint8_t stack[65536];
	enum stack_quality quality;
	struct capture part;
	int n, n_part;

	(void)state;
	raise_on(stack, sizeof(stack));
	n = expect_shot();
	assert_true(shot.capture.rsp > (uint64_t)stack);
	expect_rows_alone(n);

	/* Without the interrupted stack there is nothing beyond the signal frame. */
	part = shot.capture;
	part.bytes += shot.capture.rsp - part.base;
	part.base = shot.capture.rsp;
	part.len = (uint64_t)stack + sizeof(stack) - part.base;
	n_part = walk(&part, &quality);
	assert_int_equal(quality, STACK_CUT);
	assert_true(n_part > 2 && n_part < n);
	expect_frames(1, n_part);
}

/* -- threads, code without unwind information ------------------------------------------------- */

static void *thread(void *arg)
{
	recurse(3);
	return arg;
}

static void in_a_thread(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	pthread_join(t, NULL);
	expect_shot();
	expect_rows_alone(shot.n_truth);
}

/* int call_complex(int (*fn)(void)): its CFA is in rbx. */
int call_complex(int (*fn)(void));
__asm__(".text\n.globl call_complex\n.type call_complex, @function\ncall_complex:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\nmov %rsp, %rbx\n"
	".cfi_def_cfa_register rbx\nand $-256, %rsp\ncall *%rdi\nmov %rbx, %rsp\n"
	".cfi_def_cfa_register rsp\npop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
	".size call_complex, .-call_complex\n");

static int recurse_some(void)
{
	return recurse(3);
}

static NOINLINE int complex_again(void)
{
	int r = with_alloca(0, 100) + call_complex(recurse_some);

	__asm__ volatile("" : "+r"(r));
	return r;
}

static void frames_by_other_registers(void **state)
{
	(void)state;
	call_complex(complex_again);
	expect_shot();
	assert_int_equal(rows_used(is_complex), 2);
}

/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret: a frame by the book, known to nobody. */
static const uint8_t jit_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static uint8_t *jit;

static NOINLINE int call_jit(void)
{
	int r = ((int (*)(int (*)(void)))(void *)jit)(recurse_some);

	/* snap()'s own ended at the code without tables. */
	shot.n_truth = backtrace(shot.truth, ARRAY_SIZE(shot.truth));
	return r + 1;
}

static void code_of_no_file(void **state)
{
	enum stack_quality quality;
	int n, inner = 6; /* snap, recurse 0 ... 3, recurse_some */

	(void)state;
	jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(jit != MAP_FAILED);
	memcpy(jit, jit_code, sizeof(jit_code));
	assert_int_equal(mprotect(jit, 4096, PROT_READ | PROT_EXEC), 0);
	call_jit();
	n = walk(&shot.capture, &quality);
	assert_int_equal(quality, STACK_GUESSED);
	while (inner > 0 && frames[inner].module)
		inner--;
	assert_true(inner > 0);
	assert_int_equal(frames[inner].offset, (uint64_t)jit + 6);
	assert_int_equal(proc.used[inner].row.kind, ROW_GUESS);
	/* call_jit (at another call of it), its caller and so on: */
	assert_int_equal(n - inner - 1, shot.n_truth);
	memmove(shot.truth + inner + 1, shot.truth, shot.n_truth * sizeof(shot.truth[0]));
	expect_frames(inner + 2, n);

	/* A frame pointer that leads nowhere. */
	shot.capture.ip = (uint64_t)jit + 6;
	shot.capture.rbp = 0;
	assert_int_equal(walk(&shot.capture, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
	shot.capture.rbp = shot.capture.rsp; /* no return address there */
	memset(bytes + (shot.capture.rsp - shot.capture.base) / 8, 0, 16);
	assert_int_equal(walk(&shot.capture, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
	munmap(jit, 4096);
}

/* A file that cannot be read is code without unwind information. */
static struct cfi *get_none(void *ctx, uint32_t module)
{
	(void)ctx;
	(void)module;
	return NULL;
}

static void file_that_cannot_be_read(void **state)
{
	struct unwind_env env = environment();
	enum stack_quality quality;

	(void)state;
	recurse(3);
	env.get_cfi = get_none;
	env.on_row = NULL;
	shot.capture.rbp = 0;
	assert_int_equal(unwind(&env, &shot.capture, frames, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
	expect_frames(1, 1);
	assert_true(frames[0].module != 0);
}

/* -- captures that end early ------------------------------------------------------------------ */

static void every_length(void **state)
{
	enum stack_quality quality;
	size_t len;
	int n, n_before = 0, n_full;

	(void)state;
	with_alloca(6, 17);
	n_full = expect_shot();
	len = shot.capture.len;
	for (shot.capture.len = 0; shot.capture.len < len; shot.capture.len += 8) {
		n = walk(&shot.capture, &quality);
		assert_true(n >= n_before && n <= n_full);
		expect_frames(1, n);
		if (quality == STACK_FULL)
			break;
		assert_int_equal(quality, STACK_CUT);
		assert_true(n < n_full);
		n_before = n;
	}
	assert_int_equal(n, n_full);
}

static void too_deep(void **state)
{
	enum stack_quality quality;

	(void)state;
	recurse(UNWIND_FRAMES_MAX + 40);
	assert_int_equal(walk(&shot.capture, &quality), UNWIND_FRAMES_MAX);
	assert_int_equal(quality, STACK_CUT);
	expect_frames(1, UNWIND_FRAMES_MAX);
}

static void return_address_of_zero(void **state)
{
	static const uint64_t zero[4];
	struct capture c = {.ip = (uint64_t)take_regs + 1,
			    .rsp = 0x1000,
			    .base = 0x1000,
			    .bytes = (const uint8_t *)zero,
			    .len = sizeof(zero)};
	enum stack_quality quality;

	(void)state;
	assert_int_equal(walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_FULL);
	c.len = 7;
	assert_int_equal(walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
	c.base = UINT64_MAX - 3; /* wraps */
	c.rsp = UINT64_MAX - 3;
	assert_int_equal(walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
}

/* Frame pointers in a circle. */
static void no_progress(void **state)
{
	const struct range *r = range_of((uint64_t)take_regs);
	uint64_t loop[4] = {0x1000, r->start + 1, 0x1000, r->start + 1};
	struct range code = {r->start, r->end, 0, 0};
	struct unwind_env env = {.ranges = &code, .n_ranges = 1, .get_cfi = get_none};
	struct capture c = {.ip = r->start + 1,
			    .rsp = 0x1000,
			    .rbp = 0x1000,
			    .base = 0x1000,
			    .bytes = (const uint8_t *)loop,
			    .len = sizeof(loop)};
	enum stack_quality quality;

	(void)state;
	assert_int_equal(unwind(&env, &c, frames, &quality), 2);
	assert_int_equal(quality, STACK_CUT);
	assert_int_equal(frames[1].module, 0);
	assert_int_equal(frames[1].offset, r->start + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion),
		cmocka_unit_test(frames_of_variable_size),
		cmocka_unit_test(overaligned_frames),
		cmocka_unit_test(callback_of_libc),
		cmocka_unit_test(in_a_signal_handler),
		cmocka_unit_test(at_the_first_instruction),
		cmocka_unit_test(on_an_alternate_stack),
		cmocka_unit_test(in_a_thread),
		cmocka_unit_test(frames_by_other_registers),
		cmocka_unit_test(code_of_no_file),
		cmocka_unit_test(file_that_cannot_be_read),
		cmocka_unit_test(every_length),
		cmocka_unit_test(too_deep),
		cmocka_unit_test(return_address_of_zero),
		cmocka_unit_test(no_progress),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
