# TAP for shell scripts: `t NAME COMMAND...` passes when the command succeeds, `skip NAME REASON`,
# `done_testing` last. Each script works in a directory of its own that is removed at the end.
set -u
tests=0 failures=0
work=$(mktemp -d)
trap 'cd /; rm -rf "$work"' EXIT
cd "$work" || exit 1

t() {
	local name=$1
	shift
	tests=$((tests + 1))
	if "$@" >"$work/.t" 2>&1; then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		{
			printf 'command: %s\n' "$*"
			cat "$work/.t"
			[ -s "${last_err:-}" ] && head -n 20 "$last_err"
		} | head -n 40 | sed 's/^/  # /'
		failures=$((failures + 1))
	fi
}

skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# cap COMMAND...: runs it; status in $status, outputs in the files out and err.
cap() {
	last_err=$work/err
	"$@" >"$work/out" 2>"$work/err"
	status=$?
}

# Waits up to 20 s until the file holds the pattern.
await() {
	local i
	for i in $(seq 1000); do
		grep -qse "$2" "$1" && return
		sleep 0.02
	done
	echo "no '$2' in $1 after 20 s"
	return 1
}

is() { [ "$1" = "$2" ] || { echo "got '$1', expected '$2'"; return 1; }; }
has() { grep -qe "$2" "$1" || { echo "no '$2' in $1:"; cat "$1"; return 1; }; }
hasnt() { ! grep -qe "$2" "$1" || { echo "'$2' is in $1:"; cat "$1"; return 1; }; }
lines() { is "$(wc -l <"$1")" "$2"; }
sql() { sqlite3 -readonly "$1/profile.db" "$2"; }

done_testing() {
	echo "1..$tests"
	[ $failures = 0 ]
}
