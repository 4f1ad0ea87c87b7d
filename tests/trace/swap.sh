# Swap for a test on this machine, and everything as it was afterwards, however the test ends.
zswap=/sys/module/zswap/parameters/enabled cluster=/proc/sys/vm/page-cluster

swap_off() {
	[ -z "${was_zswap:-}" ] || echo "$was_zswap" >$zswap
	[ -z "${was_cluster:-}" ] || echo "$was_cluster" >$cluster
	[ ! -e "$work/swap" ] || swapoff "$work/swap" 2>/dev/null
	rm -f "$work/swap"
}

# swap_on Y|N: with zswap or without; nothing is read ahead.
swap_on() {
	was_zswap=$(cat $zswap) was_cluster=$(cat $cluster)
	trap 'swap_off; cd /; rm -rf "$work"' EXIT
	dd if=/dev/zero of="$work/swap" bs=1M count=256 status=none && chmod 600 "$work/swap" &&
		mkswap -q "$work/swap" && swapon "$work/swap" && echo "$1" >$zswap && echo 0 >$cluster
}
