/* The second opinion on stacks of this process: the frames of glibc's backtrace() are right, and
 * whatever is changed in them is noticed; what ends early is not judged. */
#include "own_stack.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cmocka.h>

#include "tracer/check.h"

#define RANGES_MAX 128
#define VDSO_ID 1 /* the first module that there is */

static struct modules *modules;
static struct check *check;
static struct range ranges[RANGES_MAX];
static size_t n_ranges;

/* What backtrace() says of `own_shot`, as frames of these modules. */
static struct frame_ref frames[UNWIND_FRAMES_MAX + 1];
static uint32_t n_frames;

/* -- this process's code, as modules --------------------------------------------------------- */

static int add_ranges(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	uint32_t module = VDSO_ID;

	(void)size;
	(void)ctx;
	if (!strstr(path, "vdso")) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		struct module_file *m = modules_add(modules, fd, path, false);

		assert_non_null(m);
		module = m->m.id;
		close(fd);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		assert_true(n_ranges < RANGES_MAX);
		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			ranges[n_ranges++] =
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
	struct err err;

	own_stack_setup(state);
	assert_int_equal(modules_new(&modules, &err), 0);
	assert_non_null(modules_get(modules, VDSO_ID));
	assert_string_equal(modules_get(modules, VDSO_ID)->m.path, "[vdso]");
	dl_iterate_phdr(add_ranges, NULL);
	qsort(ranges, n_ranges, sizeof(ranges[0]), by_start);
	assert_int_equal(check_new(&check, modules, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	check_free(check);
	modules_free(modules);
	return own_stack_teardown(state);
}

static struct frame_ref ref_of(uint64_t address)
{
	for (size_t i = 0; i < n_ranges; i++) {
		if (address > ranges[i].start && address <= ranges[i].end)
			return (struct frame_ref){ranges[i].module, address - ranges[i].bias};
	}
	fail_msg("no code at %#lx", (unsigned long)address);
	return (struct frame_ref){0};
}

/* Level 0 of the truth is at another call of own_snap(). */
static void take_truth(void)
{
	n_frames = (uint32_t)expect_shot(); /* tells where the signal frames are, too */
	frames[0] = ref_of(own_shot.capture.ip);
	for (uint32_t i = 1; i < n_frames; i++)
		frames[i] = ref_of((uint64_t)own_shot.truth[i] + own_used[i - 1].row.is_signal);
}

static enum check_verdict verdict_in(const struct range *r)
{
	return check_stack(check, r, n_ranges, &own_shot.capture, frames, n_frames, STACK_FULL);
}

static enum check_verdict verdict(void)
{
	return verdict_in(ranges);
}

/* Every way of being wrong, at every level. */
static void expect_noticed(void)
{
	uint32_t n = n_frames;

	for (uint32_t i = 0; i < n; i++) {
		frames[i].offset++;
		assert_int_equal(verdict(), CHECK_DIFFERENT);
		frames[i].offset--;
		frames[i].module++;
		assert_int_equal(verdict(), CHECK_DIFFERENT);
		frames[i].module--;
	}
	for (uint32_t i = 0; i + 1 < n; i++) {
		struct frame_ref one = frames[i], two = frames[i + 1];

		if (one.module == two.module && one.offset == two.offset)
			continue;
		frames[i] = two;
		frames[i + 1] = one;
		assert_int_equal(verdict(), CHECK_DIFFERENT);
		frames[i] = one;
		frames[i + 1] = two;
	}
	for (uint32_t i = 0; i < n; i++) { /* one is missing, from the last one on */
		struct frame_ref last = frames[n - 1];

		n_frames = n - 1;
		memmove(&frames[n - 1 - i], &frames[n - i], i * sizeof(frames[0]));
		assert_int_equal(verdict(), CHECK_DIFFERENT);
		take_truth();
		assert_memory_equal(&frames[n - 1], &last, sizeof(last));
	}
	frames[n] = frames[n - 1]; /* one too many */
	n_frames = n + 1;
	assert_int_equal(verdict(), CHECK_DIFFERENT);
	n_frames = n;
	assert_int_equal(verdict(), CHECK_EQUAL);
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
	take_truth();
	assert_true(n_frames > 200);
	assert_int_equal(verdict(), CHECK_EQUAL);
	recurse(3);
	take_truth();
	expect_noticed();
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
	with_alloca(10, 17);
	take_truth();
	expect_noticed();
}

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
	with_alignment(5, 8, 1, 2, 3, 4, 5);
	take_truth();
	expect_noticed();
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
	take_truth();
	expect_noticed();
}

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
	take_truth();
	expect_noticed();
}

/* -- signals -------------------------------------------------------------------------------- */

/* The interrupted instruction is the first of its function: the byte before it is another's. */
void trap_first(void);
__asm__(".text\nnop\n.globl trap_first\n.type trap_first, @function\ntrap_first:\n.cfi_startproc\n"
	"ud2\nret\n.cfi_endproc\n.size trap_first, .-trap_first\n");

static void skip_ud2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	recurse(1);
	uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static int find_frame(struct frame_ref ref)
{
	for (uint32_t i = 0; i < n_frames; i++) {
		if (frames[i].module == ref.module && frames[i].offset == ref.offset)
			return (int)i;
	}
	return -1;
}

static void in_a_signal_handler(void **state)
{
	struct sigaction sa = {.sa_sigaction = skip_ud2, .sa_flags = SA_SIGINFO}, old;

	(void)state;
	sigaction(SIGILL, &sa, &old);
	trap_first();
	sigaction(SIGILL, &old, NULL);
	take_truth();
	assert_true(find_frame(ref_of((uint64_t)trap_first + 1)) > 3);
	expect_noticed();
}

/* Steps into the vdso and takes the stack there. */
static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	static int n_inside;

	(void)sig;
	(void)info;
	for (size_t i = 0; i < n_ranges; i++) {
		if (ranges[i].module == VDSO_ID && pc >= ranges[i].start && pc < ranges[i].end)
			n_inside++;
	}
	if (n_inside == 4) {
		recurse(1);
		uc->uc_mcontext.gregs[REG_EFL] &= ~INT64_C(0x100);
	}
}

static void in_the_vdso(void **state)
{
	struct sigaction sa = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, old;
	struct timespec t;
	uint32_t n_vdso = 0;

	(void)state;
	own_shot.n_truth = 0;
	sigaction(SIGTRAP, &sa, &old);
	__asm__ volatile("lea -128(%%rsp), %%rsp\npushfq\norq $0x100, (%%rsp)\npopfq\n"
			 "lea 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
	clock_gettime(CLOCK_MONOTONIC, &t);
	sigaction(SIGTRAP, &old, NULL);
	if (own_shot.n_truth == 0) {
		print_message("clock_gettime() is not in the vdso here\n");
		skip();
	}
	take_truth();
	for (uint32_t i = 0; i < n_frames; i++)
		n_vdso += frames[i].module == VDSO_ID;
	assert_true(n_vdso > 0);
	expect_noticed();
}

/* -- what is not judged ----------------------------------------------------------------------- */

static void bytes_that_end(void **state)
{
	uint32_t n_wrong;
	size_t len;

	(void)state;
	with_alloca(6, 17);
	take_truth();
	len = own_shot.capture.len;
	own_shot.capture.len = 0;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
	while (own_shot.capture.len < len && verdict() == CHECK_UNDECIDED)
		own_shot.capture.len += 8;
	assert_int_equal(verdict(), CHECK_EQUAL);

	/* A word less: the last frame is not seen, the one before is. */
	own_shot.capture.len -= 8;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
	n_wrong = n_frames - 1;
	frames[n_wrong].offset++;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
	frames[n_wrong].offset--;
	frames[n_wrong - 1].offset++;
	assert_int_equal(verdict(), CHECK_DIFFERENT);
	/* A stack that ends there may do so by mistake. */
	frames[n_wrong - 1].offset--;
	n_frames--;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
}

static void other_qualities(void **state)
{
	static const enum stack_quality other[] = {STACK_CUT, STACK_GUESSED, STACK_NONE};

	(void)state;
	recurse(3);
	take_truth();
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_int_equal(check_stack(check, ranges, n_ranges, &own_shot.capture, frames,
					     n_frames, other[i]),
				 CHECK_UNDECIDED);
	assert_int_equal(
		check_stack(check, ranges, 0, &own_shot.capture, frames, n_frames, STACK_FULL),
		CHECK_UNDECIDED);
}

/* A file that is no ELF, or that is not known, ends the walk and is no difference. */
static void file_that_cannot_be_read(void **state)
{
	static const char text[] = "no ELF file";
	int fd = memfd_create("text", MFD_CLOEXEC);
	struct module_file *m;
	uint32_t libc;

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	m = modules_add(modules, fd, "text", false);
	assert_non_null(m);
	close(fd);
	recurse(3);
	take_truth();
	libc = frames[n_frames - 2].module; /* __libc_start_main */
	assert_true(libc != frames[0].module);
	for (int i = 0; i < 2; i++) {
		uint32_t other = i == 0 ? m->m.id : 60000;
		struct range changed[RANGES_MAX];

		memcpy(changed, ranges, sizeof(ranges));
		for (size_t j = 0; j < n_ranges; j++)
			changed[j].module = changed[j].module == libc ? other : changed[j].module;
		for (uint32_t j = 0; j < n_frames; j++)
			frames[j].module = frames[j].module == libc ? other : frames[j].module;
		assert_int_equal(verdict_in(changed), CHECK_UNDECIDED);
		frames[0].offset++;
		assert_int_equal(verdict_in(changed), CHECK_DIFFERENT);
		take_truth();
	}
	assert_int_equal(verdict(), CHECK_EQUAL);
}

/* int call_by_rbx(int (*fn)(void)): its CFA is in rbx. */
int call_by_rbx(int (*fn)(void));
void after_call(void);
__asm__(".text\n.globl call_by_rbx\n.type call_by_rbx, @function\ncall_by_rbx:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\nmov %rsp, %rbx\n"
	".cfi_def_cfa_register rbx\nand $-256, %rsp\ncall *%rdi\n"
	".globl after_call\nafter_call:\nmov %rbx, %rsp\n"
	".cfi_def_cfa_register rsp\npop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
	".size call_by_rbx, .-call_by_rbx\n");

static int recurse_some(void)
{
	return recurse(3);
}

/* The first frame's call is the last instruction of its function; the next one has other rules,
 * and a return address in it is the end. */
void no_way_on(void);
__asm__(".text\n.type last_call, @function\nlast_call:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\ncall *%rdi\n.cfi_endproc\n"
	".size last_call, .-last_call\n"
	".globl no_way_on\n.type no_way_on, @function\nno_way_on:\n.cfi_startproc\n"
	".cfi_undefined rip\nnop\nnop\n.cfi_endproc\n.size no_way_on, .-no_way_on\n");

/* A stack by hand: the frame that the return address ip is in, then the first one. */
static void make_capture(uint64_t ip, const uint64_t *words, size_t n)
{
	own_shot.capture = (struct capture){.ip = ip,
					    .rsp = 0x1000,
					    .base = 0x1000,
					    .bytes = (const uint8_t *)words,
					    .len = n * sizeof(*words)};
	frames[0] = ref_of(ip);
	frames[1] = frames[2] = ref_of((uint64_t)no_way_on + 1);
	n_frames = 2;
}

/* libdwfl 0.188 loses rbx on the way where a function does not save it. */
static void frame_by_rbx(void **state)
{
	const uint64_t words[] = {0, 0, 0, (uint64_t)no_way_on + 1};
	struct capture *c = &own_shot.capture;

	(void)state;
	call_by_rbx(recurse_some);
	take_truth();
	assert_int_not_equal(verdict(), CHECK_DIFFERENT);
	frames[1].offset++;
	assert_int_equal(verdict(), CHECK_DIFFERENT);

	make_capture((uint64_t)after_call, words, ARRAY_SIZE(words));
	c->rbx = c->base + 16;
	c->has_registers = true;
	assert_int_equal(verdict(), CHECK_EQUAL);
	c->has_registers = false;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
}

static void call_at_the_end_of_a_function(void **state)
{
	const uint64_t words[] = {0, (uint64_t)no_way_on + 1};

	(void)state;
	make_capture((uint64_t)no_way_on, words, ARRAY_SIZE(words));
	assert_int_equal(verdict(), CHECK_EQUAL);
	n_frames = 3;
	assert_int_equal(verdict(), CHECK_DIFFERENT);
	n_frames = 1;
	assert_int_equal(verdict(), CHECK_DIFFERENT);
}

void without_rules(void);
__asm__(".text\n.globl without_rules\n.type without_rules, @function\nwithout_rules:\n"
	"nop\nret\n.size without_rules, .-without_rules\n");

/* A guess by rbp would find another frame than expected. */
static void code_without_rules(void **state)
{
	const uint64_t words[] = {0, 0, 0, (uint64_t)without_rules + 1};
	struct capture *c = &own_shot.capture;

	(void)state;
	make_capture((uint64_t)without_rules + 1, words, ARRAY_SIZE(words));
	c->rbp = c->base + 16;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
}

/* A return address of 0 ends a stack as well; whether one that libdwfl cannot find is 0 is not
 * known. */
static void return_address_of_zero(void **state)
{
	const uint64_t words[] = {0, 0};

	(void)state;
	make_capture((uint64_t)no_way_on, words, ARRAY_SIZE(words));
	assert_int_equal(verdict(), CHECK_UNDECIDED); /* one frame too many */
	n_frames = 1;
	assert_int_equal(verdict(), CHECK_EQUAL);
	own_shot.capture.len -= 8;
	assert_int_equal(verdict(), CHECK_UNDECIDED);
}

/* -- many processes, many files ------------------------------------------------------------------
 */

/* The same stack as if the process had been loaded elsewhere. */
static void many_processes(void **state)
{
	struct range moved[RANGES_MAX];
	struct capture c;

	(void)state;
	recurse(3);
	take_truth();
	for (uint64_t round = 0; round < 40; round++) {
		uint64_t by = (round % 7 - 3) << 30;
		_cleanup_free_ uint64_t *words = malloc(own_shot.capture.len);

		c = own_shot.capture;
		memcpy(moved, ranges, sizeof(ranges));
		memcpy(words, c.bytes, c.len);
		c.bytes = (const uint8_t *)words;
		c.ip += by;
		for (size_t i = 0; i < n_ranges; i++) {
			moved[i].start += by;
			moved[i].end += by;
			moved[i].bias += by;
		}
		for (size_t i = 0; i < c.len / 8; i++) {
			if (range_of(words[i]))
				words[i] += by;
		}
		assert_int_equal(
			check_stack(check, moved, n_ranges, &c, frames, n_frames, STACK_FULL),
			CHECK_EQUAL);
		assert_int_equal(
			check_stack(check, moved, n_ranges, &c, frames, n_frames - 1, STACK_FULL),
			CHECK_DIFFERENT);
		if (by)
			assert_int_equal(check_stack(check, ranges, n_ranges, &c, frames, n_frames,
						     STACK_FULL),
					 CHECK_DIFFERENT);
	}
}

/* Each process with a copy of its own of a file that is not on the stack. */
static void many_files(void **state)
{
	static uint8_t part[16384];
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct range more[RANGES_MAX];

	(void)state;
	assert_int_equal(read(exe, part, sizeof(part)), sizeof(part));
	close(exe);
	recurse(3);
	take_truth();
	for (uint64_t i = 0; i < 300; i++) {
		int fd = memfd_create("copy", MFD_CLOEXEC);
		struct module_file *m;

		assert_int_equal(write(fd, part, sizeof(part)), sizeof(part));
		m = modules_add(modules, fd, "copy", false);
		assert_non_null(m);
		close(fd);
		more[0] = (struct range){0x10001000, 0x10002000, 0x10000000, m->m.id};
		memcpy(more + 1, ranges, n_ranges * sizeof(ranges[0]));
		assert_int_equal(check_stack(check, more, n_ranges + 1, &own_shot.capture, frames,
					     n_frames, STACK_FULL),
				 CHECK_EQUAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion),
		cmocka_unit_test(frames_of_variable_size),
		cmocka_unit_test(overaligned_frames),
		cmocka_unit_test(callback_of_libc),
		cmocka_unit_test(in_a_thread),
		cmocka_unit_test(in_a_signal_handler),
		cmocka_unit_test(in_the_vdso),
		cmocka_unit_test(bytes_that_end),
		cmocka_unit_test(other_qualities),
		cmocka_unit_test(file_that_cannot_be_read),
		cmocka_unit_test(frame_by_rbx),
		cmocka_unit_test(call_at_the_end_of_a_function),
		cmocka_unit_test(code_without_rules),
		cmocka_unit_test(return_address_of_zero),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(many_files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
