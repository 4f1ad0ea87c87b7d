#include "report/text_internal.h"

/*
 * Which figures share a line, in the order of the lines. The first is the value of the line; what
 * says it in more detail stands in place of the definition, after a lead that is the definition
 * in fewer words. The longest values still fit into TEXT_DEFINITION.
 */

#define PLAIN(id_) .id = FIG_##id_
#define LINE(id_, lead_, ...) .id = FIG_##id_, .lead = (lead_), .also = {__VA_ARGS__}
/* clang-format off */
#define ALSO(id_, text_) {.id = FIG_##id_, .text = (text_)}
/* clang-format on */
#define SPREAD .has_spread = true

const struct text_line text_lines[] = {
	{PLAIN(peak_bytes), SPREAD},
	{LINE(used_median_bytes, "median", ALSO(used_mean_bytes, "mean @"),
	      ALSO(used_max_bytes, "most @"))},
	{PLAIN(resident_max_bytes)},
	{PLAIN(physical_max_bytes)},
	{PLAIN(logical_max_bytes)},
	{LINE(hot_bytes, "anon + file at the floor", ALSO(user_max_bytes, "most @"))},
	{LINE(anon_max_bytes, "largest", ALSO(inactive_anon_max_bytes, "inactive (cold) @"))},
	{LINE(cache_max_bytes, "largest", ALSO(shmem_max_bytes, "shared memory @"))},
	{PLAIN(kernel_max_bytes)},
	{LINE(swapped_max_bytes, "largest", ALSO(swapped_median_bytes, "median @"))},
	{PLAIN(swapped_share_max)},
	{LINE(zswapped_max_bytes, "largest", ALSO(zswap_max_bytes, "compressed @"))},

	{LINE(floor_bytes, "5 s with refaults < 25 %", ALSO(floor_share, "@ of peak")), SPREAD},
	{LINE(limit_least_bytes, NULL, ALSO(limit_least_t_s, "first at @"),
	      ALSO(limit_last_bytes, "last limit @"))},
	{LINE(limit_held_share, "of the time", ALSO(limit_changes, "@ changes"))},
	{LINE(refault_ratio, "of reclaimed", ALSO(refaults, "@ pages came back"))},
	{PLAIN(reclaim_efficiency)},

	{PLAIN(duration_s), SPREAD},
	{LINE(stalled_full_s, NULL, ALSO(stalled_full_share, "@ of time"),
	      ALSO(stalled_full_worst, "worst interval @")),
	 SPREAD},
	{LINE(stalled_some_s, NULL, ALSO(stalled_some_share, "@ of time"),
	      ALSO(stalled_some_worst, "worst interval @"))},
	{PLAIN(major_faults), SPREAD},
	{LINE(major_faults_avg_per_s, "mean", ALSO(major_faults_median_per_s, "median @"),
	      ALSO(major_faults_max_per_s, "worst @"))},
	{PLAIN(faults)},
	{LINE(faults_avg_per_s, "mean", ALSO(faults_median_per_s, "median @"),
	      ALSO(faults_max_per_s, "worst @"))},
	{LINE(zswap_in_pages, "pages from zswap", ALSO(zswap_out_pages, "@ stored"))},
	{LINE(swap_in_pages, "pages from devices", ALSO(swap_out_pages, "@ out"))},
	{PLAIN(stall_per_page_s)},
	{LINE(cpu_s, "of the group", ALSO(cpus, "@ CPUs on average"))},
	{LINE(read_bytes, "from block devices", ALSO(written_bytes, "written @"))},
	{LINE(limit_hits, "at memory.max", ALSO(throttled, "@ at memory.high"))},
	{PLAIN(oom_kills)},

	{LINE(saving_max_bytes, "logical - physical", ALSO(saving_max_share, "@ of logical"))},
	{LINE(saving_median_bytes, "over time", ALSO(saving_median_share, "@ of logical")), SPREAD},
	{LINE(zswap_ratio, "original / compressed", ALSO(zswap_ratio_at_most, "@ when full"))},

	{LINE(host_zswap_pool_max_bytes, "largest", ALSO(host_pool_efficiency, "@ this group's"),
	      ALSO(host_net_ratio, "net @"))},
	{LINE(host_zram_max_bytes, "largest", ALSO(host_zram_incompressible, "@ incompressible"))},
	{LINE(host_swap_ratio, "zswap + zram", ALSO(host_swap_ratio_filled, "@ no same-filled"))},
	{LINE(host_swap_in_pages, "pages from devices", ALSO(host_swap_out_pages, "@ out"))},
	{PLAIN(host_stalled_full_share)},
	{LINE(host_available_min_bytes, "least", ALSO(host_swap_free_min_bytes, "free swap @"))},
};

const size_t n_text_lines = ARRAY_SIZE(text_lines);
