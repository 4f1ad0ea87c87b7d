# Where each site's memory is, on kernels that show their swap cache. Scans take longer here.
STANDSTILL_S=6
. "$TOP/tests/live/60-residency.sh"
