# Everything, on the kernel of bookworm-backports; one boot.
. "$TOP/tests/vm/host.sh"
exec "$TOP/tools/vm" --kernel 6.12 -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[0-9]*.sh
