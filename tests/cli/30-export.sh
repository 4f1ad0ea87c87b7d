#!/bin/bash
# export ndjson --events: every key of every line, and what is said where there is nothing.
top=$PWD
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

run() { cap "$ANALYZER" "$@" </dev/null; }
silent() { [ ! -s "$1" ]; }

# The file that docs/formats.md describes, in a results directory.
sed -n '/^```hexdump$/,/^```$/{/^```/!p}' "$top/docs/formats.md" | cut -c 7- | tr -d ' \n' >hex
mkdir res
python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(open("hex").read()))' >res/events.zst

cat >expected <<'EOF'
{"type":"run","run_id":1,"started_mono_ns":5000000000}
{"type":"function","id":1,"name":"malloc"}
{"type":"function","id":2,"name":"free"}
{"type":"module","id":1,"path":"/bin/x","build_id":"abcd"}
{"type":"stack","id":1,"quality":"full","frames":[[1,4425],[1,4608]]}
{"type":"loss","ring":0,"from_ns":5000000000,"to_ns":5000000100,"count":3}
{"type":"event","t_ns":5000001000,"kind":"alloc","pid":77,"tid":77,"address":"0x1000","size":24,"stack":1,"function":"malloc"}
{"type":"event","t_ns":5000001300,"kind":"free","pid":77,"tid":78,"address":"0x1000","function":"free"}
{"type":"event","t_ns":5000001290,"kind":"free","pid":77,"tid":77,"address":"0x2000","function":"free"}
EOF
run export ndjson --events res
t "status" is "$status" 0
t "the document's file, line by line" diff expected out
t "silent on stderr" silent err
run export -o file ndjson res --events
t "-o: status" is "$status" 0
t "-o: the same" cmp expected file
t "-o: nothing on stdout" silent out

# made NAME CODE: events.zst of a zstd frame that python's CODE puts into `c`, in the directory NAME.
# The frame is not compressed and has no checksum, which a reader takes too.
made() {
	mkdir -p "$1"
	python3 - "$1/events.zst" "$2" <<-'EOF'
		import sys
		def rec(kind, *content):
		    content = bytes(content)
		    return bytes([kind]) + len(content).to_bytes(4, "little") + content
		scope = {"rec": rec}
		exec(sys.argv[2], scope)
		c = scope["c"]
		header = bytes.fromhex(open("hex").read())[:48]
		frame = bytes([0x28, 0xb5, 0x2f, 0xfd, 0x20, len(c)]) + (len(c) << 3 | 1).to_bytes(3, "little") + c
		open(sys.argv[1], "wb").write(header + frame)
	EOF
}

# An event of each kind, ns 0 to 9, by pid 5 and tid 6: address 16, size 1, stack 3, flags 3;
# brk shrinks by 1, and failed has no stack.
made kinds '
kinds = range(10)
shapes = b"".join(bytes([k, 3, 5 if k == 3 else 13, 0]) for k in kinds)
cols = [bytes([2 * (k > 0) for k in kinds]), bytes(10), bytes(10), bytes(kinds), bytes(10),
        bytes([32] * 10), b"", b"\x01" * 6 + b"\xff" * 9 + b"\x01" + b"\x01" * 3, b"\x03" * 9]
c = rec(5, *bytes([10, 0, 10]), *shapes, 1, 5, 6, *[len(x) for x in cols], *b"".join(cols))'
run export ndjson --events kinds
cat >expected <<'EOF'
{"type":"event","t_ns":0,"kind":"alloc","pid":5,"tid":6,"address":"0x10","size":1,"stack":3,"realloc":true}
{"type":"event","t_ns":1,"kind":"free","pid":5,"tid":6,"address":"0x10","realloc":true}
{"type":"event","t_ns":2,"kind":"restore","pid":5,"tid":6,"realloc":true}
{"type":"event","t_ns":3,"kind":"failed","pid":5,"tid":6,"size":1,"stack":null,"realloc":true}
{"type":"event","t_ns":4,"kind":"mmap","pid":5,"tid":6,"address":"0x10","size":1,"stack":3,"realloc":true}
{"type":"event","t_ns":5,"kind":"munmap","pid":5,"tid":6,"address":"0x10","size":1,"realloc":true}
{"type":"event","t_ns":6,"kind":"brk","pid":5,"tid":6,"address":"0x10","size":-1,"stack":3,"realloc":true}
{"type":"event","t_ns":7,"kind":"fork","pid":5,"tid":6,"child":16,"shared_mm":true,"realloc":true}
{"type":"event","t_ns":8,"kind":"exec","pid":5,"tid":6,"realloc":true}
{"type":"event","t_ns":9,"kind":"exit","pid":5,"tid":6,"status":1,"realloc":true}
EOF
t "every kind: status" is "$status" 0
t "every kind" diff expected out

made names 'c = rec(3, 1, 0, 9, *b"/a\"\\\n\xff\xc3\xa9\x7f") + rec(2, 0, 0)'
run export ndjson --events names
t "names of any bytes" is "$(cat out)" '{"type":"module","id":1,"path":"/a\"\\\u000a�é'$'\x7f''","build_id":null}
{"type":"function","id":0,"name":""}'
t "names of any bytes are JSON" python3 -c 'import json
for line in open("out", encoding="utf-8"): json.loads(line)'

# -- torn and damaged
mkdir torn bad newer
head -c 190 res/events.zst >torn/events.zst
run export ndjson --events torn
t "torn: status" is "$status" 0
t "torn: nothing of the last frame" silent out
t "torn: a warning" has err 'warning: events.zst ends within a frame'
{ cat kinds/events.zst; echo nonsense; } >bad/events.zst
run export ndjson --events bad
t "damaged: status" is "$status" 125
t "damaged: what comes before" diff expected out
t "damaged: says where" has err "bad/events.zst cannot be read beyond byte $(stat -c %s kinds/events.zst)"
{ head -c 16 res/events.zst; printf '\2'; tail -c +18 res/events.zst; } >newer/events.zst
run export ndjson --events newer
t "newer: status" is "$status" 125
t "newer: message" has err 'newer/events.zst has format version 2; this analyzer reads up to version 1'

# -- nothing there
run -q -t none -o plain true
run export ndjson --events plain
t "no events: status" is "$status" 125
t "no events: message" has err '^analyzer: plain has no events.zst'
t "no events: one line" lines err 1
mkdir empty
run export ndjson --events empty
t "not a results directory: status" is "$status" 2
t "not a results directory: message" has err "'empty' is not a results directory"
run export ndjson --events none
t "no such directory: status" is "$status" 2
run export ndjson --events res -o no/such/file
t "-o of an impossible file: status" is "$status" 125
t "-o of an impossible file: message" has err 'cannot create no/such/file: No such file'

# -- without DIR
run export ndjson --events
t "no DIR: profile.latest" has err 'exporting profile.latest -> plain'
cp res/events.zst plain/
run export ndjson --events
t "no DIR: its events" is "$(wc -l <out)" 9
cd empty || exit 1
cap "$ANALYZER" export ndjson --events
t "no DIR, none here: status" is "$status" 2
t "no DIR, none here: message" has "$last_err" 'no results here'
cd .. || exit 1

# -- output that fails
if [ -w /dev/full ]; then
	"$ANALYZER" export ndjson --events res >/dev/full 2>err
	t "full disk: status" is $? 125
	t "full disk: message" has err 'cannot write the output: No space left'
	run export ndjson --events res -o /dev/full
	t "full disk behind -o: status" is "$status" 125
fi
python3 -c 'import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.run(sys.argv[1:], stdout=w, restore_signals=False).returncode)' \
	"$ANALYZER" export ndjson --events res 2>err
t "closed pipe: status" is $? 125
t "closed pipe: message" has err 'cannot write the output: Broken pipe'

# -- the command line
run export --help
t "help: status" is "$status" 0
t "help" has out '^usage: analyzer export ndjson --events'
bad() { # NAME PATTERN ARGS...
	local name=$1 pattern=$2
	shift 2
	run export "$@"
	t "$name: status" is "$status" 2
	t "$name: message" has err "$pattern"
	t "$name: nothing on stdout" silent out
}
bad "no format" 'the format is missing; there is: ndjson --events'
bad "other format" '"csv" is not a format of this version; there is: ndjson --events' csv res
bad "without --events" 'there is: ndjson --events' ndjson res
bad "two directories" 'one DIR, not also "b"' ndjson --events a b
bad "unknown option" 'unknown option --all' ndjson --all
bad "-o without a value" '-o needs a value' ndjson --events -o

done_testing
