#!/bin/bash
# report --site: which site of which run, and what is said of one that is not there. The results are
# made here: an empty recording's tables, filled by sqlite3. What is in a report of a site is for the
# unit tests.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

report() { cap "$ANALYZER" report "$@" </dev/null; }
key() { /usr/bin/python3 -c "import json; d = json.load(open('out')); print(d$1)"; }

"$ANALYZER" -q -t none -o res true </dev/null
sqlite3 res/profile.db "
	INSERT INTO run (run_id, name, kind, end_reason, trace) VALUES
		(2, 'limit 80 %', 'static', 'exited', '{\"events\":5}'),
		(3, 'limit 60 %', 'static', 'exited', '{\"events\":5}');
	INSERT INTO frame VALUES (1, '/bin/w', NULL, 16, 'grow', 'src/table.c', 12, 0);
	INSERT INTO stack VALUES (1, 1, 'full');
	INSERT INTO stack_frame VALUES (1, 0, 1);
	INSERT INTO site (run_id, site_id, stack_id, kind, alloc_count, major_faults) VALUES
		(2, 4, 1, 'malloc', 70, 2), (2, 6, NULL, 'other', 0, 0), (3, 5, 1, 'mmap', 1, NULL);
	INSERT INTO scan VALUES (2, 1000000000, 1000000000, 1000, 1, 1, 8192, 4096, NULL);
	INSERT INTO site_sample VALUES (2, 4, 1000000000, 9000, 8192, 4096, NULL, 4096, 0, 0, 2, 1000);
	INSERT INTO fault VALUES (2, 1500000000, 7, 7, 4096, 4, 'anon', NULL, NULL, 1, 1000, 0),
		(2, 1600000000, 7, 7, 4096, 4, 'anon', NULL, NULL, 1, 1000, 0);"

report --site 4 res
t "status" is $status 0
t "the first run that has sites" has out '^site 4, run 2 (limit 80 %): grow (table.c:12)$'
t "its stack" has out '^    grow  src/table.c:12$'
t "its pages" has out '^ *1.0 s .* 8.0 KiB  *4.0 KiB  *4.0 KiB  *0 B  *2$'
t "its faults" has out '^  1.0 s  *2  ####'
t "the code that faulted" has out '^  2 (100.0 %) in grow (table.c:12)$'
t "nothing on stderr" test ! -s err
cap "$ANALYZER" report res --site=4 </dev/null
t "after DIR too" is $status 0
report --site 6 res
t "the allocator's" has out '^allocator (free or internal), run 2'
report --site 5 --run 3 res
t "--run: status" is $status 0
t "--run: that run" has out '^site 5 (mmap), run 3 (limit 60 %): grow'
t "--run: no pages" has out 'n/a (the pages of sites were not scanned)'
t "--run: no faults" has out 'n/a (faults of sites were not recorded)'

report --site 4 --format json res
t "json: status" is $status 0
t "json: schema" is "$(key "['schema']")" analyzer-site/1
t "json: the site" is "$(key "['site']['alloc_count']")" 70
t "json: its pages" is "$(key "['samples'][0]['cold_bytes']")" 4096
t "json: its faults" is "$(key "['faults_by_second']")" "[{'second': 1, 'faults': 2}]"
report --site 5 --run 3 --format json res
t "json: what is missing" is "$(key "['samples']")" None
t "json: and why" is "$(key "['samples_missing']")" "the pages of sites were not scanned"

# -- errors
fails() { # NAME STATUS PATTERN OPTIONS...
	local name=$1 want=$2 pattern=$3
	shift 3
	report "$@"
	t "$name: status" is $status "$want"
	t "$name: said" has err "$pattern"
	t "$name: nothing on stdout" test ! -s out
}
fails "no such site" 2 '^analyzer: run 2 has no site 5: its sites are 4 to 6$' --site 5 res
t "no such site: how to find them" has err 'SELECT \* FROM site_pressure'
t "no such site: one error" is "$(grep -c '^analyzer' err)" 1
t "what it says to run works" is "$(sql res 'SELECT site_id FROM site_pressure WHERE run_id = 2
	ORDER BY rank LIMIT 1')" 4
fails "a run without sites" 2 "^analyzer: run 1 of 'res' has no sites" --site 1 --run 1 res
fails "no such run" 2 "^analyzer: 'res' has no run 7: its runs are 1 to 3$" --site 1 --run 7 res
fails "no number" 2 '^analyzer: --site 4x: takes a number$' --site 4x res
fails "no number of a run" 2 '^analyzer: --run -1: takes a number$' --site 4 --run -1 res
fails "--run alone" 2 '^analyzer: --run goes with --site$' --run 2 res
fails "no value" 2 'needs a value' res --site
fails "no results" 2 '^analyzer: ' --site 4 nowhere
cap "$ANALYZER" report --help </dev/null
t "help has it" has out '--site ID'

done_testing
