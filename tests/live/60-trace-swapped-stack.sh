# Pages of the stack are swapped out when the allocator is called: the tracer brings in what it
# needs, says so, and the stack is the one it was before.
. "$TOP/tests/trace/lib.sh"
need_tracer "swapped stacks"

# -- a swap file of our own, through zswap, a page at a time; all as before at the end
swap=$TOP/build/test.swap zswap=/sys/module/zswap/parameters/enabled
cluster=/proc/sys/vm/page-cluster had_cluster=$(cat /proc/sys/vm/page-cluster)
had_zswap=$(cat $zswap 2>"$work/.null")
restore() {
	swapoff "$swap" 2>"$work/.null"
	rm -f "$swap"
	echo "$had_cluster" >$cluster
	[ -z "$had_zswap" ] || echo "$had_zswap" >$zswap
	cd / && rm -rf "$work"
}
trap restore EXIT
dd if=/dev/zero of="$swap" bs=1M count=64 status=none && chmod 600 "$swap"
mkswap -q "$swap"
if ! swapon "$swap" 2>err; then
	skip "swapped stacks" "$(cat err)"
	done_testing
	exit
fi
echo 0 >$cluster
[ -z "$had_zswap" ] || echo Y >$zswap

cap "$programs/50-paged-out"
t "untraced: pages are out" has out '^132 '
t "untraced: an allocation brings none in" is "$(cat out)" "132 0"

trace swapped "$programs/50-paged-out"
read -r pages_out pages_back <out
t "ends as untraced" is $status 0
t "its allocations: exact" expect swapped 50-paged-out
t "pages are out: six times 22" is "$pages_out" 132
# In each round at least those of the seven frames that lie wholly above the lowest page that goes.
t "the tracer has brought some in" test "$pages_back" -ge 42
t "each is counted" is "$(figure swapped faulted_pages)" "$pages_back"
t "nothing is cut or guessed" is "$(sql swapped "SELECT json_extract(trace, '\$.stacks_full') =
	json_extract(trace, '\$.allocs') FROM run")" 1
t "a stack known before: the same when its pages are out" is "$(sql swapped "SELECT count(*) || ' of ' ||
	sum(alloc_count) FROM site WHERE alloc_bytes % 1451 = 0")" "1 of 13"
levels() { # FUNCTION: frames of it in the stack of the site below it
	sql swapped "SELECT count(*) || ' below ' || max(level) FROM site_stack
		WHERE function = '$1'"
}
t "with every frame" is "$(levels known)" "8 below $(sql swapped "SELECT level - 1 FROM site_stack
	WHERE function = 'main' AND site_id IN (SELECT site_id FROM site_stack WHERE function = 'known')")"
t "one first seen when its pages are out: with every frame" is "$(levels unknown)" \
	"8 below $(sql swapped "SELECT level - 1 FROM site_stack WHERE function = 'main' AND
	site_id IN (SELECT site_id FROM site_stack WHERE function = 'unknown')")"
done_testing
