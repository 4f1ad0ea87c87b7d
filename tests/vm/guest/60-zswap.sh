# `zswap` and `check` on a kernel that has it all.
. "$(dirname "$0")/../../cli/lib.sh"

param=/sys/module/zswap/parameters/compressor
before=$(cat $param)
cap "$ANALYZER" zswap set lzo
t "set" is $status 0
t "set is read back" is "$(cat $param)" lzo
cap "$ANALYZER" zswap set lzo-rle
cap "$ANALYZER" zswap set no-such-thing
t "a compressor that does not take is an error" is $status 1
t "it names what there is" has err zstd
t "the old one stays" is "$(cat $param)" lzo-rle
cap "$ANALYZER" zswap status
t "status" has out 'lzo-rle'
cap "$ANALYZER" zswap list
t "list" has out zstd
cap "$ANALYZER" zswap restore
t "restore" is "$(cat $param)" "$before"
# The memory files can only be looked at in a group that has the controller.
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/test-look
cap "$ANALYZER" check
t "check: nothing needed is missing" is $status 0
t "check: memory.reclaim is there" has out 'ok.*memory.reclaim'
cap "$ANALYZER" check --json
t "check --json is JSON" python3 -c 'import json; json.load(open("out"))'
for f in memory memory.reclaim swap zswap psi; do
	cap "$ANALYZER" check --feature $f
	t "check --feature $f" is $status 0
done
rmdir /sys/fs/cgroup/test-look
echo -memory >/sys/fs/cgroup/cgroup.subtree_control
done_testing
