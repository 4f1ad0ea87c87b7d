# Programs whose allocations are the same on every kernel, and the list of their sites: made on this
# machine for the guests to compare with (tests/vm/sites.sh DIR), and in them (sourced). Without
# stdio's buffers: their sizes are the file systems'.
site_programs="07-nested 15-fork 30-mmap 50-inline"

site_command() { # NAME: sets the array command
	command=("$TOP/build/trace/$1")
}

# traced_sites NAME DIR OPTION...: status of the program; the list goes to DIR.sites.
traced_sites() {
	local name=$1 dir=$2 command ended
	shift 2
	site_command "$name"
	# Rings with room for every stack that is new, however slow the machine is to learn.
	env -i PATH="$PATH" LANG=C HOME=/nowhere ANALYZER_TEST_RING_BYTES=33554432 "$ANALYZER" -q -t alloc "$@" -o "$dir" \
		"${command[@]}" >"$dir.out"
	ended=$?
	sqlite3 -readonly "$dir/profile.db" "SELECT kind, alloc_count, alloc_bytes, free_count, names
		FROM site AS s JOIN (SELECT stack_id, group_concat(coalesce(function, '?'), ' < ') AS names
		FROM (SELECT stack_id, function FROM stack_frame JOIN frame USING (frame_id)
		ORDER BY stack_id, level) GROUP BY stack_id) USING (stack_id)
		WHERE names NOT LIKE '%file_doallocate%'" | sort >"$dir.sites"
	return $ended
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	mkdir -p "$1" && cd "$1" || exit 1
	rm -rf ./*
	for name in $site_programs; do
		traced_sites "$name" "$name" || exit
	done
fi
