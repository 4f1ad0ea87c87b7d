/*
 * The few kernel types and helpers that the programs need. Only field names matter: offsets are
 * relocated when the programs are loaded (CO-RE), so no dump of one kernel's types is needed.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0

#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define core __attribute__((preserve_access_index))

enum bpf_map_type_ {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE (1 << 10)
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
} core;

struct xol_area {
	unsigned long vaddr;
} core;

struct uprobes_state {
	struct xol_area *xol_area;
} core;

typedef struct {
	void *vdso;
} core mm_context_t;

struct mm_struct {
	unsigned long exec_vm, start_brk, brk, start_stack;
	struct uprobes_state uprobes_state;
	mm_context_t context;
} core;

struct super_block {
	u32 s_dev;
} core;

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
} core;

struct file {
	struct inode *f_inode;
} core;

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
} core;

struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
} core;

struct uprobe_task {
	struct return_instance *return_instances;
} core;

typedef struct {
	unsigned long sig[1];
} core sigset_t;

struct sigaction {
	void *sa_handler;
} core;

struct k_sigaction {
	struct sigaction sa;
} core;

typedef struct {
	int counter;
} core atomic_t;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
} core;

struct thread_struct {
	unsigned long fsbase;
} core;

struct task_struct {
	int pid, tgid, exit_code;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	u64 start_boottime;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	sigset_t blocked;
	unsigned long sas_ss_sp, sas_ss_size;
	struct thread_struct thread;
	char comm[16];
} core;

struct bpf_raw_tracepoint_args {
	u64 args[0];
};

/* As programs see it: the registers are those of struct pt_regs. */
struct bpf_perf_event_data {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
	u64 sample_period;
	u64 addr;
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Linux 6.7 has these; elsewhere they are NULL. */
struct bpf_iter_task_vma {
	u64 opaque[1];
};

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 u64 address) __ksym __weak;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

/* Linux 6.13. */
extern bool bpf_session_is_return(void) __ksym __weak;

/* Field names of struct pt_regs are those of x86-64. */
#define PT_REGS_IP(ctx) ((ctx)->ip)
#define PT_REGS_SP(ctx) ((ctx)->sp)
#define PT_REGS_FP(ctx) ((ctx)->bp)
#define PT_REGS_RC(ctx) ((ctx)->ax)
