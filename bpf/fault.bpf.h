/*
 * Major faults: when one begins, and when it has been served. The kernel counts them in a software
 * event; a program at each count sees all of them, exactly, and needs no probe in the kernel.
 */
#pragma once

#include "bpf/maps.bpf.h"

#define VM_GROWSDOWN 0x100

struct mapped {
	u64 address;
	u64 mapping; /* enum fault_mapping */
	u64 dev, ino, file_offset;
};

static long look_at_vma(struct task_struct *task, struct vm_area_struct *vma, struct mapped *m)
{
	u64 start = BPF_CORE_READ(vma, vm_start), end = BPF_CORE_READ(vma, vm_end);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (file) {
		m->mapping = FAULT_FILE;
		m->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
		m->ino = BPF_CORE_READ(file, f_inode, i_ino);
		m->file_offset = (BPF_CORE_READ(vma, vm_pgoff) << 12) + m->address - start;
	} else if (start <= BPF_CORE_READ(mm, brk) && end >= BPF_CORE_READ(mm, start_brk)) {
		m->mapping = FAULT_BRK;
	} else if (BPF_CORE_READ(vma, vm_flags) & VM_GROWSDOWN) {
		m->mapping = FAULT_STACK;
	} else if (start == (u64)BPF_CORE_READ(mm, context.vdso)) {
		m->mapping = FAULT_VDSO;
	} else {
		m->mapping = FAULT_ANON;
	}
	return 0;
}

static int fault_begin(void)
{
	struct faulting *f;

	if (!in_scope())
		return 0;
	f = bpf_task_storage_get(&faulting, bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (f)
		f->start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/page_fault_user")
int fault_user(struct bpf_raw_tracepoint_args *ctx __attribute__((unused)))
{
	return fault_begin();
}

/* By the kernel, in memory of the process: read() into a page that is not there. */
SEC("raw_tp/page_fault_kernel")
int fault_kernel(struct bpf_raw_tracepoint_args *ctx __attribute__((unused)))
{
	return fault_begin();
}

static u64 user_ip(struct bpf_perf_event_data *ctx)
{
	struct pt_regs *regs;

	if (ctx->cs & 3)
		return ctx->ip;
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(regs, ip);
}

SEC("perf_event")
int fault_served(struct bpf_perf_event_data *ctx)
{
	u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct mapped m = {.address = ctx->addr, .mapping = FAULT_UNKNOWN};
	struct record_fault *r;
	struct cpu_state *cs;
	struct faulting *f;
	void *ring;
	u64 seq, flags;
	u32 cpu;

	if (!in_scope())
		return 0;
	cs = this_cpu(&cpu);
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (!cs || !ring)
		return 0;
	(void)bpf_find_vma(bpf_get_current_task_btf(), m.address, look_at_vma, &m, 0);
	seq = __sync_fetch_and_add(&cs->seq, 1);
	r = reserve(ring, cs, sizeof(*r));
	if (!r)
		return 0;
	__builtin_memset(r, 0, sizeof(*r));
	r->type = RECORD_FAULT;
	r->seq = seq;
	r->pid = id >> 32;
	r->tid = id;
	r->address = m.address;
	r->ip = user_ip(ctx);
	f = bpf_task_storage_get(&faulting, bpf_get_current_task_btf(), NULL, 0);
	if (f && f->start_ns)
		r->duration_ns = now - f->start_ns;
	if (f)
		r->is_own = f->is_own;
	r->mapping = m.mapping;
	r->dev = m.dev;
	r->ino = m.ino;
	r->file_offset = m.file_offset;
	r->t_ns = bpf_ktime_get_ns();
	flags = wakeup(ring, cs);
	/* Its name must be asked of the process, and that may end. */
	bpf_ringbuf_submit(r, m.mapping == FAULT_FILE ? BPF_RB_FORCE_WAKEUP : flags);
	return 0;
}
