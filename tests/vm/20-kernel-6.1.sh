# What may differ on bookworm's own kernel (classic LRU, no peak reset): one boot.
exec "$TOP/tools/vm" --kernel 6.1 -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[1256]*.sh
