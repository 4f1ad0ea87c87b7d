# Kernels without PSI, without swap, without zswap: NULL columns, a reason, and a run that goes on.
. "$(dirname "$0")/../cli/lib.sh"

guest() { cap "$TOP/tools/vm" -q "$@"; }
config=$TOP/configs/squeezerdynamicconfig.json
w="$WORKLOAD 48M 5 0 --seconds 12"

guest --append psi=0 --no-zswap -- sh -c "'$ANALYZER' -t none -s 0.5 -o psi -r '$config' $w;
	'$ANALYZER' check --feature psi; echo \"psi \$?\"; '$ANALYZER' check"
t "no PSI: the run ends well" has out '^passes '
t "no PSI: NULL, not 0" is "$(sql psi 'SELECT count(memory_pressure_some_total) FROM sample')" 0
t "no PSI: stall shares are NULL" is "$(sql psi 'SELECT count(stall_some) FROM decision')" 0
t "no PSI: squeezed by the fault rate" is "$(sql psi "SELECT count(*) > 0 FROM decision WHERE
	action = 'tighten'")" 1
t "no PSI: the report says so" has psi/report.txt 'n/a.*PSI\|PSI.*n/a\|not available.*psi'
t "no PSI: check fails on it" has out '^psi 1'
t "no PSI: check has the fix" has out 'psi=1'
t "no zswap: NULL compressor" is "$(sql psi 'SELECT compressor IS NULL FROM run')" 1
t "no zswap: swapped all the same" is "$(sql psi 'SELECT max(memory_swap_current) > 0 FROM sample')" 1
t "no zswap: nothing in it" is "$(sql psi 'SELECT coalesce(max(memory_stat_zswapped), 0) FROM sample')" 0

guest --swap 0 -- sh -c "'$ANALYZER' -t none -s 0.5 -o noswap -r '$config' $w; '$ANALYZER' check"
t "no swap: the run ends well" has out '^passes '
t "no swap: nothing was killed" is "$(sql noswap 'SELECT max(memory_events_oom_kill) FROM sample')" 0
t "no swap: no memory.max is held" is "$(sql noswap 'SELECT min(memory_max) FROM sample')" \
	9223372036854775807
t "no swap: check has the fix" has out 'swapon'
done_testing
