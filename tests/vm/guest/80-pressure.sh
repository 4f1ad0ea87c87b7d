# Which stacks were swapped and who faulted them back: the example workload, whose hot, warm and cold
# memory are allocated by functions of those names; each run is squeezed to a limit that says where
# the faults must come from.
. "$TOP/tests/trace/lib.sh"

# Sites that have the function on their stack.
of() { echo "SELECT site_id FROM site_stack WHERE function = '$1'"; }
# limited DIR LIMIT OPTION...: the workload, traced, with the kernel's own count of its faults beside.
limited() {
	local d=$1 limit=$2
	shift 2
	cap "$ANALYZER" -q -s 0.5 -t alloc,fault --limit "$limit" -o "$d" "$programs/majflt" \
		"$d.majflt" "$WORKLOAD" 128M 5 0 "$@"
	t "$d: exit 0" is $status 0
	t "$d: the workload came to its end" has out '^passes '
	t "$d: the limit was held" is "$(sql "$d" "SELECT count(*) > 0 FROM decision
		WHERE limit_after < 134217728")" 1
	t "$d: every fault of the kernel's is a row" is "$(sql "$d" 'SELECT count(*) FROM fault')" \
		"$(sed -n 's/^major faults //p' "$d.majflt")"
	# Files: a page that somebody else is reading already counts for who waits, not for the
	# group. The kernel's own look at a page that is out counts for the group alone.
	t "$d: as many as the group's, or files' more" is "$(sql "$d" "SELECT
		sum(mapping <> 'file') <= p + 1 AND count(*) >= p - 1 - p / 1000 FROM fault,
		(SELECT max(memory_stat_pgmajfault) AS p FROM sample)")" 1
	t "$d: the sites' sums are the rows" is "$(sql "$d" "SELECT sum(major_faults) FROM site")" \
		"$(sql "$d" "SELECT count(*) FROM fault WHERE site_id IS NOT NULL AND NOT is_own")"
	t "$d: nothing lost" is "$(figure "$d" lost) $(sql "$d" 'SELECT count(*) FROM loss')" "0 0"
}
swapped() { # DIR FUNCTION: bytes at the last scan that saw the memory
	sql "$1" "SELECT coalesce(sum(swapped_bytes), 0) FROM site_sample AS a WHERE site_id IN ($(of "$2"))
		AND t_ns = (SELECT max(t_ns) FROM site_sample AS b WHERE b.site_id = a.site_id AND
		b.live_bytes > 0)"
}

cap "$WORKLOAD" 1M 1 1 # its file, and what it needs, are read from the host now
use=${USE:-mmap} option=$([ "${USE:-}" = malloc ] && echo --malloc)
limited cold.$use 90M --hot 50 --seconds 20 $option
hot=$(swapped cold.$use allocate_hot_half) warm=$(swapped cold.$use allocate_warm_quarter)
cold=$(swapped cold.$use allocate_cold_quarter)
t "cold.$use: the squeeze took a part of it" test $((hot + warm + cold)) -gt 10000000
t "cold.$use: what was taken is cold and warm ($hot, $warm, $cold)" \
	test $((hot * 20)) -le $((hot + warm + cold))
limited phase.$use 115M --seconds 14 $option
t "phase.$use: the warm quarter comes back" is "$(sql phase.$use "SELECT count(*) > 100
	FROM fault WHERE site_id IN ($(of allocate_warm_quarter))")" 1
t "phase.$use: nearly all faults are its own" is "$(sql phase.$use "SELECT
	sum(site_id IN ($(of allocate_warm_quarter))) >= 0.95 * count(*) FROM fault
	WHERE site_id IS NOT NULL AND t_ns > (SELECT exec_t_ns + 5e9 FROM run)")" 1
done_testing
