# -t and what is said where nothing can be traced. What a trace holds is tested on a live kernel
# (tests/live); what can be traced here at all is for `check` to say.
. "$(dirname "$0")/lib.sh"

report_says() { has "$1/report.txt" "$2"; }
traced() { sql "$1" "SELECT count(*) FROM run WHERE json_extract(trace, '\$.events') > 0"; }
why_not() { sql "$1" "SELECT json_extract(trace, '\$.not_traced') FROM run"; }

cap "$ANALYZER" check --feature tracer
can=$status lack=$(head -n 1 out)

# -- off
cap "$ANALYZER" -t none -o none sh -c 'exit 7'
t "-t none: status" is $status 7
t "-t none: no word of tracing" hasnt err 'no allocation stacks'
t "-t none: the report says so" report_says none '^  n/a (not traced'
t "-t none: recorded with the reason" is "$(sql none \
	"SELECT json_extract(trace, '\$.not_traced') FROM run")" "-t none"
t "-t none: no events.zst" test ! -e none/events.zst

# -- as somebody who must not
mkdir -m 777 open
chmod 755 .
cp "$ANALYZER" open/analyzer
as_nobody=
[ "$(id -u)" != 0 ] || as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
for how in auto alloc; do
	cap $as_nobody open/analyzer -t $how -o open/$how sh -c 'exit 7'
	t "no rights, -t $how: the command's status" is $status 7
	t "no rights, -t $how: one line" is "$(grep -c 'no allocation stacks: ' err)" 1
	t "no rights, -t $how: the report says why" report_says open/$how '^  n/a (not traced: '
	t "no rights, -t $how: so does the database" test -n "$(why_not open/$how)"
done
cap $as_nobody open/analyzer check --feature tracer
t "no rights: check: status" is $status 1
t "no rights: check names them" has out 'warn *allocation tracer *no CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN'
t "no rights: check has the remedy" has out 'fix: run as root, or with CAP_BPF'

# -- what check says is what a run does
cap "$ANALYZER" -q -o here sh -c 'exit 7'
t "-t auto: the command's status" is $status 7
t "-t auto: traced where check says so" is "$(traced here)" $((can == 0))
cap "$ANALYZER" -q --root / -o root true
t "--root /: the same" is "$(traced root)" $((can == 0))

# -- of several runs only one more of each setting, and on request
cap "$ANALYZER" -q -n 2 -o two true
t "-n 2: two runs" is "$(sql two 'SELECT group_concat(name) FROM run')" baseline,baseline
t "-n 2: none traced" is "$(sql two \
	"SELECT count(json_extract(trace, '\$.not_traced')) FROM run")" 2
cap "$ANALYZER" -q -n 2 -t alloc -o three true
t "-n 2 -t alloc: one more" is "$(sql three 'SELECT group_concat(name) FROM run')" \
	"baseline,baseline,baseline traced"
t "-n 2 -t alloc: the others are untraced" is "$(sql three "SELECT group_concat(run_id) FROM run
	WHERE name LIKE '% traced' OR trace NOT LIKE '%not_traced%'")" 3

# -- where it can
if [ $can != 0 ]; then
	skip "a kernel without BTF, and a trace" "$lack"
	done_testing
	exit
fi
t "check: silent on remedies" hasnt out 'fix:'
hide() { unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' hide "$@"; }
cap hide "$ANALYZER" check --feature tracer
t "no BTF: check: status" is $status 1
t "no BTF: check says so" has out 'FAIL *allocation tracer *no type information (BTF)'
t "no BTF: check has the remedy" has out 'fix: .*CONFIG_DEBUG_INFO_BTF\|^ *CONFIG_DEBUG_INFO_BTF'
cap hide "$ANALYZER" -o nobtf sh -c 'exit 7'
t "no BTF: the command's status" is $status 7
t "no BTF: one line" is "$(grep -c 'no allocation stacks: this kernel has no type information' err)" 1
t "no BTF: the report says why" report_says nobtf 'n/a (not traced: this kernel has no type'

cap "$ANALYZER" -q -o example "$WORKLOAD" 8M 1 1
t "the example: status" is $status 0
for part in hot_half:4 warm_quarter:2 cold_quarter:2; do
	t "the example: allocate_${part%:*}" is "$(sql example "SELECT alloc_count || ' ' || alloc_bytes
		FROM site WHERE kind = 'mmap' AND site_id IN (SELECT site_id FROM site_stack
		WHERE function = 'allocate_${part%:*}')")" "1 $((${part#*:} << 20))"
done
t "the example: the report names it" report_says example '^    allocate_hot_half  tests/example/workload.c:'
"$ANALYZER" -o closed true <&- >&- 2>&-
t "traced, closed standard streams: status" is $? 0
t "traced, closed standard streams: the results are whole" is \
	"$(sql closed 'PRAGMA integrity_check')$(traced closed)" ok1
cap timeout -s KILL 20 env --ignore-signal=CHLD "$ANALYZER" -q -o chld sh -c 'exit 3'
t "traced, started with SIGCHLD ignored: status" is $status 3
cap "$ANALYZER" -q --events-max 1 -o small sh -c ':'
t "--events-max: the command's status" is $status 0
t "--events-max: what is not recorded is a loss" is "$(sql small "SELECT count(*) FROM loss
	WHERE source = 'events.zst' AND count > 0")" 1
t "--events-max: sites are there all the same" is "$(sql small 'SELECT count(*) > 0 FROM site')" 1

done_testing
