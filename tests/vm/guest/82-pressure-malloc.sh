# As 80-pressure.sh, with the workload's memory from malloc.
USE=malloc
. "$TOP/tests/vm/guest/80-pressure.sh"
