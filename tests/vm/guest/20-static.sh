# A static sweep: the baseline and its limits, exactly as the configuration says.
. "$(dirname "$0")/../../cli/lib.sh"

cap "$ANALYZER" -r "$TOP/configs/squeezerstaticconfig.json" -o sweep \
	"$WORKLOAD" 64M 5 0 --seconds 12 --hot 50
t "exit 0" is $status 0
t "a baseline and four limited runs" is "$(sql sweep 'SELECT group_concat(kind, " ") FROM
	(SELECT kind FROM run ORDER BY run_order)')" 'baseline static static static static'
t "limits 2, 4, 8 and 16 % under the peak" is "$(sql sweep 'WITH peak AS (SELECT max(memory_peak)
	AS p FROM sample WHERE run_id = 1) SELECT group_concat(round(100 - 100.0 * limit_bytes / p, 3), " ")
	FROM (SELECT limit_bytes FROM run WHERE run_id > 1 ORDER BY run_order), peak')" \
	'2.0 4.0 8.0 16.0'
t "each limit was held exactly" is "$(sql sweep 'SELECT count(*) FROM run AS r WHERE kind = "static"
	AND EXISTS (SELECT 1 FROM sample AS s WHERE s.run_id = r.run_id
	AND s.memory_max BETWEEN r.limit_bytes - 4096 AND r.limit_bytes)')" 4
# The sample in which the limit came may hold usage from before it; a CPU may hold 64 pages more.
t "and usage stayed below it" is "$(sql sweep 'SELECT count(*) FROM sample AS b JOIN sample AS a
	ON a.run_id = b.run_id AND a.seq = b.seq - 1 WHERE a.memory_max = b.memory_max AND
	b.memory_current > b.memory_max + 2 * 64 * 4096')" 0
t "no OOM kill" is "$(sql sweep 'SELECT max(memory_events_oom_kill) FROM sample')" 0
t "the sweep table is printed" is "$(sed -n '/^Which limit is best/,/^Can the/p' err |
	grep -cE '^[!~]? *(baseline|[0-9.]+ MiB) .*(MiB|GiB)')" 5
t "five outputs follow one another" is "$(grep -c '^passes ' out)" 5
t "it says so first" has err '5 runs of the command'

cap "$ANALYZER" --limit 90% -o pct "$WORKLOAD" 64M 5 0 --seconds 5
t "--limit PCT runs a baseline first" is "$(sql pct 'SELECT group_concat(kind) FROM run')" \
	baseline,static
t "--limit PCT is of its peak" is "$(sql pct 'SELECT limit_bytes =
	cast(0.9 * (SELECT max(memory_peak) FROM sample WHERE run_id = 1) AS INTEGER) FROM run
	WHERE run_id = 2')" 1
cap "$ANALYZER" -t none -s 0.5 --limit 52M -o size "$WORKLOAD" 64M 5 0 --seconds 15 --hot 50
t "--limit SIZE" is "$(sql size 'SELECT kind, policy, limit_bytes, max(memory_max = limit_bytes)
	FROM run, sample')" 'static|static|54525952|1'
t "--limit SIZE is kept" is "$(sql size 'SELECT max(b.memory_current) <= 54525952 + 2 * 64 * 4096
	FROM sample AS b JOIN sample AS a ON a.seq = b.seq - 1 WHERE a.memory_max = 54525952 AND
	b.memory_max = 54525952')" 1
cap "$ANALYZER" -t none --dry-run -s 0.2 -r "$TOP/configs/squeezerdynamicconfig.json" -o dry \
	"$WORKLOAD" 32M 5 0 --seconds 4
t "--dry-run decides" is "$(sql dry "SELECT count(*) > 0 FROM decision WHERE outcome = 'skipped'
	AND action = 'tighten'")" 1
t "--dry-run writes nothing" is "$(sql dry 'SELECT min(memory_max), max(memory_stat_zswapped)
	FROM sample')" '9223372036854775807|0'
done_testing
