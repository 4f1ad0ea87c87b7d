# Where each site's memory is, on kernels that show their swap cache.
# Rings with room for every stack that is new, however slow the machine is to learn: an allocation
# without its stack is of another site.
export ANALYZER_TEST_RING_BYTES=33554432
. "$TOP/tests/live/60-residency.sh"
