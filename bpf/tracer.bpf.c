/*
 * The programs at the entries and returns of allocator functions: what was called, for whom, what
 * came of it. One pair serves all functions; the cookie of the probe says what the arguments mean.
 */
#include "bpf/maps.bpf.h"

#include "bpf/fault.bpf.h"
#include "bpf/process.bpf.h"
#include "bpf/walk.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PAGE_SIZE 4096
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_FIXED_NOREPLACE 0x100000
#define ERR_FIRST ((u64)-4095)

static u64 cookie_field(u64 cookie, int at)
{
	return cookie >> (8 * at) & 0xff;
}

static u64 round_page(u64 n)
{
	return (n + PAGE_SIZE - 1) & ~(u64)(PAGE_SIZE - 1);
}

static u64 argument(const struct thread *th, u32 i)
{
	return th->argument[i & (ARGUMENTS - 1)];
}

static u64 requested(const struct thread *th, u64 cookie)
{
	u32 count_arg = cookie_field(cookie, 2);
	u64 size = argument(th, cookie_field(cookie, 1));

	if (count_arg != CALL_NO_ARG)
		size *= argument(th, count_arg); /* an overflow fails, and then nothing counts */
	if (cookie_field(cookie, 4) & CALL_ROUND_PAGE)
		size = round_page(size);
	return size;
}

/* What is to be told of a call. */
struct news {
	u64 cookie, address, size, stack;
	u32 kind, flags;
};

__noinline int emit(const struct news *n)
{
	u64 id = bpf_get_current_pid_tgid();
	struct record_call *r;
	struct cpu_state *cs;
	void *ring;
	u32 cpu;
	u64 seq, flags;

	if (!n)
		return 0;
	cs = this_cpu(&cpu);
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (!cs || !ring)
		return 0;
	seq = __sync_fetch_and_add(&cs->seq, 1);
	r = reserve(ring, cs, sizeof(*r));
	if (!r)
		return 0;
	r->type = RECORD_CALL;
	r->kind = n->kind;
	r->flags = n->flags;
	r->pad = 0;
	r->function = n->cookie >> 48;
	r->pad2 = 0;
	r->seq = seq;
	r->pid = id >> 32;
	r->tid = id;
	r->address = n->address;
	r->size = n->size;
	r->stack = n->stack;
	/* Stamped while the record is held: what comes later into this ring is not older than what
	 * the reader has seen of it. */
	r->t_ns = bpf_ktime_get_ns();
	flags = wakeup(ring, cs);
	/* A stack that must be learned: the sooner it is, the fewer are sent. */
	bpf_ringbuf_submit(r, n->stack & CAPTURE_ID ? BPF_RB_FORCE_WAKEUP : flags);
	return 0;
}

static struct thread *thread(u64 flags)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, flags);
}

static bool on_signal_stack(struct task_struct *task, u64 sp)
{
	u64 size = BPF_CORE_READ(task, sas_ss_size);

	return size && sp - BPF_CORE_READ(task, sas_ss_sp) < size;
}

/*
 * Is a call at sp made by the allocator itself, inside a call that is still going on? Calls that
 * were left without returning (longjmp, an exception) are forgotten here: their return address is
 * no longer the kernel's trampoline, or they lie below where the thread is now.
 */
static bool is_nested(struct thread *th, u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 tramp = trampoline(), blocked = BPF_CORE_READ(task, blocked.sig[0]);

	for (int i = 0; i < CALLS_MAX && th->n_calls > 0; i++) {
		struct call *c = &th->call[(th->n_calls - 1) & (CALLS_MAX - 1)];
		u64 word = 0, sig = c->signal;
		bool is_below =
			sp > c->sp && !on_signal_stack(task, sp) && !on_signal_stack(task, c->sp);

		/* In a handler that has interrupted it: it goes on, even if its return address has
		 * been taken from the stack by then. */
		if (!is_below && sig - 1 < 64 && blocked >> (sig - 1) & 1)
			return false;
		if (!is_below && bpf_probe_read_user(&word, sizeof(word), (void *)c->sp) == 0 &&
		    word == tramp)
			return true;
		th->n_calls--;
	}
	return false;
}

static void push(struct thread *th, u64 sp, u64 cookie, u64 address, u64 size)
{
	struct call *c = &th->call[th->n_calls & (CALLS_MAX - 1)];

	if (th->n_calls >= CALLS_MAX)
		return;
	c->sp = sp;
	c->cookie = cookie;
	c->address = address;
	c->size = size;
	c->signal = 0;
	th->n_calls++;
}

static u64 current_break(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, brk);
}

static void enter_mapping(struct pt_regs *ctx, struct thread *th, u64 cookie)
{
	struct news n = {.cookie = cookie, .kind = EVENT_MUNMAP};
	u64 sp = PT_REGS_SP(ctx), flags = ctx->cx, kind = cookie & 0xff;

	n.address = ctx->di;
	n.size = round_page(ctx->si);
	if (kind == CALL_MMAP && flags & MAP_ANONYMOUS) {
		push(th, sp, cookie, 0, n.size);
		return;
	}
	if (kind == CALL_BRK || kind == CALL_SBRK) {
		push(th, sp, cookie, current_break(), 0);
		return;
	}
	/* Files are no allocations, but a file mapped over one replaces it. */
	if (kind == CALL_MMAP && (!(flags & MAP_FIXED) || flags & MAP_FIXED_NOREPLACE))
		return;
	if (kind == CALL_MREMAP) {
		n.flags = EVENT_REALLOC;
		push(th, sp, cookie, n.address, round_page(ctx->dx));
	}
	if (n.size && !(n.address & (PAGE_SIZE - 1)))
		emit(&n);
}

static void enter_heap(struct pt_regs *ctx, struct thread *th, u64 cookie)
{
	struct news n = {.cookie = cookie, .kind = EVENT_FREE};
	u64 kind = cookie & 0xff;

	th->argument[0] = ctx->di;
	th->argument[1] = ctx->si;
	th->argument[2] = ctx->dx;
	th->argument[3] = ctx->cx;
	th->argument[4] = ctx->r8;
	th->argument[5] = ctx->r9;
	if (cookie_field(cookie, 3) != CALL_NO_ARG)
		n.address = argument(th, cookie_field(cookie, 3));
	if (kind != CALL_FREE)
		push(th, PT_REGS_SP(ctx), cookie, n.address, requested(th, cookie));
	if (kind == CALL_REALLOC)
		n.flags = EVENT_REALLOC;
	if ((kind == CALL_FREE || kind == CALL_REALLOC) && n.address)
		emit(&n);
}

/*
 * The kernel takes an interrupted call for one that was left when a handler on a signal stack above
 * it makes a call whose return is probed, and then kills the program at the return of the first.
 */
static bool is_above(const struct thread *th, u64 sp)
{
	return th->n_calls > 0 && sp > th->call[(th->n_calls - 1) & (CALLS_MAX - 1)].sp;
}

static bool enter_call(struct pt_regs *ctx, struct cpu_state *cs, u64 cookie)
{
	u64 sp = PT_REGS_SP(ctx);
	struct thread *th;
	u32 n_calls;

	th = thread(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!th) {
		__sync_fetch_and_add(&cs->no_storage, 1);
		return false;
	}
	if (th->n_calls > 0 && is_nested(th, sp)) {
		__sync_fetch_and_add(&cs->nested, 1);
		return false;
	}
	if (is_above(th, sp) && (cookie & 0xff) != CALL_FREE && (cookie & 0xff) != CALL_MUNMAP) {
		__sync_fetch_and_add(&cs->skipped, 1);
		return false;
	}
	n_calls = th->n_calls;
	if ((cookie & 0xff) >= CALL_MMAP)
		enter_mapping(ctx, th, cookie);
	else
		enter_heap(ctx, th, cookie);
	return th->n_calls > n_calls;
}

/* True: the call's return is to be seen. */
static bool enter(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), start;
	struct cpu_state *cs;
	bool is_pushed;
	u32 cpu;

	cs = this_cpu(&cpu);
	if (!cs)
		return false;
	if (!in_scope()) {
		__sync_fetch_and_add(&cs->outside, 1);
		return (cookie & 0xff) == CALL_COST;
	}
	start = bpf_ktime_get_ns();
	__sync_fetch_and_add(&cs->hits, 1);
	if (cookie_field(cookie, 4) & CALL_STEPPED)
		__sync_fetch_and_add(&cs->stepped, 1);
	is_pushed = enter_call(ctx, cs, cookie);
	__sync_fetch_and_add(&cs->program_ns, bpf_ktime_get_ns() - start);
	return is_pushed;
}

SEC("uprobe.s")
int call_enter(struct pt_regs *ctx)
{
	enter(ctx);
	return 0;
}

/*
 * An unwinder is about to walk the stack: it knows nothing of the kernel's trampoline, and would
 * end the program. The thread is held until user space has put the true return addresses back;
 * those calls are not going to return.
 */
SEC("uprobe.s")
int call_unwind(struct pt_regs *ctx __attribute__((unused)))
{
	struct record_unwind r = {.type = RECORD_UNWIND};
	u64 tramp = trampoline(), word;
	struct cpu_state *cs;
	struct thread *th;
	void *ring;
	u32 cpu;

	if (!in_scope())
		return 0;
	th = thread(0);
	cs = this_cpu(&cpu);
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (!th || !cs || !ring)
		return 0;
	for (u32 i = 0; i < UNWIND_SLOTS; i++) {
		u64 slot = th->call[i].sp;

		if (i >= th->n_calls)
			break;
		if (bpf_probe_read_user(&word, sizeof(word), (void *)slot) < 0 || word != tramp)
			continue;
		r.fix[i].slot = slot;
		r.fix[i].address = true_return(slot);
		r.n++;
	}
	th->n_calls = 0;
	r.pid = bpf_get_current_pid_tgid() >> 32;
	if (r.n == 0 || bpf_ringbuf_output(ring, &r, sizeof(r), BPF_RB_FORCE_WAKEUP) < 0)
		return 0;
	stop_self(cs);
	return 0;
}

/* Other code may now be at the same addresses. */
SEC("uprobe.s")
int code_changed(struct pt_regs *ctx __attribute__((unused)))
{
	if (in_scope())
		new_generation(bpf_get_current_pid_tgid() >> 32);
	return 0;
}

/* -- returns -------------------------------------------------------------------------------------
 */

/* The call that returns to sp, taken from the thread's; false for calls made by allocators. */
static bool pop(struct thread *th, u64 sp, struct call *ret)
{
	for (int i = CALLS_MAX - 1; i >= 0; i--) {
		if ((u32)i >= th->n_calls || th->call[i].sp + 8 != sp)
			continue;
		*ret = th->call[i];
		th->n_calls = i;
		return true;
	}
	return false;
}

/* What came of a call of the mmap family; false = nothing to tell. */
static bool mapping_done(u64 ret, const struct call *c, struct news *n)
{
	u64 kind = c->cookie & 0xff;

	if (kind == CALL_BRK || kind == CALL_SBRK) {
		n->kind = EVENT_BRK;
		n->address = c->address;
		n->size = current_break() - c->address;
		return n->size != 0;
	}
	n->flags = kind == CALL_MREMAP ? EVENT_REALLOC : 0;
	n->kind = EVENT_MMAP;
	n->address = ret;
	n->size = c->size;
	if (ret < ERR_FIRST)
		return true;
	n->kind = EVENT_RESTORE;
	n->address = c->address;
	return n->flags != 0;
}

static bool heap_done(u64 ret, const struct call *c, struct news *n)
{
	u64 kind = c->cookie & 0xff;

	n->kind = EVENT_ALLOC;
	n->flags = kind == CALL_REALLOC && c->address ? EVENT_REALLOC : 0;
	n->size = c->size;
	if (kind == CALL_MEMALIGN) {
		u64 block = 0;

		if ((u32)ret != 0)
			return false; /* an errno: what was asked for may make no sense at all */
		(void)read_word(c->address, &block);
		ret = block;
	} else if (kind == CALL_XALLOC) {
		n->size = ret;
		n->address = c->address;
		n->flags = EVENT_REALLOC;
		n->kind = EVENT_FREE;
		emit(n);
		n->kind = EVENT_ALLOC;
		return true;
	}
	n->address = ret;
	if (ret)
		return true;
	if (n->flags && n->size == 0)
		return false; /* realloc to nothing: it was freed */
	if (n->flags) {
		n->kind = EVENT_RESTORE;
		n->address = c->address;
		emit(n);
		n->address = 0;
	}
	n->kind = EVENT_FAILED;
	n->flags = 0;
	return true;
}

static void leave_call(struct pt_regs *ctx, struct cpu_state *cs, u32 cpu)
{
	struct thread *th = thread(0);
	struct news n = {};
	struct call c;
	bool is_news;

	if (!th || !pop(th, PT_REGS_SP(ctx), &c))
		return;
	n.cookie = c.cookie;
	if ((c.cookie & 0xff) >= CALL_MMAP)
		is_news = mapping_done(PT_REGS_RC(ctx), &c, &n);
	else
		is_news = heap_done(PT_REGS_RC(ctx), &c, &n);
	if (!is_news)
		return;
	if (n.kind != EVENT_RESTORE)
		n.stack = capture_stack(ctx, th, cpu, cs);
	emit(&n);
	await_table(ctx, th);
}

static void leave(struct pt_regs *ctx)
{
	struct cpu_state *cs;
	u32 cpu;
	u64 start;

	cs = this_cpu(&cpu);
	if (!cs || !in_scope())
		return;
	start = bpf_ktime_get_ns();
	__sync_fetch_and_add(&cs->hits, 1);
	__sync_fetch_and_add(&cs->returns, 1);
	leave_call(ctx, cs, cpu);
	__sync_fetch_and_add(&cs->program_ns, bpf_ktime_get_ns() - start);
}

SEC("uretprobe.s")
int call_leave(struct pt_regs *ctx)
{
	leave(ctx);
	return 0;
}

/* Entry and return in one, where the kernel has that (6.13): returns of calls that are none of
 * ours need no trap then. */
SEC("uprobe.s")
int call_session(struct pt_regs *ctx)
{
	if (bpf_session_is_return && !bpf_session_is_return())
		return enter(ctx) ? 0 : 1;
	leave(ctx);
	return 0;
}
