# A server of which a tenth is read: the report names the stack of its values as cold, and what it
# says is swapped is what the kernel says.
. "$TOP/tests/trace/lib.sh"

cat >limit.json <<-'EOF'
	{"mode": "static", "init_limit": "70M", "delay": 0}
EOF
redis-server --version >out # its files are read from the host now
"$ANALYZER" -q -r limit.json -s 0.5 -t alloc,fault -o redis "$programs/majflt" "$work/majflt" \
	redis-server --port 7391 --save '' >redis.out 2>err &
pid=$!
await redis.out 'Ready to accept connections'
keys() { # N FORMAT
	awk -v n="$1" -v format="$2" 'BEGIN { v = sprintf("%01016d", 7)
		for (i = 0; i < n; i++) printf format, i, i, v }'
}
keys 100000 '*3\r\n$3\r\nSET\r\n$8\r\nk%07d\r\n$1024\r\n%08d%s\r\n' |
	redis-cli -p 7391 --pipe >pipe.out 2>&1
t "all keys arrived" is "$(redis-cli -p 7391 DBSIZE)" 100000
held() { sql redis "SELECT count(*) FROM decision WHERE limit_after = 73400320"; }
for i in $(seq 60); do [ "$(held)" = 0 ] || break; sleep 1; done
for i in 1 2 3; do keys 10000 'GET k%07d\r\n' | redis-cli -p 7391 >get.out 2>&1; done

# The kernel's word, at a scan: nobody touches anything any more.
scans() { sql redis 'SELECT count(*) FROM scan'; }
sleep 2
before=$(scans)
for i in $(seq 240); do [ "$(scans)" -gt $((before + 1)) ] && break; sleep 0.5; done
server=$(pgrep -x redis-server)
awk '/^[0-9a-f]+-[0-9a-f]+ / { file = $6 } /^Swap:/ && (file == "" || file == "[heap]") { n += $2 }
	END { print n * 1024 }' "/proc/$server/smaps" >smaps
said=$(sql redis 'SELECT swapped_bytes FROM scan ORDER BY t_ns DESC LIMIT 1')
kill -INT $pid
wait $pid
t "redis-server ends well" is $? 0

near() { # A B: within 10 %
	[ $(($1 * 10)) -ge $(($2 * 9)) ] && [ $(($1 * 10)) -le $(($2 * 11)) ] ||
		{ echo "$1 and $2"; return 1; }
}
t "something was swapped" test "$(cat smaps)" -gt 20000000
t "the sites' swapped bytes are those of smaps" near "$said" "$(cat smaps)"
value="SELECT site_id FROM site_stack WHERE function = 'createStringObject' AND site_id IN
	(SELECT site_id FROM site WHERE alloc_count >= 100000)"
last="SELECT max(t_ns) FROM scan WHERE swapped_bytes > 0"
state() { # COLUMN: of the values' site at the last scan
	sql redis "SELECT sum($1) FROM site_sample AS a WHERE site_id IN ($value) AND t_ns =
		(SELECT max(t_ns) FROM site_sample AS b WHERE b.site_id = a.site_id AND t_ns <= ($last))"
}
t "the values are what is swapped" test $(($(state swapped_bytes) * 10)) -ge $((said * 7))
t "and cold" test $(($(state cold_bytes) * 10)) -ge $(($(state swapped_bytes) * 8))
cap "$ANALYZER" report redis
sed -n '/Which stacks are cold/,/all sites/p' out >cold
t "the report names them first" is "$(awk '/^  site / { n++ } n == 1 && /createStringObject/ { print "yes" }' cold)" yes

t "every fault of the kernel's is a row" is "$(sql redis 'SELECT count(*) FROM fault')" \
	"$(sed -n 's/^major faults //p' majflt)"
# Files: a page that somebody else is reading already counts for who waits, not for the group. The
# kernel's own look at a page that is out counts for the group alone.
t "as many as the group's, or files' more" is "$(sql redis "SELECT
	sum(mapping <> 'file') <= p + 1 AND count(*) >= p - 1 - p / 1000 FROM fault,
	(SELECT max(memory_stat_pgmajfault) AS p FROM sample)")" 1
t "nothing lost" is "$(figure redis lost) $(sql redis 'SELECT count(*) FROM loss')" "0 0"
t "stacks are whole" test "$(figure redis stacks_full)" -ge $(($(figure redis allocs) - 10))
sql redis "SELECT 'faults', count(*), 'of files', sum(mapping = 'file'), 'own', sum(is_own), 'pgmajfault',
	(SELECT max(memory_stat_pgmajfault) FROM sample) FROM fault" | sed 's/^/# /'
sql redis "SELECT 'scan period s', max(period_ns) / 1e9, 'CPU s', max(scan_ns) / 1e9 FROM scan" |
	sed 's/^/# /'
done_testing
