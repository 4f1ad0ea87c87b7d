/* Allocators of this machine's libraries and of programs built here; truth from readelf. */
#include "tracer/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "tests/unit/fake.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

struct found {
	struct elf_file *f;
	struct probes p;
	char path[256];
	struct str symbols; /* as readelf tells: lines of " address name", without versions */
	unsigned long vaddr, offset; /* of the executable segment, likewise */
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

static void ask_readelf(struct found *d)
{
	char line[1024];
	FILE *p;

	(void)snprintf(
		line, sizeof(line),
		"readelf -sW %s | awk '$7 != \"UND\" { sub(/@.*/, \"\", $8); print $2, $8 }'",
		d->path);
	p = popen(line, "r");
	assert_non_null(p);
	d->symbols = (struct str){0};
	while (fgets(line, sizeof(line), p))
		str_add(&d->symbols, line);
	(void)pclose(p);
	(void)snprintf(line, sizeof(line),
		       "readelf -lW %s | awk '$1 == \"LOAD\" && / R.E / { print $2, $3 }'",
		       d->path);
	p = popen(line, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%lx %lx", &d->offset, &d->vaddr), 2);
	(void)pclose(p);
}

static struct found look(struct fake *fake, const char *name)
{
	struct found ret;
	struct err err;
	int fd;

	(void)snprintf(ret.path, sizeof(ret.path), "%s%s%s", fake ? fake_path(fake) : "",
		       fake ? "/" : "", name);
	fd = open(ret.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file_open(&ret.f, fd, name, &err) < 0)
		fail_msg("%s: %s", ret.path, fd < 0 ? strerror(errno) : err.msg);
	close_fd(&fd);
	ask_readelf(&ret);
	assert_int_equal(discover(&ret.p, ret.f, &err), 0);
	for (size_t i = 0; i < ret.p.n; i++) {
		unsigned kind = ret.p.p[i].cookie & 0xff;

		assert_true(i == 0 || ret.p.p[i - 1].offset < ret.p.p[i].offset);
		assert_int_equal(ret.p.p[i].has_return, kind != CALL_FREE && kind != CALL_MUNMAP &&
								kind != CALL_UNWIND &&
								kind != CALL_LOADED);
		assert_non_null(probe_function_name(ret.p.p[i].cookie >> 48));
	}
	return ret;
}

static void done(struct found *d)
{
	str_done(&d->symbols);
	probes_done(&d->p);
	elf_file_close(d->f);
}

/* Compiles a.c, given as text, in the fake's folder. */
static void build(struct fake *f, const char *source, const char *command)
{
	char line[512];

	fake_file(f, "a.c", source);
	(void)snprintf(line, sizeof(line), "cd %s && %s", fake_path(f), command);
	if (system(line) != 0)
		fail_msg("%s", line);
}

/* A symbol's file offset, as readelf and the segments tell; -1: the file does not define it. */
static int64_t symbol(const struct found *d, const char *name)
{
	char line[128];
	unsigned long address;
	const char *p;

	(void)snprintf(line, sizeof(line), " %s\n", name);
	p = d->symbols.data ? strstr(d->symbols.data, line) : NULL;
	if (!p)
		return -1;
	while (p > d->symbols.data && p[-1] != '\n')
		p--;
	assert_int_equal(sscanf(p, "%lx", &address), 1);
	return address - d->vaddr + d->offset;
}

/* The probe that stands for a function: at most 32 bytes behind its symbol. */
static const struct probe *probe_of(const struct found *d, const char *name)
{
	int64_t at = symbol(d, name);

	for (size_t i = 0; at >= 0 && i < d->p.n; i++) {
		if (d->p.p[i].offset >= (uint64_t)at && d->p.p[i].offset <= (uint64_t)at + 32)
			return &d->p.p[i];
	}
	return NULL;
}

/* Where the probe may be does not matter to what it means. */
#define STEPPED CALL_COOKIE(0, 0, 0, 0, CALL_STEPPED, 0)

static void expect(const struct found *d, const char *name, uint64_t cookie)
{
	const struct probe *p = probe_of(d, name);

	if (!p)
		fail_msg("%s: no probe for %s", d->path, name);
	if ((p->cookie & 0xffffffffff & ~STEPPED) != cookie)
		fail_msg("%s: %s: cookie %lx, not %lx", d->path, name, p->cookie, cookie);
}

#define NO CALL_NO_ARG
#define ALLOC(size, count) CALL_COOKIE(CALL_ALLOC, size, count, NO, 0, 0)
#define REALLOC(ptr, size, count) CALL_COOKIE(CALL_REALLOC, size, count, ptr, 0, 0)
#define FREE CALL_COOKIE(CALL_FREE, NO, NO, 0, 0, 0)
#define MEMALIGN CALL_COOKIE(CALL_MEMALIGN, 2, NO, 0, 0, 0)
#define PVALLOC CALL_COOKIE(CALL_ALLOC, 0, NO, NO, CALL_ROUND_PAGE, 0)

static void expect_c(const struct found *d)
{
	expect(d, "malloc", ALLOC(0, NO));
	expect(d, "calloc", ALLOC(1, 0));
	expect(d, "realloc", REALLOC(0, 1, NO));
	expect(d, "free", FREE);
	expect(d, "posix_memalign", MEMALIGN);
	expect(d, "aligned_alloc", ALLOC(1, NO));
	expect(d, "memalign", ALLOC(1, NO));
	expect(d, "valloc", ALLOC(0, NO));
}

static void expect_cxx(const struct found *d)
{
	static const char *const after[] = {
		"",  "RKSt9nothrow_t",  "St11align_val_t", "St11align_val_tRKSt9nothrow_t",
		"m", "mSt11align_val_t"};
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
		for (int array = 0; array < 2; array++) {
			(void)snprintf(name, sizeof(name), "_Zn%cm%s", array ? 'a' : 'w', after[i]);
			if (i < 4)
				expect(d, name, ALLOC(0, NO));
			(void)snprintf(name, sizeof(name), "_Zd%cPv%s", array ? 'a' : 'l',
				       after[i]);
			expect(d, name, FREE);
		}
	}
}

static void libc(void **state)
{
	struct found d = look(NULL, LIBS "libc.so.6");

	(void)state;
	assert_string_equal(d.p.families, "glibc");
	assert_string_equal(d.p.problem, "");
	expect_c(&d);
	expect(&d, "reallocarray", REALLOC(0, 2, 1));
	expect(&d, "pvalloc", PVALLOC);
	expect(&d, "mmap", CALL_COOKIE(CALL_MMAP, 1, NO, 0, 0, 0));
	expect(&d, "munmap", CALL_COOKIE(CALL_MUNMAP, 1, NO, 0, 0, 0));
	expect(&d, "mremap", CALL_COOKIE(CALL_MREMAP, 2, NO, 0, 0, 0));
	expect(&d, "brk", CALL_COOKIE(CALL_BRK, NO, NO, 0, 0, 0));
	expect(&d, "sbrk", CALL_COOKIE(CALL_SBRK, 0, NO, NO, 0, 0));
	/* Names at one address have one probe: free and cfree, aligned_alloc and memalign, mmap
	 * and mmap64, and all that begin with __libc_. */
	assert_ptr_equal(probe_of(&d, "free"), probe_of(&d, "cfree"));
	assert_ptr_equal(probe_of(&d, "mmap"), probe_of(&d, "mmap64"));
	assert_int_equal(d.p.n, 14);
	assert_string_equal(probe_function_name(probe_of(&d, "__libc_free")->cookie >> 48), "free");
	done(&d);
}

/* Where objdump shows glibc 2.36 to have its first emulated instruction: push at once, je after
 * test, push after cmpb, jne after mov and test. */
static void libc_places(void **state)
{
	static const struct {
		const char *name;
		unsigned distance;
	} c[] = {{"malloc", 0},         {"realloc", 0}, {"calloc", 0}, {"free", 3},
		 {"posix_memalign", 7}, {"valloc", 7},  {"mmap", 10},  {"munmap", 0}};
	struct found d = look(NULL, LIBS "libc.so.6");

	(void)state;
	if (system("strings -a " LIBS "libc.so.6 | grep -q 'Debian GLIBC 2.36-9'") != 0) {
		done(&d);
		print_message("skipped: the figures are those of Debian's glibc 2.36\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(probe_of(&d, c[i].name)->offset - symbol(&d, c[i].name),
				 c[i].distance);
	done(&d);
}

static void libstdcxx(void **state)
{
	struct found d = look(NULL, LIBS "libstdc++.so.6");

	(void)state;
	assert_string_equal(d.p.families, "c++");
	expect_cxx(&d);
	assert_int_equal(d.p.n, 20);
	done(&d);
}

static void jemalloc(void **state)
{
	struct found d = look(NULL, LIBS "libjemalloc.so.2");

	(void)state;
	assert_string_equal(d.p.families, "jemalloc, c++");
	expect_c(&d);
	expect_cxx(&d);
	expect(&d, "mallocx", ALLOC(0, NO));
	expect(&d, "rallocx", REALLOC(0, 1, NO));
	expect(&d, "xallocx", CALL_COOKIE(CALL_XALLOC, 1, NO, 0, 0, 0));
	expect(&d, "dallocx", FREE);
	expect(&d, "sdallocx", FREE);
	assert_int_equal(d.p.n, 8 + 20 + 5);
	done(&d);
}

static void tcmalloc(void **state)
{
	static const char *const files[] = {LIBS "libtcmalloc.so.4",
					    LIBS "libtcmalloc_minimal.so.4",
					    LIBS "libtcmalloc_debug.so.4"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct found d = look(NULL, files[i]);

		assert_string_equal(d.p.families, "tcmalloc, c++");
		expect_c(&d);
		expect_cxx(&d);
		expect(&d, "tc_malloc_skip_new_handler", ALLOC(0, NO));
		expect(&d, "tc_free_sized", FREE);
		expect(&d, "tc_newarray_aligned_nothrow", ALLOC(0, NO));
		expect(&d, "tc_deletearray_sized_aligned", FREE);
		expect(&d, "tc_pvalloc", PVALLOC);
		/* It stands in for these, too: the calls do not arrive at libc's. */
		expect(&d, "mmap", CALL_COOKIE(CALL_MMAP, 1, NO, 0, 0, 0));
		expect(&d, "munmap", CALL_COOKIE(CALL_MUNMAP, 1, NO, 0, 0, 0));
		done(&d);
	}
}

static void mimalloc(void **state)
{
	struct found d = look(NULL, LIBS "libmimalloc.so.2");

	(void)state;
	assert_string_equal(d.p.families, "mimalloc, c++");
	expect_c(&d);
	expect(&d, "mi_malloc_aligned", ALLOC(0, NO));
	expect(&d, "mi_memalign", ALLOC(1, NO));
	expect(&d, "mi_calloc_aligned_at", ALLOC(1, 0));
	expect(&d, "mi_heap_malloc", ALLOC(1, NO));
	expect(&d, "mi_heap_calloc", ALLOC(2, 1));
	expect(&d, "mi_heap_realloc", REALLOC(1, 2, NO));
	expect(&d, "mi_heap_recalloc_aligned_at", REALLOC(1, 3, 2));
	expect(&d, "mi_reallocn", REALLOC(0, 2, 1));
	expect(&d, "mi_free_size_aligned", FREE);
	expect(&d, "mi_posix_memalign", MEMALIGN);
	expect(&d, "mi_pvalloc", PVALLOC);
	expect(&d, "mi_new_n", ALLOC(1, 0));
	assert_null(probe_of(&d, "mi_usable_size"));
	done(&d);
}

/* Every function of the headers that returns new memory or takes some back is in the table. */
static void header_is_covered(void **state)
{
	static const char command[] =
		"grep -E '^mi_decl' /usr/include/mimalloc.h | "
		"grep -oE 'mi_[a-z_]+\\((size_t|void\\*+ p|mi_heap_t\\* heap, )' | sed 's/(.*//' | "
		"sort -u | grep -E 'alloc|free|mi_new' | grep -vE '_good_size$|reallocarr$'";
	char name[128];
	FILE *p = popen(command, "r");
	int n = 0;

	(void)state;
	assert_non_null(p);
	for (; fscanf(p, "%127s", name) == 1; n++) {
		unsigned id = 1;

		while (id <= probe_function_count() && strcmp(probe_function_name(id), name) != 0)
			id++;
		if (id > probe_function_count())
			fail_msg("%s", name);
	}
	(void)pclose(p);
	assert_true(n > 60);
}

static void names(void **state)
{
	(void)state;
	assert_null(probe_function_name(0));
	assert_null(probe_function_name(probe_function_count() + 1));
	assert_string_equal(probe_function_name(1), "malloc");
	for (unsigned i = 1; i <= probe_function_count(); i++) {
		for (unsigned k = 1; k < i; k++)
			assert_string_not_equal(probe_function_name(i), probe_function_name(k));
	}
}

static void nothing(void **state)
{
	struct found d = look(NULL, "/lib64/ld-linux-x86-64.so.2");

	/* It has a malloc of its own, and in old versions gives it to others: only what tells of
	 * libraries coming and going is probed. */
	assert_int_equal(d.p.n, 1);
	assert_string_equal(d.p.families, "loader");
	expect(&d, "_dl_debug_state", CALL_COOKIE(CALL_LOADED, NO, NO, NO, 0, 0));
	assert_string_equal(d.p.problem, "");
	done(&d);
	build(*state,
	      "#include <stdlib.h>\nint main(void) { free(malloc(5)); return (&malloc == 0) + (&free == 0); }",
	      "gcc -no-pie -fno-pie -fno-builtin -fno-delete-null-pointer-checks a.c");
	d = look(*state,
		 "a.out"); /* malloc is undefined, though with the address of its PLT entry */
	assert_int_equal(d.p.n, 0);
	assert_string_equal(d.p.families, "");
	assert_string_equal(d.p.problem, "");
	done(&d);
}

/* Exceptions leave frames: who is about to walk them is probed. */
static void unwinder(void **state)
{
	struct found d = look(NULL, "/lib/x86_64-linux-gnu/libgcc_s.so.1");

	(void)state;
	assert_string_equal(d.p.families, "unwinder");
	assert_int_equal(d.p.n, 3);
	expect(&d, "_Unwind_RaiseException", CALL_COOKIE(CALL_UNWIND, NO, NO, NO, 0, 0));
	expect(&d, "_Unwind_ForcedUnwind", CALL_COOKIE(CALL_UNWIND, NO, NO, NO, 0, 0));
	done(&d);
}

/* The kinds of file by which the plain names mean something else. */
static void kinds_of_files(void **state)
{
	static const char source[] =
		"typedef unsigned long u;\nchar m[99];\n"
		"void *malloc(u n) { return m + n; }\n"
		"void free(void *p) { m[2] = (u)p; }\n"
		"void *mmap(void *p, u n) { m[4] = (u)p; return m + n + 9; }\n"
		"int munmap(void *p, u n) { m[n] = (u)p; return 7; }\n"
		"#ifdef LIBC\nint __libc_start_main(void) { return 3; }\n#endif\n"
		"void _start(void) { for (;;) free(malloc(3)); }\n";
	static const struct {
		const char *options, *families;
		size_t n;
	} c[] = {
		{"-shared -Wl,-soname,ld-linux-x86-64.so.2", "", 0},
		{"-shared -DLIBC -Wl,-soname,libc.musl-x86_64.so.1", "musl", 4},
		{"-shared -DLIBC", "musl", 4},
		{"-shared -Wl,-soname,libhook.so", "malloc", 4},
		{"-static -DLIBC", "musl", 4},
		{"-static", "malloc", 2}, /* a program's own mmap need not be the one we know */
	};

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		char command[256];
		struct found d;

		(void)snprintf(command, sizeof(command),
			       "gcc -O1 -fno-builtin -nostdlib -fPIC %s a.c -o a.so", c[i].options);
		build(*state, source, command);
		d = look(*state, "a.so");
		assert_string_equal(d.p.families, c[i].families);
		assert_int_equal(d.p.n, c[i].n);
		done(&d);
	}
}

static const char program[] = "#include <stdlib.h>\n#include <stdio.h>\n"
			      "int main(void) { printf(\"%p\", malloc(5)); return 0; }";

static void static_program(void **state)
{
	struct found d;

	build(*state, program, "gcc -O2 -static a.c && strip -o b.out a.out");
	d = look(*state, "a.out");
	assert_string_equal(d.p.families, "glibc, unwinder");
	assert_string_equal(d.p.problem, "");
	expect_c(&d);
	expect(&d, "pvalloc", PVALLOC);
	expect(&d, "mmap", CALL_COOKIE(CALL_MMAP, 1, NO, 0, 0, 0));
	expect(&d, "sbrk", CALL_COOKIE(CALL_SBRK, 0, NO, NO, 0, 0));
	done(&d);
	d = look(*state, "b.out");
	assert_int_equal(d.p.n, 0);
	assert_string_equal(d.p.problem, "a static program, stripped of its symbols");
	done(&d);
	build(*state, program, "gcc -O2 -static-pie a.c");
	d = look(*state, "a.out");
	assert_string_equal(d.p.families, "glibc, unwinder");
	expect_c(&d);
	done(&d);
}

/* Functions that only happen to have the names. */
static void other_functions(void **state)
{
	struct found d;

	build(*state,
	      "#include <stdio.h>\n__attribute__((noinline)) static void *malloc(int x) "
	      "{ return stdin + x; }\n"
	      "__attribute__((noinline)) static void free(FILE *f) { puts(\"\"); (void)f; }\n"
	      "int main(void) { free(malloc(1)); free(malloc(2)); return 0; }",
	      "gcc -w -fno-builtin -O1 a.c && gcc -w -fno-builtin -O1 -static a.c -o b.out");
	d = look(*state, "a.out");
	assert_int_equal(d.p.n, 0);
	done(&d);
	/* Beside them the static one has libc's, and those only. */
	d = look(*state, "b.out");
	assert_string_equal(d.p.families, "glibc, unwinder");
	for (size_t i = 0, frees = 0; i <= d.p.n; i++) {
		if (i == d.p.n)
			assert_int_equal(frees, 1);
		else if ((d.p.p[i].cookie & 0xff) == CALL_FREE)
			frees++;
	}
	done(&d);
}

static void half(void **state)
{
	struct found d;

	build(*state, "void *malloc(unsigned long n) { return (void *)n; }",
	      "gcc -fno-builtin -fPIC -shared a.c -o a.so");
	d = look(*state, "a.so");
	assert_int_equal(d.p.n, 0);
	assert_string_equal(d.p.problem, "of malloc and free it has only one");
	done(&d);
}

/* A library of one's own: exported ones count, hidden ones only by unmistakable names. */
static void interposed(void **state)
{
	static const char source[] =
		"#define HIDDEN __attribute__((visibility(\"hidden\")))\n"
		"typedef unsigned long u;\nstatic char m[99];\n"
		"HIDDEN void *_rjem_malloc(u n) { return m + n; }\n"
		"HIDDEN void *_rjem_calloc(u n, u k) { return m + n + k; }\n"
		"HIDDEN void _rjem_sdallocx(void *p, u n, int f) { m[n] = f; (void)p; }\n"
		"HIDDEN void *_rjem_smallocx_54eaed1d8b56b1aa528be3bdd1877e59c56fa90c(u n) "
		"{ return m + n + 3; }\n"
		"PLAIN void *malloc(u n) { return m + n + 2; }\n"
		"PLAIN void free(void *p) { m[2] = (u)p; }\n";
	struct found d;

	build(*state, source,
	      "gcc -DPLAIN= -fno-builtin -O1 -fPIC -shared a.c -o a.so && "
	      "gcc -DPLAIN=HIDDEN -fno-builtin -O1 -fPIC -shared a.c -o b.so");
	d = look(*state, "a.so");
	assert_string_equal(d.p.families, "jemalloc");
	assert_int_equal(d.p.n, 6);
	expect(&d, "malloc", ALLOC(0, NO));
	expect(&d, "_rjem_malloc", ALLOC(0, NO));
	expect(&d, "_rjem_calloc", ALLOC(1, 0));
	expect(&d, "_rjem_sdallocx", FREE);
	expect(&d, "_rjem_smallocx_54eaed1d8b56b1aa528be3bdd1877e59c56fa90c", ALLOC(0, NO));
	done(&d);
	d = look(*state, "b.so");
	assert_string_equal(d.p.families, "jemalloc");
	assert_int_equal(d.p.n, 4);
	assert_null(probe_of(&d, "malloc"));
	done(&d);
}

/* Chosen by the processor at run time: the variants are probed, not what chooses. */
static void chosen(void **state)
{
	static const char clones[] =
		"typedef unsigned long u;\nchar m[99];\n"
		"__attribute__((target_clones(\"avx2\", \"default\"))) void *malloc(u n) "
		"{ for (u i = 0; i < n; i++) m[i] += 3; return m; }\n"
		"void free(void *p) { m[2] = (u)p; }\n";
	static const char resolver[] = "typedef unsigned long u;\nchar m[99];\n"
				       "static void *simple(u n) { return m + n; }\n"
				       "static void *(*choose(void))(u) { return simple; }\n"
				       "void *malloc(u) __attribute__((ifunc(\"choose\")));\n"
				       "void free(void *p) { m[2] = (u)p; }\n";
	struct found d;
	int allocs = 0;

	build(*state, clones, "gcc -fno-builtin -O2 -fPIC -shared a.c -o a.so");
	d = look(*state, "a.so");
	assert_string_equal(d.p.families, "malloc");
	assert_string_equal(d.p.problem, "");
	for (size_t i = 0; i < d.p.n; i++)
		allocs += (d.p.p[i].cookie & 0xff) == CALL_ALLOC;
	assert_int_equal(allocs, 2);
	assert_int_equal(d.p.n, 3);
	expect(&d, "malloc.avx2", ALLOC(0, NO));
	assert_null(probe_of(&d, "malloc.resolver"));
	done(&d);
	build(*state, resolver, "gcc -fno-builtin -O2 -fPIC -shared a.c -o a.so");
	d = look(*state, "a.so");
	assert_int_equal(d.p.n, 0);
	assert_string_equal(d.p.problem,
			    "malloc is chosen at run time, from functions without known names");
	done(&d);
}

/* free starts with test and je. What leads to the je from elsewhere keeps the probe at the entry:
 * a jump from another function, a second name. */
static void entered(void **state)
{
	static const char source[] =
		"__asm__(\".globl malloc, free, other\\n.type malloc,@function\\n"
		".type free,@function\\n.type other,@function\\n\"\n"
		"\"free: test %rdi,%rdi\\n1: je 2f\\nnop\\n2: ret\\n.size free, .-free\\n\"\n"
		"\"malloc: mov %rdi,%rax\\n push %rax\\n pop %rax\\n ret\\n.size malloc, .-malloc\\n\"\n"
		"#ifdef JUMP\n\".skip 4000\\n jmp free + 3\\n\"\n#endif\n"
		"#ifdef NAME\n\".set other, free + 3\\n\"\n#endif\n"
		");";
	static const char *const options[] = {"", "-DJUMP", "-DNAME"};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char command[128];
		struct found d;

		(void)snprintf(command, sizeof(command), "gcc %s -nostdlib -shared a.c -o a.so",
			       options[i]);
		build(*state, source, command);
		d = look(*state, "a.so");
		assert_int_equal(d.p.n, 2);
		assert_int_equal(probe_of(&d, "free")->offset - symbol(&d, "free"), i == 0 ? 3 : 0);
		assert_int_equal(probe_of(&d, "malloc")->offset - symbol(&d, "malloc"), 3);
		done(&d);
	}
}

/* Nothing but the size of the symbol tells where a function ends. */
static void without_size(void **state)
{
	struct found d;

	build(*state,
	      "__asm__(\".globl malloc, free\\n.type malloc,@function\\n.type free,@function\\n"
	      "free: test %rdi,%rdi\\nje 1f\\nnop\\n1: ret\\n"
	      "malloc: mov %rdi,%rax\\nret\\n\");",
	      "gcc -nostdlib -shared a.c -o a.so");
	d = look(*state, "a.so");
	assert_int_equal(d.p.n, 2);
	assert_int_equal(probe_of(&d, "free")->offset, symbol(&d, "free"));
	done(&d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(libc),
		TEST(libc_places),
		TEST(libstdcxx),
		TEST(jemalloc),
		TEST(tcmalloc),
		TEST(mimalloc),
		TEST(header_is_covered),
		TEST(names),
		TEST(nothing),
		TEST(unwinder),
		TEST(kinds_of_files),
		TEST(static_program),
		TEST(other_functions),
		TEST(half),
		TEST(interposed),
		TEST(chosen),
		TEST(entered),
		TEST(without_size),
	};

	return cmocka_run_group_tests_name("discover", tests, NULL, NULL);
}
