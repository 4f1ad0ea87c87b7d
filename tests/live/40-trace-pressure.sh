# More events than the reader keeps up with: nothing is lost silently, nobody is left standing.
. "$TOP/tests/trace/lib.sh"
need_tracer "pressure"
storm=$programs/storm
tiny="env ANALYZER_TEST_RING_BYTES=65536 ANALYZER_TEST_READER_DELAY_MS=50"

lost_rows() { sql "$1" "SELECT coalesce(sum(count), 0) FROM loss WHERE source LIKE 'ring%'"; }
# Events of the heap in the record, by kind.
recorded() { grep -c '"kind": *"'"$2"'"' "$1.ndjson"; }

# -- as it is used
trace full "$storm" -p 16 -n 30000
t "16 x 30000: ends as untraced" is $status 0
t "16 x 30000: the storm ran to its end" has out done
t "16 x 30000: all allocations" is "$(recorded full alloc)" 480000
t "16 x 30000: all frees" is "$(recorded full free)" 480000
t "16 x 30000: no loss" is "$(lost_rows full)" 0
t "16 x 30000: none in the figures" is "$(figure full lost)" 0
t "16 x 30000: sites add up" is "$(sql full "SELECT sum(alloc_count) || ' ' || sum(free_count)
	FROM site WHERE kind = 'malloc'")" "480000 480000"
t "16 x 30000: the tracer stays below 256 MiB" is "$(sql full "SELECT
	json_extract(trace, '\$.tracer_rss_bytes') BETWEEN 1 AND 268435456 FROM run")" 1
t "16 x 30000: every process is told of" is "$(sql full "SELECT count(*) FROM process
	WHERE comm = 'storm' AND exit_code = 0")" 16
t "16 x 30000: few stacks" is "$(sql full 'SELECT json_extract(trace, "$.stacks") < 100 FROM run')" 1
rm full.ndjson
trace threads "$storm" -p 2 -t 8 -n 2003 # of the threads' own set-up only sizes above 2000 are
t "threads: no loss" is "$(lost_rows threads)" 0
t "threads: sites of the storm add up" is "$(sql threads "SELECT sum(alloc_count) FROM site WHERE
	site_id IN (SELECT site_id FROM site_stack WHERE function = 'pair')")" 32048

# -- what it costs is told while it runs
cap "$ANALYZER" -t alloc -o told "$storm" -n 300000
t "cost: told on stderr" has err "tracing has taken .* % of the workload's CPU time so far"
t "cost: once" is "$(grep -c 'tracing has taken' err)" 1
cap "$ANALYZER" -q -t alloc -o quiet "$storm" -n 300000
t "cost: not with -q" hasnt err 'tracing has taken'
cap "$ANALYZER" -t alloc -o idle sleep 2.7
t "cost: not of a program that allocates little" hasnt err 'tracing has taken'
t "cost: a slowdown that is most of the run" is "$(sql told "SELECT json_extract(trace,
	'\$.slowdown') BETWEEN 2 AND 4 FROM run")" 1
t "cost: one that is next to nothing" is "$(sql idle "SELECT json_extract(trace, '\$.slowdown')
	BETWEEN 0 AND 2 FROM run")" 1
# The file's header is no run's.
t "events.zst: its bytes are the run's" is "$(sql told "SELECT json_extract(trace,
	'\$.bytes_written') FROM run")" $(($(stat -c %s told/events.zst) - 48))

# -- with a ring that holds next to nothing and a reader that sleeps
ANALYZER="$tiny $ANALYZER"
cap $ANALYZER -q -t alloc -o tiny "$storm" -p 16 -n 1000
t "tiny ring: ends as untraced" is $status 0
t "tiny ring: the storm ran to its end" has out done
t "tiny ring: it was held" is "$(sql tiny 'SELECT json_extract(trace, "$.pauses") +
	json_extract(trace, "$.stops") > 0 FROM run')" 1
t "tiny ring: the time is told" is "$(sql tiny 'SELECT json_extract(trace, "$.paused_ns") > 0
	FROM run')" 1
t "tiny ring: no loss" is "$(lost_rows tiny)" 0
t "tiny ring: sites add up" is "$(sql tiny "SELECT sum(alloc_count) || ' ' || sum(free_count)
	FROM site WHERE kind = 'malloc'")" "16000 16000"
t "tiny ring: all ended by themselves" is "$(sql tiny "SELECT count(*) FROM process
	WHERE comm = 'storm' AND exit_code = 0")" 16

cap $ANALYZER -q -t alloc --trace-policy drop -o drop "$storm" -p 16 -n 1000
t "drop: ends as untraced" is $status 0
$ANALYZER export ndjson --events drop >drop.ndjson
t "drop: something was lost" is "$(sql drop 'SELECT json_extract(trace, "$.lost") > 0 FROM run')" 1
t "drop: what was lost is in the rows" is "$(lost_rows drop)" "$(figure drop lost)"
# 16 processes: 32000 events of the heap, 15 forks, 16 ends, one exec (the command's).
t "drop: made = received + lost" is "$(($(figure drop events) + $(lost_rows drop)))" 32032
t "drop: the record names the losses too" is "$(python3 -c 'import json, sys
print(sum(r["count"] for r in map(json.loads, sys.stdin) if r["type"] == "loss"))' <drop.ndjson)" \
	"$(lost_rows drop)"
t "drop: the report names them" has drop/report.txt 'lost'

# -- a terminal: the shell must not see its children stop
printf '%s\n' "$storm -p 4 -n 500" "$storm -p 2 -n 300 | cat" "$storm -n 300 & wait" \
	'echo sum $((20 + 3))' 'exit 5' >typed
cap python3 "$sources/pty_shell.py" env TERM=dumb PS1='$ ' ANALYZER_TEST_RING_BYTES=262144 \
	${ANALYZER#"$tiny"} -q -t alloc -o shell bash --norc --noprofile -i <typed
t "interactive shell: its status" is $status 5
t "interactive shell: it went on" has out 'sum 23'
t "interactive shell: all ran" is "$(grep -c 'done$' out)" 3
t "interactive shell: nobody was seen to stop" hasnt out Stopped
t "interactive shell: no loss" is "$(lost_rows shell)" 0

# -- the death of analyzer while writers stand still
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$mount/analyzer-test-held
cp "$storm" "st$$" # a name of its own, by which its processes are found
held() { # in the group or out of it, frozen or stopped
	local p
	grep -qs 'frozen 1' "$group/cgroup.events" && return
	for p in $(pgrep -x "st$$"); do
		grep -qs '^State:.[Tt]' "/proc/$p/status" && return
	done
	return 1
}
env ANALYZER_TEST_RING_BYTES=65536 ANALYZER_TEST_READER_DELAY_MS=300 ${ANALYZER#"$tiny"} -q -t alloc \
	-o dead --cgname analyzer-test-held "$work/st$$" -p 8 -n 60000 >deadout 2>err &
pid=$!
sleep 2.5 # what was recorded is written once a second
seen=0
for _ in $(seq 1000); do held && kill -9 $pid && seen=1 && break; sleep 0.01; done
t "they stand still" test $seen = 1
wait $pid 2>"$work/.null"
for _ in $(seq 20); do held || break; sleep 0.1; done
t "kill -9: after 2 s nobody stands still" eval '! held'
for _ in $(seq 600); do pgrep -x "st$$" >"$work/.null" || break; sleep 0.05; done
t "kill -9: the storm runs to its end" has deadout done
ANALYZER=${ANALYZER#"$tiny "}
cap "$ANALYZER" export ndjson --events dead
t "kill -9: whole frames are readable" has out '"kind": *"alloc"'
t "kill -9: the run has no end" is "$(sql dead 'SELECT end_reason IS NULL FROM run')" 1
done_testing
