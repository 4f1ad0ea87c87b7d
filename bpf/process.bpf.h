/* Processes of the workload: made, replaced by exec, ended; signals that concern the tracer. */
#pragma once

#include "bpf/maps.bpf.h"

#define CLD_SHIFT 8

static void emit_process(u8 kind, u8 flags, struct task_struct *task, u32 ppid, u32 status)
{
	u32 cpu;
	struct cpu_state *cs = this_cpu(&cpu);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct record_process *r;
	u64 seq;

	if (!cs || !ring)
		return;
	seq = __sync_fetch_and_add(&cs->seq, 1);
	r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);
	if (!r) {
		count_lost(cs);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->type = RECORD_PROCESS;
	r->kind = kind;
	r->flags = flags;
	r->seq = seq;
	r->pid = BPF_CORE_READ(task, tgid);
	r->ppid = ppid;
	r->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	r->status = status;
	/* The leader's: the last thread to end may bear any name. */
	(void)BPF_CORE_READ_STR_INTO(&r->comm, task, group_leader, comm);
	r->t_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tp/sched_process_fork")
int process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	u32 ppid, pid, gen;
	struct table *t;
	bool is_shared;

	if (!in_scope())
		return 0;
	ppid = BPF_CORE_READ(parent, tgid);
	pid = BPF_CORE_READ(child, tgid);
	if (pid == ppid)
		return 0; /* a thread */
	is_shared = BPF_CORE_READ(parent, mm) == BPF_CORE_READ(child, mm);
	t = bpf_map_lookup_elem(&tables, &ppid);
	if (t)
		(void)bpf_map_update_elem(&tables, &pid, t, BPF_ANY);
	gen = generation(ppid);
	(void)bpf_map_update_elem(&generations, &pid, &gen, BPF_ANY);
	emit_process(EVENT_FORK, is_shared ? EVENT_SHARED_MM : 0, child, ppid, 0);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct thread *th;
	u32 pid;

	if (!in_scope())
		return 0;
	pid = BPF_CORE_READ(task, tgid);
	new_generation(pid);
	th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
	if (th)
		th->n_calls = 0;
	emit_process(EVENT_EXEC, 0, task, 0, 0);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	u32 pid = BPF_CORE_READ(task, tgid);
	u32 status;

	if (!in_scope() || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0; /* other threads go on */
	status = BPF_CORE_READ(task, signal, group_exit_code);
	if (!status)
		status = BPF_CORE_READ(task, exit_code);
	(void)bpf_map_delete_elem(&tables, &pid);
	(void)bpf_map_delete_elem(&generations, &pid);
	(void)bpf_map_delete_elem(&stopped, &pid);
	emit_process(EVENT_EXIT, 0, task, 0, status);
	return 0;
}

/* A handler is about to run: what it allocates is not part of the call that it interrupts. */
SEC("raw_tp/signal_deliver")
int signal_deliver(struct bpf_raw_tracepoint_args *ctx)
{
	struct k_sigaction *ka = (void *)ctx->args[2];
	struct thread *th = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
	u32 n;

	if (!th || th->n_calls == 0 || (u64)BPF_CORE_READ(ka, sa.sa_handler) <= 1)
		return 0;
	n = th->n_calls - 1;
	if (n < CALLS_MAX)
		th->call[n].signal = ctx->args[0];
	return 0;
}

/*
 * A stop that comes from somebody else, while a process is stopped by us, stays. Who is continued,
 * by whom ever, is forgotten here, where signals come one after the other, but not while our next
 * stop is on its way: that one is still to be undone.
 */
SEC("raw_tp/signal_generate")
int signal_generate(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[2];
	int sig = ctx->args[0];
	struct stopped *st;
	u32 pid;

	if (sig < SIGCONT || sig > SIGSTOP + 3) /* CONT, STOP, TSTP, TTIN, TTOU */
		return 0;
	pid = BPF_CORE_READ(task, tgid);
	st = bpf_map_lookup_elem(&stopped, &pid);
	if (!st)
		return 0;
	if (sig == SIGCONT) {
		if (!st->is_own_pending)
			(void)bpf_map_delete_elem(&stopped, &pid);
	} else if (st->is_own_pending && sig == SIGSTOP)
		st->is_own_pending = 0;
	else
		st->is_foreign = 1;
	return 0;
}
