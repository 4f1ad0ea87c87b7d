/*
 * The stack of the current thread, walked by learned rows: no frame pointers needed, no window,
 * no top of stack to be known. What has no row yet is captured for user space to unwind, which
 * then teaches the rows.
 */
#pragma once

#include "bpf/maps.bpf.h"

enum walk_state {
	WALK_DONE,    /* quality says how */
	WALK_MISS,    /* no row for this address */
	WALK_COMPLEX, /* a row that needs more registers than are followed here */
};

#define CAPTURE_ID (1ULL << 63)
#define HASH_PRIME 0x9e3779b97f4a7c15ULL

__noinline bool bring_in(u64 *ret, u64 address)
{
	struct faulting *f = bpf_task_storage_get(&faulting, bpf_get_current_task_btf(), NULL,
						  BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 cpu;
	struct cpu_state *cs = this_cpu(&cpu);
	bool is_read;

	if (!ret)
		return false;
	if (cs)
		__sync_fetch_and_add(&cs->faulted_pages, 1);
	if (f)
		f->is_own = 1;
	is_read = bpf_copy_from_user(ret, sizeof(*ret), (void *)address) == 0;
	if (f)
		f->is_own = 0;
	return is_read;
}

/* Non-faulting first; a page that is not there is brought in, and counted as our doing. */
static bool read_word(u64 address, u64 *ret)
{
	if (bpf_probe_read_user(ret, sizeof(*ret), (void *)address) == 0)
		return true;
	return bring_in(ret, address);
}

/* Global functions, such as this one, are verified once and not at each of their calls: loading
 * takes a quarter of the time. */

/* The kernel keeps the true return address where it has put its trampoline. */
__noinline u64 true_return(u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *ri = BPF_CORE_READ(task, utask, return_instances);

	for (int i = 0; i < 64 && ri; i++) {
		if (BPF_CORE_READ(ri, stack) == slot) {
			u64 address = BPF_CORE_READ(ri, orig_ret_vaddr);
			struct return_instance *next = BPF_CORE_READ(ri, next);

			/* A tail call shares the slot: the outer one knows the real address. */
			if (!next || BPF_CORE_READ(next, stack) != slot)
				return address;
		}
		ri = BPF_CORE_READ(ri, next);
	}
	return 0;
}

static u64 trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);

	return area ? BPF_CORE_READ(area, vaddr) : 0;
}

/* The key of an address, and 0 for code of no file or none. */
__noinline u64 place(const struct table *t, u64 pc)
{
	u32 lo = 0;

	if (!t)
		return 0;
	for (u32 step = TABLE_RANGES / 2; step > 0; step /= 2) {
		u32 at = (lo + step) & (TABLE_RANGES - 1);

		if (t->range[at].start <= pc)
			lo = at;
	}
	lo &= TABLE_RANGES - 1;
	if (pc < t->range[lo].start || pc > t->range[lo].end || !t->range[lo].module)
		return 0;
	return ROW_KEY(t->range[lo].module, pc - t->range[lo].bias);
}

struct walk_ctx {
	struct thread *th;
	struct table *table;
};

static u64 base_of(const struct walk *w, u8 base, u64 cfa)
{
	return base == ROW_CFA ? cfa : base == ROW_RSP ? w->sp : w->bp;
}

static bool apply_row(struct walk *w, const struct row *row)
{
	u64 cfa, ra, bp = w->bp, sp;

	cfa = base_of(w, row->cfa_base, 0) + row->cfa_off;
	if (row->cfa_deref && !read_word(cfa, &cfa))
		return false;
	ra = base_of(w, row->ra_base, cfa) + row->ra_off;
	if (row->rbp_base != ROW_NONE &&
	    !read_word(base_of(w, row->rbp_base, cfa) + row->rbp_off, &bp))
		return false;
	sp = cfa;
	w->ip = ra;
	if (!read_word(ra, &w->ip))
		return false;
	if (w->trampoline && w->ip == w->trampoline) {
		u64 address = true_return(ra);

		if (address)
			w->ip = address;
	}
	if (row->is_signal)
		w->ip += 1; /* it is exact: keyed as if it were a return address */
	else if (sp <= w->sp)
		return false; /* no progress: damaged */
	w->sp = sp;
	w->bp = bp;
	return true;
}

/* Code without unwind information may keep a frame pointer: believed when what it leads to is
 * code. 0 in it marks the first frame of a process or thread. */
static bool apply_guess(struct walk *w, struct table *table)
{
	u64 ip, bp;

	if (w->bp == 0) {
		w->ip = 0;
		w->quality = STACK_GUESSED;
		return true;
	}
	if (w->bp < w->sp || w->bp - w->sp > (1 << 20) || !read_word(w->bp + 8, &ip) ||
	    !place(table, ip) || !read_word(w->bp, &bp))
		return false;
	w->sp = w->bp + 16;
	w->ip = ip;
	w->bp = bp;
	w->quality = STACK_GUESSED;
	return true;
}

static bool step(struct walk *w, const struct row *row, struct table *table)
{
	if (!row || row->kind == ROW_GUESS)
		return apply_guess(w, table);
	return row->kind == ROW_CFI && apply_row(w, row);
}

static long walk_frame(u32 i __attribute__((unused)), struct walk_ctx *ctx)
{
	struct thread *th = ctx->th;
	struct walk *w = &th->walk;
	const struct row *row = NULL;
	u64 key = place(ctx->table, w->ip);
	u32 at = w->depth;

	w->state = WALK_DONE;
	if (key && key >> 48 != MODULE_ANONYMOUS) {
		row = bpf_map_lookup_elem(&rows, &key);
		if (!row || row->kind == ROW_COMPLEX) {
			w->state = row ? WALK_COMPLEX : WALK_MISS;
			return 1;
		}
	}
	if (!key || at >= CHAIN_FRAMES_MAX) {
		w->quality = STACK_CUT;
		return 1;
	}
	th->chain.pcs[at & (CHAIN_FRAMES_MAX - 1)] = key;
	w->depth = at + 1;
	w->hash = (w->hash ^ key) * HASH_PRIME;
	w->hash ^= w->hash >> 29;
	if (row && row->kind == ROW_END)
		return 1;
	if (!step(w, row, ctx->table)) {
		w->quality = STACK_CUT;
		return 1;
	}
	return w->ip ? 0 : 1;
}

/* Walks as far as rows are known; th->walk says where it stands then. */
__noinline int walk(struct thread *th, struct table *table)
{
	struct walk_ctx ctx = {.th = th, .table = table};

	if (!th || !table)
		return 0;
	bpf_loop(CHAIN_FRAMES_MAX + 1, walk_frame, &ctx, 0);
	return 0;
}

/* -- capture -------------------------------------------------------------------------------------
 */

/* Where the stack ends, so that little more than it is sent: the main thread's start, or the
 * thread control block, which lies above a thread's stack. */
static u64 stack_top(u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 fs = BPF_CORE_READ(task, thread.fsbase);
	u64 alt = BPF_CORE_READ(task, sas_ss_sp), alt_size = BPF_CORE_READ(task, sas_ss_size);
	u64 start = BPF_CORE_READ(task, mm, start_stack);

	if (alt_size && sp - alt < alt_size)
		return alt + alt_size;
	if (sp < start && start - sp < (8 << 20))
		return start + 64; /* the word that _start reads argc from */
	if (fs > sp && fs - sp < (8 << 20))
		return fs;
	return sp + CAPTURE_CHUNK * CAPTURE_CHUNKS;
}

struct capture_ctx {
	void *ring;
	u64 id, at, end;
};

static long send_chunk(u32 i __attribute__((unused)), struct capture_ctx *c)
{
	u64 len = CAPTURE_CHUNK - (c->at & (CAPTURE_CHUNK - 1)); /* to the end of the page */
	struct record_bytes *b;
	u64 word;

	/* A page that is not there is waited for here: held, a record keeps all after it unread. */
	if (c->at >= c->end || !read_word(c->at, &word))
		return 1;
	if (len > c->end - c->at)
		len = c->end - c->at;
	barrier_var(len); /* else the compiler leaves out what older verifiers must see */
	if (len > CAPTURE_CHUNK)
		return 1;
	b = bpf_ringbuf_reserve(c->ring, sizeof(*b), 0);
	if (!b)
		return 1;
	b->type = RECORD_BYTES;
	b->len = len;
	b->id = c->id;
	b->address = c->at;
	if (bpf_probe_read_user(b->bytes, len, (void *)c->at) < 0) {
		bpf_ringbuf_discard(b, BPF_RB_NO_WAKEUP);
		return 1;
	}
	bpf_ringbuf_submit(b, BPF_RB_NO_WAKEUP);
	c->at += len;
	return 0;
}

/* A child forked from who has not hit a probe yet has one page more than its parent: not code. */
static u64 code_pages(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, exec_vm) - (trampoline() ? 1 : 0);
}

#define VM_EXEC 4

static void add_map(struct record_maps *m, struct vm_area_struct *vma)
{
	struct map_entry *e = &m->entry[m->n & 0xff];
	struct file *file;

	if (m->n >= MAPS_MAX || !(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return;
	file = BPF_CORE_READ(vma, vm_file);
	e->start = BPF_CORE_READ(vma, vm_start);
	e->end = BPF_CORE_READ(vma, vm_end);
	e->pgoff = BPF_CORE_READ(vma, vm_pgoff);
	e->dev = file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
	e->ino = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	m->n++;
}

static void send_maps(struct thread *th, u32 cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct record_maps *m = &th->maps;
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	u64 len;

	if (!ring || !bpf_iter_task_vma_new)
		return;
	m->type = RECORD_MAPS;
	m->n = 0;
	m->pid = bpf_get_current_pid_tgid() >> 32;
	m->exec_pages = code_pages();
	m->generation = generation(m->pid);
	m->vdso = (u64)BPF_CORE_READ(task, mm, context.vdso);
	bpf_iter_task_vma_new(&it, task, 0);
	while ((vma = bpf_iter_task_vma_next(&it)))
		add_map(m, vma);
	bpf_iter_task_vma_destroy(&it);
	len = offsetof(struct record_maps, entry) + sizeof(struct map_entry) * (u64)(m->n & 0xff);
	if (len <= sizeof(*m))
		(void)bpf_ringbuf_output(ring, m, len, BPF_RB_NO_WAKEUP);
}

static void note_fixes(struct record_chain *chain)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *ri = BPF_CORE_READ(task, utask, return_instances);
	u32 n = 0;

	for (int i = 0; i < CHAIN_FIXES && ri; i++) {
		chain->fix[i].slot = BPF_CORE_READ(ri, stack);
		chain->fix[i].address = true_return(chain->fix[i].slot);
		n++;
		ri = BPF_CORE_READ(ri, next);
	}
	chain->n_fixes = n;
}

/* Sends the walked part, the registers where it stopped, and the bytes of the stack above. */
__noinline u64 send_capture(struct thread *th, u32 cpu, u64 seq)
{
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct capture_ctx c = {.ring = ring};
	struct record_chain *chain;
	u64 len;

	if (!th || !ring)
		return 0;
	chain = &th->chain;
	c.id = CAPTURE_ID | (u64)cpu << 48 | seq;
	c.at = th->walk.sp;
	c.end = stack_top(c.at);
	if (c.end - c.at > CAPTURE_CHUNK * CAPTURE_CHUNKS)
		c.end = c.at + CAPTURE_CHUNK * CAPTURE_CHUNKS;
	/* The last quarter of a ring is for events: nobody is to be stopped for a stack. */
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + (c.end - c.at) > ring_bytes / 4 * 3)
		return 0;
	chain->type = RECORD_CAPTURE;
	chain->quality = th->walk.quality;
	chain->depth = th->walk.depth;
	chain->pid = bpf_get_current_pid_tgid() >> 32;
	chain->id = c.id;
	chain->ip = th->walk.ip;
	chain->sp = th->walk.sp;
	chain->bp = th->walk.bp;
	chain->n_bytes = c.end - c.at;
	chain->exec_pages = code_pages();
	chain->generation = generation(chain->pid);
	note_fixes(chain);
	len = CHAIN_HEAD + 8 * (u64)(th->walk.depth & (CHAIN_FRAMES_MAX - 1));
	if (len > sizeof(*chain) || bpf_ringbuf_output(ring, chain, len, BPF_RB_NO_WAKEUP) < 0)
		return 0;
	bpf_loop(CAPTURE_CHUNKS + 1, send_chunk, &c, 0);
	return c.id;
}

__noinline u64 send_chain(struct thread *th, u32 cpu)
{
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct record_chain *chain;
	u64 len, id;
	u8 one = 1;

	if (!th || !ring)
		return 0;
	id = th->walk.hash & ~CAPTURE_ID;
	if (bpf_map_lookup_elem(&chains, &id))
		return id;
	chain = &th->chain;
	chain->type = RECORD_CHAIN;
	chain->quality = th->walk.quality;
	chain->depth = th->walk.depth;
	chain->pid = bpf_get_current_pid_tgid() >> 32;
	chain->id = id;
	chain->n_bytes = chain->n_fixes = 0;
	len = CHAIN_HEAD + 8 * (u64)(th->walk.depth & (2 * CHAIN_FRAMES_MAX - 1));
	/* Sent before it is noted as sent: whoever finds the note may rely on it. */
	if (len > sizeof(*chain) || bpf_ringbuf_output(ring, chain, len, BPF_RB_NO_WAKEUP) < 0)
		return 0;
	(void)bpf_map_update_elem(&chains, &id, &one, BPF_ANY);
	return id;
}

static void start_walk(struct pt_regs *ctx, struct thread *th)
{
	th->walk.ip = PT_REGS_IP(ctx);
	th->walk.sp = PT_REGS_SP(ctx);
	th->walk.bp = PT_REGS_FP(ctx);
	th->walk.hash = 0;
	th->walk.depth = 0;
}

static bool is_valid(const struct table *table, u32 pid)
{
	return table && table->exec_pages == code_pages() && table->generation == generation(pid);
}

struct await_ctx {
	u64 sp, until;
	u32 pid;
};

static long look_for_table(u32 i __attribute__((unused)), struct await_ctx *c)
{
	u64 word;

	if (bpf_ktime_get_ns() > c->until ||
	    is_valid(bpf_map_lookup_elem(&tables, &c->pid), c->pid))
		return 1;
	/* May sleep: the reader may be waiting for this very CPU. */
	(void)bpf_copy_from_user(&word, sizeof(word), (void *)c->sp);
	return 0;
}

/*
 * Where the kernel cannot list what is mapped, user space must look, while the process is there: a
 * short one would be gone, and none of its stacks known. Waited for once per state of its code, or
 * what cannot be listed at all would cost as much with each call.
 */
static void await_table(struct pt_regs *ctx, struct thread *th)
{
	struct await_ctx c = {.sp = PT_REGS_SP(ctx)};
	u32 zero = 0;
	const struct control *control_ = bpf_map_lookup_elem(&control, &zero);
	u64 now = bpf_ktime_get_ns(), pages = code_pages();

	c.pid = bpf_get_current_pid_tgid() >> 32;
	c.until = now + table_wait_ns;
	if (bpf_iter_task_vma_new || !control_ || now - control_->heartbeat_ns > heartbeat_stale_ns)
		return;
	if (is_valid(bpf_map_lookup_elem(&tables, &c.pid), c.pid) ||
	    (th->awaited_pages == pages && th->awaited_generation == generation(c.pid)))
		return;
	th->awaited_pages = pages;
	th->awaited_generation = generation(c.pid);
	bpf_loop(1 << 20, look_for_table, &c, 0);
}

/* The stack at the return of a call: its id, 0 = none. */
static u64 capture_stack(struct pt_regs *ctx, struct thread *th, u32 cpu, struct cpu_state *cs)
{
	u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct table *table = bpf_map_lookup_elem(&tables, &pid);
	u64 id;

	start_walk(ctx, th);
	th->walk.quality = STACK_NONE;
	th->walk.state = WALK_MISS;
	th->walk.trampoline = trampoline();
	if (is_valid(table, pid)) {
		th->walk.quality = STACK_FULL;
		walk(th, table);
	} else {
		send_maps(th, cpu);
	}
	th->chain.checks = 0;
	th->chain.rbx = ctx->bx;
	th->chain.r12 = ctx->r12;
	th->chain.r13 = ctx->r13;
	th->chain.r14 = ctx->r14;
	th->chain.r15 = ctx->r15;
	if (th->walk.state == WALK_DONE) {
		th->walk.hash = (th->walk.hash ^ th->walk.quality) * HASH_PRIME;
		id = send_chain(th, cpu);
		if (__sync_fetch_and_add(&cs->walked, 1) % CHECK_EVERY == 0) {
			th->chain.checks = id;
			start_walk(ctx, th);
			send_capture(th, cpu, __sync_fetch_and_add(&cs->captures, 1));
		}
	} else {
		/* What needs all registers is unwound from the innermost frame, the only one where
		 * they are known. */
		if (th->walk.state == WALK_COMPLEX)
			start_walk(ctx, th);
		id = send_capture(th, cpu, __sync_fetch_and_add(&cs->captures, 1));
	}
	if (!id)
		__sync_fetch_and_add(&cs->captures_lost, 1);
	return id;
}
