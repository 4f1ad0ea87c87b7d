/* Names of places in the code: as addr2line has them, from the symbol table where there is no
 * more, and none at all where the file is another one. */
#include "tracer/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/str.h"
#include "fake.h"

#define FRAMES_MAX 16

static const char cxx[] =
	"#include <string>\n"
	"extern \"C\" int sink(int);\n"
	"namespace outer {\n"
	"static inline __attribute__((always_inline)) int deepest(int a)\n"
	"{\n"
	"	return sink(a) + 1;\n"
	"}\n"
	"template <typename T> __attribute__((always_inline)) inline T twice(T a)\n"
	"{\n"
	"	T r = deepest(a);\n"
	"	return r + deepest(a + 1);\n"
	"}\n"
	"struct thing {\n"
	"	int v;\n"
	"	__attribute__((noinline)) int get(int a) const { return twice(a) * v; }\n"
	"	thing(int a) : v(sink(a)) {}\n"
	"};\n"
	"__attribute__((noinline)) std::string text(const thing &t)\n"
	"{\n"
	"	auto add = [&](int a) __attribute__((noinline)) { return t.get(a) + 1; };\n"
	"	return std::string(add(t.v) & 7, 'x');\n"
	"}\n"
	"namespace {\n"
	"__attribute__((noinline)) int hidden(int a)\n"
	"{\n"
	"	for (int i = 0; i < a; i++) {\n"
	"		int b = sink(i);\n"
	"		if (b)\n"
	"			a += twice(b);\n"
	"	}\n"
	"	return a;\n"
	"}\n"
	"}\n"
	"}\n"
	"int main(int argc, char **)\n"
	"{\n"
	"	outer::thing t(argc);\n"
	"	return outer::text(t).size() + outer::hidden(argc);\n"
	"}\n";

static const char c[] = "static inline __attribute__((always_inline)) int once(int a)\n"
			"{\n"
			"	return a ? __builtin_popcount(a) * 3 : 7;\n"
			"}\n"
			"int __attribute__((noinline)) sink(int a)\n"
			"{\n"
			"	return once(a) + once(a + 1);\n"
			"}\n";

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

/* A shell command in the test's directory. */
static void sh(struct fake *f, const char *fmt, ...) _printf_(2, 3);
static void sh(struct fake *f, const char *fmt, ...)
{
	_cleanup_str_ struct str command = {0};
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_addf(&command, "cd '%s' && %s", fake_path(f), text);
	assert_false(command.failed);
	if (system(command.data) != 0)
		fail_msg("failed: %s", text);
}

static void read_line(struct fake *f, const char *command, char *ret, size_t size)
{
	_cleanup_str_ struct str all = {0};
	FILE *p;

	str_addf(&all, "cd '%s' && %s", fake_path(f), command);
	p = popen(all.data, "re");
	assert_non_null(p);
	assert_non_null(fgets(ret, size, p));
	assert_int_equal(pclose(p), 0);
	ret[strcspn(ret, "\n")] = '\0';
}

/* The module that was traced: a file in the test's directory, with the build id it has now. */
struct traced {
	struct module m;
	char path[256];
};

static struct module *traced(struct fake *f, const char *name, struct traced *ret)
{
	char command[256], id[128];
	int n = 0;

	*ret = (struct traced){.m.id = 1};
	(void)snprintf(ret->path, sizeof(ret->path), "%s/%s", fake_path(f), name);
	(void)snprintf(command, sizeof(command),
		       "(readelf -n %s | sed -n 's/.*Build ID: //p'; echo) | head -n 1", name);
	read_line(f, command, id, sizeof(id));
	for (; sscanf(id + 2 * n, "%2hhx", &ret->m.build_id[n]) == 1; n++)
		assert_true(n < BUILD_ID_MAX - 1 || id[2 * n + 2] == '\0');
	ret->m.build_id_len = n;
	ret->m.path = ret->path;
	return &ret->m;
}

static struct symbols *new_symbols(void)
{
	struct symbols *s;
	struct err err;

	assert_int_equal(symbols_new(&s, &err), 0);
	return s;
}

static struct symbols_module *open_module(struct symbols *s, const struct module *m)
{
	const char *why = "";
	struct symbols_module *mod = symbols_module(s, m, -1, &why);

	if (!mod)
		fail_msg("%s: %s", m->path, why);
	return mod;
}

static uint64_t address_of(struct fake *f, const char *file, const char *symbol)
{
	char command[256], line[128];
	uint64_t address;

	(void)snprintf(command, sizeof(command), "(nm %s; nm -D %s) 2>/dev/null | grep -m 1 ' %s$'",
		       file, file, symbol);
	read_line(f, command, line, sizeof(line));
	assert_int_equal(sscanf(line, "%lx", &address), 1);
	return address;
}

static int lookup(struct symbols *s, struct symbols_module *mod, uint64_t address,
		  struct frame *ret)
{
	struct frame_ref ref = {1, address + 1};
	int n = symbols_lookup(s, mod, ref, ret, FRAMES_MAX);

	assert_true(n >= 1 && n <= FRAMES_MAX);
	for (int i = 0; i < n; i++) {
		assert_int_equal(ret[i].ref.module, ref.module);
		assert_int_equal(ret[i].ref.offset, ref.offset);
		assert_int_equal(ret[i].is_inline, i < n - 1);
	}
	return n;
}

/* -- against addr2line ---------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct agreement {
	int addresses, frames, inlined;
	int wrong;
};

/* One frame of addr2line's, two lines: function; file:line (discriminator …). */
static bool is_frame(const struct frame *frame, const char *function, char *place)
{
	const char *name = frame->function ? frame->function : "??";
	char *colon = strrchr(place, ':');
	int line = 0;

	assert_non_null(colon);
	*colon = '\0';
	(void)sscanf(colon + 1, "%d", &line);
	if (strcmp(name, function) == 0 && frame->line == line &&
	    strcmp(frame->file ? base_name(frame->file) : "??", base_name(place)) == 0)
		return true;
	print_message("# at %#lx: %s %s:%d, addr2line: %s %s:%d\n", frame->ref.offset - 1, name,
		      frame->file ? frame->file : "??", frame->line, function, place, line);
	return false;
}

/* The last bytes of the instructions from … to, as return addresses less one are: to the file
 * `addresses`, each twice: for a function without a linkage name addr2line's first answer is the
 * symbol that it is inlined into, the second one is right. */
static void last_bytes(struct fake *f, const char *path, uint64_t from, uint64_t to)
{
	_cleanup_str_ struct str list = {0};
	char text[1024];
	uint64_t address, before = 0;
	FILE *p;

	(void)snprintf(text, sizeof(text),
		       "objdump -dw --no-show-raw-insn --start-address=%lu --stop-address=%lu %s",
		       from, to, path);
	p = popen(text, "re");
	assert_non_null(p);
	while (fgets(text, sizeof(text), p)) {
		if (text[0] != ' ' || sscanf(text, "%lx", &address) != 1)
			continue;
		if (before)
			str_addf(&list, "%lx\n%lx\n", address - 1, address - 1);
		before = address;
	}
	assert_int_equal(pclose(p), 0);
	assert_false(list.failed);
	fake_file(f, "/addresses", list.data);
}

static struct agreement agree(struct fake *f, const struct module *m, const char *truth,
			      uint64_t from, uint64_t to)
{
	struct symbols *s = new_symbols();
	struct symbols_module *mod = open_module(s, m);
	struct agreement a = {0};
	struct frame frames[FRAMES_MAX];
	char command[600], function[4096], place[4096];
	uint64_t address = 0;
	bool is_first = false;
	int n = 0, i = 0;
	FILE *p;

	(void)snprintf(command, sizeof(command), "cd %s && addr2line -aCfi -e %s <addresses",
		       fake_path(f), truth);
	last_bytes(f, m->path, from, to);
	p = popen(command, "re");
	assert_non_null(p);
	while (fgets(function, sizeof(function), p)) {
		function[strcspn(function, "\n")] = '\0';
		if (sscanf(function, "0x%lx", &address) == 1) {
			is_first = !is_first;
			if (is_first)
				continue;
			a.wrong += i != n; /* frames of ours that addr2line has not */
			n = lookup(s, mod, address, frames);
			i = 0;
			a.addresses++;
			a.inlined += n - 1;
			continue;
		}
		assert_non_null(fgets(place, sizeof(place), p));
		if (is_first)
			continue;
		a.frames++;
		a.wrong += i >= n || !is_frame(&frames[i], function, place);
		i++;
	}
	assert_int_equal(pclose(p), 0);
	a.wrong += i != n;
	symbols_free(s);
	return a;
}

static uint64_t size_of(struct fake *f, const char *file, const char *symbol)
{
	char command[256], line[128];
	uint64_t size;

	(void)snprintf(command, sizeof(command), "nm -S %s | grep -m 1 ' %s$'", file, symbol);
	read_line(f, command, line, sizeof(line));
	assert_int_equal(sscanf(line, "%*x %lx", &size), 1);
	return size;
}

static void expect_agreement(struct fake *f, const char *name, const char *truth, const char *first)
{
	struct traced t;
	uint64_t from = address_of(f, name, first);
	struct agreement a =
		agree(f, traced(f, name, &t), truth, from, from + size_of(f, truth, first));

	print_message("# %s: %d addresses, %d frames, %d inlined, %d wrong\n", name, a.addresses,
		      a.frames, a.inlined, a.wrong);
	assert_int_equal(a.wrong, 0);
	assert_true(a.addresses > 5 && a.inlined > 0);
}

static void build(struct fake *f, const char *cxx_compiler, const char *c_compiler,
		  const char *flags, const char *out)
{
	fake_file(f, "/one.cc", cxx);
	fake_file(f, "/two.c", c);
	sh(f, "%s -O2 %s -c one.cc && %s -O2 %s -c two.c", cxx_compiler, flags, c_compiler, flags);
	sh(f, "%s -Wl,--build-id=sha1 %s -o %s one.o two.o -lstdc++", c_compiler, flags, out);
}

static const char *const functions[] = {"main", "sink", "_ZNK5outer5thing3getEi",
					"_ZN5outer4textB5cxx11ERKNS_5thingE",
					"_ZN5outer12_GLOBAL__N_16hiddenEi"};

static void expect_functions(struct fake *f, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		expect_agreement(f, name, name, functions[i]);
}

static void functions_and_lines(void **state)
{
	static const char *const flags[] = {"-g", "-g -gdwarf-4", "-g -gz", "-g -no-pie -fno-pie"};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		build(*state, "g++", "gcc", flags[i], "prog");
		expect_functions(*state, "prog");
	}
}

static void other_compilers_and_layouts(void **state)
{
	struct fake *f = *state;

	if (system("command -v clang >/dev/null") == 0) {
		build(f, "clang++", "clang", "-g -gno-column-info", "prog");
		expect_agreement(f, "prog", "prog", functions[4]);
	} else {
		print_message("# no clang here: its debug information is not looked at\n");
	}
	/* Functions in files of their own, which addr2line does not read: the same code is asked
	 * for with all in one file. */
	build(f, "g++", "gcc", "-g", "whole");
	build(f, "g++", "gcc", "-g -gsplit-dwarf", "prog");
	expect_agreement(f, "prog", "whole", functions[4]);
}

/* -- separate debug files ------------------------------------------------------------------- */

static void expect_hidden(struct fake *f, const char *name, uint64_t address, const char *file,
			  int line)
{
	struct symbols *s = new_symbols();
	struct frame frames[FRAMES_MAX];
	struct traced t;
	int n = lookup(s, open_module(s, traced(f, name, &t)), address, frames);

	assert_int_equal(n, 1);
	if (file) {
		assert_string_equal(base_name(frames[0].file), file);
		assert_int_equal(frames[0].line, line);
		assert_string_equal(frames[0].function,
				    "outer::(anonymous namespace)::hidden(int)");
	} else {
		assert_null(frames[0].file);
		assert_int_equal(frames[0].line, 0);
	}
	symbols_free(s);
}

static void separate_debug_file(void **state)
{
	struct fake *f = *state;
	uint64_t hidden;

	build(f, "g++", "gcc", "-g", "prog");
	hidden = address_of(f, "prog", functions[4]);
	sh(f, "objcopy --only-keep-debug prog prog.debug && strip prog && "
	      "objcopy --add-gnu-debuglink=prog.debug prog");
	expect_hidden(f, "prog", hidden, "one.cc", 25);
	sh(f, "mkdir .debug && mv prog.debug .debug");
	expect_hidden(f, "prog", hidden, "one.cc", 25);

	/* Of another build: not used, whatever its name. */
	sh(f, "mv prog mine && mv .debug/prog.debug .debug/mine.debug");
	build(f, "g++", "gcc", "-g -O1", "prog");
	sh(f, "objcopy --only-keep-debug prog .debug/prog.debug");
	expect_hidden(f, "mine", hidden, NULL, 0);
	sh(f, "mv .debug/mine.debug .debug/prog.debug");
	expect_hidden(f, "mine", hidden, "one.cc", 25);
}

/* -- symbol tables -------------------------------------------------------------------------- */

static void expect_name(struct symbols *s, struct symbols_module *mod, uint64_t address,
			const char *name)
{
	struct frame frame;

	assert_int_equal(lookup(s, mod, address, &frame), 1);
	assert_null(frame.file);
	assert_int_equal(frame.line, 0);
	if (name)
		assert_string_equal(frame.function, name);
	else
		assert_null(frame.function);
}

static void symbol_table_only(void **state)
{
	struct fake *f = *state;
	struct symbols *s = new_symbols();
	struct symbols_module *mod;
	struct traced t;
	uint64_t at;

	build(f, "g++", "gcc", "-g", "prog");
	sh(f, "strip -g prog");
	mod = open_module(s, traced(f, "prog", &t));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		static const char *const names[] = {"main", "sink", "outer::thing::get(int) const",
						    "outer::text[abi:cxx11](outer::thing const&)",
						    "outer::(anonymous namespace)::hidden(int)"};

		at = address_of(f, "prog", functions[i]);
		expect_name(s, mod, at, names[i]);
		expect_name(s, mod, at + size_of(f, "prog", functions[i]) - 1, names[i]);
	}
	expect_name(s, mod, 0, NULL);
	expect_name(s, mod, UINT64_MAX - 1, NULL);
	symbols_free(s);
}

/* One byte of code each where nothing else is said. */
static const char symbols_s[] =
	".text\n.globl here\nhere:\nnop\n"                         /* 0: no size, to the next */
	"nop\n"                                                    /* 1 */
	".globl __libc_take, take, _take\n.type take, @function\n" /* 2: aliases */
	".type __libc_take, @function\n.type _take, @function\n"
	"__libc_take:\ntake:\n_take:\na_local_name:\nnop\n"
	"inside:\nnop\n" /* 3: a mere label */
	".size take, 2\n.size __libc_take, 2\n.size _take, 2\n"
	"nop\n"                                                 /* 4: beyond its size */
	".type big, @function\nbig:\nnop\n"                     /* 5 */
	".type small, @function\nsmall:\nnop\n.size small, 1\n" /* 6: within the other */
	"nop\n.size big, 3\n"                                   /* 7 */
	".type longer, @function\n.type short, @function\n"     /* 8: both local */
	"longer:\nshort:\nnop\n.size longer, 1\n.size short, 1\n"
	".globl _RNvCs15kBYyAo9fc_7mycrate7example\n" /* 9 */
	"_RNvCs15kBYyAo9fc_7mycrate7example:\nnop\n"
	".globl _ZN4core3fmt9Formatter3pad17h0123456789abcdefE\n" /* 10 */
	"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE:\nnop\n"
	".globl _Znot_mangled\n_Znot_mangled:\nnop\n" /* 11 */
	".symver old, versioned@VERS_1\n.globl old\n" /* 12 */
	"old:\nnop\n"
	"last:\nnop\n" /* 13 */
	".data\n.globl datum\ndatum: .quad 0\n";

static void which_symbol(void **state)
{
	static const char *const names[] = {"here",
					    "here",
					    "take",
					    "take",
					    NULL,
					    "big",
					    "small",
					    "big",
					    "short",
					    "mycrate::example",
					    "core::fmt::Formatter::pad",
					    "_Znot_mangled",
					    NULL /* below */,
					    "last"};
	struct fake *f = *state;
	struct symbols *s = new_symbols();
	struct symbols_module *mod;
	struct frame frame;
	struct traced t;
	uint64_t at;

	fake_file(f, "/in.s", symbols_s);
	fake_file(f, "/map", "VERS_1 { global: *; };\n");
	sh(f, "cc -shared -nostdlib -Wl,--build-id,--version-script=map -o lib.so in.s");
	at = address_of(f, "lib.so", "here");
	mod = open_module(s, traced(f, "lib.so", &t));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (i != 12)
			expect_name(s, mod, at + i, names[i]);
	}
	assert_int_equal(lookup(s, mod, at + 12, &frame), 1);
	assert_true(strcmp(frame.function, "old") == 0 || strcmp(frame.function, "versioned") == 0);
	expect_name(s, mod, at + ARRAY_SIZE(names), NULL); /* beyond the section */
	expect_name(s, mod, address_of(f, "lib.so", "datum"), NULL);

	/* Local names gone: what was theirs has no name, not its neighbour's. */
	sh(f, "strip -s -o stripped.so lib.so");
	mod = open_module(s, traced(f, "stripped.so", &t));
	expect_name(s, mod, at + 2, "take");
	expect_name(s, mod, at + 4, NULL);
	expect_name(s, mod, at + 9, "mycrate::example");
	symbols_free(s);
}

/* -- which file ----------------------------------------------------------------------------- */

static void expect_none(struct symbols *s, const struct module *m, int fd, const char *why)
{
	struct frame frame;
	const char *said = NULL;

	assert_null(symbols_module(s, m, fd, &said));
	assert_string_equal(said, why);
	assert_int_equal(lookup(s, NULL, 0x1234, &frame), 1);
	assert_null(frame.function);
	assert_null(frame.file);
}

static void another_file(void **state)
{
	struct fake *f = *state;
	struct symbols *s = new_symbols();
	struct symbols_module *mod;
	const char *why;
	struct traced t;
	uint64_t sink;
	int fd;

	build(f, "g++", "gcc", "", "prog");
	traced(f, "prog", &t);
	sink = address_of(f, "prog", "sink");
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	sh(f, "rm prog");
	expect_none(s, &t.m, -1, "deleted since it was traced");
	build(f, "g++", "gcc", "-O1", "prog");
	expect_none(s, &t.m, -1, "replaced since it was traced");
	fake_remove(f, "/prog");
	fake_file(f, "/prog", "#!/bin/sh\n");
	expect_none(s, &t.m, -1, "replaced since it was traced");

	/* The file itself is still open. */
	mod = symbols_module(s, &t.m, fd, &why);
	assert_non_null(mod);
	close(fd);
	expect_name(s, mod, sink, "sink");
	symbols_free(s);
}

static void without_build_id(void **state)
{
	struct fake *f = *state;
	struct symbols *s = new_symbols();
	struct symbols_module *mod;
	const char *why;
	struct traced t;
	int fd;

	build(f, "g++", "gcc", "-Wl,--build-id=none", "prog");
	sh(f, "gcc -Wl,--build-id=none -o prog one.o two.o -lstdc++");
	traced(f, "prog", &t);
	assert_int_equal(t.m.build_id_len, 0);
	expect_none(s, &t.m, -1, "it has no build id to know it by");
	fd = open(t.path, O_RDONLY | O_CLOEXEC);
	mod = symbols_module(s, &t.m, fd, &why);
	assert_non_null(mod);
	close(fd);
	expect_name(s, mod, address_of(f, "prog", "sink"), "sink");
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	expect_none(s, &t.m, fd, "no ELF file");
	close(fd);
	symbols_free(s);
}

/* Room for fewer frames than there are: the innermost ones. */
static void as_many_as_wanted(void **state)
{
	struct fake *f = *state;
	struct symbols *s = new_symbols();
	struct frame frames[FRAMES_MAX], fewer[FRAMES_MAX];
	struct symbols_module *mod;
	struct traced t;
	uint64_t at;
	int n = 0;

	build(f, "g++", "gcc", "-g", "prog");
	mod = open_module(s, traced(f, "prog", &t));
	at = address_of(f, "prog", functions[2]); /* get > twice > deepest */
	while (n < 3)
		n = lookup(s, mod, ++at, frames);
	assert_int_equal(n, 3);
	for (int max = 1; max < n; max++) {
		struct frame_ref ref = {1, at + 1};

		assert_int_equal(symbols_lookup(s, mod, ref, fewer, max), max);
		for (int i = 0; i < max; i++) {
			assert_ptr_equal(fewer[i].function, frames[i].function);
			assert_ptr_equal(fewer[i].file, frames[i].file);
			assert_int_equal(fewer[i].line, frames[i].line);
			assert_true(fewer[i].is_inline);
		}
	}
	symbols_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(functions_and_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(other_compilers_and_layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(separate_debug_file, setup, teardown),
		cmocka_unit_test_setup_teardown(symbol_table_only, setup, teardown),
		cmocka_unit_test_setup_teardown(which_symbol, setup, teardown),
		cmocka_unit_test_setup_teardown(another_file, setup, teardown),
		cmocka_unit_test_setup_teardown(without_build_id, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_as_wanted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
