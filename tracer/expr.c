#include "tracer/expr.h"

#include <dwarf.h>

#define STACK_MAX 32

struct machine {
	const struct expr_env *env;
	struct expr_value stack[STACK_MAX];
	size_t depth;
};

static bool push(struct machine *m, struct expr_value v)
{
	if (m->depth == STACK_MAX)
		return false;
	m->stack[m->depth++] = v;
	return true;
}

static bool push_number(struct machine *m, uint64_t number)
{
	return push(m, (struct expr_value){.base = ROW_NONE, .off = number});
}

static bool push_register(struct machine *m, uint64_t reg, uint64_t off)
{
	const struct cfi_regs *regs = m->env->regs;

	if (reg == REG_RIP)
		return push_number(m, m->env->pc + off);
	if (regs)
		return reg < CFI_REGS && regs->known >> reg & 1 &&
		       push_number(m, regs->r[reg] + off);
	if (reg == REG_RSP)
		return push(m, (struct expr_value){.base = ROW_RSP, .off = off});
	if (reg == REG_RBP)
		return push(m, (struct expr_value){.base = ROW_RBP, .off = off});
	return false;
}

static bool add(struct machine *m, uint64_t off)
{
	struct expr_value *top;

	if (m->depth < 1)
		return false;
	top = &m->stack[m->depth - 1];
	if (top->is_deref)
		return false;
	top->off += off;
	return true;
}

static bool deref(struct machine *m)
{
	struct expr_value *top;

	if (m->depth < 1)
		return false;
	top = &m->stack[m->depth - 1];
	if (top->base == ROW_NONE)
		return m->env->read && m->env->read(m->env->ctx, top->off, &top->off);
	if (top->is_deref)
		return false;
	top->is_deref = true;
	return true;
}

static bool binary(struct machine *m, uint8_t atom)
{
	struct expr_value a, b;

	if (m->depth < 2)
		return false;
	b = m->stack[--m->depth];
	a = m->stack[--m->depth];
	if (atom == DW_OP_plus) {
		struct expr_value sum = a.base == ROW_NONE ? b : a;

		if ((a.base != ROW_NONE && b.base != ROW_NONE) || a.is_deref || b.is_deref)
			return false;
		sum.off = a.off + b.off;
		return push(m, sum);
	}
	if (a.base != ROW_NONE || b.base != ROW_NONE)
		return false;
	switch (atom) {
	case DW_OP_minus:
		return push_number(m, a.off - b.off);
	case DW_OP_and:
		return push_number(m, a.off & b.off);
	case DW_OP_or:
		return push_number(m, a.off | b.off);
	case DW_OP_mul:
		return push_number(m, a.off * b.off);
	case DW_OP_shl:
		return push_number(m, b.off < 64 ? a.off << b.off : 0);
	case DW_OP_shr:
		return push_number(m, b.off < 64 ? a.off >> b.off : 0);
	case DW_OP_eq:
		return push_number(m, a.off == b.off);
	case DW_OP_ne:
		return push_number(m, a.off != b.off);
	case DW_OP_lt:
		return push_number(m, (int64_t)a.off < (int64_t)b.off);
	case DW_OP_le:
		return push_number(m, (int64_t)a.off <= (int64_t)b.off);
	case DW_OP_gt:
		return push_number(m, (int64_t)a.off > (int64_t)b.off);
	case DW_OP_ge:
		return push_number(m, (int64_t)a.off >= (int64_t)b.off);
	}
	return false;
}

static bool step(struct machine *m, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push_number(m, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(m, op->atom - DW_OP_breg0, op->number);
	switch (op->atom) {
	case DW_OP_bregx:
		return push_register(m, op->number, op->number2);
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push_number(m, op->number);
	case DW_OP_call_frame_cfa:
		return m->env->cfa && push(m, *m->env->cfa);
	case DW_OP_plus_uconst:
		return add(m, op->number);
	case DW_OP_deref:
		return deref(m);
	case DW_OP_dup:
		return m->depth > 0 && push(m, m->stack[m->depth - 1]);
	case DW_OP_drop:
		return m->depth > 0 && m->depth-- > 0;
	case DW_OP_nop:
		return true;
	default:
		return binary(m, op->atom);
	}
}

bool expr_eval(const struct expr_env *env, const Dwarf_Op *ops, size_t n, struct expr_value *ret,
	       bool *ret_is_value)
{
	struct machine m = {.env = env};

	*ret_is_value = false;
	for (size_t i = 0; i < n; i++) {
		uint8_t atom = ops[i].atom;
		bool ok;

		if (atom == DW_OP_stack_value) {
			*ret_is_value = true;
			break;
		}
		if (atom == DW_OP_regx || (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)) {
			/* Kept in another register: its contents are the value. */
			*ret_is_value = true;
			ok = push_register(&m,
					   atom == DW_OP_regx ? ops[i].number
							      : (Dwarf_Word)atom - DW_OP_reg0,
					   0);
		} else {
			ok = step(&m, &ops[i]);
		}
		if (!ok)
			return false;
	}
	if (m.depth < 1)
		return false;
	*ret = m.stack[m.depth - 1];
	return true;
}
