/*
 * Kernel files as they were read, for fake trees: a group with memory.max 60 MiB whose process
 * goes through 80 MiB, on kernels 6.1 and 6.12. memory_stat_6_18 has the keys of 6.18 in its
 * order, with the line's number as the figure.
 */
#pragma once

static const char memory_stat_6_1[] =
	"anon 56053760\nfile 3796992\nkernel 2412544\nkernel_stack 0\npagetables 233472\n"
	"sec_pagetables 0\npercpu 0\nsock 0\nvmalloc 0\nshmem 0\nzswap 1989059\n"
	"zswapped 16785408\nfile_mapped 2363392\nfile_dirty 0\nfile_writeback 0\n"
	"swapcached 2338816\nanon_thp 0\nfile_thp 0\nshmem_thp 0\ninactive_anon 56422400\n"
	"active_anon 270336\ninactive_file 1531904\nactive_file 2252800\nunevictable 0\n"
	"slab_reclaimable 131992\nslab_unreclaimable 31440\nslab 163432\n"
	"workingset_refault_anon 62081\nworkingset_refault_file 2939\n"
	"workingset_activate_anon 51\nworkingset_activate_file 1139\nworkingset_restore_anon 0\n"
	"workingset_restore_file 440\nworkingset_nodereclaim 0\npgscan 221891\npgsteal 94020\n"
	"pgscan_kswapd 0\npgscan_direct 221891\npgsteal_kswapd 0\npgsteal_direct 94020\n"
	"pgfault 135650\npgmajfault 8184\npgrefill 2305\npgactivate 1392\npgdeactivate 1966\n"
	"pglazyfree 0\npglazyfreed 0\nzswpin 46558\nzswpout 50286\nthp_fault_alloc 0\n"
	"thp_collapse_alloc 0\n";

static const char memory_stat_6_12[] =
	"anon 53760000\nfile 3813376\nkernel 2252800\nkernel_stack 0\npagetables 241664\n"
	"sec_pagetables 0\npercpu 0\nsock 0\nvmalloc 0\nshmem 0\nzswap 1726456\n"
	"zswapped 16211968\nfile_mapped 2592768\nfile_dirty 0\nfile_writeback 0\n"
	"swapcached 3751936\nanon_thp 0\nfile_thp 0\nshmem_thp 0\ninactive_anon 31346688\n"
	"active_anon 24457216\ninactive_file 0\nactive_file 3928064\nunevictable 0\n"
	"slab_reclaimable 234256\nslab_unreclaimable 35984\nslab 270240\n"
	"workingset_refault_anon 62288\nworkingset_refault_file 2747\n"
	"workingset_activate_anon 936\nworkingset_activate_file 81\nworkingset_restore_anon 936\n"
	"workingset_restore_file 81\nworkingset_nodereclaim 0\npgdemote_kswapd 0\n"
	"pgdemote_direct 0\npgdemote_khugepaged 0\npgpromote_success 0\npgscan 176918\n"
	"pgsteal 94322\npgscan_kswapd 0\npgscan_direct 176918\npgscan_khugepaged 0\n"
	"pgsteal_kswapd 0\npgsteal_direct 94322\npgsteal_khugepaged 0\npgfault 133473\n"
	"pgmajfault 8498\npgrefill 2118\npgactivate 27018\npgdeactivate 0\npglazyfree 0\n"
	"pglazyfreed 0\nswpin_zero 30782\nswpout_zero 30740\nzswpin 15839\nzswpout 19799\n"
	"zswpwb 0\nthp_fault_alloc 0\nthp_collapse_alloc 0\nthp_swpout 0\nthp_swpout_fallback 0\n"
	"numa_pages_migrated 0\nnuma_pte_updates 0\nnuma_hint_faults 0\n";

static const char memory_stat_6_18[] =
	"anon 1\nfile 2\nkernel 3\nkernel_stack 4\npagetables 5\nsec_pagetables 6\npercpu 7\n"
	"sock 8\nvmalloc 9\nshmem 10\nzswap 11\nzswapped 12\nfile_mapped 13\nfile_dirty 14\n"
	"file_writeback 15\nswapcached 16\nanon_thp 17\nfile_thp 18\nshmem_thp 19\n"
	"inactive_anon 20\nactive_anon 21\ninactive_file 22\nactive_file 23\nunevictable 24\n"
	"slab_reclaimable 25\nslab_unreclaimable 26\nslab 27\nhugetlb 28\n"
	"workingset_refault_anon 29\nworkingset_refault_file 30\nworkingset_activate_anon 31\n"
	"workingset_activate_file 32\nworkingset_restore_anon 33\nworkingset_restore_file 34\n"
	"workingset_nodereclaim 35\npgdemote_kswapd 36\npgdemote_direct 37\n"
	"pgdemote_khugepaged 38\npgdemote_proactive 39\npgpromote_success 40\npgscan 41\n"
	"pgsteal 42\npswpin 43\npswpout 44\npgscan_kswapd 45\npgscan_direct 46\n"
	"pgscan_khugepaged 47\npgscan_proactive 48\npgsteal_kswapd 49\npgsteal_direct 50\n"
	"pgsteal_khugepaged 51\npgsteal_proactive 52\npgfault 53\npgmajfault 54\npgrefill 55\n"
	"pgactivate 56\npgdeactivate 57\npglazyfree 58\npglazyfreed 59\nswpin_zero 60\n"
	"swpout_zero 61\nzswpin 62\nzswpout 63\nzswpwb 64\nthp_fault_alloc 65\n"
	"thp_collapse_alloc 66\nthp_swpout 67\nthp_swpout_fallback 68\nnuma_pages_migrated 69\n"
	"numa_pte_updates 70\nnuma_hint_faults 71\n";

static const char memory_events_6_12[] =
	"low 0\nhigh 0\nmax 1797\noom 0\noom_kill 0\noom_group_kill 0\n";

static const char memory_swap_events_6_12[] = "high 0\nmax 0\nfail 0\n";

static const char memory_pressure_6_12[] =
	"some avg10=41.06 avg60=13.30 avg300=3.17 total=10120891\n"
	"full avg10=41.06 avg60=13.30 avg300=3.17 total=10120891\n";

static const char cpu_stat_6_12[] =
	"usage_usec 39233363\nuser_usec 6055106\nsystem_usec 33178257\nnice_usec 0\n"
	"nr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n";

static const char io_stat_6_12[] =
	"254:0 rbytes=64172032 wbytes=104861696 rios=15667 wios=25601 dbytes=0 dios=0\n";

/* A part of it: the whole has 160 lines. */
static const char vmstat_6_12[] =
	"nr_free_pages 222177\nnr_zspages 793\nnr_swapcached 916\npgpgin 421066\npswpin 15839\n"
	"pswpout 26097\npgfault 208337\npgmajfault 9931\npgsteal_kswapd 0\npgsteal_direct 94322\n"
	"pgsteal_khugepaged 0\npgscan_kswapd 0\npgscan_direct 176918\npgscan_khugepaged 0\n"
	"pgscan_direct_throttle 0\npgscan_anon 158330\npgscan_file 18588\noom_kill 0\n"
	"swap_ra 4210\nswap_ra_hit 3921\nzswpin 15839\nzswpout 19799\nzswpwb 0\nnr_unstable 0\n";

static const char meminfo_6_12[] =
	"MemTotal:         990508 kB\nMemFree:          888708 kB\nMemAvailable:     883776 kB\n"
	"Buffers:               0 kB\nSwapCached:         3664 kB\nSwapTotal:       1048572 kB\n"
	"SwapFree:        1008884 kB\nZswap:              3172 kB\nZswapped:          15832 kB\n"
	"HugePages_Total:       0\n";
