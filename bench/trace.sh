#!/usr/bin/env bash
# trace.sh PART...: what tracing a command costs and whether it keeps up, against the targets.
#
#   fixed     elapsed time of `analyzer ls`, traced and not, beyond that of `ls`
#   programs  bytes per event and stack definitions per allocation of real programs
#   scan      the residency scan of 1,000,000 blocks
#   storm     four threads at full speed
#   soak      16 processes x 50,000 pairs; four threads x 2,500,000
#
# ROUNDS (default 7): of `fixed`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
analyzer=$top/build/analyzer storm=$top/build/trace/storm
work=$(mktemp -d)
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

figure() { sqlite3 -readonly "$1/profile.db" "SELECT json_extract(trace, '\$.$2') FROM run"; }
has() { command -v "$1" >/dev/null || { echo "$2: not measured, there is no $1 here"; false; }; }

# elapsed COMMAND...: milliseconds in $ms.
elapsed() {
	local start=${EPOCHREALTIME/./}
	"$@" >out 2>err || { echo "failed: $*"; cat err; failed=1; }
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}

# spread FILE: median, least and most of the numbers in it.
spread() {
	sort -n "$1" | awk '{ v[NR] = $1 } END {
		m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		printf "%7.0f   (%.0f .. %.0f)", m, v[1], v[NR] }'
}

fixed() {
	local i plain
	for i in $(seq "${ROUNDS:-7}"); do
		elapsed ls
		plain=$ms
		echo "$ms" >>plain
		elapsed "$analyzer" -q -t none -o "none$i" ls
		echo $((ms - plain)) >>none
		elapsed "$analyzer" -q -t alloc -o "alloc$i" ls
		echo $((ms - plain)) >>alloc
	done
	echo "elapsed time of ls, ms"
	echo "ls                                $(spread plain)"
	echo "beyond it: analyzer -t none       $(spread none)"
	echo "beyond it: analyzer -t alloc      $(spread alloc)   <= 400"
}

# told DIR NAME MAX: what was recorded of a run; MAX definitions per allocation are the target,
# in percent; "" = there is none.
told() {
	local events defs allocs bytes
	events=$(figure "$1" recorded) allocs=$(figure "$1" allocs)
	defs=$(figure "$1" stack_definitions) bytes=$(stat -c %s "$1/events.zst")
	awk -v name="$2" -v e="$events" -v a="$allocs" -v d="$defs" -v b="$bytes" \
		-v stacks="$(figure "$1" stacks)" -v max="$3" \
		-v wrong="$(figure "$1" mismatched) of $(figure "$1" checked)" \
		-v lost="$(figure "$1" lost)" 'BEGIN {
		printf "%-8s %9d events %6.2f bytes each%s %9d allocs %6d stacks %6d definitions %6.2f %%%s   mismatched %s, lost %d\n",
			name, e, b / e, (b / e > 3.5 ? " (> 3.5)" : "        "), a, stacks, d, 100 * d / a,
			(max != "" && 100 * d / a > max + 0 ? " (> " max ")" : ""), wrong, lost }'
}

# program NAME MAX COMMAND...
program() {
	local name=$1 max=$2
	shift 2
	has "$1" "$name" || return 0
	if "$analyzer" -q -t alloc -o "$name" "$@" >out 2>err; then
		told "$name" "$name" "$max"
	else
		echo "$name: status $?: $(tail -n 1 err)"
		failed=1
	fi
}

redis() {
	local i
	has redis-server redis || return 0
	"$analyzer" -q -t alloc -o redis redis-server --port 0 --unixsocket "$work/redis.sock" \
		--save '' --dir "$work" >redis.out 2>&1 &
	started+=($!)
	for i in $(seq 200); do
		redis-cli -s "$work/redis.sock" ping >out 2>/dev/null && break
		sleep 0.05
	done
	awk 'BEGIN { for (i = 0; i < 100000; i++) {
		k = "key:" i * 7919 % 50000; v = sprintf("%0" (20 + i % 200) "d", i)
		printf "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", length(k), k, length(v), v } }' |
		redis-cli -s "$work/redis.sock" --pipe >pipe.out
	redis-cli -s "$work/redis.sock" shutdown nosave >out 2>&1
	wait "${started[-1]}"
	grep -q 'errors: 0, replies: 100000' pipe.out || { cat pipe.out; failed=1; }
	told redis redis 1
}

programs() {
	echo "events.zst, and definitions of stacks per allocation: <= 3.5 bytes; mismatched 0"
	local i
	program find 1 find /usr/share /usr/lib -name '*.nothing'
	program tar 1 tar -cf /dev/null /usr/share/doc /usr/share/man
	program perl 1 perl -e 'for my $i (1..60000) { my %h = (n => $i, l => [1..5]);
		push @all, \%h if $i % 3 == 0; shift @all if @all > 500; my $s = "x" x ($i % 300); }'
	program python3 '' python3 -c 'import json, collections
d = [{"n": i, "s": "x" * (600 + i % 100), "l": list(range(100, 200))} for i in range(4000)]
print(len(json.dumps(json.loads(json.dumps(d)))))'
	for i in gcc clang; do
		program $i "$([ $i = gcc ] || echo 15)" $i -O2 -D_GNU_SOURCE "-I$top" -c \
			-o source.o "$top/tracer/discover.c"
	done
	redis
}

# keeps_up NAME COMMAND...
keeps_up() {
	local name=$1 rss
	shift
	elapsed "$analyzer" -q -t alloc -o "$name" "$@"
	rss=$(figure "$name" tracer_rss_bytes)
	echo "$name: $(figure "$name" events) events in $ms ms, lost $(figure "$name" lost) (= 0)," \
		"$(figure "$name" pauses) pauses of $(($(figure "$name" paused_ns) / 1000000)) ms," \
		"$(figure "$name" stops) stops; RSS $((rss >> 20)) MiB (<= 256)"
	[ "$(figure "$name" lost)" = 0 ] && [ "$rss" -le $((256 << 20)) ] || failed=1
}

scan() {
	mkfifo go
	elapsed "$analyzer" -q -t alloc -o scan "$top/build/trace/60-residency" million <go &
	started+=($!)
	exec 3>go
	for i in $(seq 600); do # until a scan or two of all of them
		[ "$(sqlite3 -readonly scan/profile.db "SELECT count(*) > 1 FROM scan
			WHERE blocks >= 1000000" 2>/dev/null)" = 1 ] && break
		sleep 0.5
	done
	echo >&3
	wait "${started[-1]}"
	sqlite3 -readonly scan/profile.db "SELECT 'scan of ' || blocks || ' blocks in ' ||
		(resident_bytes >> 20) || ' MiB: ' || (min(scan_ns) / 1000000) || ' ms CPU, the next after ' ||
		(period_ns / 1000000) || ' ms' FROM scan WHERE blocks >= 1000000"
	echo "the reader waited at most $(($(figure scan scan_lock_ns) / 1000)) us;" \
		"RSS $(($(figure scan tracer_rss_bytes) >> 20)) MiB"
}

storm() { keeps_up "storm 4 threads x 250000 pairs" "$storm" -t 4 -n 250000; }

soak() {
	keeps_up "storm 16 processes x 50000 pairs" "$storm" -p 16 -n 50000
	keeps_up "storm 4 threads x 2500000 pairs" "$storm" -t 4 -n 2500000
}

[ $# -gt 0 ] || set -- fixed programs scan storm
for part; do
	case $part in
	fixed | programs | scan | storm | soak) "$part" ;;
	*) echo "usage: trace.sh [fixed] [programs] [scan] [storm] [soak]" >&2; exit 2 ;;
	esac
done
exit $failed
