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

static struct agreement agree(struct fake *f, const struct module *m, uint64_t from, uint64_t to)
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

	(void)snprintf(command, sizeof(command), "addr2line -aCfi -e %s <%s/addresses", m->path,
		       fake_path(f));
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

static void expect_agreement(struct fake *f, const char *name, const char *first, uint64_t bytes)
{
	struct traced t;
	uint64_t from = address_of(f, name, first);
	struct agreement a = agree(f, traced(f, name, &t), from, from + bytes);

	print_message("# %s: %d addresses, %d frames, %d inlined, %d wrong\n", name, a.addresses,
		      a.frames, a.inlined, a.wrong);
	assert_int_equal(a.wrong, 0);
	assert_true(a.addresses > 5 && a.inlined > 0);
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
		expect_agreement(f, name, functions[i], size_of(f, name, functions[i]));
}

static void functions_and_lines(void **state)
{
	static const char *const flags[] = {"-g", "-g -gdwarf-4", "-g -gz", "-g -no-pie -fno-pie"};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		build(*state, "g++", "gcc", flags[i], "prog");
		expect_functions(*state, "prog");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(functions_and_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
