# Exactly two events for each pair of malloc and free, whichever allocator, preloaded or linked.
# Debian has no static archive of mimalloc: it is tested preloaded only.
. "$TOP/tests/trace/lib.sh"
need_tracer "allocators"

two_per_pair() { # DIR [TAG]
	t "$1: ends as untraced" is $status 0
	t "$1: 10007 pairs, by size" expect "$1" pairs ${2:-}
	t "$1: nothing lost" is "$(figure "$1" lost)" 0
	# ld.so, which calls constructors, has no unwind information at its outer end.
	t "$1: every allocation has its whole stack" is "$(sql "$1" "SELECT
		json_extract(trace, '\$.stacks_full') >= 10007 AND
		json_extract(trace, '\$.stacks_cut') + json_extract(trace, '\$.stacks_none') = 0
		FROM run")" 1
}

# Entries of both functions; what libraries do when they are loaded comes to a few.
stepped() { t "$1: entries that are single-stepped" test "$(figure "$1" stepped)" "${@:2}"; }

trace glibc "$programs/pairs"; two_per_pair glibc
stepped glibc -lt 100
t "glibc: a return each of malloc" eval '[ "$(figure glibc returns)" -ge 10007 ] &&
	[ "$(figure glibc returns)" -lt 10107 ]'
for lib in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	preloaded $lib $lib "$programs/pairs"
	two_per_pair $lib
done
stepped libmimalloc.so.2 -ge 20014
stepped libtcmalloc_minimal.so.4 -lt 1000
for kind in static jemalloc tcmalloc; do
	trace static-$kind "$programs/pairs-$kind"
	two_per_pair static-$kind static
done

# What a library sets up for itself when it is loaded is its own: the program's calls are compared.
for lib in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	preloaded new.$lib $lib "$programs/07-new"
	t "$lib: operators: exact" expect new.$lib 07-new other
	preload=$lib beside o.$lib "$programs/05-realloc-move"
	t "$lib: realloc, event for event" same o.$lib --heap-only
	preload=$lib beside s.$lib sqlite3 :memory: \
		'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 997)
		 SELECT count(DISTINCT hex(i * i) || i) FROM n'
	t "$lib: sqlite3, event for event" same s.$lib --heap-only
done
# -- a neighbour that allocates beside a traced workload: no program of ours runs for it, unless it
# runs the very file that is probed where it lies
"$ANALYZER" -q -t alloc -o beside sh -c "echo ready; sleep 3; exec $programs/pairs-static" >out 2>err &
pid=$!
await out ready
"$programs/storm" -n 1000000 >"$work/.storm"
t "the neighbour ran, and before the workload ended" kill -0 $pid
wait $pid
t "10^6 pairs of a neighbour: no program has run" is "$(figure beside outside)" 0
t "while the workload's own are counted" test "$(figure beside hits)" -ge 20014
cp "$programs/pairs-static" shared
"$ANALYZER" -q -t alloc -o shared.d sh -c "./shared >.null; echo ready; sleep 2" >out 2>err &
pid=$!
await out ready
./shared >"$work/.shared"
wait $pid
t "the same static file outside: its calls are seen to be none of ours" \
	test "$(figure shared.d outside)" -ge 20014
done_testing
