# A traced server, and the workload with malloc, in both kernels' machines: `make check-vm-long`.
guest=$TOP/tests/vm/guest failed=0
for kernel in 6.12 6.1; do
	"$TOP/tools/vm" --kernel $kernel -- "$guest/run" "$guest"/8[1-9]-*.sh || failed=$?
done
exit $failed
