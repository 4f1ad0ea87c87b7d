/*
 * Reads all counters of one workload at one instant.
 *
 * Life: sampler_new (opens every file once, learns which keys this kernel has) → sampler_take per
 * tick (pread at 0 of the open files; no fork, no allocation; no open except of zswap's counters:
 * debugfs lets them be read once per descriptor only) → sampler_free. Used from one thread. A file
 * or key that the kernel does not have leaves `has` false, never 0. Borrows root and the group's
 * directory, which must outlive it. Files, devices and zswap counters that appear later are not
 * seen; new keys of a file are.
 */
#pragma once

#include "base/root.h"
#include "model/sample.h"

struct sampler;

/* group_dirfd: the cgroup's directory, or -1 for host-wide figures only. */
int sampler_new(struct sampler **ret, const struct root *root, int group_dirfd, struct err *err);
void sampler_free(struct sampler *s);

/* Fills *ret except seq and t_ns, which are the caller's. One unreadable file loses its values
 * only. -ENODEV: the group is gone (its files answer ENODEV); what was read before is kept. */
int sampler_take(struct sampler *s, struct sample *ret, struct err *err);

/* The number of files that one sample reads. */
size_t sampler_file_count(const struct sampler *s);

/* Keys unknown to metrics.def that found no room among a sample's extras: a loss to report.
 * At least that many: what cannot be remembered counts once for its file. */
size_t sampler_lost_keys(const struct sampler *s);
