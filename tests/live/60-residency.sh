# Where each site's memory is, against what the program itself says of every page. With swap: a file
# of ours, else what the machine has.
. "$TOP/tests/trace/lib.sh"
. "$TOP/tests/trace/swap.sh"
need_tracer "residency"

grep -qw swap_info /proc/kallsyms && swapcache=yes || swapcache=no

stands() { # MODE DIR
	t "$2: all is where the program says" timeout -k 10 300 python3 "$sources/residency.py" "$2" \
		$swapcache "$ANALYZER" -q -s 0.2 -t alloc -o "$2" \
		"$programs/60-residency" "$1"
}
rows() { sql "$1" "SELECT $2 FROM site_sample"; }

stands moves moves
t "moves: sites add up to the scan" is "$(sql moves "SELECT count(*) FROM scan AS c WHERE
	resident_bytes != (SELECT sum((SELECT resident_bytes FROM site_sample AS x WHERE
	x.site_id = s.site_id AND x.t_ns <= c.t_ns ORDER BY x.t_ns DESC LIMIT 1)) FROM site AS s)")" 0
t "moves: the allocator's own memory is a site's" is "$(sql moves "SELECT count(*), stack_id IS NULL
	FROM site WHERE kind = 'other'")" "1|1"
t "moves: rows only where something changed" is "$(sql moves "SELECT count(*) FROM (SELECT
	live_bytes, lag(live_bytes) OVER w AS l, resident_bytes, lag(resident_bytes) OVER w AS r,
	swapped_bytes, lag(swapped_bytes) OVER w AS s FROM site_sample
	WINDOW w AS (PARTITION BY site_id ORDER BY t_ns)) WHERE live_bytes = l AND
	resident_bytes = r AND swapped_bytes = s")" 0
t "moves: scans as the trace says" is "$(figure moves scans)" "$(sql moves 'SELECT count(*) FROM scan')"
t "moves: no complaint" is "$(figure moves scan_problem)" ""
stands share share

# -- swapped out
need_swap 64 swap
if [ -n "$was_zswap" ]; then
	swap_with Y 0
	stands swap zswap
	# Compressed at once, and nothing read ahead: no page is in both places.
	[ $swapcache = no ] || t "zswap: nothing in the swap cache" is \
		"$(rows zswap 'max(swapcache_bytes)')" 0
	swap_with N "$was_cluster"
fi
stands swap plain
# Written to a file, a page stays in memory until that is needed for something else.
if [ $swapcache = yes ]; then
	t "plain swap: pages are in the swap cache" is "$(rows plain 'max(swapcache_bytes) > 0')" 1
else
	t "plain swap: the swap cache is not known" is "$(rows plain 'count(swapcache_bytes)') $(sql \
		plain 'SELECT count(swapcache_bytes) FROM scan')" "0 0"
fi
stands share-swap shmem
t "max_swapped_bytes is the largest of a site's rows" is "$(sql plain "SELECT count(*) FROM site AS s
	WHERE max_swapped_bytes != (SELECT coalesce(max(swapped_bytes), 0) FROM site_sample AS x
	WHERE x.site_id = s.site_id)") $(sql plain 'SELECT max(max_swapped_bytes) FROM site')" \
	"0 $((499 * 4096))"
t "rows never have more in classes than there is" is "$(rows plain "sum(cold_bytes + returned_bytes +
	thrashing_bytes > resident_bytes + swapped_bytes OR cold_bytes > swapped_bytes)")" 0
done_testing
