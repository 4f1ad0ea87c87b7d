/*
 * The kernel side of the tracer, loaded: programs, rings, maps, probes. The only file that knows
 * libbpf, but for swapcache.c.
 *
 * Life: kernel_load → kernel_attach … (any thread) → kernel_detach → kernel_free. Nothing is
 * probed before kernel_attach; with the process all of it goes away.
 * Errors: -EPERM without rights, -ENOTSUP where the kernel cannot, each with its remedy.
 */
#pragma once

#include "base/err.h"
#include "bpf/events.h"
#include "tracer/discover.h"

struct kernel;
struct ring;

struct kernel_opts {
	uint64_t cgroup_id; /* whose processes are traced, descendants included */
	size_t ring_bytes;  /* of each CPU's ring: a power of two, of pages */
	enum trace_policy policy;
};

int kernel_load(struct kernel **ret, const struct kernel_opts *opts, struct err *err);
void kernel_free(struct kernel *k); /* NULL allowed */

/* From now on every major fault of the traced processes becomes a record, where the kernel tells
 * when a fault begins with its duration. */
int kernel_trace_faults(struct kernel *k, struct err *err);

int kernel_cpus(const struct kernel *k);
struct ring *kernel_ring(struct kernel *k, int cpu);
struct cpu_state *kernel_cpu(struct kernel *k, int cpu); /* shared with the programs */
void kernel_beat(struct kernel *k, int64_t now_ns);

/* A process's code, and how to unwind one address. Failures only cost time: 0 or negative. */
uint32_t kernel_generation(struct kernel *k, uint32_t pid);
int kernel_set_table(struct kernel *k, uint32_t pid, const struct table *table);
int kernel_teach(struct kernel *k, uint64_t key, const struct row *row);

/* Probes of one file; fd stays the caller's. */
int kernel_attach(struct kernel *k, int fd, const struct probes *probes, struct err *err);

/* Takes all probes away. The kernel waits for a grace period per link, 20 ms with one link for a
 * file's probes, 100 ms for each probe without: a process of its own is left to close them. */
void kernel_detach(struct kernel *k);

/* Processes that the programs have stopped. What they were stopped for is in the rings by then. */
struct stopped_process {
	uint32_t pid;
	uint64_t since_ns;
};
size_t kernel_stopped(struct kernel *k, struct stopped_process *ret, size_t max);

/* Lets them go on, unless somebody else has stopped them too, or they were stopped again since.
 * Returns how many. */
int kernel_continue(struct kernel *k, const struct stopped_process *list, size_t n);
