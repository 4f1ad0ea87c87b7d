# tools/vm itself: status, streams, signals, and what it leaves behind.
. "$(dirname "$0")/../cli/lib.sh"

vm() { cap "$TOP/tools/vm" -q "$@"; }
vm -- sh -c 'exit 7'; t "the command's status" is $status 7
vm -- sh -c 'kill -9 $$'; t "128+S" is $status 137
vm -- no-such-command; t "127" is $status 127
head -c 5000000 /dev/urandom >random
"$TOP/tools/vm" -q -- sh -c 'cat; echo problem >&2' <random >copy 2>err
t "stdin and stdout are byte-exact" cmp random copy
t "stderr is its own" has err problem
vm -- sh -c 'echo hello >made; stat -c %u made; grep -c . /sys/fs/cgroup/cgroup.controllers
	! touch /usr/made-by-guest || ls /usr/made-by-guest'
t "the current directory is the host's" is "$(cat made)" hello
t "all else is not" test ! -e /usr/made-by-guest
"$TOP/tools/vm" -q -- sh -c 'trap "echo got TERM; exit 5" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
pid=$!
await out ready
kill -TERM $pid
wait $pid
t "SIGTERM reaches the command" is $? 5
t "its output too" has out 'got TERM'
vm --kernel 5.4 -- true; t "an unknown kernel is named" has err '5.4'
t "status of a wrong command line" test $status != 0
mkdir none; for c in bash sh dirname readlink cat env; do ln -s "$(command -v $c)" none/; done
cap env PATH="$work/none" "$TOP/tools/vm" -q -- true
t "a missing qemu is one line with the remedy" has err 'qemu.*make deps'
done_testing
