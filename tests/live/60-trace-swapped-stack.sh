# Pages of the stack are swapped out when the allocator is called: the tracer brings in what it
# needs, says so, and the stack is the one it was before.
. "$TOP/tests/trace/lib.sh"
. "$TOP/tests/trace/swap.sh"
need_tracer "swapped stacks"

need_swap 64 "swapped stacks"
swap_with Y 0

cap "$programs/50-paged-out"
# The stack begins anywhere in a page: 22 pages lie between, or 23.
t "untraced: pages are out, and an allocation brings none in" has out '^13[28] 0$'

trace swapped "$programs/50-paged-out"
read -r pages_out pages_back <out
t "ends as untraced" is $status 0
t "its allocations: exact" expect swapped 50-paged-out
t "pages are out: six times" test "$pages_out" = 132 -o "$pages_out" = 138
# In each round at least those of the seven frames that lie wholly above the lowest page that goes.
t "the tracer has brought some in" test "$pages_back" -ge 42
t "each is counted" is "$(figure swapped faulted_pages)" "$pages_back"
cap "$ANALYZER" -q -t alloc,fault -o faults "$programs/50-paged-out"
t "and the faults that it cost are told apart" is "$(figure faults own_faults) $(sql faults \
	'SELECT count(*) FROM fault WHERE is_own AND mapping = "stack"')" \
	"$(figure faults faulted_pages) $(figure faults faulted_pages)"
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
