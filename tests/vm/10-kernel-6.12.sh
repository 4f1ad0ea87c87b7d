# Everything but the longest, on the kernel of bookworm-backports; one boot.
. "$TOP/tests/vm/host.sh"
exec "$TOP/tools/vm" --kernel 6.12 -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[1-8]0-*.sh
