/* Unwind rows: those of real files as readelf prints them, and rules of every kind written by
 * hand. */
#include "tracer/cfi.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fake.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

static struct cfi *open_fd(int fd, const char *name)
{
	struct err err = {0};
	struct cfi *c = NULL;

	assert_true(fd >= 0);
	if (cfi_open(&c, fd, name, &err) < 0)
		fail_msg("%s", err.msg);
	close(fd); /* it was borrowed for the call only */
	return c;
}

static struct cfi *open_file(const char *path)
{
	return open_fd(open(path, O_RDONLY | O_CLOEXEC), path);
}

static FILE *run(const char *fmt, ...) _printf_(1, 2);
static FILE *run(const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	f = popen(command, "re");
	assert_non_null(f);
	return f;
}

static void sh(const char *fmt, ...) _printf_(1, 2);
static void sh(const char *fmt, ...)
{
	char command[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

/* -- readelf's tables ----------------------------------------------------------------------- */

struct agreement {
	int rows;    /* compared, each at its first and last byte */
	int complex; /* of these: not to be put into a row */
	int expr;    /* not compared: readelf does not print expressions */
	int wrong;
};

/* "rsp+16", "c-8", "u" */
static bool cell(const char *text, const char *base, long *off)
{
	size_t n = strlen(base);
	int end = 0;

	return strncmp(text, base, n) == 0 && sscanf(text + n, "%ld%n", off, &end) == 1 &&
	       text[n + end] == '\0';
}

static bool is_row(const struct row *row, const char *cfa, const char *rbp, const char *ra)
{
	u8 base = cell(cfa, "rsp", &(long){0}) ? ROW_RSP : ROW_RBP;
	long cfa_off, rbp_off = 0, ra_off;

	if (strcmp(ra, "u") == 0)
		return row->kind == ROW_END;
	if (!cell(cfa, "rsp", &cfa_off) && !cell(cfa, "rbp", &cfa_off))
		return row->kind == ROW_COMPLEX;
	if (!cell(ra, "c", &ra_off))
		return row->kind == ROW_COMPLEX;
	if (strcmp(rbp, "u") != 0 && !cell(rbp, "c", &rbp_off))
		return row->kind == ROW_COMPLEX;
	return row->kind == ROW_CFI && !row->is_signal && row->cfa_base == base &&
	       !row->cfa_deref && row->cfa_off == cfa_off && row->ra_base == ROW_CFA &&
	       row->ra_off == ra_off && row->rbp_base == (rbp_off ? ROW_CFA : ROW_NONE) &&
	       row->rbp_off == rbp_off;
}

struct line {
	uint64_t address;
	char cfa[32], rbp[32], ra[32];
};

static void compare(struct cfi *c, const struct line *line, uint64_t end, struct agreement *a)
{
	const uint64_t at[] = {line->address, end - 1};

	if (line->address >= end)
		return;
	if (strstr(line->cfa, "exp") || strstr(line->rbp, "exp") || strstr(line->ra, "exp")) {
		a->expr++;
		return;
	}
	a->rows++;
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		struct row row = cfi_row(c, at[i] + 1);

		a->complex += i == 0 && row.kind == ROW_COMPLEX;
		if (is_row(&row, line->cfa, line->rbp, line->ra))
			continue;
		a->wrong++;
		print_message("# at %#lx: kind %d, readelf: %s rbp %s ra %s\n", at[i], row.kind,
			      line->cfa, line->rbp, line->ra);
	}
}

/* Columns of the table whose head is text: which ones are rbp and ra; -1 = none. */
static void head(char *text, int *rbp, int *ra)
{
	int i = 0;

	*rbp = *ra = -1;
	for (char *save, *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		if (strcmp(w, "rbp") == 0)
			*rbp = i;
		if (strcmp(w, "ra") == 0)
			*ra = i;
		i++;
	}
}

static void body(char *text, int rbp, int ra, struct line *ret)
{
	int i = 0;

	*ret = (struct line){.rbp = "u", .ra = "u"};
	for (char *save, *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		if (w[0] == '(') /* "r10 (r10)": a register's name */
			continue;
		if (i == 0)
			assert_int_equal(sscanf(w, "%lx", &ret->address), 1);
		if (i == 1)
			(void)snprintf(ret->cfa, sizeof(ret->cfa), "%s", w);
		if (i == rbp)
			(void)snprintf(ret->rbp, sizeof(ret->rbp), "%s", w);
		if (i == ra)
			(void)snprintf(ret->ra, sizeof(ret->ra), "%s", w);
		i++;
	}
}

/* Every row of every FDE that readelf prints for the file. */
static struct agreement agree(struct cfi *c, const char *path)
{
	FILE *f = run("readelf -wFN %s", path);
	struct agreement a = {0};
	struct line last = {0};
	uint64_t end = 0;
	char text[512];
	int rbp = -1, ra = -1;
	bool in_table = false, in_fde = false;

	while (fgets(text, sizeof(text), f)) {
		char *pc = strstr(text, " pc=");

		if (strstr(text, " FDE ") && pc) {
			in_fde = sscanf(pc, " pc=%*x..%lx", &end) == 1;
		} else if (strstr(text, " CIE ")) {
			in_fde = false;
		} else if (strstr(text, "   LOC ") == text) {
			head(text, &rbp, &ra);
			in_table = in_fde;
			last.address = UINT64_MAX;
		} else if (text[0] == '\n') {
			if (in_table)
				compare(c, &last, end, &a);
			in_table = false;
		} else if (in_table) {
			struct line line;

			body(text, rbp, ra, &line);
			compare(c, &last, line.address, &a);
			last = line;
		}
	}
	assert_int_equal(pclose(f), 0);
	print_message("# %s: %d rows compared, %d complex, %d wrong; %d expressions\n", path,
		      a.rows, a.complex, a.wrong, a.expr);
	return a;
}

static void libc(void **state)
{
	struct cfi *c = open_file(LIBC);
	struct agreement a = agree(c, LIBC);

	(void)state;
	assert_int_equal(a.wrong, 0);
	assert_true(a.rows > 10000);
	assert_true(a.complex < a.rows / 100);
	a = agree(c, LIBC); /* from the cache */
	assert_int_equal(a.wrong, 0);
	cfi_close(c);
}

static void dynamic_linker(void **state)
{
	static const char path[] = "/lib64/ld-linux-x86-64.so.2";
	struct cfi *c = open_file(path);
	struct agreement a = agree(c, path);

	(void)state;
	assert_int_equal(a.wrong, 0);
	assert_true(a.rows > 1000);
	assert_true(a.complex > 0); /* _dl_runtime_resolve: CFA by rbx */
	cfi_close(c);
}

static void vdso(void **state)
{
	const Elf64_Ehdr *ehdr = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", 0);
	struct agreement a;
	struct cfi *c;
	char path[64];
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	if (!ehdr) {
		print_message("# this kernel gives no vdso\n");
		skip();
	}
	len = ehdr->e_shoff + ehdr->e_shnum * sizeof(Elf64_Shdr);
	assert_int_equal(write(fd, ehdr, len), len);
	c = open_fd(dup(fd), "[vdso]");
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	a = agree(c, path);
	assert_int_equal(a.wrong, 0);
	assert_true(a.rows > 10);
	cfi_close(c);
	close(fd);
}

/* After the entry's push, that is from its byte 11 on, the CFA is 8 further. */
static void procedure_linkage_table(void **state)
{
	struct cfi *c = open_file(LIBC);
	FILE *f = run("readelf -SW %s", LIBC);
	uint64_t plt = 0, len = 0;
	char text[512];
	int n = 0;

	(void)state;
	while (fgets(text, sizeof(text), f)) {
		char *at = strstr(text, " .plt ");

		if (at)
			(void)sscanf(at, " .plt PROGBITS %lx %*x %lx", &plt, &len);
	}
	pclose(f);
	assert_true(plt > 0 && len > 32);
	for (uint64_t pc = plt + 16; pc < plt + len; pc++, n++) {
		struct row row = cfi_row(c, pc + 1), want = {.kind = ROW_CFI,
							     .cfa_base = ROW_RSP,
							     .cfa_off = (pc & 15) >= 11 ? 16 : 8,
							     .ra_base = ROW_CFA,
							     .ra_off = -8};

		assert_memory_equal(&row, &want, sizeof(row));
	}
	assert_true(n > 100);
	cfi_close(c);
}

/* -- files made here ------------------------------------------------------------------------ */

/* One byte of code for each rule, in this order. */
static const char rules_s[] =
	".text\n.cfi_startproc simple\n"
	".cfi_def_cfa rsp, 8\n.cfi_offset rip, -8\nnop\n" /* 0: rbp not mentioned */
	".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\nnop\n"
	".cfi_escape 0x0f,3,0x76,0x78,0x06\n"                /* CFA = *(rbp - 8) */
	".cfi_escape 0x10,6,2,0x76,0\nnop\n"                 /* 2: rbp at rbp + 0 */
	".cfi_def_cfa rbx, 24\nnop\n"                        /* 3 */
	".cfi_def_cfa rsp, 8\n.cfi_register rbp, r11\nnop\n" /* 4 */
	".cfi_same_value rbp\n.cfi_register rip, rcx\nnop\n" /* 5: as after syscall */
	".cfi_offset rip, -24\nnop\n"                        /* 6 */
	".cfi_escape 0x10,16,3,0x77,0xd0,0\nnop\n"           /* 7: return address at rsp + 80 */
	".cfi_offset rip, -8\n.cfi_escape 0x16,7,2,0x77,0x18\nnop\n" /* 8: rsp = rsp + 24 */
	".cfi_escape 0x16,7,2,0x77,0x08\nnop\n" /* 9: rsp = rsp + 8, which is the CFA */
	".cfi_undefined rip\nnop\n"             /* 10 */
	".cfi_endproc\n"
	/* A signal frame as glibc's __restore_rt has it. */
	".cfi_startproc simple\n.cfi_signal_frame\n"
	".cfi_escape 0x0f,4,0x77,0xa0,0x01,0x06\n" /* CFA = *(rsp + 160) */
	".cfi_escape 0x10,6,3,0x77,0xf8,0\n"       /* rbp at rsp + 120 */
	".cfi_escape 0x10,7,3,0x77,0xa0,0x01\n"    /* rsp at rsp + 160 */
	".cfi_escape 0x10,16,3,0x77,0xa8,0x01\n"   /* rip at rsp + 168 */
	"nop\n"                                    /* 11 */
	".cfi_endproc\n"
	".cfi_startproc\n.cfi_def_cfa_register rbp\nnop\n.cfi_endproc\n" /* 12 */
	"nop\n";                                                         /* 13: nothing said */

static const struct row rules[] = {
	{ROW_CFI, ROW_RSP, 0, 0, ROW_CFA, ROW_NONE, {0}, 8, -8, 0},
	{ROW_CFI, ROW_RBP, 0, 0, ROW_CFA, ROW_CFA, {0}, 16, -8, -16},
	{ROW_CFI, ROW_RBP, 1, 0, ROW_CFA, ROW_RBP, {0}, -8, -8, 0},
	{.kind = ROW_COMPLEX},
	{.kind = ROW_COMPLEX},
	{.kind = ROW_COMPLEX},
	{ROW_CFI, ROW_RSP, 0, 0, ROW_CFA, ROW_NONE, {0}, 8, -24, 0},
	{ROW_CFI, ROW_RSP, 0, 0, ROW_RSP, ROW_NONE, {0}, 8, 80, 0},
	{.kind = ROW_COMPLEX},
	{ROW_CFI, ROW_RSP, 0, 0, ROW_CFA, ROW_NONE, {0}, 8, -8, 0},
	{.kind = ROW_END},
	{ROW_CFI, ROW_RSP, 1, 1, ROW_RSP, ROW_RSP, {0}, 160, 168, 120},
	{ROW_CFI, ROW_RBP, 0, 0, ROW_CFA, ROW_NONE, {0}, 8, -8, 0},
	{.kind = ROW_GUESS},
};

static int setup(void **state)
{
	*state = fake_new();
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

/* Built into `out`; the address of its .text. */
static uint64_t build(struct fake *f, const char *text, const char *flags, const char *out)
{
	const char *dir = fake_path(f);
	uint64_t address = 0;
	char line[512];
	FILE *p;

	fake_file(f, "/in.s", text);
	sh("cc -shared -nostdlib %s -o %s/%s %s/in.s", flags, dir, out, dir);
	p = run("readelf -SW %s/%s", dir, out);
	while (fgets(line, sizeof(line), p)) {
		char *at = strstr(line, " .text ");

		if (at)
			(void)sscanf(at, " .text PROGBITS %lx", &address);
	}
	pclose(p);
	assert_true(address > 0);
	return address;
}

static struct cfi *open_in(struct fake *f, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fake_path(f), name);
	return open_file(path);
}

static void expect_rules(struct cfi *c, uint64_t text)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct row row = cfi_row(c, text + i + 1);

		assert_memory_equal(&row, &rules[i], sizeof(row));
	}
}

static void every_kind_of_rule(void **state)
{
	uint64_t text = build(*state, rules_s, "", "rules.so");
	struct cfi *c = open_in(*state, "rules.so");

	expect_rules(c, text);
	expect_rules(c, text); /* from the cache */
	assert_int_equal(cfi_row(c, 0).kind, ROW_GUESS);
	assert_int_equal(cfi_row(c, 1).kind, ROW_GUESS);
	assert_int_equal(cfi_row(c, UINT64_MAX).kind, ROW_GUESS);
	cfi_close(c);
}

static bool read_table(void *ctx, uint64_t address, uint64_t *ret)
{
	const uint64_t *words = ctx; /* at 0x1000, 32 of them */

	if (address < 0x1000 || address >= 0x1000 + 32 * 8 || address % 8 != 0)
		return false;
	*ret = words[(address - 0x1000) / 8];
	return true;
}

static void full_evaluation(void **state)
{
	const uint64_t bias = 0x7f0000000000;
	uint64_t text = bias + build(*state, rules_s, "", "rules.so"), words[32];
	struct cfi *c = open_in(*state, "rules.so");
	struct cfi_regs regs;
	bool is_signal;

	for (int i = 0; i < 32; i++)
		words[i] = 100 + i;
	/* CFA = rbx + 24; rip at CFA - 8, rbp at rbp + 0. */
	regs = (struct cfi_regs){.known = 1 << 16 | 1 << 3 | 1 << 6 | 1 << 12};
	regs.r[16] = text + 3 + 1;
	regs.r[3] = 0x1010;
	regs.r[6] = 0x1008;
	regs.r[12] = 12;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), 1);
	assert_false(is_signal);
	assert_int_equal(regs.r[16], 104);
	assert_int_equal(regs.r[7], 0x1028);
	assert_int_equal(regs.r[6], 101);
	assert_int_equal(regs.r[3], 0x1010);
	assert_int_equal(regs.r[12], 12);
	assert_int_equal(regs.known & 0xf0c8, 1 << 3 | 1 << 6 | 1 << 7 | 1 << 12);

	/* The signal frame at rsp = 0x1000 - 64: rip at 0x1068, rsp at 0x1060, rbp at 0x1038. */
	regs = (struct cfi_regs){.known = 1 << 16 | 1 << 7};
	regs.r[16] = text + 11 + 1;
	regs.r[7] = 0x1000 - 64;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), 1);
	assert_true(is_signal);
	assert_int_equal(regs.r[16], 113);
	assert_int_equal(regs.r[7], 112);
	assert_int_equal(regs.r[6], 107);

	/* rbx not known; no memory at the CFA; the first frame; nothing said. */
	regs = (struct cfi_regs){.known = 1 << 16 | 1 << 7};
	regs.r[16] = text + 3 + 1;
	regs.r[7] = 0x1000;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), -ENODATA);
	regs.r[16] = text + 0 + 1;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), 1);
	regs.r[7] = 0x2000;
	regs.r[16] = text + 0 + 1;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), -ENODATA);
	regs.r[16] = text + 10 + 1;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), 0);
	regs.r[16] = text + 13 + 1;
	assert_int_equal(cfi_step(c, bias, &regs, read_table, words, &is_signal), -ENODATA);
	cfi_close(c);
}

/* In .debug_frame alone, plain and compressed, beside debug information that is of no interest. */
static void tables_for_the_debugger_only(void **state)
{
	static const char *const flags[] = {"", "-Wl,--compress-debug-sections=zlib"};
	static const char more[] = ".rept 100\n.cfi_startproc\nnop\n.cfi_endproc\n.endr\n"
				   ".section .debug_info,\"\",@progbits\n.zero 4096\n";
	char text[sizeof(rules_s) + 256];

	(void)snprintf(text, sizeof(text), ".cfi_sections .debug_frame\n%s%s", rules_s, more);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		uint64_t at = build(*state, text, flags[i], "debug.so");
		struct cfi *c = open_in(*state, "debug.so");

		expect_rules(c, at);
		cfi_close(c);
	}
}

static void without_section_headers(void **state)
{
	uint64_t text = build(*state, rules_s, "", "bare.so");
	Elf64_Ehdr ehdr;
	struct cfi *c;
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/bare.so", fake_path(*state));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &ehdr, sizeof(ehdr), 0), sizeof(ehdr));
	assert_int_equal(ftruncate(fd, ehdr.e_shoff), 0);
	ehdr.e_shoff = ehdr.e_shnum = ehdr.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &ehdr, sizeof(ehdr), 0), sizeof(ehdr));
	c = open_fd(fd, path);
	expect_rules(c, text);
	cfi_close(c);
}

static void without_unwind_information(void **state)
{
	uint64_t text = build(*state, ".text\nnop\nnop\n", "", "none.so");
	struct cfi *c = open_in(*state, "none.so");

	assert_int_equal(cfi_row(c, text + 1).kind, ROW_GUESS);
	cfi_close(c);
}

/* Once open, a file may change or vanish. */
static void truncated_afterwards(void **state)
{
	uint64_t text = build(*state, rules_s, "", "gone.so");
	struct cfi *c = open_in(*state, "gone.so");

	fake_file(*state, "/gone.so", "");
	expect_rules(c, text);
	cfi_close(c);
}

static void no_elf_file(void **state)
{
	static const char *const texts[] = {"", "\177ELF", "#!/bin/sh\n"};
	struct err err;
	struct cfi *c = NULL;
	char path[256], page[4096] = "\177ELF";
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fake_file(*state, "/text", texts[i]);
		(void)snprintf(path, sizeof(path), "%s/text", fake_path(*state));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(cfi_open(&c, fd, path, &err), -ENOEXEC);
		assert_non_null(strstr(err.msg, path));
		close(fd);
	}
	fd = memfd_create("zeros", 0);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(cfi_open(&c, fd, "zeros", &err), -ENOEXEC);
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cfi_open(&c, fd, "null", &err), -ENOEXEC);
	close(fd);
	assert_null(c);
}

/* Cut anywhere, a file is either refused or has fewer rows; never wrong ones. */
static void cut_anywhere(void **state)
{
	uint64_t text = build(*state, rules_s, "", "cut.so");
	static char whole[1 << 16];
	struct err err;
	char path[256];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/cut.so", fake_path(*state));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = read(fd, whole, sizeof(whole));
	close(fd);
	assert_true(len > 4096 && len < (ssize_t)sizeof(whole));
	for (ssize_t n = 0; n < len; n += 64) {
		struct cfi *c;

		fd = memfd_create("cut", 0);
		assert_int_equal(write(fd, whole, n), n);
		if (cfi_open(&c, fd, "cut", &err) == 0) {
			for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
				struct row row = cfi_row(c, text + i + 1);

				assert_true(row.kind == ROW_GUESS ||
					    memcmp(&row, &rules[i], sizeof(row)) == 0);
			}
			cfi_close(c);
		}
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc),
		cmocka_unit_test(dynamic_linker),
		cmocka_unit_test(vdso),
		cmocka_unit_test(procedure_linkage_table),
		cmocka_unit_test_setup_teardown(every_kind_of_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(full_evaluation, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_for_the_debugger_only, setup, teardown),
		cmocka_unit_test_setup_teardown(without_section_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(without_unwind_information, setup, teardown),
		cmocka_unit_test_setup_teardown(truncated_afterwards, setup, teardown),
		cmocka_unit_test_setup_teardown(no_elf_file, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
