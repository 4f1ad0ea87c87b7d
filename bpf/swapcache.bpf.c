/*
 * Which swap entries have their page in the swap cache: swapped, and in memory too. No file says
 * it of pages of other processes, so the kernel's own map of the swap area is read. Run from user
 * space, for a batch of entries. An object of its own: what a kernel does not have, or does not
 * let through, must not keep the tracer from loading.
 */
#include "bpf/kern.bpf.h"

#include "bpf/swapcache.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AREA_BITS 5
#define HAS_CACHE 0x40 /* in swap_map */

struct swap_info_struct {
	signed char type;
	unsigned int max;
	unsigned char *swap_map;
} core;

/* The array of pointers to areas. Kernels that list only functions in kallsyms do not tell it. */
extern const void swap_info __ksym __weak;

struct swapcache_query query;

static long look_up(u32 i, void *ctx)
{
	struct swap_info_struct *si = NULL;
	const void *slot;
	u8 count = 0;
	u64 entry, offset;
	u32 area;

	(void)ctx;
	if (i >= SWAPCACHE_MAX)
		return 1;
	entry = query.entry[i];
	area = entry & ((1 << AREA_BITS) - 1);
	offset = entry >> AREA_BITS;
	slot = (const void *)((u64)&swap_info + area * sizeof(si));
	query.is_in[i] = 0;
	/* An area that is just being taken away has no page in memory that we could miss. */
	if (bpf_probe_read_kernel(&si, sizeof(si), slot) || !si ||
	    (u32)BPF_CORE_READ(si, type) != area || offset >= BPF_CORE_READ(si, max))
		return 0;
	if (!bpf_probe_read_kernel(&count, sizeof(count), BPF_CORE_READ(si, swap_map) + offset))
		query.is_in[i] = (count & HAS_CACHE) != 0;
	return 0;
}

SEC("syscall")
int swapcache_look(void *ctx)
{
	(void)ctx;
	query.is_known = 0;
	if (!&swap_info || !bpf_core_field_exists(struct swap_info_struct, swap_map))
		return 0;
	query.is_known = 1;
	bpf_loop(query.n, look_up, NULL, 0);
	return 0;
}
