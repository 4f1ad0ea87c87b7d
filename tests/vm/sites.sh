# Programs whose allocations are the same on every kernel, and the list of their sites: made on this
# machine for the guests to compare with (tests/vm/sites.sh DIR), and in them (sourced).
site_programs="07-nested 15-fork 30-mmap 50-inline pairs sqlite3"

site_command() { # NAME: sets the array command
	command=("$TOP/build/trace/$1")
	[ "$1" = sqlite3 ] && command=(sqlite3 -batch :memory: "CREATE TABLE t (v);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)
		INSERT INTO t SELECT replace(hex(zeroblob(250)), '00', hex(100000 + i)) FROM n;
		SELECT sum(a.v < b.v) FROM t AS a JOIN t AS b ON b.rowid = 10001 - a.rowid;")
}

# traced_sites NAME DIR OPTION...: status of the program; the list goes to DIR.sites.
traced_sites() {
	local name=$1 dir=$2 command ended
	shift 2
	site_command "$name"
	env -i PATH="$PATH" LANG=C HOME=/nowhere "$ANALYZER" -q -t alloc "$@" -o "$dir" \
		"${command[@]}" >"$dir.out"
	ended=$?
	sqlite3 -readonly "$dir/profile.db" "SELECT kind, alloc_count, alloc_bytes, free_count, names
		FROM site AS s JOIN (SELECT stack_id, group_concat(coalesce(function, '?'), ' < ') AS names
		FROM (SELECT stack_id, function FROM stack_frame JOIN frame USING (frame_id)
		ORDER BY stack_id, level) GROUP BY stack_id) USING (stack_id)" | sort >"$dir.sites"
	return $ended
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	mkdir -p "$1" && cd "$1" || exit 1
	rm -rf ./*
	for name in $site_programs; do
		traced_sites "$name" "$name" || exit
	done
fi
