# The thirty edge cases of tracing allocations: exact counts by hand, then event for event against
# the oracle. Programs and what they must give: tests/trace/NN-*.c.
. "$TOP/tests/trace/lib.sh"

# -- the tools themselves: what they are given wrong they must find
make -s -C "$TOP" trace-programs || exit 1
mkdir told
cap env ORACLE_DIR="$work/told" LD_PRELOAD="$programs/oracle.so" "$programs/05-realloc-move"
python3 "$sources/events.py" told >told.ndjson
compare() { python3 "$sources/compare.py" "$1" told; }
differs() { ! compare "$1"; }
t "the oracle agrees with itself" compare told.ndjson
t "and with the program" python3 "$sources/expect.py" --oracle "$sources/05-realloc-move.c" told
grep -n '"kind": "alloc"' told.ndjson | cut -d : -f 1 >at
sed "$(sed -n 17p at)d" told.ndjson >less.ndjson
t "an event that lacks is found" differs less.ndjson
t "by its count too" eval '! python3 "$sources/expect.py" "$sources/05-realloc-move.c" less.ndjson'
sed "$(sed -n 17p at)p" told.ndjson >more.ndjson
t "one that is there twice" differs more.ndjson
sed '/"stack", "id": 2,/s/, \([0-9]*\)\]\]/, 1\1]]/' told.ndjson >other.ndjson
t "a frame that is another" differs other.ndjson
sed "$(sed -n 17p at)s/\"size\": [0-9]*/\"size\": 1/" told.ndjson >size.ndjson
t "a size that is another" differs size.ndjson

need_tracer "edge cases"

# edge PROGRAM [ARGUMENT...]: must end with status 0 and give what its source says.
edge() {
	local name=$1
	shift
	trace "$name$*" "$programs/$name" "$@"
	t "$name $*: ends as untraced" is $status 0
	t "$name $*: exact" expect "$name$*" "$name"
}

for program in 01-alias 02-realloc-null 03-realloc-zero 04-realloc-fail 05-realloc-move \
	06-realloc-race 07-nested 07-new 08-posix-memalign 09-aligned 10-calloc 11-zero \
	12-failed 13-first-free 14-free-elsewhere 15-fork 16-vfork 17-exec 18-thread-killed \
	19-longjmp 19-throw 19-coroutine 25-early 26-signal 28-stop 30-mmap 30-brk 30-huge \
	30-mallocx 30-delete 30-seccomp; do
	edge $program
done
edge 26-signal below
# On a signal stack above what it interrupts the kernel would kill the program at the first return
# that is probed: those calls are left alone, and counted. Kernels before 6.13 cannot.
trace above "$programs/26-signal" above
if [ "$(figure above skipped)" -gt 0 ]; then
	t "26-signal above: ends as untraced" is $status 0
	t "26-signal above: what was left alone is counted" is \
		$(($(grep -c '"kind":"alloc".*"size":509,' above.ndjson) + $(figure above skipped))) 211
else
	skip "26-signal above" "this kernel's return probes would kill it"
fi

preloaded zero.je libjemalloc.so.2 "$programs/03-realloc-zero"
t "realloc to 0 of jemalloc: exact" expect zero.je 03-realloc-zero
preloaded zero.mi libmimalloc.so.2 "$programs/03-realloc-zero"
t "realloc to 0 of mimalloc: exact" expect zero.mi 03-realloc-zero block

trace again "$programs/20-pid-again"
if [ $status = 77 ]; then
	skip "20-pid-again" "no right to choose a pid"
else
	t "20-pid-again: ends as untraced" is $status 0
	t "20-pid-again: exact" expect again 20-pid-again
fi

trace dlopen "$programs/22-dlopen" "$programs"
t "22-dlopen: ends as untraced" is $status 0
t "22-dlopen: exact" expect dlopen 22-dlopen

trace several "$programs/23-several"
t "23-several: ends as untraced" is $status 0
t "23-several: all three allocators" expect several 23-several
trace stripped "$programs/23-stripped"
t "23-stripped: ends as untraced" is $status 0
t "23-stripped: coverage says that names are missing" is "$(sql stripped "SELECT count(*)
	FROM coverage WHERE path LIKE '%/23-stripped' AND problem IS NOT NULL AND problem != ''")" 1

for program in 24-deleted 24-static; do
	cp "$programs/$program" .
	trace gone.$program "$work/$program" "$work/$program.ready" &
	pid=$!
	for _ in $(seq 500); do [ -e $program.ready ] && break; sleep 0.02; done
	rm "$work/$program"
	wait $pid
	t "$program: exact" expect gone.$program 24-deleted ${program#24-}
done

trace killed "$programs/29-killed"
t "29-killed: its end is passed on" is $status 137
t "29-killed: all until then" expect killed 29-killed

cap "$ANALYZER" -q -t none -o ia32.none "$programs/30-ia32"
untraced=$status # 7, or that of a shell where the kernel runs no 32-bit programs
trace ia32 "$programs/30-ia32"
t "30-ia32: ends as untraced" is $status $untraced
t "30-ia32: coverage says why nothing was traced" is "$(sql ia32 "SELECT count(*) > 0
	FROM coverage WHERE path LIKE '%/30-ia32' AND problem LIKE '%32%'")" 1

# -- event for event
for program in 02-realloc-null 04-realloc-fail 05-realloc-move 06-realloc-race 07-nested 09-aligned \
	10-calloc 11-zero 12-failed 13-first-free 14-free-elsewhere 19-coroutine 26-signal \
	30-mmap 30-huge 15-fork 16-vfork 07-new 30-delete; do
	beside o.$program "$programs/$program"
	# A signal may come in the kernel's own trampoline: a stack through it ends there, as cut.
	[ $program = 26-signal ] && least="--min-equal 0.999" || least=
	t "$program: event for event" same o.$program $least
done
beside o.fork "$programs/storm" -p 5 -t 3 -n 503
t "processes and threads: event for event" same o.fork
done_testing
