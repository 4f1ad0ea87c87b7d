/* ELF files whole, cut, stretched and damaged; figures from readelf. */
#include "tracer/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/fake.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

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

/* Runs a shell command in the fake's folder. */
static void run(struct fake *f, const char *command)
{
	char line[1024];

	(void)snprintf(line, sizeof(line), "cd %s && %s", fake_path(f), command);
	if (system(line) != 0)
		fail_msg("%s", line);
}

static int open_in(struct fake *f, const char *name)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : fake_path(f),
		       name[0] == '/' ? "" : "/", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int try_open(struct fake *f, const char *name, struct elf_file **ret, struct err *err)
{
	_cleanup_close_ int fd = open_in(f, name);

	*err = (struct err){0};
	return elf_file_open(ret, fd, name, err);
}

static struct elf_file *open_elf(struct fake *f, const char *name)
{
	struct elf_file *ret;
	struct err err;

	if (try_open(f, name, &ret, &err) < 0)
		fail_msg("%s", err.msg);
	return ret;
}

static void expect_refused(struct fake *f, const char *name, int code, const char *why)
{
	struct elf_file *ret;
	struct err err;

	assert_int_equal(try_open(f, name, &ret, &err), code);
	if (!strstr(err.msg, why))
		fail_msg("%s", err.msg);
}

static void patch(struct fake *f, const char *name, off_t at, const void *bytes, size_t n)
{
	_cleanup_close_ int fd = open_in(f, name);

	assert_int_equal(pwrite(fd, bytes, n, at), n);
}

static bool find(const struct elf_file *f, const char *name, bool is_dynamic,
		 struct elf_function *ret)
{
	struct elf_cursor c = {0};

	while (elf_file_next_function(f, &c, ret)) {
		if (strcmp(ret->name, name) == 0 && ret->is_dynamic == is_dynamic)
			return true;
	}
	return false;
}

/* The first word that a command prints, in hexadecimal. */
static unsigned long printed(const char *command)
{
	FILE *p = popen(command, "r");
	unsigned long v;

	assert_non_null(p);
	assert_int_equal(fscanf(p, "%lx", &v), 1);
	(void)pclose(p);
	return v;
}

static void symbols(void **state)
{
	struct elf_file *f = open_elf(*state, LIBC);
	struct elf_function fn;

	assert_true(find(f, "malloc", true, &fn));
	assert_int_equal(fn.vaddr, printed("readelf -sW --dyn-syms " LIBC
					   " | awk '$8 ~ /^malloc@/ { print $2; exit }'"));
	assert_false(fn.is_ifunc || fn.is_local);
	assert_true(fn.size > 0);
	assert_true(find(f, "strlen", true, &fn));
	assert_true(fn.is_ifunc);
	assert_string_equal(elf_file_string(f, ELF_SONAME, 0), "libc.so.6");
	assert_string_equal(elf_file_string(f, ELF_NEEDED, 0), "ld-linux-x86-64.so.2");
	assert_null(elf_file_string(f, ELF_NEEDED, 1));
	assert_string_equal(elf_file_interp(f), "/lib64/ld-linux-x86-64.so.2");
	assert_false(elf_file_is_static(f));
	assert_null(elf_file_problem(f));
	elf_file_close(f);
	elf_file_close(NULL);
}

static size_t count_functions(const struct elf_file *f)
{
	struct elf_cursor c = {0};
	struct elf_function fn;
	size_t n = 0;

	while (elf_file_next_function(f, &c, &fn))
		n++;
	return n;
}

static void all_functions(void **state)
{
	struct elf_file *f = open_elf(*state, LIBC);
	char line[512] = "readelf -W --dyn-syms " LIBC " | awk '($4 == \"FUNC\" || $4 == \"IFUNC\")"
			 " && $7 != \"UND\" && $7 != \"ABS\"' | wc -l | xargs printf '%x'";

	assert_int_equal(count_functions(f), printed(line));
	elf_file_close(f);
}

static void build_id(void **state)
{
	struct elf_file *f = open_elf(*state, LIBC);
	uint8_t id[BUILD_ID_MAX];
	char text[2 * BUILD_ID_MAX + 1], expected[64];
	FILE *p = popen("readelf -n " LIBC " | awk '/Build ID/ { print $3 }'", "r");

	assert_non_null(p);
	assert_int_equal(fscanf(p, "%63s", expected), 1);
	(void)pclose(p);
	assert_int_equal(elf_file_build_id(f, id), 20);
	for (int i = 0; i < 20; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", id[i]);
	assert_string_equal(text, expected);
	elf_file_close(f);
	run(*state, "echo 'int main(void) { return 0; }' >a.c && gcc -Wl,--build-id=none a.c");
	f = open_elf(*state, "a.out");
	assert_int_equal(elf_file_build_id(f, id), 0);
	elf_file_close(f);
}

static void addresses(void **state)
{
	struct elf_file *f;
	struct elf_function fn;
	uint8_t code[64], in_file[64];
	uint64_t vaddr, size, past;
	char line[128];
	int64_t offset;
	int fd;

	/* Segments apart by a page in memory and not in the file. */
	run(*state, "printf 'char z[999999]; int x = 5; int f(void) { return x; }\\n"
		    "int main(void) { return z[f()]; }' >a.c && gcc -g a.c -Wl,-z,noseparate-code "
		    "-Wl,-Ttext-segment=0x7000000 -no-pie");
	f = open_elf(*state, "a.out");
	assert_true(find(f, "f", false, &fn));
	offset = elf_file_offset(f, fn.vaddr);
	assert_true(offset > 0 && (uint64_t)offset != fn.vaddr);
	assert_int_equal(elf_file_vaddr(f, offset), fn.vaddr);
	assert_int_equal(elf_file_code(f, fn.vaddr, code, fn.size), fn.size);
	fd = open_in(*state, "a.out");
	assert_int_equal(pread(fd, in_file, fn.size, offset), fn.size);
	close_fd(&fd);
	assert_memory_equal(code, in_file, fn.size);
	(void)snprintf(line, sizeof(line), "nm %s/a.out | grep ' [DB] x$'", fake_path(*state));
	vaddr = printed(line);
	offset = elf_file_offset(f, vaddr);
	assert_true(offset > 0);
	assert_int_equal(elf_file_vaddr(f, offset), UINT64_MAX); /* data is no code */
	(void)snprintf(line, sizeof(line), "nm %s/a.out | grep ' [DB] z$'", fake_path(*state));
	assert_int_equal(elf_file_offset(f, printed(line) + 999000), -1); /* not in the file */
	assert_int_equal(elf_file_offset(f, 0), -1);
	assert_int_equal(elf_file_offset(f, UINT64_MAX), -1);
	assert_int_equal(elf_file_vaddr(f, UINT64_MAX), UINT64_MAX);
	assert_true(elf_file_code_segment(f, 0, &vaddr, &size));
	past = vaddr + size;
	assert_int_equal(elf_file_code(f, past - 3, code, sizeof(code)), 3);
	assert_int_equal(elf_file_code(f, past, code, sizeof(code)), 0);
	assert_false(elf_file_code_segment(f, 1, &vaddr, &size));
	elf_file_close(f);
}

static void stripped(void **state)
{
	struct elf_file *f;
	struct elf_function fn;
	Elf64_Ehdr h;
	int fd;

	run(*state, "echo 'void seen(void) {} static void hidden(void) {} void g(void) "
		    "{ hidden(); }' >a.c && gcc -O0 -fPIC -shared a.c -o a.so && "
		    "strip -o b.so a.so && cp b.so c.so && "
		    "gcc -O0 -fPIC -shared -Wl,--hash-style=sysv a.c -o d.so");
	f = open_elf(*state, "a.so");
	assert_true(find(f, "hidden", false, &fn) && fn.is_local);
	assert_true(find(f, "seen", false, &fn) && !fn.is_local);
	assert_true(find(f, "seen", true, &fn));
	elf_file_close(f);
	f = open_elf(*state, "b.so");
	assert_false(find(f, "hidden", false, &fn));
	assert_true(find(f, "seen", true, &fn));
	elf_file_close(f);
	/* Without section headers. */
	fd = open_in(*state, "c.so");
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	h.e_shoff = h.e_shnum = h.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	close_fd(&fd);
	f = open_elf(*state, "c.so");
	assert_true(find(f, "seen", true, &fn));
	assert_null(elf_file_problem(f));
	elf_file_close(f);
	/* With the old hash table only. */
	f = open_elf(*state, "d.so");
	assert_true(find(f, "seen", true, &fn));
	elf_file_close(f);
}

static void refused(void **state)
{
	struct fake *f = *state;

	fake_file(f, "empty", "");
	fake_file(f, "text", "#!/bin/sh\n");
	fake_file(f, "short", "\177ELF");
	expect_refused(f, "empty", -ENOEXEC, "empty");
	expect_refused(f, "text", -ENOEXEC, "not an ELF file");
	run(f, "cp " LIBC " a.so && head -c 1000000 a.so >cut && head -c 100 a.so >header && "
	       "cp a.so i386 && cp a.so other && cp a.so big && echo 'int x;' >x.c && "
	       "gcc -c x.c && ar rc x.a x.o");
	expect_refused(f, "cut", -EBADMSG, "truncated");
	expect_refused(f, "header", -EBADMSG, "damaged");
	expect_refused(f, "x.o", -ENOTSUP, "neither a program nor a shared library");
	expect_refused(f, "x.a", -ENOEXEC, "not an ELF file");
	patch(f, "i386", EI_CLASS, &(uint8_t){ELFCLASS32}, 1);
	expect_refused(f, "i386", -ENOTSUP, "not for x86-64");
	patch(f, "other", offsetof(Elf64_Ehdr, e_machine), &(uint16_t){EM_AARCH64}, 2);
	expect_refused(f, "other", -ENOTSUP, "not for x86-64");
	patch(f, "big", EI_DATA, &(uint8_t){ELFDATA2MSB}, 1);
	expect_refused(f, "big", -ENOTSUP, "not for x86-64");
	{
		struct elf_file *ret;
		struct err err;

		assert_true(try_open(f, "short", &ret, &err) < 0);
		assert_true(try_open(f, "/dev/null", &ret, &err) == -ENOEXEC);
	}
}

/* 4 GiB that take no space: whole, and as the only content behind a header that claims it all to
 * be symbols. */
static void sparse(void **state)
{
	struct elf_file *f;
	struct elf_function fn;
	Elf64_Shdr s[3] = {
		{0},
		{.sh_type = SHT_SYMTAB,
		 .sh_offset = 1 << 20,
		 .sh_size = UINT64_C(3) << 30,
		 .sh_link = 2,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB, .sh_offset = 1 << 20, .sh_size = 1 << 20},
	};
	Elf64_Ehdr h;
	int fd;

	run(*state, "cp " LIBC " a.so && truncate -s 4G a.so");
	f = open_elf(*state, "a.so");
	assert_true(find(f, "malloc", true, &fn));
	elf_file_close(f);
	fd = open_in(*state, "a.so");
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	h.e_shoff = UINT64_C(4294966272); /* 1 KiB before the end */
	h.e_shnum = 3;
	h.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(pwrite(fd, s, sizeof(s), h.e_shoff), sizeof(s));
	close_fd(&fd);
	f = open_elf(*state, "a.so");
	assert_true(find(f, "malloc", true, &fn));
	assert_string_equal(elf_file_problem(f), "its symbol table is damaged");
	elf_file_close(f);
	/* A table of names that does not end in NUL: the file's first byte. */
	s[1].sh_size = 10 * sizeof(Elf64_Sym);
	s[2].sh_offset = 0;
	s[2].sh_size = 1;
	patch(*state, "a.so", h.e_shoff, s, sizeof(s));
	f = open_elf(*state, "a.so");
	assert_true(find(f, "malloc", true, &fn));
	assert_string_equal(elf_file_problem(f), "its symbol table is damaged");
	elf_file_close(f);
}

/* A segment that ends one byte behind the file. */
static void segment_too_long(void **state)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;
	struct stat st;
	int fd;

	run(*state, "cp " LIBC " a.so");
	fd = open_in(*state, "a.so");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	for (int i = 0; i < h.e_phnum; i++) {
		off_t at = h.e_phoff + i * sizeof(p);

		assert_int_equal(pread(fd, &p, sizeof(p), at), sizeof(p));
		if (p.p_type == PT_LOAD) {
			p.p_filesz = st.st_size - p.p_offset + 1;
			assert_int_equal(pwrite(fd, &p, sizeof(p), at), sizeof(p));
			break;
		}
	}
	close_fd(&fd);
	expect_refused(*state, "a.so", -EBADMSG, "truncated");
}

static void use_all(struct fake *f, const char *name)
{
	uint8_t id[BUILD_ID_MAX], code[256];
	struct elf_function fn;
	struct elf_cursor c = {0};
	struct elf_file *e;
	struct err err;
	size_t length = 0;

	if (try_open(f, name, &e, &err) < 0) {
		assert_int_not_equal(err.code, 0);
		return;
	}
	while (elf_file_next_function(e, &c, &fn))
		length += strlen(fn.name) + elf_file_code(e, fn.vaddr, code, sizeof(code));
	for (int k = ELF_SONAME; k <= ELF_RUNPATH; k++) {
		const char *s = elf_file_string(e, k, 0);

		length += s ? strlen(s) : 0;
	}
	assert_true(length < SIZE_MAX);
	(void)elf_file_build_id(e, id);
	(void)elf_file_is_static(e);
	(void)elf_file_problem(e);
	elf_file_close(e);
}

/* Bytes of headers and tables replaced at random: no answer is right, each must come. */
static void damaged(void **state)
{
	uint8_t whole[65536];
	unsigned seed = 1;
	ssize_t n;
	int fd;

	run(*state, "echo 'void a(void) {} void b(void) { a(); }' >a.c && "
		    "gcc -g0 -fPIC -shared -nostdlib a.c -o a.so");
	fd = open_in(*state, "a.so");
	n = read(fd, whole, sizeof(whole));
	assert_true(n > 1000);
	for (int i = 0; i < 3000; i++) {
		uint8_t bad[sizeof(whole)];

		memcpy(bad, whole, n);
		for (int k = 0; k < 4; k++) {
			/* Mostly in the headers and in .dynamic … section headers at the end. */
			size_t at = rand_r(&seed) % (k == 0 ? 0x300 : n);

			bad[at] = k % 2 ? rand_r(&seed) : 0xff;
		}
		assert_int_equal(pwrite(fd, bad, n, 0), n);
		use_all(*state, "a.so");
	}
	for (ssize_t cut = n; cut > 0; cut -= 61) {
		assert_int_equal(pwrite(fd, whole, n, 0), n);
		assert_int_equal(ftruncate(fd, cut), 0);
		use_all(*state, "a.so");
	}
	close_fd(&fd);
}

/* The file becomes shorter while it is in use. */
static void shrinks(void **state)
{
	struct elf_function fn;
	struct elf_file *f;
	uint8_t code[16];
	int fd;

	run(*state, "cp " LIBC " a.so");
	f = open_elf(*state, "a.so");
	assert_true(find(f, "malloc", true, &fn));
	fd = open_in(*state, "a.so");
	assert_int_equal(ftruncate(fd, 4096), 0);
	close_fd(&fd);
	assert_int_equal(elf_file_code(f, fn.vaddr, code, sizeof(code)), 0);
	elf_file_close(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(symbols),  TEST(all_functions), TEST(build_id), TEST(addresses),
		TEST(stripped), TEST(refused),       TEST(sparse),   TEST(segment_too_long),
		TEST(damaged),  TEST(shrinks),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
