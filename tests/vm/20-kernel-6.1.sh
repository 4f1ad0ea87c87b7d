# What may differ on bookworm's own kernel (classic LRU, no peak reset, a link for every probe): one
# boot.
. "$TOP/tests/vm/host.sh"
exec "$TOP/tools/vm" --kernel 6.1 -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[12567]*.sh
