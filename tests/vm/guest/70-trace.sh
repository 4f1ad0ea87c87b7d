# The tracer in a guest whose memory can be squeezed: the workload of the README, the same sites as
# on the host, and what goes wrong.
. "$TOP/tests/trace/lib.sh"
. "$TOP/tests/vm/sites.sh"

config=$TOP/configs/squeezerdynamicconfig.json
whole() { # DIR: nothing was lost, every allocation has its stack
	t "$1: nothing lost" is "$(figure "$1" lost) $(sql "$1" 'SELECT count(*) FROM loss')" "0 0"
	t "$1: whole stacks" is "$(figure "$1" stacks_full)" "$(figure "$1" allocs)"
}
# Those of the processes named so that are frozen or stopped.
standing() {
	local p
	grep -qs 'frozen 1' /sys/fs/cgroup/test-*/cgroup.events && echo frozen
	for p in $(pgrep -x "$1"); do grep -s '^State:.[TtZ]' "/proc/$p/status"; done
}

# -- the workload, squeezed: its three regions by name, to the byte
region() { # DIR KIND FUNCTION: what was allocated below it, without the tables of blocks
	sql "$1" "SELECT s.kind, s.alloc_count, s.alloc_bytes, s.end_live_bytes FROM site AS s
		WHERE s.alloc_bytes > 4096 AND EXISTS (SELECT 1 FROM site_stack AS x WHERE
		x.site_id = s.site_id AND x.function = '$2')"
}
squeezed() { # NAME KIND COUNTS OPTION...
	local d=$1 kind=$2 half=$3 quarter=$4
	shift 4
	cap "$ANALYZER" -q -s 0.5 -r "$config" -t alloc -o "$d" "$WORKLOAD" 64M 5 0 --seconds 12 "$@"
	t "$d: exit 0" is $status 0
	t "$d: the workload came to its end" has out '^passes [0-9]* in 12'
	t "$d: hot half" is "$(region "$d" allocate_hot_half)" "$kind|$half|33554432|33554432"
	t "$d: warm quarter" is "$(region "$d" allocate_warm_quarter)" \
		"$kind|$quarter|16777216|16777216"
	t "$d: cold quarter" is "$(region "$d" allocate_cold_quarter)" \
		"$kind|$quarter|16777216|16777216"
	t "$d: nothing else is large" is "$(sql "$d" 'SELECT count(*) FROM site WHERE
		alloc_bytes > 4096')" 3
	whole "$d"
	t "$d: it was squeezed" is "$(sql "$d" "SELECT count(*) > 0 FROM decision WHERE
		action = 'tighten'")" 1
	t "$d: pages were swapped out" is "$(sql "$d" 'SELECT max(memory_stat_zswapped) > 0
		FROM sample')" 1
	t "$d: the limit is gone at the end" is "$(sql "$d" 'SELECT memory_max FROM sample
		ORDER BY seq DESC LIMIT 1')" 9223372036854775807
	t "$d: the report names the regions" has "$d/report.txt" allocate_cold_quarter
}
squeezed mmap mmap 1 1
t "controllers are as before" is "$(cat /sys/fs/cgroup/cgroup.subtree_control)" ""

# -- the same sites as on the host
as_on_host() { # NAME OPTION...
	if [ ! -e "$TOP/build/sites/$1.sites" ]; then
		skip "$1: sites as on the host" "the host could not trace"
		return
	fi
	traced_sites "$1" "$1" "${@:2}"
	t "$1: status" is $? 0
	t "$1: sites as on the host" diff "$TOP/build/sites/$1.sites" "$1.sites"
	t "$1: output as on the host" cmp "$TOP/build/sites/$1.out" "$1.out"
	t "$1: nothing lost" is "$(figure "$1" lost)" 0
	t "$1: as many whole stacks" is "$(figure "$1" stacks_full)" \
		"$(figure "$TOP/build/sites/$1" stacks_full)"
}
for name in $site_programs; do
	as_on_host $name
done

# -- a program that lives some ms: before Linux 6.7 its code can only be looked at while it is there
for i in 1 2 3 4 5; do
	cap env ANALYZER_TEST_RING_BYTES=33554432 "$ANALYZER" -q -t alloc -o short$i "$programs/07-nested"
	whole short$i
done

# -- the end of analyzer: who reads its output need not wait until the probes are gone
mkfifo pipe
cat pipe >copy &
reader=$!
"$ANALYZER" -q -t alloc -o end echo hello >pipe
t "end: status" is $? 0
for _ in $(seq 20); do kill -0 $reader 2>"$work/.null" || break; sleep 0.1; done
t "end: nobody holds its output" eval '! kill -0 $reader'
t "end: the output" is "$(cat copy)" hello
for _ in $(seq 300); do pgrep -x analyzer >"$work/.null" || break; sleep 0.1; done
t "end: what closes the probes ends too" is "$(pgrep -x analyzer)" ""

# -- analyzer is killed while the workload allocates
"$ANALYZER" -q -t alloc -o killed --cgname test-killed "$programs/storm" -p 2 -n 3000000 >storm.out 2>err &
pid=$!
sleep 3 # what was recorded is written once a second
for _ in $(seq 100); do [ "$(stat -c %s killed/events.zst)" -gt 10000 ] && break; sleep 0.1; done
kill -9 $pid
wait $pid 2>"$work/.null"
t "killed: the storm was not over" hasnt storm.out done
sleep 2
t "killed: after 2 s nobody stands still" is "$(standing storm)" ""
for _ in $(seq 1200); do pgrep -x storm >"$work/.null" || break; sleep 0.1; done
t "killed: the storm runs to its end" has storm.out done
for _ in $(seq 100); do [ -e /sys/fs/cgroup/test-killed ] || break; sleep 0.1; done
t "killed: the group is gone" test ! -e /sys/fs/cgroup/test-killed
cap "$ANALYZER" export ndjson --events killed
t "killed: events are readable" has out '"kind": *"alloc"'
cap "$ANALYZER" report killed
t "killed: report reads the directory" is $status 0

# -- without the right to trace: one line, and the run goes on
unprivileged() { # DIR STARTER...: analyzer -t alloc of a command with status 3
	local d=$1
	shift
	cap "$@" "$ANALYZER" -t alloc -o "$d" sh -c 'echo went on; exit 3'
	t "$d: the run goes on" is "$status $(cat out)" "3 went on"
	t "$d: one line says that there are no stacks" is "$(grep -c 'no allocation stacks' err)" 1
	t "$d: the record says why" is "$(sql "$d" "SELECT json_extract(trace, '\$.not_traced') != ''
		FROM run")" 1
}
lacks=-bpf,-perfmon,-sys_admin
unprivileged capabilities setpriv --bounding-set=$lacks --inh-caps=$lacks
t "capabilities: what would help" has err CAP_BPF
chmod 777 .
unprivileged nobody setpriv --reuid=65534 --regid=65534 --clear-groups
done_testing
