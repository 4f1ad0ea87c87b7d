#include "report/text_internal.h"

/*
 * Which figures share a line, in the order of the lines. The first is the value of the line; what
 * says it in more detail stands in place of the definition, after a lead that is the definition
 * in fewer words. The longest values still fit into TEXT_DEFINITION.
 */
const struct text_line text_lines[] = {
	{.id = FIG_peak_bytes, .has_spread = true},
	{FIG_used_median_bytes,
	 "median",
	 {{FIG_used_mean_bytes, "mean @"}, {FIG_used_max_bytes, "most @"}}},
	{.id = FIG_resident_max_bytes},
	{.id = FIG_physical_max_bytes},
	{.id = FIG_logical_max_bytes},
	{FIG_hot_bytes, "anon + file at the floor", {{FIG_user_max_bytes, "most @"}}},
	{FIG_anon_max_bytes, "largest", {{FIG_inactive_anon_max_bytes, "inactive (cold) @"}}},
	{FIG_cache_max_bytes, "largest", {{FIG_shmem_max_bytes, "shared memory @"}}},
	{.id = FIG_kernel_max_bytes},
	{FIG_swapped_max_bytes, "largest", {{FIG_swapped_median_bytes, "median @"}}},
	{.id = FIG_swapped_share_max},
	{FIG_zswapped_max_bytes, "largest", {{FIG_zswap_max_bytes, "compressed @"}}},

	{FIG_floor_bytes,
	 "5 s with refaults < 25 %",
	 {{FIG_floor_share, "@ of peak"}},
	 .has_spread = true},
	{FIG_limit_least_bytes,
	 NULL,
	 {{FIG_limit_least_t_s, "first at @"}, {FIG_limit_last_bytes, "last limit @"}}},
	{FIG_limit_held_share, "of the time", {{FIG_limit_changes, "@ changes"}}},
	{FIG_refault_ratio, "of reclaimed", {{FIG_refaults, "@ pages came back"}}},
	{.id = FIG_reclaim_efficiency},

	{.id = FIG_duration_s, .has_spread = true},
	{FIG_stalled_full_s,
	 NULL,
	 {{FIG_stalled_full_share, "@ of time"}, {FIG_stalled_full_worst, "worst interval @"}},
	 .has_spread = true},
	{FIG_stalled_some_s,
	 NULL,
	 {{FIG_stalled_some_share, "@ of time"}, {FIG_stalled_some_worst, "worst interval @"}}},
	{.id = FIG_major_faults, .has_spread = true},
	{FIG_major_faults_avg_per_s,
	 "mean",
	 {{FIG_major_faults_median_per_s, "median @"}, {FIG_major_faults_max_per_s, "worst @"}}},
	{.id = FIG_faults},
	{FIG_faults_avg_per_s,
	 "mean",
	 {{FIG_faults_median_per_s, "median @"}, {FIG_faults_max_per_s, "worst @"}}},
	{FIG_zswap_in_pages, "pages from zswap", {{FIG_zswap_out_pages, "@ stored"}}},
	{FIG_swap_in_pages, "pages from devices", {{FIG_swap_out_pages, "@ out"}}},
	{.id = FIG_stall_per_page_s},
	{FIG_cpu_s, "of the group", {{FIG_cpus, "@ CPUs on average"}}},
	{FIG_read_bytes, "from block devices", {{FIG_written_bytes, "written @"}}},
	{FIG_limit_hits, "times at memory.max", {{FIG_throttled, "@ at memory.high"}}},
	{.id = FIG_oom_kills},

	{FIG_saving_max_bytes,
	 "logical - physical",
	 {{FIG_saving_max_share, "@ of logical"}}},
	{FIG_saving_median_bytes,
	 "over time",
	 {{FIG_saving_median_share, "@ of logical"}},
	 .has_spread = true},
	{FIG_zswap_ratio, "original / compressed", {{FIG_zswap_ratio_at_most, "@ when full"}}},

	{FIG_host_zswap_pool_max_bytes,
	 "largest",
	 {{FIG_host_pool_efficiency, "@ this group's"}}},
	{.id = FIG_host_net_ratio},
	{FIG_host_zram_max_bytes, "largest", {{FIG_host_zram_incompressible, "@ incompressible"}}},
	{FIG_host_swap_ratio, "zswap + zram", {{FIG_host_swap_ratio_filled, "@ no same-filled"}}},
	{FIG_host_swap_in_pages, "pages from devices", {{FIG_host_swap_out_pages, "@ out"}}},
	{.id = FIG_host_stalled_full_share},
	{FIG_host_available_min_bytes, "least", {{FIG_host_swap_free_min_bytes, "free swap @"}}},
};

const size_t n_text_lines = ARRAY_SIZE(text_lines);
