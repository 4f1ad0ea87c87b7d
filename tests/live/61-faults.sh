# Major faults of a program that knows its own: each is its site's, file's or nobody's, and took time.
. "$TOP/tests/trace/lib.sh"
. "$TOP/tests/trace/swap.sh"
need_tracer "major faults are their sites'"
need_swap 256 "major faults are their sites'"
swap_with Y 0

head -c 65536 /dev/urandom >file
cap "$ANALYZER" -q -t alloc,fault -o profile "$programs/61-faults" "$work/file"
t "the program runs as it should" is $status 0
cp out said
said() { awk -v name="$1" '$1 == name { n += $2 } END { print n + 0 }' said; }

# seen FUNCTION: faults of the sites where it allocates.
seen() {
	sql profile "SELECT coalesce(sum(major_faults), 0) FROM site JOIN site_stack USING (run_id, site_id)
		WHERE level = 0 AND function = '$1'"
}
for pair in first:714 second:998 third:53 copied:22 grown:60 before:5 after:4; do
	name=${pair%:*}
	t "$name: as many as were made" is "$(seen "$name")" "${pair#*:}"
done
t "first: the child's are its site's too" is "$(seen first)" $(($(said first) + $(said child)))
for name in second third small copied grown before after; do
	t "$name: as many as the kernel counts" is "$(seen "$name")" "$(said "$name")"
done
t "small blocks share pages: one fault each" test "$(seen small)" -gt 40

t "a file's: three, with name and offset" is "$(sql profile "SELECT group_concat(file_offset)
	FROM (SELECT * FROM fault WHERE file = '$work/file' AND mapping = 'file' AND site_id IS NULL
	ORDER BY t_ns)")" 12288,36864,40960
t "the rows are the sites' sums" is "$(sql profile "SELECT count(*) FROM site AS s
	WHERE major_faults <> (SELECT count(*) FROM fault AS f WHERE f.run_id = s.run_id AND
	f.site_id = s.site_id AND NOT is_own)")" 0
t "of the heap: as they were touched" is "$(sql profile "SELECT count(*) FROM fault AS f
	JOIN frame ON frame_id = ip_frame WHERE f.site_id IS NOT NULL AND function IN
	('touch', 'small_blocks', 'fill')")" $(($(said first) + $(said child) + $(said second) + \
	$(said third) + $(said small) + $(said grown) + $(said before) + $(said after)))
t "realloc's copying: met in the C library" is "$(sql profile "SELECT count(*) FROM fault AS f
	JOIN frame ON frame_id = ip_frame JOIN site_stack AS s ON s.run_id = f.run_id AND
	s.site_id = f.site_id AND s.level = 0 WHERE s.function = 'copied' AND
	frame.module LIKE '%/libc.so.6'")" 22
t "mappings: small blocks are in the break, large ones not" is "$(sql profile "SELECT
	group_concat(DISTINCT s.function || ' ' || mapping) FROM fault AS f JOIN site_stack AS s
	ON s.run_id = f.run_id AND s.site_id = f.site_id AND s.level = 0
	WHERE s.function IN ('small', 'first')")" "first anon,small brk"
t "each took time" is "$(sql profile "SELECT count(*) FROM fault WHERE duration_ns IS NULL OR
	duration_ns NOT BETWEEN 100 AND 5000000000")" 0
t "the sites' sum of it" is "$(sql profile "SELECT count(*) FROM site AS s WHERE major_faults > 0 AND
	fault_ns <> (SELECT sum(duration_ns) FROM fault AS f WHERE f.run_id = s.run_id AND
	f.site_id = s.site_id AND NOT is_own)")" 0
t "events.zst has them all" is "$("$ANALYZER" export ndjson --events profile |
	grep -c '"kind":"fault"')" "$(sql profile "SELECT count(*) FROM fault")"
t "none lost" is "$(figure profile lost)" 0

cap "$ANALYZER" -q -t fault -o faults "$programs/61-faults" "$work/file"
t "-t fault: the same without sites" is "$(sql faults "SELECT count(*) || ' ' || count(site_id) ||
	' ' || (SELECT count(*) FROM site) FROM fault WHERE mapping IN ('anon', 'brk')")" \
	"$(sql profile "SELECT count(*) FROM fault WHERE mapping IN ('anon', 'brk')") 0 0"
done_testing
