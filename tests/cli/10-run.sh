# The command line of `run`: exit statuses, streams, results directory, bad input. Needs no rights
# and no cgroup: what a baseline does anywhere. Not traced, except where that is the subject.
. "$(dirname "$0")/lib.sh"

run() { cap "$ANALYZER" -q -t none "$@"; }

# -- exit status, row by row
run true; t "status 0" is $status 0
run sh -c 'exit 7'; t "the workload's own status" is $status 7
run sh -c 'kill -TERM $$'; t "128+S for a signal" is $status 143
run sh -c 'kill -KILL $$'; t "128+9" is $status 137
run ./no-such-command; t "127: not found" is $status 127
t "127 names the command" has err 'cannot run ./no-such-command: No such file'
echo text >plain; run ./plain; t "126: not executable" is $status 126
t "126 names the command" has err 'cannot run ./plain: Permission denied'
run no-such-word-in-path; t "127: not found in PATH" is $status 127
printf 'exit 9\n' >script; chmod +x script
run ./script; t "a script without #! runs by sh, as execvp does" is $status 9
run --timeout 0.3 sleep 20; t "124: --timeout" is $status 124
run --no-such-option true; t "2: unknown option" is $status 2
t "2: nothing was run" hasnt err Ran
run -s; t "2: missing value" is $status 2
cap "$ANALYZER"; t "2: no arguments" is $status 2
cap "$ANALYZER" run; t "2: no command" is $status 2
cap "$ANALYZER" --help; t "0: --help on stdout" has out 'usage: analyzer'
t "help is silent on stderr" lines err 0
cap "$ANALYZER" --version; t "--version" has out '^analyzer [0-9]'
t "--version: of its libraries too" is "$(awk '$2 ~ /^v?[0-9]/ { print $1 }' out | tr '\n' ' ')" \
	"analyzer sqlite json-c zstd libbpf "
cap "$ANALYZER" run --help; t "run --help" has out '--reclaimer-config FILE'
for verb in "" run report check config list zswap; do
	cap "$ANALYZER" $verb --help
	t "help of '$verb': status" is $status 0
	t "help of '$verb': on stdout" has out '^usage: analyzer'
	t "help of '$verb': at most 60 lines of 79" test "$(wc -l <out)" -le 60 -a \
		"$(awk '{ if (length > m) m = length } END { print m }' out)" -le 79
done

# -- streams
head -c 300000 /dev/urandom >random
run cat random; t "stdout is byte-identical" cmp out random
"$ANALYZER" -q -t none cat <random >piped 2>/dev/null; t "stdin passes" cmp piped random
run --stdin random cat; t "--stdin FILE" cmp out random
run --stdin nowhere cat; t "--stdin of a missing file: status" is $status 125
t "--stdin of a missing file: names it" has err 'cannot open --stdin nowhere: No such file'
"$ANALYZER" -q -t none -n 3 sh -c 'wc -c' <random >counts 2>/dev/null
t "several runs read /dev/null" is "$(tr -d ' \n' <counts)" 000
run -n 2 --stdin random sh -c 'wc -c'; t "--stdin is opened anew per run" \
	is "$(tr -d '\n' <out)" 300000300000
t "a verb's name as the command" is "$("$ANALYZER" -q -t none -- echo report 2>/dev/null)" report
t "the command keeps its options" is "$("$ANALYZER" -q -t none echo -n -s 5 2>/dev/null)" "-s 5"

"$ANALYZER" -t none -o closed true <&- >&- 2>&-; t "closed standard streams: status" is $? 0
t "closed standard streams: nothing is written into the results" is "$(sql closed 'PRAGMA integrity_check')" ok

# -- results
rm -rf profile.*
run true; run true
t "unique names" is "$(ls -d profile.true.* | wc -l)" 2
t "profile.latest is the newest" is "$(readlink profile.latest)" "$(ls -d profile.true.* | sort -V | tail -n 1)"
run -o here true; t "-o" test -s here/profile.db -a -s here/report.txt -a -s here/summary.json
run -o here true; t "-o of an existing directory: 125" is $status 125
t "-o names the directory and the remedy" has err '-O here'
touch here/mine; run -O here true; t "-O replaces" is $status 0
t "-O leaves other files" test -e here/mine
t "-O starts a new database" is "$(sql here 'SELECT count(*) FROM run')" 1
mkdir foreign; touch foreign/x
run -O foreign true; t "-O refuses a foreign directory" is $status 125
t "and touches nothing in it" is "$(ls foreign)" x
run -o no/such/place true; t "an impossible -o: 125" is $status 125
t "and names it" has err 'no/such/place'
t "one summary key set" is "$(python3 -c '
import json; print(*sorted(json.load(open("here/summary.json"))))')" \
	"findings losses runs schema session warnings"

# -- what is recorded
run -o rec sh -c 'sleep 0.1; exit 3'
t "run row" is "$(sql rec "SELECT kind, policy, exit_code, term_signal, end_reason FROM run")" \
	'baseline|none|3||exited'
t "command is a JSON array" is "$(sql rec 'SELECT json_extract(command, "$[2]") FROM run')" \
	'sleep 0.1; exit 3'
t "first sample at 0, last after the end" is "$(sql rec 'SELECT min(t_ns) = 0 AND
	max(t_ns) >= (SELECT exec_t_ns + duration_s * 1e9 FROM run) FROM sample')" 1
t "a short run has two samples" is "$(sql rec 'SELECT count(*) FROM sample')" 2
run -o sig sh -c 'kill -TERM $$'
t "signalled" is "$(sql sig "SELECT exit_code, term_signal, end_reason FROM run")" '|15|signalled'
run -o exec ./no-such-command
t "exec failure is recorded" is "$(sql exec "SELECT end_reason FROM run")" exec_failed
run -o per -s 100ms sleep 3
t "period x samples is duration_s within 10 %" is "$(sql per 'SELECT abs(count(*) * 0.1 /
	(SELECT duration_s FROM run) - 1) < 0.1 FROM sample')" 1
t "the database stands alone" is "$(ls per | grep -c 'profile.db')" 1
run -o rep -n 3 sh -c 'exit 4'
t "-n repeats" is "$(sql rep 'SELECT group_concat(repeat_index || ":" || exit_code) FROM run')" \
	0:4,1:4,2:4
t "several runs: the first non-zero status" is $status 4

# -- bad values: one clear line, status 2, nothing run
bad() { # NAME PATTERN ARGS...
	local name=$1 pattern=$2
	shift 2
	run "$@" -o bad touch ran
	t "$name: status" is $status 2
	t "$name: message" has err "$pattern"
	t "$name: nothing ran" test ! -e ran -a ! -e bad
}
bad "period 0" '-s 0: takes a duration from 10ms to 1h' -s 0
bad "period negative" '-s -1: takes' -s -1
bad "period 1e999" '-s 1e999: takes' -s 1e999
bad "limit 12Q" '--limit 12Q: takes a size' --limit 12Q
bad "limit 0" '--limit 0: must be more than 0' --limit 0
bad "repeat 0" '-n 0: takes a number' -n 0
bad "trace" '-t stacks: takes auto, none, or of alloc,fault' -t stacks
bad "trace policy" '--trace-policy wait: takes pause, drop or abort' --trace-policy wait
bad "events-max 0" '--events-max 0: takes a size such as 512M' --events-max 0
bad "events-max 10%" '--events-max 10%: takes a size' --events-max 10%
bad "events-max 12Q" '--events-max 12Q: takes a size' --events-max 12Q
bad "no such config" 'nowhere.json: No such file' -r nowhere.json
bad "progress" '--progress loud: takes' --progress loud
bad "color" '--color pink: takes' --color pink
bad "root" 'cannot open the system root /no/such' --root /no/such
printf '{"mode":"dynamic","pf_rate_watermrk":5}' >typo.json
bad "unknown key" 'typo.json:1:19: key "pf_rate_watermrk" is not known' -r typo.json
t "did you mean" has err 'did you mean "pf_rate_watermark"'
bad "limit and -r" 'exclude each other' --limit 1M -r typo.json

# -- signals sent by kill() to analyzer
kill_run() { # SIGNAL SCRIPT: analyzer gets SIGNAL once the workload says so; status in $status
	env --default-signal=INT,QUIT "$ANALYZER" -q -t none -o "sig.$1" sh -c "$2" >out 2>err &
	local pid=$!
	await out ready
	kill "-$1" $pid
	wait $pid
	status=$?
}
for s in INT TERM HUP QUIT; do
	kill_run $s "trap 'echo got $s; exit 5' $s; echo ready; while :; do sleep 0.05; done"
	t "SIG$s is forwarded" has out "got $s"
	t "SIG$s: the workload's own status" is $status 5
	t "SIG$s: a report is written" test -s "sig.$s/report.txt"
done

# -- signals as they were when we were started
cap timeout -s KILL 20 env --ignore-signal=CHLD "$ANALYZER" -q -t none sh -c 'exit 3'
t "started with SIGCHLD ignored" is $status 3
cap env --ignore-signal=CHLD,PIPE "$ANALYZER" -q -t none grep SigIgn /proc/self/status
t "the workload has them ignored too" is "$((0x$(awk '{ print $2 }' out) & 0x11000))" $((0x11000))
cap env --default-signal=CHLD,PIPE,XFSZ "$ANALYZER" -q -t none grep SigIgn /proc/self/status
t "or not" is "$((0x$(awk '{ print $2 }' out) & 0x1011000))" 0
env --ignore-signal=HUP "$ANALYZER" -q -t none -o nohup sh -c 'echo ready; sleep 1; exit 3' >out 2>err &
pid=$!
await out ready; kill -HUP $pid; wait $pid; status=$?
t "nohup: SIGHUP is nothing" is $status 3
t "nohup: no word of it" hasnt nohup/analyzer.log Hangup
(ulimit -f 100; cap "$ANALYZER" -q -t none -s 10ms -o fsize sh -c 'sleep 2; exit 3'; echo $status >rc)
t "a file size limit is a full disk: 125" is "$(cat rc)" 125

# It passes a SIGTERM on as it does when the time is over.
for i in 1 2 3 4 5 6; do
	timeout 20 "$ANALYZER" -q -t none -o "twice.$i" sh -c "trap 'sleep 0.3; exit 5' TERM
		echo ready; while :; do sleep 0.05; done" >"ready.$i" 2>"$work/.null" &
	pid=$!
	await "ready.$i" ready
	kill -TERM $pid
	wait $pid
done
t "timeout(1) signals us and our group: once" is "$(for i in 1 2 3 4 5 6; do
	sql "twice.$i" 'SELECT end_reason FROM run'; done | sort -u)" exited
{ "$ANALYZER" -t none -o nobody-reads sh -c 'sleep 0.3; exit 3' 2>&1 >/dev/null; echo $? >rc; } | head -n 1 >out
t "stderr closed by its reader: the status stands" is "$(cat rc)" 3
t "and the report is there" test -s nobody-reads/report.txt

"$ANALYZER" -q -t none -o closed2 cat <&- 2>"$work/.null"
t "the workload has closed streams closed as well" test $? != 0
run -o file:x true; t "-o file:x is a name like another" is $status 0

# -- squeezing in a tree of plain files: what is written when
tree() { # USAGE: the tree ./root with the group job in it
	group=root/sys/fs/cgroup/job
	rm -rf root
	mkdir -p root/proc/self root/run/analyzer $group
	echo '30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw' >root/proc/self/mountinfo
	echo '0::/' >root/proc/self/cgroup
	echo memory | tee root/sys/fs/cgroup/cgroup.controllers >root/sys/fs/cgroup/cgroup.subtree_control
	echo "$1" >$group/memory.current
	echo max | tee $group/memory.max $group/memory.high >$group/memory.swap.max
	printf 'high 0\nmax 0\noom_kill 0\n' >$group/memory.events
	printf 'anon %s\npgmajfault 0\n' "$1" >$group/memory.stat
	printf 'SwapTotal: 4000000 kB\nSwapFree: 4000000 kB\n' >root/proc/meminfo
	touch $group/memory.reclaim $group/cgroup.procs
}
squeeze() { run --root root --cgname job -s 100ms "$@"; }
echo '{"mode":"static","init_limit":"150M","limit_phase":"start"}' >start.json

tree 100000000
"$ANALYZER" -q -t none --root root --cgname job -s 100ms -r start.json -o stopped \
	sh -c "echo ready; sleep 5; cat $group/memory.max" >out 2>err &
pid=$!
await out ready; sleep 0.3
kill -STOP $pid; sleep 3; cp $group/memory.max while; kill -CONT $pid; wait $pid
t "stopped: the guard takes the limit back" is "$(cat while)" max
t "continued: the limit is back, not believed" has out '^157286400'
t "and the rows say so" is "$(sql stopped "SELECT count(*) FROM decision
	WHERE action = 'release' AND reason LIKE 'analyzer was stopped%'")" 1

echo '{"mode":"dynamic","law":"step","knob":"memory.reclaim","init_limit":"150M"}' >reclaim.json
tree 200000000
squeeze -r reclaim.json -o reclaim sh -c "sleep 0.5; cat $group/memory.max"
t "knob memory.reclaim: no limit is written" has out '^max'
tree 100000000
touch -d 2020-01-01 $group/memory.max
squeeze -r start.json --dry-run true
t "--dry-run writes nothing, not even at the end" is "$(stat -c %y $group/memory.max | cut -c 1-4)" 2020
tree 200000000
echo '{"mode":"static","init_limit":"150M"}' >steady.json
"$ANALYZER" -q -t none --root root --cgname job -s 100ms -r steady.json -o noact \
	sh -c "echo ready; sleep 2; exit 3" >out 2>err &
pid=$!
await out ready; sleep 0.4
kill -9 "$(pgrep -P $pid analyzer-act)"; wait $pid; status=$?
t "kill -9 of the actuator: the run goes on" is $status 3
t "kill -9 of the actuator: released, once" is "$(sql noact "SELECT count(*) FROM decision
	WHERE reason = 'the actuator process died'")" 1

done_testing
