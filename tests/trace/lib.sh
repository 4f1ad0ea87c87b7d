# What the scripts of the tracer's live tests share, on top of tests/cli/lib.sh.
. "$TOP/tests/cli/lib.sh"
programs=$TOP/build/trace sources=$TOP/tests/trace
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0

# Ends the script with one skipped test where nothing can be traced.
need_tracer() {
	[ "$(id -u)" = 0 ] || { skip "$1" "not root"; done_testing; exit; }
	make -s -C "$TOP" trace-programs >"$work/.make" 2>&1 || { cat "$work/.make" >&2; exit 1; }
	cap "$ANALYZER" -q -t alloc -o "$work/.can" true
	[ $status = 0 ] || { skip "$1" "$(tail -n 1 err)"; done_testing; exit; }
}

# trace DIR COMMAND...: traced; status in $status, the record in DIR.ndjson.
trace() {
	local dir=$1
	shift
	cap timeout -k 10 60 "$ANALYZER" -q -t alloc -o "$dir" "$@"
	"$ANALYZER" export ndjson --events "$dir" >"$dir.ndjson"
}

# preloaded DIR LIBRARY COMMAND...: traced with the library preloaded.
preloaded() { trace "$1" "$programs/launch" LD_PRELOAD="$2" -- "${@:3}"; }

# figure DIR NAME: of the trace as a whole.
figure() { sql "$1" "SELECT json_extract(trace, '\$.$2') FROM run"; }

# expect DIR SOURCE [TAG]: the counts that the program's source names.
expect() {
	python3 "$sources/expect.py" ${3:+--tag "$3"} "$(ls "$sources/$2".c*)" "$1.ndjson"
}

# beside DIR COMMAND...: traced with the oracle, whose logs go to DIR.oracle. $preload comes after.
beside() {
	local dir=$1
	shift
	mkdir "$dir.oracle"
	trace "$dir" "$programs/launch" ORACLE_DIR="$work/$dir.oracle" \
		LD_PRELOAD="$programs/oracle.so${preload:+ $preload}" -- "$@"
}
same() { python3 "$sources/compare.py" "$1.ndjson" "$1.oracle" "${@:2}"; }
