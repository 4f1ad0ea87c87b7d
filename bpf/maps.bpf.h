/* Maps, settings, and how a record gets into its ring. */
#pragma once

#include "bpf/kern.bpf.h"

#include "bpf/events.h"
#include "model/kinds.h"

#define SIGCONT 18
#define SIGSTOP 19
#define CPUS_MAX 1024

/* Set before loading. */
const volatile u64 scope_cgroup_id = 0;
const volatile u32 ring_bytes = 0;
const volatile u32 policy = POLICY_PAUSE;
const volatile u64 heartbeat_stale_ns = 1000000000;
const volatile u64 table_wait_ns = 50000000; /* most */

/* The depth of the scope's group in the tree; found by the first program that is inside. */
int scope_level = -1;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CPUS_MAX);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct stopped);
} stopped SEC(".maps");

/* Where code is, per process; filled by user space, copied at fork. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct table);
} tables SEC(".maps");

/* The generation that a process's table must be of; none = 0. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, u32);
} generations SEC(".maps");

/* How to unwind, by ROW_KEY; taught by user space. Compiling with clang takes 15,000; a table of a
 * million takes 35 ms to make. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, u64);
	__type(value, struct row);
} rows SEC(".maps");

/* Chains that were sent; one that finds no room is sent each time. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, u64);
	__type(value, u8);
} chains SEC(".maps");

/* A call of an allocator that has not returned. */
struct call {
	u64 sp; /* of its return address */
	u64 cookie;
	u64 address, size;
	u64 signal; /* a handler that has interrupted it; 0 = none */
};

#define CALLS_MAX 4 /* one, and signal handlers that interrupt it */

struct walk {
	u64 ip, sp, bp;
	u64 hash;
	u64 trampoline;
	u32 depth;
	u32 state;
	u32 is_first;
	u32 quality;
};

#define ARGUMENTS 8 /* six are used */

struct thread {
	u32 n_calls;
	u32 pad;
	u64 awaited_pages, awaited_generation; /* of the table last waited for */
	u64 argument[ARGUMENTS];
	struct call call[CALLS_MAX];
	struct walk walk;
	union { /* what is being put together */
		struct record_chain chain;
		struct record_maps maps;
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* Of a thread that meets page faults. */
struct faulting {
	u64 start_ns; /* of the last one */
	u64 is_own;   /* a program reads memory that may not be there */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct faulting);
} faulting SEC(".maps");

static struct cpu_state *this_cpu(u32 *cpu)
{
	*cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&cpus, cpu);
}

static bool in_scope(void)
{
	int level = scope_level;

	if (level >= 0)
		return bpf_get_current_ancestor_cgroup_id(level) == scope_cgroup_id;
	for (level = 0; level < 32; level++) {
		u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (id == 0)
			return false;
		if (id == scope_cgroup_id) {
			scope_level = level;
			return true;
		}
	}
	return false;
}

static u32 generation(u32 pid)
{
	const u32 *g = bpf_map_lookup_elem(&generations, &pid);

	return g ? *g : 0;
}

/* What is known of a process's code is no longer true. */
static void new_generation(u32 pid)
{
	u32 next = generation(pid) + 1;

	(void)bpf_map_update_elem(&generations, &pid, &next, BPF_ANY);
}

/*
 * Stops the process: it gets no further than its way back to user mode. Only while somebody is
 * there to continue it.
 */
static void stop_self(struct cpu_state *cs)
{
	struct stopped st = {.is_own_pending = 1, .since_ns = bpf_ktime_get_ns()};
	u32 zero = 0, pid = bpf_get_current_pid_tgid() >> 32;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct stopped *old = bpf_map_lookup_elem(&stopped, &pid);

	if (!c || st.since_ns - c->heartbeat_ns > heartbeat_stale_ns)
		return;
	if (old)
		st.is_foreign = old->is_foreign;
	if (bpf_map_update_elem(&stopped, &pid, &st, BPF_ANY) < 0)
		return;
	__sync_fetch_and_add(&cs->stops, 1);
	/* To this thread: one that is on its way to another would let this one run on. */
	(void)bpf_send_signal_thread(SIGSTOP);
}

/* Wakes the reader when a ring is a quarter full, and who freezes when it is half full, once
 * each; otherwise they look by themselves every few ms. */
static u64 wakeup(void *ring, struct cpu_state *cs)
{
	u64 used = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA), level;

	if (used > cs->peak)
		cs->peak = used;
	if (used > ring_bytes / 8 * 7 && policy == POLICY_PAUSE)
		stop_self(cs);
	level = (used > ring_bytes / 4) + (used > ring_bytes / 2);
	if (level <= cs->woken)
		return BPF_RB_NO_WAKEUP;
	cs->woken = level;
	return BPF_RB_FORCE_WAKEUP;
}

static void count_lost(struct cpu_state *cs)
{
	u64 now = bpf_ktime_get_ns();

	if (__sync_fetch_and_add(&cs->lost, 1) == 0)
		cs->lost_from_ns = now;
	cs->lost_to_ns = now;
}

/* Room for a record, or NULL: then one is lost, and who makes them is to wait. */
static __always_inline void *reserve(void *ring, struct cpu_state *cs, u64 size)
{
	void *r = bpf_ringbuf_reserve(ring, size, 0);

	if (r)
		return r;
	count_lost(cs);
	if (policy == POLICY_PAUSE)
		stop_self(cs);
	return NULL;
}
