# Real programs under the dynamic squeezer: their own exit status, none killed for lack of memory.
. "$(dirname "$0")/../../cli/lib.sh"

config=$TOP/configs/squeezerdynamicconfig.json

checks() { # DIR STATUS
	t "$1: its own exit status" is $status "$2"
	t "$1: no OOM kill" is "$(sql "$1" 'SELECT max(memory_events_oom_kill) FROM sample')" 0
	t "$1: it was sampled and squeezed or watched" is "$(sql "$1" "SELECT
		(SELECT count(*) FROM sample) > 3 AND (SELECT count(*) FROM decision) > 0")" 1
	t "$1: the limit is gone at the end" is "$(sql "$1" 'SELECT memory_max FROM sample
		ORDER BY seq DESC LIMIT 1')" 9223372036854775807
}

# redis: exactly 100,000 keys of 1 KiB, made by a generator and piped in, then SIGINT to analyzer.
"$ANALYZER" -t none -s 0.5 -r "$config" -o redis redis-server --port 7391 --save '' >redis.out 2>err &
pid=$!
await redis.out 'Ready to accept connections'
awk 'BEGIN { v = sprintf("%01016d", 7); for (i = 0; i < 100000; i++)
	printf "*3\r\n$3\r\nSET\r\n$8\r\nk%07d\r\n$1024\r\n%08d%s\r\n", i, i, v }' |
	redis-cli -p 7391 --pipe >pipe.out 2>&1
t "redis: all keys arrived" is "$(redis-cli -p 7391 DBSIZE)" 100000
sleep 20
t "redis: it answers while squeezed" is "$(redis-cli -p 7391 STRLEN k0000042)" 1024
kill -INT $pid
wait $pid
status=$?
checks redis 0
t "redis: SIGINT reached it" has redis.out 'User requested shutdown\|Received SIGINT'
t "redis: peak holds the data" is "$(sql redis 'SELECT max(memory_peak) > 102400000 FROM sample')" 1
t "redis: it was squeezed" is "$(sql redis "SELECT count(*) > 0 FROM decision WHERE
	action = 'tighten'")" 1

cap "$ANALYZER" -t none -s 0.5 -r "$config" -o python python3 -c '
import sys
a = [str(i) * 2 for i in range(1000000)]
sys.exit(len(a) // 333333)'
checks python 3
t "python: peak is plausible" is "$(sql python 'SELECT max(memory_peak) BETWEEN 5e7 AND 3e8 FROM sample')" 1

cap "$ANALYZER" -t none -s 0.5 -r "$config" -o stress stress-ng --vm 2 --vm-bytes 128M --timeout 20s
checks stress 0
t "stress-ng: both workers in one group" is "$(sql stress 'SELECT max(memory_peak) > 1.1e8 FROM sample')" 1

awk 'BEGIN { for (i = 0; i < 5000; i++)
	printf "int f%d(int x)\n{\n\treturn x * %d;\n}\n", i, i }' >big.c
t "gcc: 20,000 lines" lines big.c 20000
cap "$ANALYZER" -t none -s 0.5 -r "$config" -o gcc gcc -O0 -c big.c -o big.o
checks gcc 0
t "gcc: the object is there" test -s big.o
echo 'int x = ;' >bad.c
cap "$ANALYZER" -q -o gcc2 gcc -c bad.c
t "gcc: a failed compilation fails" is $status 1
done_testing
