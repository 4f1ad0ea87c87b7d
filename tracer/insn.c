/* Decoding x86-64 instructions; see insn.h. */
#include "tracer/insn.h"

#include <errno.h>

/* What follows an opcode. 0: not known, or not valid in 64-bit mode. */
enum {
	N = 1,    /* nothing */
	M = 2,    /* ModRM with what it asks for */
	B = 4,    /* an immediate of one byte */
	W = 8,    /* of two */
	Z = 16,   /* of four, with prefix 66 of two */
	V = 32,   /* as Z, with REX.W of eight */
	J1 = 64,  /* a branch distance of one byte */
	J4 = 128, /* of four */
};

/* From 50 on; the rows before are eight times the same, and REX. */
static const uint8_t map_one[256] = {
	[0x50 ... 0x5f] = N,  [0x63] = M,           [0x68] = Z,
	[0x69] = M | Z,       [0x6a] = B,           [0x6b] = M | B,
	[0x6c ... 0x6f] = N,  [0x70 ... 0x7f] = J1, [0x80] = M | B,
	[0x81] = M | Z,       [0x83] = M | B,       [0x84 ... 0x8e] = M,
	[0x90 ... 0x99] = N,  [0x9b ... 0x9f] = N,  [0xa4 ... 0xa7] = N,
	[0xa8] = B,           [0xa9] = Z,           [0xaa ... 0xaf] = N,
	[0xb0 ... 0xb7] = B,  [0xb8 ... 0xbf] = V,  [0xc0 ... 0xc1] = M | B,
	[0xc2] = W,           [0xc3] = N,           [0xc6] = M | B,
	[0xc7] = M | Z,       [0xc8] = W | B,       [0xc9] = N,
	[0xca] = W,           [0xcb ... 0xcc] = N,  [0xcd] = B,
	[0xcf] = N,           [0xd0 ... 0xd3] = M,  [0xd7] = N,
	[0xd8 ... 0xdf] = M,  [0xe0 ... 0xe3] = J1, [0xe4 ... 0xe7] = B,
	[0xe8 ... 0xe9] = J4, [0xeb] = J1,          [0xec ... 0xef] = N,
	[0xf1] = N,           [0xf4 ... 0xf5] = N,  [0xf6 ... 0xf7] = M,
	[0xf8 ... 0xfd] = N,  [0xfe ... 0xff] = M};

static const uint8_t map_0f[256] = {
	[0x00 ... 0x03] = M,  [0x05 ... 0x09] = N, [0x0b] = N,
	[0x0d] = M,           [0x10 ... 0x23] = M, [0x28 ... 0x2f] = M,
	[0x30 ... 0x35] = N,  [0x40 ... 0x6f] = M, [0x70 ... 0x73] = M | B,
	[0x74 ... 0x76] = M,  [0x77] = N,          [0x7c ... 0x7f] = M,
	[0x80 ... 0x8f] = J4, [0x90 ... 0x9f] = M, [0xa0 ... 0xa2] = N,
	[0xa3] = M,           [0xa4] = M | B,      [0xa5] = M,
	[0xa8 ... 0xaa] = N,  [0xab] = M,          [0xac] = M | B,
	[0xad ... 0xb9] = M,  [0xba] = M | B,      [0xbb ... 0xc1] = M,
	[0xc2] = M | B,       [0xc3] = M,          [0xc4 ... 0xc6] = M | B,
	[0xc7] = M,           [0xc8 ... 0xcf] = N, [0xd0 ... 0xff] = M};

struct decoder {
	const uint8_t *code;
	size_t n, at;
	bool is_16bit, is_address32, is_lock, is_repeat; /* prefixes */
	bool has_prefix;
	uint8_t rex;
	int map; /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
	bool is_vex;
	uint8_t op, mod, reg, rm; /* reg and rm with the bits from REX */
};

static bool take(struct decoder *d, uint8_t *ret)
{
	if (d->at >= d->n)
		return false;
	*ret = d->code[d->at++];
	return true;
}

static bool is_prefix(struct decoder *d, uint8_t byte)
{
	switch (byte) {
	case 0x66:
		d->is_16bit = true;
		return true;
	case 0x67:
		d->is_address32 = true;
		return true;
	case 0xf0:
		d->is_lock = true;
		return true;
	case 0xf2:
	case 0xf3:
		d->is_repeat = true;
		return true;
	case 0x26: /* segments */
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
		return true;
	default:
		return false;
	}
}

/* VEX and EVEX: the map is in the prefix, no other prefix may go before. */
static bool take_vex(struct decoder *d, uint8_t first)
{
	uint8_t byte, skip = first == 0xc4 ? 1 : 2;

	if (d->has_prefix || d->rex || !take(d, &byte))
		return false;
	d->is_vex = true;
	d->map = 1;
	if (first != 0xc5) {
		d->map = byte & (first == 0x62 ? 7 : 31);
		if (d->at + skip > d->n)
			return false;
		d->at += skip;
	}
	return (d->map >= 1 && d->map <= 3) || (first == 0x62 && (d->map == 5 || d->map == 6));
}

static bool take_opcode(struct decoder *d)
{
	uint8_t byte;

	do {
		if (!take(d, &byte))
			return false;
	} while (is_prefix(d, byte));
	d->has_prefix = d->at > 1;
	if ((byte & 0xf0) == 0x40) {
		d->rex = byte;
		if (!take(d, &byte))
			return false;
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
		if (!take_vex(d, byte) || !take(d, &byte))
			return false;
	} else if (byte == 0x0f) {
		d->map = 1;
		if (!take(d, &byte))
			return false;
		if (byte == 0x38 || byte == 0x3a) {
			d->map = byte == 0x38 ? 2 : 3;
			if (!take(d, &byte))
				return false;
		}
	}
	d->op = byte;
	return true;
}

static uint8_t operands(const struct decoder *d)
{
	static const uint8_t alu[8] = {M, M, M, M, B, Z, 0, 0};

	if (d->map == 0 && d->op < 0x40)
		return alu[d->op & 7];
	if (d->map == 0) /* mov with an absolute address is as long as the address */
		return d->op >= 0xa0 && d->op <= 0xa3 ? N : map_one[d->op];
	if (d->map == 1)
		return d->is_vex && map_0f[d->op] & J4 ? M : map_0f[d->op];
	return d->map == 3 ? M | B : M;
}

static bool take_modrm(struct decoder *d)
{
	uint8_t byte, sib = 0, base;

	if (!take(d, &byte))
		return false;
	d->mod = byte >> 6;
	d->reg = (byte >> 3 & 7) | (d->rex & 4) << 1;
	d->rm = (byte & 7) | (d->rex & 1) << 3;
	if (d->mod == 3)
		return true;
	base = byte & 7;
	if (base == 4) {
		if (!take(d, &sib))
			return false;
		base = sib & 7;
	}
	if (d->mod == 1)
		d->at += 1;
	else if (d->mod == 2 || base == 5)
		d->at += 4;
	return true;
}

static size_t immediate_size(const struct decoder *d, uint8_t what)
{
	size_t z = d->is_16bit && !(d->rex & 8) ? 2 : 4, size = 0;

	if (d->map == 0 && d->op >= 0xa0 && d->op <= 0xa3)
		return d->is_address32 ? 4 : 8;
	if (d->map == 0 && (d->op & 0xfe) == 0xf6 && (d->reg & 7) < 2)
		return d->op == 0xf6 ? 1 : z;
	if (what & (B | J1))
		size += 1;
	if (what & W)
		size += 2;
	if (what & Z)
		size += z;
	if (what & V)
		size += d->rex & 8 ? 8 : z;
	if (what & J4)
		size += 4;
	return size;
}

/* Those whose length or meaning depends on more than the tables have. */
static bool is_refused(const struct decoder *d, uint8_t what)
{
	if (what == 0)
		return true;
	if ((what & (J1 | J4)) && d->is_16bit && !(d->rex & 8))
		return true; /* processors disagree */
	if (d->map != 0)
		return false;
	return (d->op == 0xc6 || d->op == 0xc7) && (d->reg & 7) != 0; /* transactions */
}

static bool is_scratch(uint8_t reg)
{
	return reg == 0 || reg == 10 || reg == 11;
}

static bool is_harmless_0f(const struct decoder *d)
{
	switch (d->op) {
	case 0x1e: /* endbr64 */
		return d->is_repeat && d->mod == 3 && d->reg == 7 && d->rm == 2;
	case 0x1f: /* nop */
		return !d->is_repeat;
	case 0xb6: /* movzx, movsx */
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return !d->is_repeat && is_scratch(d->reg);
	default:
		return false;
	}
}

/* The eight of the first rows (add … xor, cmp), in the forms with 32 and 64 bits. */
static bool is_harmless_alu(const struct decoder *d)
{
	bool is_cmp = d->op >> 3 == 7;

	switch (d->op & 7) {
	case 1:
		return is_cmp || (d->mod == 3 && is_scratch(d->rm));
	case 3:
		return is_cmp || is_scratch(d->reg);
	case 5:
		return true; /* rax */
	default:
		return is_cmp;
	}
}

static bool is_harmless(const struct decoder *d)
{
	if (d->is_vex || d->is_lock)
		return false;
	if (d->map == 1)
		return is_harmless_0f(d);
	if (d->map != 0 || d->is_repeat)
		return false;
	if (d->op < 0x40)
		return is_harmless_alu(d);
	switch (d->op) {
	case 0x63: /* movsxd */
	case 0x8b: /* mov from memory or a register */
	case 0x8d: /* lea */
		return is_scratch(d->reg);
	case 0x80: /* add … xor, cmp with an immediate */
	case 0x81:
	case 0x83:
		return (d->reg & 7) == 7 || (d->mod == 3 && is_scratch(d->rm));
	case 0x84: /* test */
	case 0x85:
	case 0xa8:
	case 0xa9:
		return true;
	case 0xf6:
	case 0xf7:
		return (d->reg & 7) < 2;
	case 0x89: /* mov to a register */
	case 0xc7:
		return d->mod == 3 && is_scratch(d->rm);
	case 0x90: /* with REX it is an exchange */
		return d->rex == 0;
	default: /* mov of an immediate */
		return d->op >= 0xb8 && d->op <= 0xbf &&
		       is_scratch((d->op & 7) | (d->rex & 1) << 3);
	}
}

/* As arch/x86/kernel/uprobes.c does it on every kernel with BPF programs on uprobes: without
 * prefixes, of REX only 41 with push. The longer nops came later. */
static bool is_emulated(const struct decoder *d, uint8_t what)
{
	if (d->has_prefix || d->is_vex)
		return false;
	if (d->map == 0 && d->op >= 0x50 && d->op <= 0x57)
		return d->rex == 0 || d->rex == 0x41;
	if (d->rex)
		return false;
	if (d->map == 0 && d->op >= 0xe0 && d->op <= 0xe3)
		return false; /* loop, jrcxz */
	return (what & (J1 | J4)) || (d->map == 0 && d->op == 0x90);
}

static int32_t distance(const uint8_t *p, uint8_t what)
{
	if (what & J1)
		return (int8_t)p[0];
	return (int32_t)(p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);
}

int insn_decode(struct insn *ret, const uint8_t *code, size_t n)
{
	struct decoder d = {.code = code, .n = MIN(n, INSN_MAX)};
	uint8_t what;
	size_t size;

	if (!take_opcode(&d))
		return -EINVAL;
	what = operands(&d);
	if ((what & M) && !take_modrm(&d))
		return -EINVAL;
	if (is_refused(&d, what))
		return -EINVAL;
	size = immediate_size(&d, what);
	if (d.at + size > d.n)
		return -EINVAL;
	*ret = (struct insn){
		.length = d.at + size,
		.is_branch = what & (J1 | J4),
		.is_emulated = is_emulated(&d, what),
		.is_harmless = is_harmless(&d),
	};
	if (ret->is_branch)
		ret->target = distance(code + d.at, what);
	/* jmp through a pointer at a fixed address leaves the function. */
	ret->is_computed = d.map == 0 && d.op == 0xff && ((d.reg & 7) == 4 || (d.reg & 7) == 5) &&
			   !(d.mod == 0 && (d.rm & 7) == 5);
	return 0;
}
