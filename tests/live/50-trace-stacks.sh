# Stacks: against the oracle's own unwinder for every allocation, against gdb for some.
. "$TOP/tests/trace/lib.sh"
need_tracer "stacks"

for program in 50-alloca 50-small-stacks 50-inline 19-coroutine; do
	beside $program "$programs/$program"
	t "$program: every stack" same $program
done
# Stacks of 2.4 MB: until the rows of their functions are learned, by captures of 256 KiB, they are
# cut.
beside recursion.o "$programs/50-recursion"
t "50-recursion: nine stacks of ten" same recursion.o --min-equal 0.9
t "of all frames as good as none is missing" test "$(python3 "$sources/compare.py" \
	recursion.o.ndjson recursion.o.oracle --min-equal 0 |
	awk '/^stacks:/ { for (i = 1; i < NF; i++) if ($i == "frames:")
		print ($(i + 1) >= 0.995 * $(i + 3)) }')" = 1
# A signal may come in the kernel's own trampoline, and rows of the stack below a signal stack must
# be learned first: such a stack ends there, as cut.
for where in "" below; do
	beside alt$where "$programs/26-signal" $where
	t "signals, stack ${where:-shared}: nearly every stack" same alt$where --min-equal 0.999
done
trace recursion "$programs/50-recursion"
t "recursion: exact" expect recursion 50-recursion
trace alloca "$programs/50-alloca"
t "alloca: exact" expect alloca 50-alloca
trace small "$programs/50-small-stacks"
t "small stacks: exact" expect small 50-small-stacks

echo 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 997)
	SELECT count(DISTINCT hex(i * i) || i) FROM n;' >query
python=/usr/bin/python3
beside sqlite3 sqlite3 -batch -init query :memory: .quit
t "sqlite3: every stack" same sqlite3
beside python3 $python -c 'import json; json.loads("[1, {}]")'
t "python3: every stack" same python3
beside perl perl -e 'my %h; $h{$_ * 7} = [1 .. 5] for 1 .. 997; print scalar(keys %h), "\n"'
t "perl: every stack" same perl

debugger() { # NAME, then of gdb_compare.py
	t "$1: frames as gdb's" python3 "$sources/gdb_compare.py" "${@:2}"
}
debugger sqlite3 gdb-sqlite3 sqlite3 -batch -init query :memory: .quit
debugger python3 gdb-python3 $python -c pass
debugger C++ gdb-c++ "$programs/50-inline"
# From some point on its tables are filled in the order of a random number.
debugger redis-server --allocator libjemalloc --last 400 gdb-redis redis-server --version
done_testing
