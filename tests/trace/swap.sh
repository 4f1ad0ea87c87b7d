# Swap for a test on this machine, and everything as it was afterwards, however the test ends.
zswap=/sys/module/zswap/parameters/enabled cluster=/proc/sys/vm/page-cluster
was_zswap=$(cat $zswap 2>"$work/.null") was_cluster=$(cat $cluster)

swap_off() {
	swap_with "$was_zswap" "$was_cluster"
	swapoff "$work/swap" 2>"$work/.null"
	cd / && rm -rf "$work"
}

# swap_with Y|N N: through zswap or not; 2^N pages are read at once.
swap_with() {
	[ -z "$was_zswap" ] || echo "$1" >$zswap
	echo "$2" >$cluster
}

# A file of so many MiB, used before other swap. Where none can be made, what there is will do; the
# script ends with one skipped test where there is none at all.
need_swap() { # MIB NAME
	trap swap_off EXIT
	dd if=/dev/zero of="$work/swap" bs=1M count="$1" status=none && chmod 600 "$work/swap" &&
		mkswap -q "$work/swap" && swapon -p 32767 "$work/swap" 2>"$work/.null" && return
	grep -qs '[0-9]$' <(tail -n +2 /proc/swaps) && return
	skip "$2" "no swap can be had here"
	done_testing
	exit
}
