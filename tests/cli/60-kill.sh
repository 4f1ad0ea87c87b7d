# kill -9 of analyzer at random instants, in trees of plain files: no limit and no journal stays.
# RUNS=200 is what `make soak` does.
. "$(dirname "$0")/lib.sh"
runs=${RUNS:-40} seed=${SEED:-$(date +%s)}
echo "# SEED=$seed"
echo '{"mode":"static","init_limit":"150M","limit_phase":"start"}' >start.json

tree() { # DIR
	local group=$1/sys/fs/cgroup/job
	rm -rf "$1"
	mkdir -p "$1/proc/self" "$1/run/analyzer" "$group"
	echo '30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw' >"$1/proc/self/mountinfo"
	echo '0::/' >"$1/proc/self/cgroup"
	echo memory | tee "$1/sys/fs/cgroup/cgroup.controllers" >"$1/sys/fs/cgroup/cgroup.subtree_control"
	echo 100000000 >"$group/memory.current"
	echo max | tee "$group/memory.max" "$group/memory.high" >"$group/memory.swap.max"
	printf 'high 0\nmax 0\noom_kill 0\n' >"$group/memory.events"
	printf 'anon 100000000\npgmajfault 0\n' >"$group/memory.stat"
	printf 'SwapTotal: 4000000 kB\nSwapFree: 4000000 kB\n' >"$1/proc/meminfo"
	touch "$group/memory.reclaim" "$group/cgroup.procs"
}

limits() { cat "$1/sys/fs/cgroup/job/memory.max" "$1/sys/fs/cgroup/job/memory.high" | tr -d '\n'; }

# What is not as it was, after up to 5 s.
left() { # DIR RUN
	local i
	for i in $(seq 250); do
		[ "$(limits "$1")" = maxmax ] && [ -z "$(ls "$1/run/analyzer")" ] && return
		sleep 0.02
	done
	echo "run $2: $(limits "$1") $(ls "$1/run/analyzer")"
}

worker() { # FROM TO: one line per run that held a limit, and what is left of any
	local i pid
	RANDOM=$((seed + $1))
	for i in $(seq "$1" "$2"); do
		tree "root.$1"
		"$ANALYZER" -q -t none --root "root.$1" --cgname job -s 50ms -r start.json -o "run.$i" \
			sleep 9 2>"err.$i" &
		pid=$!
		sleep "0.$(printf %03d $((RANDOM % 300)))"
		grep -qs '[0-9]' "root.$1/sys/fs/cgroup/job/memory.max" && echo held
		kill -9 $pid
		wait $pid 2>"$work/.null"
		left "root.$1" "$i"
		xargs -r kill <"root.$1/sys/fs/cgroup/job/cgroup.procs" 2>"$work/.null"
		rm -rf "run.$i"
	done
}
worker 1 $((runs / 2)) >one &
worker $((runs / 2 + 1)) "$runs" >two
wait
t "many were killed while a limit was held ($(cat one two | grep -c held))" \
	test "$(cat one two | grep -c held)" -ge $((runs / 5))
t "no limit and no journal is left of $runs" is "$(cat one two | grep -v held)" ""
done_testing
