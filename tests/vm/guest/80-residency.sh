# Where each site's memory is, on kernels that show their swap cache.
. "$TOP/tests/live/60-residency.sh"
