/* Instruction lengths, checked by hand and against objdump, and where probes are placed. */
#include "tracer/insn.h"
#include "tracer/place.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct code {
	const uint8_t *p;
	size_t n;
};

#define CODE(...) \
	((struct code){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static struct insn decode(struct code c)
{
	struct insn in;

	assert_int_equal(insn_decode(&in, c.p, c.n), 0);
	assert_int_equal(in.length, c.n);
	/* Nothing is read beyond its end, nor is less enough. */
	for (size_t n = 0; n < c.n; n++)
		assert_int_equal(insn_decode(&in, c.p, n), -EINVAL);
	assert_int_equal(insn_decode(&in, c.p, c.n), 0);
	return in;
}

static void refuse(struct code c)
{
	struct insn in;

	assert_int_equal(insn_decode(&in, c.p, c.n), -EINVAL);
}

static void lengths(void **state)
{
	(void)state;
	decode(CODE(0xc3));                                        /* ret */
	decode(CODE(0xf3, 0x0f, 0x1e, 0xfa));                      /* endbr64 */
	decode(CODE(0x80, 0x3d, 0x01, 0x02, 0x14, 0x00, 0x00));    /* cmpb $0,x(%rip) */
	decode(CODE(0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0)); /* mov %fs:0x28,%rax */
	decode(CODE(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8));          /* movabs */
	decode(CODE(0x66, 0xb8, 1, 2));                            /* mov $x,%ax */
	decode(CODE(0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8));          /* movabs x,%rax */
	decode(CODE(0x66, 0x81, 0xf9, 1, 2));                      /* cmp $x,%cx */
	decode(CODE(0x48, 0x81, 0xf9, 1, 2, 3, 4));                /* cmp $x,%rcx */
	decode(CODE(0xf6, 0xc1, 1));                               /* test $1,%cl */
	decode(CODE(0xf6, 0xd1));                                  /* not %cl */
	decode(CODE(0xf7, 0xc1, 1, 0, 0, 0));                      /* test $1,%ecx */
	decode(CODE(0x48, 0x8d, 0x44, 0x24, 0x08));                /* lea 8(%rsp),%rax */
	decode(CODE(0x48, 0x8d, 0x04, 0x85, 1, 2, 3, 4));          /* lea x(,%rax,4),%rax */
	decode(CODE(0xc8, 1, 2, 3));                               /* enter */
	decode(CODE(0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8));             /* palignr */
	decode(CODE(0xc5, 0xf8, 0x77));                            /* vzeroupper */
	decode(CODE(0xc5, 0xf9, 0x70, 0xc1, 5));                   /* vpshufd */
	decode(CODE(0xc4, 0xe2, 0x7d, 0x78, 0xc0));                /* vpbroadcastb */
	decode(CODE(0x62, 0xf2, 0x7d, 0x28, 0x7a, 0xc6));          /* EVEX vpbroadcastb */
	decode(CODE(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0)); /* nopw */
	decode(CODE(0x66, 0x66, 0x48, 0xe8, 1, 2, 3, 4));          /* data16 call */
}

static void refused(void **state)
{
	(void)state;
	refuse(CODE(0x06));                                         /* push %es */
	refuse(CODE(0xea, 0, 0, 0, 0, 0, 0));                       /* far jump */
	refuse(CODE(0xc7, 0xf8, 0, 0, 0, 0));                       /* xbegin */
	refuse(CODE(0x66, 0xe9, 0, 0, 0, 0));                       /* 2 or 4 bytes */
	refuse(CODE(0x8f, 0xe8, 0x78, 0xc2, 0xec, 0x0e));           /* XOP */
	refuse(CODE(0x0f, 0x0f, 0xc1, 0x9e));                       /* 3DNow! */
	refuse(CODE(0x48, 0x48, 0x89, 0xc0));                       /* REX twice */
	refuse(CODE(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, /* 16 bytes */
		    0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90));
}

static void branches(void **state)
{
	struct insn in;

	(void)state;
	in = decode(CODE(0x74, 0xfe)); /* je to itself */
	assert_true(in.is_branch && in.is_emulated);
	assert_int_equal(in.target, -2);
	in = decode(CODE(0x0f, 0x84, 0xbf, 0, 0, 0));
	assert_true(in.is_branch && in.is_emulated);
	assert_int_equal(in.target, 0xbf);
	in = decode(CODE(0xe9, 0xfc, 0xff, 0xff, 0xff));
	assert_true(in.is_branch && in.is_emulated);
	assert_int_equal(in.target, -4);
	in = decode(CODE(0xe3, 5)); /* jrcxz: stepped */
	assert_true(in.is_branch && !in.is_emulated);
	assert_true(decode(CODE(0xff, 0xe0)).is_computed);                   /* jmp *%rax */
	assert_true(decode(CODE(0x3e, 0xff, 0xe0)).is_computed);             /* notrack */
	assert_true(decode(CODE(0xff, 0x24, 0xc5, 0, 0, 0, 0)).is_computed); /* a table */
	assert_false(decode(CODE(0xff, 0x25, 0, 0, 0, 0)).is_computed);      /* jmp *x(%rip) */
	assert_false(decode(CODE(0xff, 0xd0)).is_computed);                  /* call *%rax */
}

static void emulated(void **state)
{
	(void)state;
	assert_true(decode(CODE(0x55)).is_emulated);
	assert_true(decode(CODE(0x41, 0x57)).is_emulated);
	assert_false(decode(CODE(0x48, 0x55)).is_emulated);
	assert_false(decode(CODE(0x5d)).is_emulated);
	assert_true(decode(CODE(0x90)).is_emulated);
	assert_false(decode(CODE(0x41, 0x90)).is_emulated); /* xchg %r8,%rax */
	assert_false(decode(CODE(0x66, 0x90)).is_emulated);
	assert_false(decode(CODE(0x0f, 0x1f, 0x40, 0)).is_emulated);
	assert_true(decode(CODE(0xe8, 0, 0, 0, 0)).is_emulated);
	assert_false(decode(CODE(0xf3, 0x0f, 0x1e, 0xfa)).is_emulated);
	assert_false(decode(CODE(0xc3)).is_emulated);
	assert_false(decode(CODE(0xc5, 0xf8, 0x55, 0xc1)).is_emulated); /* vandnps */
}

static void harmless(void **state)
{
	static const struct {
		uint8_t code[8], n;
		bool is_harmless;
	} c[] = {
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, true},  /* endbr64 */
		{{0xf3, 0x0f, 0x1e, 0xc8}, 4, false}, /* rdsspd %eax */
		{{0x48, 0x85, 0xff}, 3, true},        /* test %rdi,%rdi */
		{{0x48, 0x39, 0x07}, 3, true},        /* cmp %rax,(%rdi) */
		{{0x48, 0x83, 0x3f, 0}, 4, true},     /* cmpq $0,(%rdi) */
		{{0x48, 0x83, 0x07, 1}, 4, false},    /* addq $1,(%rdi) */
		{{0x48, 0x83, 0xc0, 1}, 4, true},     /* add $1,%rax */
		{{0x48, 0x83, 0xec, 8}, 4, false},    /* sub $8,%rsp */
		{{0x48, 0x83, 0xc7, 1}, 4, false},    /* add $1,%rdi */
		{{0x31, 0xc0}, 2, true},              /* xor %eax,%eax */
		{{0x31, 0xd2}, 2, false},             /* xor %edx,%edx */
		{{0x41, 0x89, 0xca}, 3, true},        /* mov %ecx,%r10d */
		{{0x48, 0x89, 0xc8}, 3, true},        /* mov %rcx,%rax */
		{{0x48, 0x89, 0x08}, 3, false},       /* mov %rcx,(%rax) */
		{{0x48, 0x89, 0xfb}, 3, false},       /* mov %rdi,%rbx: unsaved */
		{{0x4c, 0x89, 0xc7}, 3, false},       /* mov %r8,%rdi */
		{{0x48, 0x8b, 0x07}, 3, true},        /* mov (%rdi),%rax */
		{{0x48, 0x8b, 0x3f}, 3, false},       /* mov (%rdi),%rdi */
		{{0x4c, 0x8b, 0x17}, 3, true},        /* mov (%rdi),%r10 */
		{{0x49, 0xba, 0}, 10, true},          /* movabs $x,%r10 */
		{{0xba, 1}, 5, false},                /* mov $1,%edx */
		{{0x41, 0xb8, 1}, 6, false},          /* mov $1,%r8d */
		{{0xb8, 1}, 5, true},                 /* mov $1,%eax */
		{{0x0f, 0xb6, 0x07}, 3, true},        /* movzbl (%rdi),%eax */
		{{0x0f, 0xb6, 0x0f}, 3, false},       /* movzbl (%rdi),%ecx */
		{{0x87, 0xc0}, 2, false},             /* xchg */
		{{0xf0, 0x48, 0x01, 0x07}, 4, false}, /* lock add */
		{{0xff, 0xc0}, 2, false},             /* inc: not worth knowing */
		{{0xf7, 0xe6}, 2, false},             /* mul %esi: writes edx */
		{{0x0f, 0x05}, 2, false},             /* syscall */
		{{0x66, 0x90}, 2, true},              /* nop */
		{{0x0f, 0x1f, 0x40, 0}, 4, true},     /* nop */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint8_t code[16] = {0};
		struct insn in;

		memcpy(code, c[i].code, sizeof(c[i].code));
		assert_int_equal(insn_decode(&in, code, sizeof(code)), 0);
		if (in.length != c[i].n || in.is_harmless != c[i].is_harmless)
			fail_msg("row %zu: length %d, harmless %d", i, in.length, in.is_harmless);
	}
}

static size_t place(struct code c)
{
	return place_probe(c.p, c.n);
}

static void places(void **state)
{
	(void)state;
	/* push first */
	assert_int_equal(place(CODE(0x55, 0x5d, 0xc3)), 0);
	/* endbr64; push; pop; ret */
	assert_int_equal(place(CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x5d, 0xc3)), 4);
	/* test %rdi,%rdi; je; ret, ret: as free of glibc 2.36 */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0xc3)), 3);
	/* cmpb x(%rip); push: as posix_memalign of glibc 2.36 */
	assert_int_equal(place(CODE(0x80, 0x3d, 1, 2, 3, 4, 0, 0x41, 0x54, 0x41, 0x5c, 0xc3)), 7);
	/* an argument is changed before: mov %rsi,%rdi; push */
	assert_int_equal(place(CODE(0x48, 0x89, 0xf7, 0x55, 0x5d, 0xc3)), 0);
	/* rsp is: sub $8,%rsp; je */
	assert_int_equal(place(CODE(0x48, 0x83, 0xec, 8, 0x74, 0, 0xc3)), 0);
	/* nothing emulated: xor %eax,%eax; ret */
	assert_int_equal(place(CODE(0x31, 0xc0, 0xc3)), 0);
	assert_int_equal(place(CODE(0xc3)), 0);
	assert_int_equal(place(CODE(0x85)), 0);
	assert_int_equal(place_probe(NULL, 0), 0);
}

static void branch_back(void **state)
{
	(void)state;
	/* test; je +1; ret; jmp to the entry */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0xeb, 0xf8)), 3);
	/* to the je itself */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0xeb, 0xfb)), 0);
	/* behind it */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0xeb, 0xfd)), 3);
	/* endbr64; loop: test; je; jmp loop, by a long jump */
	assert_int_equal(place(CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 5, 0xe9, 0xf6,
				    0xff, 0xff, 0xff, 0xc3)),
			 0);
	/* the je leads to itself */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 0xfe, 0xc3)), 0);
	/* a jump table may lead anywhere */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 2, 0xff, 0xe0, 0xc3)), 0);
	/* what is not understood may do anything */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0x06, 0xc3)), 0);
	/* the last instruction is cut off */
	assert_int_equal(place(CODE(0x48, 0x85, 0xff, 0x74, 1, 0xc3, 0x48)), 0);
}

/* 32 bytes may be skipped, no more: nops of four bytes, then push. */
static void far_away(void **state)
{
	uint8_t code[40];

	(void)state;
	for (size_t skipped = 28; skipped <= 36; skipped += 4) {
		for (size_t i = 0; i < skipped; i += 4)
			memcpy(code + i, (const uint8_t[]){0x0f, 0x1f, 0x40, 0}, 4);
		memcpy(code + skipped, (const uint8_t[]){0x55, 0x5d, 0xc3}, 3);
		assert_int_equal(place_probe(code, skipped + 3), skipped <= 32 ? skipped : 0);
	}
}

/* One line of objdump -d -w: "  address:\tbytes \tinstruction". 0: it is none. */
static size_t read_line(const char *line, unsigned long *ret_address, uint8_t bytes[16])
{
	size_t n = 0;
	int at = 0; /* stays 0 where the colon is missing */

	if (sscanf(line, " %lx:\t%n", ret_address, &at) != 1 || at == 0)
		return 0;
	for (unsigned v; n < 16 && line[at] > ' ' && sscanf(line + at, "%2x", &v) == 1; at += 3)
		bytes[n++] = v;
	return n;
}

static void agrees_with_objdump(void **state)
{
	FILE *p = popen("objdump -d -w --insn-width=16 /lib/x86_64-linux-gnu/libc.so.6", "r");
	unsigned long function = 0, address, same = 0, refused_n = 0;
	char line[512];

	(void)state;
	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		uint8_t bytes[16] = {0};
		struct insn in;
		size_t n = read_line(line, &address, bytes);

		if (n == 0 && sscanf(line, "%lx <", &address) == 1)
			function = address;
		if (n == 0 || address - function >= 64 || strstr(line, "(bad)"))
			continue;
		if (insn_decode(&in, bytes, sizeof(bytes)) < 0)
			refused_n++;
		else if (in.length == n)
			same++;
		else
			fail_msg("%d bytes: %s", in.length, line);
	}
	assert_int_equal(pclose(p), 0);
	print_message("%lu instructions alike, %lu refused\n", same, refused_n);
	assert_true(same > 20000);
	assert_true(refused_n <= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(refused),
		cmocka_unit_test(branches),
		cmocka_unit_test(emulated),
		cmocka_unit_test(harmless),
		cmocka_unit_test(places),
		cmocka_unit_test(branch_back),
		cmocka_unit_test(far_away),
		cmocka_unit_test(agrees_with_objdump),
	};

	return cmocka_run_group_tests_name("insn", tests, NULL, NULL);
}
