#include "tracer/unwind.h"

#include <string.h>

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13, R14, R15, RIP };

struct walk {
	const struct unwind_env *env;
	const struct capture *capture;
	uint64_t ip; /* a return address, or 1 past an exact pc */
	uint64_t rsp, rbp;
	bool has_rbp;
	bool is_guessed;
	int depth;
};

static bool read_word(void *ctx, uint64_t address, uint64_t *ret)
{
	const struct capture *c = ctx;
	uint64_t off = address - c->base;

	if (address < c->base || c->len < sizeof(*ret) || off > c->len - sizeof(*ret))
		return false;
	memcpy(ret, c->bytes + off, sizeof(*ret));
	return true;
}

static bool word(const struct walk *w, uint64_t address, uint64_t *ret)
{
	return read_word((void *)w->capture, address, ret);
}

/* The mapping that a return address's call is in; NULL = none. */
static const struct range *find_range(const struct unwind_env *env, uint64_t ip)
{
	size_t low = 0, high = env->n_ranges;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (env->ranges[mid].start < ip)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && ip <= env->ranges[low - 1].end ? &env->ranges[low - 1] : NULL;
}

static struct cfi *find_cfi(const struct unwind_env *env, const struct range *range)
{
	return range && range->module ? env->get_cfi(env->ctx, range->module) : NULL;
}

static bool row_base(const struct walk *w, u8 base, uint64_t cfa, uint64_t *ret)
{
	switch (base) {
	case ROW_CFA:
		*ret = cfa;
		return true;
	case ROW_RSP:
		*ret = w->rsp;
		return true;
	case ROW_RBP:
		*ret = w->rbp;
		return w->has_rbp;
	}
	return false;
}

static bool step_row(struct walk *w, const struct row *row)
{
	uint64_t cfa, ra, rbp;

	if (!row_base(w, row->cfa_base, 0, &cfa))
		return false;
	cfa += (int64_t)row->cfa_off;
	if (row->cfa_deref && !word(w, cfa, &cfa))
		return false;
	if (!row_base(w, row->ra_base, cfa, &ra) || !word(w, ra + (int64_t)row->ra_off, &w->ip))
		return false;
	if (row->rbp_base != ROW_NONE)
		w->has_rbp = row_base(w, row->rbp_base, cfa, &rbp) &&
			     word(w, rbp + (int64_t)row->rbp_off, &w->rbp);
	w->rsp = cfa;
	return true;
}

/* Without unwind information: rbp for a frame pointer, if what it points to looks like a frame.
 * 0 in it marks the first frame of a process or thread (System V ABI for x86-64, 3.4.1). */
static bool step_guess(struct walk *w)
{
	uint64_t ra, rbp;

	if (w->has_rbp && w->rbp == 0) {
		w->is_guessed = true;
		w->ip = 0;
		w->rsp++;
		return true;
	}
	if (!w->has_rbp || w->rbp < w->rsp || !word(w, w->rbp, &rbp) || !word(w, w->rbp + 8, &ra) ||
	    !find_range(w->env, ra))
		return false;
	w->is_guessed = true;
	w->ip = ra;
	w->rsp = w->rbp + 16;
	w->rbp = rbp;
	return true;
}

static struct cfi_regs first_regs(const struct capture *c)
{
	struct cfi_regs regs = {.known = 1 << RBP | 1 << RSP | 1 << RIP};

	regs.r[RBX] = c->rbx;
	regs.r[RBP] = c->rbp;
	regs.r[RSP] = c->rsp;
	regs.r[R12] = c->r12;
	regs.r[R13] = c->r13;
	regs.r[R14] = c->r14;
	regs.r[R15] = c->r15;
	regs.r[RIP] = c->ip;
	if (c->has_registers)
		regs.known |= 1 << RBX | 1 << R12 | 1 << R13 | 1 << R14 | 1 << R15;
	return regs;
}

/* A frame that needs other registers than rows follow: all of them, from the first frame on.
 * Such frames are rare. */
static bool step_complex(struct walk *w)
{
	struct cfi_regs regs = first_regs(w->capture);
	bool is_signal = false;

	for (int i = 0; i < w->depth; i++) {
		const struct range *range;
		struct cfi *cfi;

		regs.r[RIP] += is_signal;
		range = find_range(w->env, regs.r[RIP]);
		cfi = find_cfi(w->env, range);
		if (!cfi || cfi_step(cfi, range->bias, &regs, read_word, (void *)w->capture,
				     &is_signal) != 1)
			return false;
	}
	if (!(regs.known >> RSP & 1))
		return false;
	w->ip = regs.r[RIP];
	w->rsp = regs.r[RSP];
	w->rbp = regs.r[RBP];
	w->has_rbp = regs.known >> RBP & 1;
	return true;
}

static bool step(struct walk *w, const struct row *row)
{
	uint64_t rsp = w->rsp;
	bool ok;

	switch (row->kind) {
	case ROW_CFI:
		ok = step_row(w, row);
		break;
	case ROW_COMPLEX:
		ok = step_complex(w);
		break;
	default:
		ok = step_guess(w);
	}
	/* Stacks grow down, so callers are above; only a signal may have come on another stack. */
	return ok && (w->rsp > rsp || row->is_signal);
}

int unwind(const struct unwind_env *env, const struct capture *c, struct frame_ref *ret,
	   enum stack_quality *ret_quality)
{
	struct walk w = {.env = env,
			 .capture = c,
			 .ip = c->ip,
			 .rsp = c->rsp,
			 .rbp = c->rbp,
			 .has_rbp = true};

	*ret_quality = STACK_CUT;
	while (w.depth < UNWIND_FRAMES_MAX) {
		const struct range *range = find_range(env, w.ip);
		struct cfi *cfi = find_cfi(env, range);
		struct frame_ref at = {.offset = w.ip};
		struct row row = {.kind = ROW_GUESS};

		if (range && range->module)
			at = (struct frame_ref){range->module, w.ip - range->bias};
		if (cfi)
			row = cfi_row(cfi, at.offset);
		ret[w.depth++] = at;
		if (env->on_row)
			env->on_row(env->ctx, at, &row);
		if (row.kind != ROW_END && !step(&w, &row))
			break;
		if (row.kind == ROW_END || w.ip == 0) {
			*ret_quality = w.is_guessed ? STACK_GUESSED : STACK_FULL;
			break;
		}
		w.ip += row.is_signal;
	}
	return w.depth;
}
