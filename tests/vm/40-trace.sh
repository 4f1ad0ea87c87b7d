# The tracer in both kernels' machines, one boot each: sites, whose memory is where, whose faults.
# What is longer yet is `make check-vm-long`.
. "$TOP/tests/vm/host.sh"
guest=$TOP/tests/vm/guest failed=0
"$TOP/tools/vm" --kernel 6.12 -- "$guest/run" "$guest"/[78]0-*.sh || failed=$?
"$TOP/tools/vm" --kernel 6.1 -- "$guest/run" "$guest/70-trace.sh" "$guest/80-pressure.sh" || failed=$?
exit $failed
