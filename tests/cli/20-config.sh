#!/bin/bash
# config check|show|explain and list metrics|laws, as a user meets them.
top=$PWD
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

run() { cap "$ANALYZER" "$@" </dev/null; }
silent() { [ ! -s "$1" ]; }

# bad NAME TEXT MESSAGE [HINT]: the text is refused with the message, on stderr only.
bad() {
	printf '%b' "$2" >c.json
	run config check c.json
	t "$1: status" is "$status" 1
	t "$1: message" grep -qF -- "analyzer: c.json:$3" err
	t "$1: nothing on stdout" silent out
	[ $# -lt 4 ] || t "$1: hint" grep -qF -- "$4" err
}

dynamic=$top/configs/squeezerdynamicconfig.json
static=$top/configs/squeezerstaticconfig.json

run config check "$dynamic"
t "check of the dynamic file" is "$status" 0
t "check says what it is" is "$(cat out)" "$dynamic: ok, mode dynamic, law step"
t "check of a good file is silent on stderr" silent err
run config check "$static"
t "check of the static file" is "$(cat out)" "$static: ok, mode staticsweep, 4 limits"
run config check <(cat "$dynamic")
t "check of a pipe" is "$status" 0

bad "out of range" '{"mode": "dynamic",\n "squeeze_max": 400}' \
	'2:17: key "squeeze_max": 400 is out of range; 0 … 50 (percent)'
bad "misspelt key" '{"mode": "dynamic", "squeze_max": 4}' \
	'1:21: key "squeze_max" is not known' 'did you mean "squeeze_max"?'
bad "law that is not built" '{"mode": "dynamic", "law": "adaptive"}' \
	'1:28: key "law": "adaptive" is not a law of this version; use "step"'
bad "1e999" '{"mode": "dynamic", "delay": 1e999}' '1:30: key "delay": 1e999 is too large a number'
bad "comment" '{"mode": "dynamic" // x\n}' '1:20: JSON has no comments'
bad "empty file" '' ' the file is empty'
bad "trailing comma" '{"mode": "dynamic",}' '1:19: a comma before the closing }'
bad "UTF-16" '{\0"\0' '1:2: a NUL byte' 'UTF-16'
head -c 100000 /dev/zero | tr '\0' '[' >c.json
run config check c.json
t "nesting: status" is "$status" 1
t "nesting: message" grep -qF "c.json:1:17: nested more than 16 levels deep" err
head -c 10000000 /dev/zero | tr '\0' '[' >c.json
run config check c.json
t "10 MB: status" is "$status" 1
t "10 MB: message" grep -qF "c.json: larger than 1 MiB" err

run config check .
t "a directory: status" is "$status" 1
t "a directory: message" grep -qF "cannot read .: Is a directory" err
run config check none
t "no such file" grep -qF "cannot open none: No such file or directory" err
for verb in show explain; do
	run config $verb none
	t "$verb of no file: status" is "$status" 2
	t "$verb of no file: nothing on stdout" silent out
done

run config show "$dynamic"
t "show: status" is "$status" 0
t "show: a default is filled in" grep -qx '  "tick_ms": 100,' out
t "show: 2^50 is no limit" grep -qx '  "max_limit": "max",' out
cp out shown.json
run config show shown.json
t "show of what show printed is the same" cmp -s out shown.json

run config explain
t "explain: status" is "$status" 0
# shellcheck disable=SC2016 # the backticks are Markdown's
sed -n '/^```text$/,/^```$/{/^```/!p}' "$top/configs/README.md" >readme
t "configs/README.md is what explain prints" cmp -s out readme
run config explain "$dynamic"
t "explain FILE names its values" grep -qx 'pf_rate_watermark = 10000' out

run config
t "config without a word" is "$status" 2
run config chekc "$dynamic"
t "config with an unknown word" is "$status" 2
run config check
t "config check without a file" is "$status" 2
run config check "$dynamic" "$static"
t "config check of two files" is "$status" 2

run list metrics
t "list metrics: status" is "$status" 0
t "list metrics: a row" grep -Eq '^memory_current +gauge +bytes +group +[a-z]' out
def=$(grep -c '^METRIC(' "$top/model/metrics.def")
t "list metrics: every row of the table" [ "$(tail -n +2 out | wc -l)" -eq "$def" ]
run list laws
t "list laws" grep -Eq '^step +[a-z]' out
run list nonsense
t "list of what there is not" is "$status" 2

done_testing
