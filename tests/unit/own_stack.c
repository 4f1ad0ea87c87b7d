#include "own_stack.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define MODULES_MAX 64
#define RAW __attribute__((noinline, no_sanitize("address", "undefined")))

/* -- this process's code -------------------------------------------------------------------- */

struct process {
	struct range ranges[MODULES_MAX * 2];
	size_t n_ranges;
	struct cfi *cfis[MODULES_MAX]; /* [module] */
	uint32_t n_modules;
};

static struct process proc;

struct shot own_shot;
struct frame_ref own_frames[UNWIND_FRAMES_MAX];
struct used own_used[UNWIND_FRAMES_MAX];
int own_n_used;
int (*glibc_backtrace)(void **ret, int n);

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

int own_stack_setup(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	assert_non_null(libc);
	*(void **)&glibc_backtrace = dlsym(libc, "backtrace");
	assert_non_null(glibc_backtrace);
	dl_iterate_phdr(add_module, NULL);
	qsort(proc.ranges, proc.n_ranges, sizeof(proc.ranges[0]), by_start);
	return 0;
}

int own_stack_teardown(void **state)
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
	(void)ctx;
	own_used[own_n_used++] = (struct used){at, *row};
}

const struct range *range_of(uint64_t address)
{
	for (size_t i = 0; i < proc.n_ranges; i++) {
		if (address >= proc.ranges[i].start && address < proc.ranges[i].end)
			return &proc.ranges[i];
	}
	return NULL;
}

struct unwind_env own_environment(void)
{
	return (struct unwind_env){proc.ranges, proc.n_ranges, get_cfi, on_row, &proc};
}

/* -- captures ------------------------------------------------------------------------------- */

__asm__(".text\n.globl take_regs\n.type take_regs, @function\ntake_regs:\n.cfi_startproc\n"
	"mov %rbx, (%rdi)\nmov %rbp, 8(%rdi)\nmov %r12, 16(%rdi)\nmov %r13, 24(%rdi)\n"
	"mov %r14, 32(%rdi)\nmov %r15, 40(%rdi)\nlea 8(%rsp), %rax\nmov %rax, 48(%rdi)\n"
	"mov (%rsp), %rax\nmov %rax, 56(%rdi)\nret\n.cfi_endproc\n.size take_regs, .-take_regs\n");

#define STACK_BYTES (4 << 20)

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

RAW int own_snap(void)
{
	struct capture *c = &own_shot.capture;
	uint64_t regs[8];

	take_regs(regs);
	*c = (struct capture){
		.ip = regs[7],
		.rsp = regs[6],
		.rbp = regs[1],
		.has_registers = true,
		.rbx = regs[0],
		.r12 = regs[2],
		.r13 = regs[3],
		.r14 = regs[4],
		.r15 = regs[5],
		.base = regs[6],
		.bytes = (uint8_t *)bytes,
	};
	if (own_shot.low)
		c->base = MIN(c->base, own_shot.low & ~7ull);
	c->len = MIN(stack_top() - c->base, (uint64_t)STACK_BYTES) & ~7ull;
	copy_words(bytes, (const uint64_t *)c->base, c->len / 8);
	own_shot.n_truth = glibc_backtrace(own_shot.truth, ARRAY_SIZE(own_shot.truth));
	return 1;
}

int own_walk(const struct capture *c, enum stack_quality *quality)
{
	struct unwind_env env = own_environment();
	int n;

	own_n_used = 0;
	n = unwind(&env, c, own_frames, quality);
	assert_int_equal(own_n_used, n);
	for (int i = 0; i < n; i++)
		assert_memory_equal(&own_used[i].at, &own_frames[i], sizeof(own_frames[i]));
	return n;
}

/* backtrace() gives the exact pc after a signal frame, a frame_ref has one more. */
void expect_frames(int from, int n)
{
	for (int i = from; i < n; i++) {
		uint64_t address = (uint64_t)own_shot.truth[i];
		const struct range *r = range_of(address - 1);

		address += i > 0 && own_used[i - 1].row.is_signal;
		assert_non_null(r);
		assert_int_equal(own_frames[i].module, r->module);
		assert_int_equal(own_frames[i].offset, address - r->bias);
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
	struct capture *c = &own_shot.capture;
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
		assert_int_equal(regs.r[16] - r->bias, own_frames[i].offset);
		done = cfi_step(proc.cfis[r->module], r->bias, &regs, read_bytes, c, &is_signal);
		assert_int_equal(done, i < n - 1);
	}
}

void expect_rows_alone(int n)
{
	struct capture *c = &own_shot.capture;
	uint64_t ip = c->ip, base[4] = {0, 0, c->rsp, c->rbp};

	for (int i = 0; i < n; i++) {
		const struct row *row = &own_used[i].row;
		const struct range *r = range_of(ip - 1);

		assert_int_equal(ip - r->bias, own_frames[i].offset);
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

int expect_shot(void)
{
	enum stack_quality quality;
	int n = own_walk(&own_shot.capture, &quality);

	assert_int_equal(quality, STACK_FULL);
	assert_int_equal(n, own_shot.n_truth);
	assert_int_equal(own_used[n - 1].row.kind, ROW_END);
	expect_frames(1, n);
	expect_full_evaluation(n);
	return n;
}
