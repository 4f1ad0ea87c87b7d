# A baseline on this machine's own kernel and cgroup tree. Needs root.
. "$(dirname "$0")/../cli/lib.sh"

mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
has_memory=$(grep -cw memory "$mount/cgroup.controllers")
[ "$(id -u)" = 0 ] || { skip "live tests" "not root"; done_testing; exit; }
groups() { find "$mount" -mindepth 1 -type d | grep -v '/analyzer-[0-9]*-' | sort; }
before=$(groups; cat "$mount/cgroup.subtree_control")

cap "$ANALYZER" -o base sh -c 'echo out; sleep 0.2; exit 7'
t "status passes" is $status 7
t "the workload was in its own group" is "$(sql base 'SELECT count(*) FROM run
	WHERE group_empty_t_ns >= exec_t_ns')" 1
t "CPU figures" is "$(sql base 'SELECT max(cpu_stat_usage_usec) > 0 FROM sample')" 1
t "PSI of the group" is "$(sql base 'SELECT count(memory_pressure_some_total) =
	count(*) FROM sample')" 1
t "host figures" is "$(sql base 'SELECT min(host_meminfo_memavailable) > 1000000 FROM sample')" 1
if [ "$has_memory" = 0 ]; then
	t "memory columns are NULL, not 0" is "$(sql base 'SELECT count(memory_current) +
		count(memory_stat_anon) + count(memory_max) FROM sample')" 0
	t "one warning says why" is "$(grep -c 'warning:' err)" 1
	t "it names where the controller is" has err 'memory controller is on cgroup v1 (/sys/fs'
	cap "$ANALYZER" -o sq -r "$TOP/configs/squeezerdynamicconfig.json" true
	t "squeezing: 125" is $status 125
	t "names the mount found" has err "cgroup v2 at $mount lacks it"
	t "names tools/vm" has err tools/vm
	t "nothing ran, no directory" test ! -e sq
else
	t "memory figures" is "$(sql base 'SELECT min(memory_current) IS NOT NULL FROM sample')" 1
fi

# -- the group
cap "$ANALYZER" -q sh -c 'cat /proc/self/cgroup'
t "its name" has out '0::.*/analyzer-[0-9]*-[0-9a-f]*$'
cap "$ANALYZER" -q --cgname analyzer-test-name sh -c 'cat /proc/self/cgroup'
t "--cgname" has out '/analyzer-test-name$'
mkdir "$mount/analyzer-taken"
cap "$ANALYZER" -q --cgname analyzer-taken true
t "a group that exists is refused" is $status 125
t "and named" has err 'analyzer-taken exists and is not ours'
t "and left there" test -d "$mount/analyzer-taken"
cap "$ANALYZER" -q --cgroup-parent analyzer-taken cat /proc/self/cgroup
t "--cgroup-parent" has out '0::/analyzer-taken/analyzer-'
rmdir "$mount/analyzer-taken"
cap "$ANALYZER" -q sh -c 'cat "'"$mount"'$(sed -n s/^0:://p /proc/self/cgroup)/cgroup.procs" | wc -l'
t "nothing of ours inside" is "$(cat out)" 3 # sh, cat, wc
cap "$ANALYZER" -q --cgname a/b true
t "--cgname is no path" has err "not a group's name"

mkdir plain
cap "$ANALYZER" -q --cgpath "$PWD/plain" true
t "--cgpath that is no cgroup v2: 125" is $status 125
t "is named" has err "cgpath $PWD/plain is not a cgroup v2 mount"
cap "$ANALYZER" -q --cgroup-parent "../../../..$PWD/plain" true
t "--cgroup-parent that leaves it" has err 'plain is not on cgroup v2'
t "nothing was made there" is "$(ls plain)" ""

# -- what outlives the main process
cap "$ANALYZER" -q -o daemon sh -c '(sleep 1; echo late) & exit 3'
t "a daemon is waited for" has out late
t "the status is the main process's" is $status 3
t "its time too: the group empties later" is "$(sql daemon 'SELECT duration_s < 0.9 AND
	group_empty_t_ns > 1e9 FROM run')" 1
cap "$ANALYZER" -q sh -c 'setsid sh -c "sleep 0.5; echo orphan" & exit 0'
t "a double fork too" has out orphan

# -- users
chmod 755 "$work"
cap "$ANALYZER" -q -u nobody sh -c 'id -un; echo $USER $LOGNAME'
t "--user" is "$(tr '\n' ' ' <out)" 'nobody nobody nobody '
cap "$ANALYZER" -q -u nosuchuser true
t "--user unknown" has err 'no such user'
chmod 777 "$work"
as_nobody() { cap setpriv --reuid 65534 --regid 65534 --clear-groups "$ANALYZER" "$@"; }
for limit in 64 8192 16384; do # KiB of memory that may be locked: never a reason to fail
	(ulimit -S -l $limit 2>"$work/.null"; as_nobody -o nb.$limit sh -c 'exit 4'; echo $status >rc)
	t "without root, $limit KiB lockable" is "$(cat rc)" 4
done
t "without root: one warning, no group" has err 'warning: cannot make a cgroup below'
cap env SUDO_UID=1234 SUDO_GID=2345 "$ANALYZER" -q -o mine true
t "behind sudo the files are the user's" is "$(stat -c %u:%g mine mine/* | sort -u)" 1234:2345
cap env SUDO_UID=65534 SUDO_GID=65534 "$ANALYZER" -q -o live sh -c '
	stat -c %u live/profile.db-wal live/profile.db'
t "also while recording" is "$(sort -u out)" 65534

# -- the end of analyzer
"$ANALYZER" -q -o killed sh -c 'echo ready; sleep 4; echo survived' >out 2>err &
pid=$!
await out ready
sleep 1.3 # a transaction a second
guard=$(pgrep -P $pid analyzer-guard)
kill -9 $pid; wait $pid 2>"$work/.null"
t "kill -9: the directory is readable" is "$(sql killed 'SELECT count(*) > 0 FROM sample')" 1
t "kill -9: the run has no end" is "$(sql killed 'SELECT end_reason IS NULL FROM run')" 1
cap "$ANALYZER" report killed; t "kill -9: report reads it" is $status 0
sleep 3
t "kill -9: the workload went on" has out survived || cat "$work/out"
gone() { for _ in $(seq 50); do ls -d "$mount/analyzer-$pid-"* 2>&1 | grep -q 'No such' && return
	sleep 0.1; done; return 1; }
t "kill -9: the guard removed the group" gone
t "no journal is left" is "$(find /run/analyzer -name "$pid-*" | wc -l)" 0
ended() { for _ in $(seq 50); do [ -e "/proc/$guard" ] || return 0; sleep 0.1; done; return 1; }
t "the guard has ended" test -n "$guard"
t "and is gone" ended

# SIGINT twice: the workload ignores the first
env --default-signal=INT "$ANALYZER" -q -o twice sh -c "trap '' INT; echo ready; sleep 30" >out 2>err &
pid=$!
await out ready
kill -INT $pid; sleep 0.3; kill -INT $pid; wait $pid; status=$?
t "SIGINT twice kills" is $status 137
t "and is recorded" is "$(sql twice 'SELECT end_reason FROM run')" interrupted

# SIGINT while no run listens: here in the removal of the first run's group
env --default-signal=INT strace -o trace -e trace=unlinkat -e inject=unlinkat:delay_enter=1000000 \
	"$ANALYZER" -q -n 3 -o between sh -c 'echo run; sleep 0.2' >out 2>err &
pid=$!
await out run; sleep 0.7
kill -INT "$(pgrep -P $pid -x analyzer)"; wait $pid; status=$?
t "SIGINT between two runs: no other starts" is "$(grep -c run out)" 1
t "SIGINT between two runs: 130" is $status 130
t "SIGINT between two runs: a report" test -s between/report.txt

# who leaves the group is still ours to end
SECONDS=0
cap timeout -s KILL 25 "$ANALYZER" -o escape --timeout 1500ms sh -c "trap '' TERM
	echo \$\$ >$mount/cgroup.procs; exec sleep 20"
t "--timeout of a process that left its group: 124" is $status 124
t "in the time of the grace period" test $SECONDS -lt 17
t "a warning says that it left" has err 'warning: the main process has left its group'
t "recorded" is "$(sql escape 'SELECT count(*) FROM event WHERE kind = "warning"')" 1
cap timeout -s KILL 20 "$ANALYZER" -q --timeout 300ms sh -c 'kill -STOP $$'
t "--timeout of a stopped workload" is $status 124
SECONDS=0
as_nobody -q -o ungrouped --timeout 500ms sh -c 'sleep 30; true'
t "--timeout without a group" is $status 124
t "ends descendants too" test $SECONDS -lt 14

# the group is removed under us: its process is moved away, then rmdir
"$ANALYZER" -s 50ms -o removed --cgname analyzer-gone sh -c 'echo ready; sleep 2; exit 6' >out 2>err &
pid=$!
await out ready
for p in $(cat "$mount/analyzer-gone/cgroup.procs"); do echo "$p" >"$mount/cgroup.procs"; done
rmdir "$mount/analyzer-gone"; wait $pid; status=$?
t "a group removed under us: 125" is $status 125
t "one warning says so" is "$(grep -c '^analyzer: warning: the workload.s group .* was removed by somebody' err)" 1
t "end_reason" is "$(sql removed 'SELECT end_reason FROM run')" cgroup_removed
t "what was recorded is kept" is "$(sql removed 'SELECT count(*) > 0 FROM sample')" 1

# -- a sample's price in system calls and files: between two reads of its timer, 49 times
strace -f -o trace "$ANALYZER" -q -s 20ms -o cost sleep 1 2>err
main=$(head -n 1 trace | cut -d ' ' -f 1)
awk -v m="$main" '$1 == m' trace >calls
gate=$(grep -n 'write([0-9]*, "g", 1' calls | cut -d : -f 1)
end=$(grep -n 'epoll_wait' calls | tail -n 1 | cut -d : -f 1)
sed -n "$gate,${end}p" calls >loop
samples=$(sql cost 'SELECT count(*) - 2 FROM sample')
t "the traced span holds the samples" test "$samples" -ge 40
t "and their reads" test "$(grep -c pread64 loop)" -ge "$samples"
t "no fork" hasnt loop 'clone\|fork('
# Once zswap has been in use here, its figures are there; they cannot be read twice from one opening.
sed -n 's|.*"/sys/kernel/debug/zswap/\([a-z_]*\)".*|"\1"|p' "$TOP/model/metrics.def" >zswap
t "no file is opened" is "$(grep 'openat([0-9A-Z_]*, ' loop | grep -vcFf zswap)" 0
t "nothing is mapped or allocated from the kernel" is "$(grep -c 'mmap\|brk' loop)" 0
grep -o 'pread64([0-9]*' loop | sort | uniq -c >reads
t "each file is read once a sample, one of them (/proc/vmstat, by its length) twice" \
	test "$(awk -v n=$((samples + 2)) '$1 > n' reads | wc -l)" -le 1
t "none more often" is "$(awk -v n=$((samples + 2)) '$1 > 2 * n' reads)" ""
t "the loop sleeps between events" test "$(grep -c epoll_wait loop)" -le $((2 * samples + 20))

after=$(groups; cat "$mount/cgroup.subtree_control")
t "the cgroup tree is as it was" is "$after" "$before"
done_testing
