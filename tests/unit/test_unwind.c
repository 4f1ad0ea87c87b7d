/* Unwinding of captures of the own stack: the same frames as glibc's backtrace(), whatever lies
 * on the stack; what is missing or unknown cuts a stack and never makes frames up. */
#include "own_stack.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

static int rows_used(bool (*is)(const struct row *row))
{
	int n = 0;

	for (int i = 0; i < own_n_used; i++)
		n += is(&own_used[i].row);
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
	int r = depth > 0 ? recurse(depth - 1) : own_snap();

	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

static void recursion(void **state)
{
	(void)state;
	recurse(200);
	assert_true(expect_shot() > 200);
	expect_rows_alone(own_shot.n_truth);
}

static NOINLINE int with_alloca(int depth, size_t n)
{
	char *p = __builtin_alloca(n);
	int r;

	__asm__ volatile("" : : "r"(p) : "memory");
	r = depth > 0 ? with_alloca(depth - 1, n * 3 % 4093 + 1) : own_snap();
	__asm__ volatile("" : "+r"(r) : "r"(p) : "memory");
	return r + 1;
}

static void frames_of_variable_size(void **state)
{
	(void)state;
	with_alloca(50, 17);
	expect_shot();
	assert_true(rows_used(is_by_rbp) >= 50);
	expect_rows_alone(own_shot.n_truth);
}

/* Realigned, of variable size and with arguments on the stack: the CFA is kept in memory. */
static NOINLINE int with_alignment(int depth, size_t n, long a, long b, long c, long d, long e)
{
	_Alignas(64) char aligned[64];
	char *p = __builtin_alloca(n);
	int r;

	__asm__ volatile("" : : "r"(p), "r"(aligned) : "memory");
	r = depth > 0 ? with_alignment(depth - 1, n + 40, b, c, d, e, a) : own_snap();
	__asm__ volatile("" : "+r"(r) : "r"(p), "r"(aligned), "m"(e), "m"(d) : "memory");
	return r + 1;
}

static void overaligned_frames(void **state)
{
	(void)state;
	with_alignment(20, 8, 1, 2, 3, 4, 5);
	expect_shot();
	assert_true(rows_used(is_drap) >= 20);
	expect_rows_alone(own_shot.n_truth);
}

static int compare_at_third(const void *a, const void *b)
{
	static int calls;

	if (++calls == 3)
		own_snap();
	return *(const int *)a - *(const int *)b;
}

static void callback_of_libc(void **state)
{
	int values[] = {4, 3, 2, 1, 9, 8, 7, 6};

	(void)state;
	qsort(values, ARRAY_SIZE(values), sizeof(values[0]), compare_at_third);
	expect_shot();
	expect_rows_alone(own_shot.n_truth);
}

/* -- signals -------------------------------------------------------------------------------- */

static void handler(int sig)
{
	(void)sig;
	own_snap();
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
	own_snap();
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
	expect_rows_alone(own_shot.n_truth);
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

		found |= own_frames[i].module == r->module &&
			 own_frames[i].offset == (uint64_t)trap_first + 1 - r->bias;
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
	own_shot.low = (uint64_t)__builtin_frame_address(0) - 8192;
	raise(SIGUSR1);
	own_shot.low = 0;
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
	assert_true(own_shot.capture.rsp > (uint64_t)stack);
	expect_rows_alone(n);

	/* Without the interrupted stack there is nothing beyond the signal frame. */
	part = own_shot.capture;
	part.bytes += own_shot.capture.rsp - part.base;
	part.base = own_shot.capture.rsp;
	part.len = (uint64_t)stack + sizeof(stack) - part.base;
	n_part = own_walk(&part, &quality);
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
	expect_rows_alone(own_shot.n_truth);
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

	/* own_snap()'s own ended at the code without tables. */
	own_shot.n_truth = glibc_backtrace(own_shot.truth, ARRAY_SIZE(own_shot.truth));
	return r + 1;
}

static void code_of_no_file(void **state)
{
	enum stack_quality quality;
	int n, inner = 6; /* own_snap, recurse 0 ... 3, recurse_some */

	(void)state;
	jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(jit != MAP_FAILED);
	memcpy(jit, jit_code, sizeof(jit_code));
	assert_int_equal(mprotect(jit, 4096, PROT_READ | PROT_EXEC), 0);
	call_jit();
	n = own_walk(&own_shot.capture, &quality);
	assert_int_equal(quality, STACK_GUESSED);
	while (inner > 0 && own_frames[inner].module)
		inner--;
	assert_true(inner > 0);
	assert_int_equal(own_frames[inner].offset, (uint64_t)jit + 6);
	assert_int_equal(own_used[inner].row.kind, ROW_GUESS);
	/* call_jit (at another call of it), its caller and so on: */
	assert_int_equal(n - inner - 1, own_shot.n_truth);
	memmove(own_shot.truth + inner + 1, own_shot.truth,
		own_shot.n_truth * sizeof(own_shot.truth[0]));
	expect_frames(inner + 2, n);

	/* 0 marks a thread's first frame; other frame pointers that lead nowhere mark none. */
	own_shot.capture.ip = (uint64_t)jit + 6;
	own_shot.capture.rbp = 0;
	assert_int_equal(own_walk(&own_shot.capture, &quality), 1);
	assert_int_equal(quality, STACK_GUESSED);
	own_shot.capture.rbp = own_shot.capture.rsp; /* no return address there */
	memset((uint8_t *)own_shot.capture.bytes + (own_shot.capture.rsp - own_shot.capture.base),
	       0, 16);
	assert_int_equal(own_walk(&own_shot.capture, &quality), 1);
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
	struct unwind_env env = own_environment();
	enum stack_quality quality;

	(void)state;
	recurse(3);
	env.get_cfi = get_none;
	env.on_row = NULL;
	own_shot.capture.rbp = 0;
	assert_int_equal(unwind(&env, &own_shot.capture, own_frames, &quality), 1);
	assert_int_equal(quality, STACK_GUESSED);
	expect_frames(1, 1);
	assert_true(own_frames[0].module != 0);
	own_shot.capture.rbp = 8; /* leads nowhere */
	assert_int_equal(unwind(&env, &own_shot.capture, own_frames, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
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
	len = own_shot.capture.len;
	for (own_shot.capture.len = 0; own_shot.capture.len < len; own_shot.capture.len += 8) {
		n = own_walk(&own_shot.capture, &quality);
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
	assert_int_equal(own_walk(&own_shot.capture, &quality), UNWIND_FRAMES_MAX);
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
	assert_int_equal(own_walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_FULL);
	c.len = 7;
	assert_int_equal(own_walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
	c.base = UINT64_MAX - 3; /* wraps */
	c.rsp = UINT64_MAX - 3;
	assert_int_equal(own_walk(&c, &quality), 1);
	assert_int_equal(quality, STACK_CUT);
}

/* void by_rbp(void): a frame that is found by rbp. */
void by_rbp(void);
__asm__(".text\n.globl by_rbp\n.type by_rbp, @function\nby_rbp:\n.cfi_startproc\n"
	".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\nnop\nret\n.cfi_endproc\n"
	".size by_rbp, .-by_rbp\n");

/* Frame pointers in a circle, first by rows, then by guess. */
static void no_progress(void **state)
{
	const struct range *r = range_of((uint64_t)take_regs);
	uint64_t loop[4] = {0x1000, 0, 0x1000, 0};
	struct range code = {r->start, r->end, 0, 0};
	struct unwind_env env = {.ranges = &code, .n_ranges = 1, .get_cfi = get_none};
	struct capture c = {.rsp = 0x1000,
			    .rbp = 0x1000,
			    .base = 0x1000,
			    .bytes = (const uint8_t *)loop,
			    .len = sizeof(loop)};
	enum stack_quality quality;

	(void)state;
	c.ip = loop[1] = loop[3] = (uint64_t)by_rbp + 1;
	assert_int_equal(own_walk(&c, &quality), 2);
	assert_int_equal(quality, STACK_CUT);
	c.ip = loop[1] = loop[3] = r->start + 1;
	assert_int_equal(unwind(&env, &c, own_frames, &quality), 2);
	assert_int_equal(quality, STACK_CUT);
	assert_int_equal(own_frames[1].module, 0);
	assert_int_equal(own_frames[1].offset, r->start + 1);
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

	return cmocka_run_group_tests(tests, own_stack_setup, own_stack_teardown);
}
