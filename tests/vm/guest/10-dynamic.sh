# The dynamic squeezer on the example workload: what the first page of the README promises.
. "$(dirname "$0")/../../cli/lib.sh"

# dynamic NAME WORKLOAD-OPTIONS...
dynamic() {
	local d=$1
	shift
	cap "$ANALYZER" -t none -s 0.5 -r "$TOP/configs/squeezerdynamicconfig.json" -o "$d" \
		--cgname "test-$d" "$WORKLOAD" 256M 10 0 --seconds 60 "$@"
	t "$d: exit 0" is $status 0
	t "$d: the workload printed its passes" has out '^passes [0-9]* in 60'
	t "$d: one dynamic run, ended well" is "$(sql "$d" \
		"SELECT kind, policy, knob, exit_code, end_reason FROM run")" \
		'dynamic|step|memory.max|0|exited'
	t "$d: at least 20 samples" is "$(sql "$d" 'SELECT count(*) >= 20 FROM sample')" 1
	t "$d: at least 2 tighten decisions" is "$(sql "$d" \
		"SELECT count(*) >= 2 FROM decision WHERE action = 'tighten'")" 1
	t "$d: least limit below 85 % of the peak" is "$(sql "$d" 'SELECT min(limit_after) <
		0.85 * (SELECT max(memory_peak) FROM sample) FROM decision')" 1
	t "$d: the limit was really written" is "$(sql "$d" 'SELECT min(memory_max) <
		0.85 * max(memory_peak) FROM sample')" 1
	t "$d: no limit below usage" is "$(sql "$d" "SELECT count(*) FROM decision
		WHERE action = 'tighten' AND limit_after < usage_bytes * 0.5")" 0
	t "$d: no OOM kill" is "$(sql "$d" 'SELECT max(memory_events_oom_kill) FROM sample')" 0
	t "$d: the last sample's limit is max again" is "$(sql "$d" 'SELECT memory_max FROM sample
		ORDER BY seq DESC LIMIT 1')" 9223372036854775807
	t "$d: swapped through zswap" is "$(sql "$d" 'SELECT max(memory_stat_zswapped) > 10000000
		FROM sample')" 1
	t "$d: zstd brings the pages to at most 0.30" is "$(sql "$d" 'SELECT
		max(memory_stat_zswap) < 0.30 * max(memory_stat_zswapped) FROM sample')" 1
	t "$d: no key of the kernel is unknown" is "$(sql "$d" \
		'SELECT count(DISTINCT key) FROM sample_extra WHERE key NOT LIKE "zram%"')" 0
	t "$d: nothing was lost" is "$(sql "$d" 'SELECT count(*) FROM loss')" 0
	t "$d: the group is gone" test ! -e "/sys/fs/cgroup/test-$d"
	t "$d: the report names the squeeze" has "$d/report.txt" 'enough'
}

dynamic mmap
dynamic malloc --malloc
t "controllers are as before" is "$(cat /sys/fs/cgroup/cgroup.subtree_control)" ""
done_testing
