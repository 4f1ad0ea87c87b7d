# What goes wrong in a squeezed run: one clear line each, the limit put back, nothing lost.
. "$(dirname "$0")/../../cli/lib.sh"

config=$TOP/configs/squeezerdynamicconfig.json
limited() { grep -qs '[0-9]' "/sys/fs/cgroup/$1/memory.max"; }
await_limit() {
	local i
	for i in $(seq 1200); do
		limited "$1" && return
		sleep 0.05
	done
	return 1
}

# -- a full disk in the middle of the run
mkdir small && mount -t tmpfs -o size=1200k tmpfs small
"$ANALYZER" -t none -s 10ms -r "$config" -o small/full --cgname test-full "$WORKLOAD" 32M 5 0 \
	--seconds 20 >out 2>err &
pid=$!
await err 'cannot write small/full/profile.db'
t "disk full: one line names the file" is "$(grep -c 'cannot write small/full/profile.db' err)" 1
t "disk full: the limit goes at once" is "$(cat /sys/fs/cgroup/test-full/memory.max)" max
t "disk full: the workload runs on" test -n "$(cat /sys/fs/cgroup/test-full/cgroup.procs)"
wait $pid
status=$?
t "disk full: 125" is $status 125
t "disk full: the workload came to its end" has out '^passes '
t "disk full: what was committed is readable" is "$(sql small/full 'SELECT count(*) > 10 FROM sample')" 1
cap "$ANALYZER" report small/full
t "disk full: report reads it" is $status 0
umount small

# -- the group is removed under us
"$ANALYZER" -t none -s 0.2 -r "$config" -o removed --cgname test-removed "$WORKLOAD" 32M 5 0 \
	--seconds 15 >out 2>err &
pid=$!
await_limit test-removed
for p in $(cat /sys/fs/cgroup/test-removed/cgroup.procs); do echo "$p" >/sys/fs/cgroup/cgroup.procs; done
sleep 0.2
rmdir /sys/fs/cgroup/test-removed
wait $pid
status=$?
t "removed group: 125" is $status 125
t "removed group: one line" is "$(grep -c '^analyzer: warning: .*test-removed was removed by somebody' err)" 1
t "removed group: the workload came to its end" has out '^passes '
t "removed group: recorded" is "$(sql removed 'SELECT end_reason FROM run')" cgroup_removed

# -- SIGINT twice
env --default-signal=INT "$ANALYZER" -t none -s 0.2 -r "$config" -o twice --cgname test-twice sh -c "
	trap '' INT TERM; $WORKLOAD 32M 5 0 & wait; sleep 60" >out 2>err &
pid=$!
await_limit test-twice
kill -INT $pid
sleep 1
t "SIGINT: the limit goes at once" is "$(cat /sys/fs/cgroup/test-twice/memory.max)" max
kill -INT $pid
wait $pid
status=$?
t "SIGINT twice: killed" is $status 137
t "SIGINT twice: interrupted" is "$(sql twice 'SELECT end_reason FROM run')" interrupted
t "SIGINT twice: a report" test -s twice/report.txt
t "SIGINT twice: the group is gone" test ! -e /sys/fs/cgroup/test-twice

# -- SIGTSTP releases before stopping, SIGCONT goes on
"$ANALYZER" -t none -s 0.2 -r "$config" -o stopped --cgname test-stopped "$WORKLOAD" 32M 5 0 \
	--seconds 20 >out 2>err &
pid=$!
await_limit test-stopped
kill -TSTP $pid
sleep 1
t "SIGTSTP: stopped" is "$(sed -n 's/^State:.\(.\).*/\1/p' /proc/$pid/status)" T
t "SIGTSTP: the limit is gone" is "$(cat /sys/fs/cgroup/test-stopped/memory.max)" max
kill -CONT $pid
t "SIGCONT: squeezing goes on" await_limit test-stopped
wait $pid
t "SIGCONT: it ends well" is $? 0

# -- a workload of a millisecond
cap "$ANALYZER" -t none -r "$config" -o ms true
t "1 ms: status" is $status 0
t "1 ms: two samples and a peak" is "$(sql ms 'SELECT count(*), max(memory_peak) > 0 FROM sample')" '2|1'

# -- nothing of ours is charged to the group
cap "$ANALYZER" -t none -o tiny sleep 1
t "sleep needs less than 1 MiB" is "$(sql tiny 'SELECT max(memory_peak) < 1048576 FROM sample')" 1

# -- a limit below what cannot be reclaimed is not written
swap=$(awk 'NR == 2 { print $1 }' /proc/swaps)
swapoff "$swap"
cap "$ANALYZER" -t none -o nofit --limit 16M "$WORKLOAD" 64M 5 0 --seconds 4
t "unreachable limit: the workload lives" is $status 0
t "unreachable limit: not written" is "$(sql nofit 'SELECT min(memory_max) FROM sample')" \
	9223372036854775807
t "unreachable limit: the row says what was reached" is "$(sql nofit "SELECT count(*) > 0 FROM
	decision WHERE action = 'tighten' AND outcome = 'partial' AND usage_bytes > 64e6")" 1
cap "$ANALYZER" -t none -s 0.5 -o noswap -r "$config" "$WORKLOAD" 64M 5 0 --seconds 6
t "no swap: no limit is held" is "$(sql noswap 'SELECT min(limit_after) FROM decision')" \
	9223372036854775807
t "no swap: nothing was killed" is "$(sql noswap 'SELECT max(memory_events_oom_kill) FROM sample')" 0
swapon "$swap"
done_testing
