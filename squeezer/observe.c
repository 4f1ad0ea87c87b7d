#include "squeezer/observe.h"

#include "base/clock.h"
#include "base/num.h"

#include <math.h>

int64_t observe_swap_free(const struct sample *now)
{
	int64_t host = sample_get(now, M_host_meminfo_swapfree, -1);
	int64_t max = sample_get(now, M_memory_swap_max, NUM_MAX);

	if (host < 0 || max == NUM_MAX)
		return host;
	return MIN(host, MAX(max - sample_get(now, M_memory_swap_current, 0), 0));
}

int64_t observe_floor(const struct sample *now)
{
	int64_t swappable =
		sample_get(now, M_memory_stat_anon, 0) + sample_get(now, M_memory_stat_shmem, 0);
	int64_t kernel_own =
		sample_get(now, M_memory_stat_kernel, 0) - sample_get(now, M_memory_stat_zswap, 0);
	int64_t swap_free = observe_swap_free(now);

	return sample_get(now, M_memory_stat_unevictable, 0) + MAX(kernel_own, 0) +
	       MAX(swappable - MAX(swap_free, 0), 0) + sample_get(now, M_memory_min, 0);
}

/* Growth of a counter, NAN where it is not known. */
static double delta(const struct sample *prev, const struct sample *now, enum metric_id id)
{
	int64_t d;

	return sample_delta(prev, now, id, &d) ? (double)d : NAN;
}

void observe(struct observation *ret, const struct sample *prev, const struct sample *now)
{
	double dt_s = (double)(now->t_ns - prev->t_ns) / NS_PER_S;
	double refaults = delta(prev, now, M_memory_stat_workingset_refault_anon) +
			  delta(prev, now, M_memory_stat_workingset_refault_file);
	double stolen = delta(prev, now, M_memory_stat_pgsteal);

	*ret = (struct observation){
		.t_ns = now->t_ns,
		.dt_s = dt_s,
		.usage_bytes = sample_get(now, M_memory_current, -1),
		.limit_bytes = NUM_MAX,
		.floor_bytes = observe_floor(now),
		.fault_rate = delta(prev, now, M_memory_stat_pgmajfault) / dt_s,
		.stall_some = delta(prev, now, M_memory_pressure_some_total) / 1e6 / dt_s,
		.stall_full = delta(prev, now, M_memory_pressure_full_total) / 1e6 / dt_s,
		.refault_ratio = stolen > 0 ? refaults / stolen : NAN,
	};
	if (ret->usage_bytes >= 0 && prev->has[M_memory_current])
		ret->growth_bytes = ret->usage_bytes - prev->v[M_memory_current];
}
