# The tracer in both kernels' machines: `make check-vm-trace`, apart from `make check` for its length.
export TOP=${TOP:-$PWD}
. "$TOP/tests/vm/host.sh"
for kernel in 6.12 6.1; do
	"$TOP/tools/vm" --kernel $kernel -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[78]*.sh ||
		exit
done
