# analyzer and its guard are killed together: `recover` puts back what they leave, and only that.
. "$TOP/tests/cli/lib.sh"

mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ "$(id -u)" != 0 ] || [ -z "$mount" ]; then
	skip "recover" "needs root and cgroup v2"
	done_testing
	exit
fi
"$ANALYZER" -q -t none -o killed --cgname test-killed sh -c 'echo ready; sleep 60' >said 2>err &
pid=$!
await said ready
cap "$ANALYZER" recover
t "one that runs is left alone" has out ' still run'
t "and its group" test -d "$mount/test-killed"
guard=$(pgrep -P $pid -x analyzer-guard)
kill -STOP "$guard" $pid # else the guard would see the end of analyzer before its own
kill -KILL "$guard" $pid
wait $pid 2>/dev/null
t "killed with its guard: the group stays" test -d "$mount/test-killed"
echo 1 >"$mount/test-killed/cgroup.freeze" # as the tracer would have left it
journal=$(grep -ls "$mount/test-killed" /run/analyzer/*)
echo "add 99 write 0 $mount/test-killed/cgroup.freeze" >>"$journal"
cap "$ANALYZER" recover
t "what can be put back is: 1, since something is left" is $status 1
t "the group has a process still" has out "^left  $mount/test-killed: "
t "the frozen go on" is "$(cat "$mount/test-killed/cgroup.freeze")" 0
cap "$ANALYZER" recover --json
t "--json" is "$(python3 -c 'import json, sys
print([(e["path"].rsplit("/", 1)[1], e["problem"] is not None) for e in json.load(sys.stdin)])' <out)" \
	"[('test-killed', True)]"
kill $(cat "$mount/test-killed/cgroup.procs")
for i in $(seq 100); do
	cap "$ANALYZER" recover
	grep -q "^left  $mount/test-killed" out || break
	sleep 0.05
done
t "once it is empty it goes" has out "^done  $mount/test-killed: removed"
t "removed" test ! -e "$mount/test-killed"
t "and with it the journal" test ! -e "$journal"
cap "$ANALYZER" recover
t "then nothing is left of it" hasnt out test-killed
cap "$ANALYZER" recover --nonsense
t "wrong usage: 2" is $status 2
done_testing
