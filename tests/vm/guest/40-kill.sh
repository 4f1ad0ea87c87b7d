# kill -9 of analyzer at ten points of a dynamic run: the guard puts everything back within 5 s,
# the workload runs on, the directory stays readable. The last point has a reclaim in flight.
. "$(dirname "$0")/../../cli/lib.sh"

group=/sys/fs/cgroup/test-kill
printf '{"mode":"dynamic","law":"step","max_step":"16M","squeeze_max":30,"squeeze_delta":10}' >c.json

is_back() { # within 5 s
	local i
	for i in $(seq 50); do
		[ "$(cat $group/memory.max $group/memory.high | tr '\n' ' ')" = "max max " ] && return
		sleep 0.1
	done
	cat $group/memory.max $group/memory.high
	return 1
}

is_gone() {
	local i
	for i in $(seq 150); do
		[ -e $group ] || return 0
		sleep 0.1
	done
	return 1
}

# Its actuator sits in a write to memory.reclaim.
in_reclaim() {
	local act i
	for i in $(seq 20000); do
		act=$(pgrep -P "$1" analyzer-act) &&
			grep -qs 'memory_reclaim\|try_to_free' "/proc/$act/stack" && return
	done
	return 1
}

point() { # NAME WHEN: WHEN is run with the pid and returns when to kill
	"$ANALYZER" -q -t none -s 0.1 -r c.json -o "$1" --cgname test-kill "$WORKLOAD" 64M 5 0 \
		--seconds 60 >"out.$1" 2>"err.$1" &
	local pid=$!
	"${@:2}" $pid
	local reached=$?
	kill -9 $pid
	wait $pid 2>"$work/.null"
	t "$1: the point was reached" is $reached 0
	t "$1: limits are back within 5 s" is_back
	t "$1: the workload runs on" test -n "$(cat $group/cgroup.procs)"
	cap "$ANALYZER" report "$1"
	t "$1: report reads the directory" is $status 0
	t "$1: it says that the recorder died" has out 'recorder died\|still being recorded'
	echo 1 >$group/cgroup.kill
	t "$1: the guard removes the empty group" is_gone
	t "$1: controllers are put back" is "$(cat /sys/fs/cgroup/cgroup.subtree_control)" ""
}

after() { sleep "$1"; grep -q . $group/cgroup.procs; }
limit_set() {
	local i
	for i in $(seq 600); do
		grep -qs '[0-9]' $group/memory.max && return
		sleep 0.05
	done
	return 1
}

for i in 1 2 3 4; do point "early$i" after "$i"; done
for i in 1 2 3 4 5; do point "held$i" limit_set; done
point reclaim in_reclaim
done_testing
