/*
 * What an allocation tracer costs when it is made the obvious way, for comparison: a filter by
 * process in a hash map, arguments handed from entry to return in a hash map, one event of 48 bytes
 * with the default wakeups in one ring, and stacks told apart by a hash over their raw bytes, which
 * are sent when it is new. And programs that do nothing: what the probes alone cost.
 */
#include "bpf/kern.bpf.h"

#define STACK_BYTES 8192
#define STACK_CHUNK 1024
#define FNV_PRIME 0x100000001b3ULL

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
const volatile bool with_stacks = true;

struct event {
	u8 kind;
	u8 pad[7];
	u64 t_ns;
	u32 pid, tid;
	u64 address, size, digest;
};

struct stack {
	u64 digest, sp, ip, bp;
	u8 bytes[STACK_BYTES];
};

struct arguments {
	u64 size, digest;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10000);
	__type(key, u32);
	__type(value, u8);
} tracked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10000);
	__type(key, u64);
	__type(value, struct arguments);
} handover SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 20);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u8);
} seen SEC(".maps");

static bool is_tracked(u64 id)
{
	u32 pid = id >> 32;

	return bpf_map_lookup_elem(&tracked, &pid) != NULL;
}

static u32 copy_stack(struct stack *s)
{
	u32 n = 0;

	for (int i = 0; i < STACK_BYTES / STACK_CHUNK; i++) {
		if (bpf_probe_read_user(&s->bytes[i * STACK_CHUNK], STACK_CHUNK,
					(void *)(s->sp + i * STACK_CHUNK)) < 0)
			break;
		n += STACK_CHUNK;
	}
	return n;
}

static u64 digest_of(const struct stack *s, u32 n)
{
	const u64 *w = (const u64 *)s->bytes;
	u64 lane[4] = {1, 2, 3, 4};

	for (u32 i = 0; i < STACK_BYTES / 8; i += 4) {
		if (i * 8 >= n)
			break;
		lane[0] = (lane[0] ^ w[i]) * FNV_PRIME;
		lane[1] = (lane[1] ^ w[i + 1]) * FNV_PRIME;
		lane[2] = (lane[2] ^ w[i + 2]) * FNV_PRIME;
		lane[3] = (lane[3] ^ w[i + 3]) * FNV_PRIME;
	}
	return lane[0] ^ lane[1] << 1 ^ lane[2] << 2 ^ lane[3] << 3;
}

static u64 send_stack(struct pt_regs *ctx)
{
	struct stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);
	u64 digest;
	u8 one = 1;

	if (!s)
		return 0;
	s->sp = PT_REGS_SP(ctx);
	s->ip = PT_REGS_IP(ctx);
	s->bp = PT_REGS_FP(ctx);
	digest = digest_of(s, copy_stack(s));
	s->digest = digest;
	if (bpf_map_update_elem(&seen, &digest, &one, BPF_NOEXIST) == 0)
		bpf_ringbuf_submit(s, 0);
	else
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
	return digest;
}

static void send_event(u8 kind, u64 id, u64 address, u64 size, u64 digest)
{
	struct event *ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);

	if (!ev)
		return;
	ev->kind = kind;
	ev->t_ns = bpf_ktime_get_ns();
	ev->pid = id >> 32;
	ev->tid = id;
	ev->address = address;
	ev->size = size;
	ev->digest = digest;
	bpf_ringbuf_submit(ev, 0);
}

/* The cookie: which argument is the size. */
SEC("uprobe")
int alloc_enter(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct arguments a = {.size = ctx->di};

	if (!is_tracked(id))
		return 0;
	if (bpf_get_attach_cookie(ctx) == 1)
		a.size = ctx->si;
	if (with_stacks)
		a.digest = send_stack(ctx);
	(void)bpf_map_update_elem(&handover, &id, &a, BPF_ANY);
	return 0;
}

SEC("uretprobe")
int alloc_leave(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct arguments *a, copy;

	if (!is_tracked(id))
		return 0;
	a = bpf_map_lookup_elem(&handover, &id);
	if (!a)
		return 0;
	copy = *a;
	(void)bpf_map_delete_elem(&handover, &id);
	if (PT_REGS_RC(ctx))
		send_event(1, id, PT_REGS_RC(ctx), copy.size, copy.digest);
	return 0;
}

SEC("uprobe")
int free_enter(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid();

	if (is_tracked(id) && ctx->di)
		send_event(2, id, ctx->di, 0, 0);
	return 0;
}

SEC("uprobe.s")
int empty_enter(struct pt_regs *ctx __attribute__((unused)))
{
	return 0;
}

SEC("uretprobe.s")
int empty_leave(struct pt_regs *ctx __attribute__((unused)))
{
	return 0;
}

SEC("uprobe.s")
int empty_session(struct pt_regs *ctx __attribute__((unused)))
{
	return 0;
}
