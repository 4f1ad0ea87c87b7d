#include "tracer/cost.h"

#include "base/clock.h"
#include "model/site.h"
#include "tracer/elf.h"

#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <stdlib.h>

#define CALLS 31
#define ROOM ((size_t)1 << 20) /* more than the nearest caches hold */

/* Begins with a nop, which the kernel emulates, as it does most of what probes sit on. */
__attribute__((noinline, naked)) static void emulated(void)
{
	__asm__("nop\n\tret");
}

/* Begins with what it single-steps. */
__attribute__((noinline, naked)) static void stepped(void)
{
	__asm__("mov %rdi, %rax\n\tret");
}

/* Is probed at its return too. */
__attribute__((noinline, naked)) static void returning(void)
{
	__asm__("nop\n\tret");
}

static void (*const targets[])(void) = {emulated, stepped, returning};

#define TARGETS ARRAY_SIZE(targets)

static int own_bias(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1; /* the first one is the executable */
}

static int compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In a program the kernel's code and data are not in the nearest caches any more when a probe is
 * hit: something else has been there. The median, since others run meanwhile. */
static int64_t time_calls(void (*target)(void), volatile uint8_t *room)
{
	int64_t took[CALLS];

	for (int i = 0; i < CALLS; i++) {
		int64_t start;

		for (size_t at = 0; at < ROOM; at += 64)
			room[at]++;
		start = clock_mono_ns();
		target();
		took[i] = clock_mono_ns() - start;
	}
	qsort(took, CALLS, sizeof(took[0]), compare_times);
	return took[CALLS / 2];
}

/* Probes on all targets, of which only the last one's return is seen. */
static int probe_targets(struct kernel *k)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct probe probe[TARGETS];
	struct probes probes = {.p = probe, .n = TARGETS};
	struct elf_file *elf = NULL;
	uint64_t bias = 0;
	struct err err;

	if (fd < 0 || elf_file_open(&elf, fd, "analyzer", &err) < 0)
		return -1;
	(void)dl_iterate_phdr(own_bias, &bias);
	for (size_t i = 0; i < TARGETS; i++)
		probe[i] = (struct probe){
			.offset = elf_file_offset(elf, (uint64_t)(uintptr_t)targets[i] - bias),
			.cookie =
				CALL_COOKIE(CALL_COST, CALL_NO_ARG, CALL_NO_ARG, CALL_NO_ARG, 0, 0),
			.has_return = targets[i] == returning,
		};
	elf_file_close(elf);
	return kernel_attach(k, fd, &probes, &err);
}

void cost_measure(struct cost *ret, struct kernel *k)
{
	_cleanup_free_ uint8_t *room = calloc(1, ROOM);
	int64_t before[TARGETS], took[TARGETS];

	*ret = (struct cost){-1, -1, -1};
	for (size_t i = 0; room && i < TARGETS; i++)
		before[i] = time_calls(targets[i], room);
	if (!room || probe_targets(k) < 0)
		return;
	for (size_t i = 0; i < TARGETS; i++)
		took[i] = MAX(time_calls(targets[i], room) - before[i], 0);
	*ret = (struct cost){took[0], took[1], MAX(took[2] - took[0], 0)};
}

int64_t cost_so_far(const struct cost *c, struct kernel *k)
{
	int64_t sum = 0;

	if (c->emulated_ns < 0)
		return -1;
	for (int i = 0; i < kernel_cpus(k); i++) {
		const struct cpu_state *cs = kernel_cpu(k, i);
		int64_t hits = (int64_t)cs->hits, returns = (int64_t)cs->returns,
			single = (int64_t)cs->stepped;

		sum += (hits - returns - single) * c->emulated_ns + single * c->stepped_ns +
		       returns * c->return_ns + (int64_t)cs->program_ns;
	}
	return sum;
}

double cost_slowdown(int64_t cost_ns, int64_t cpu_ns)
{
	if (cost_ns < 0 || cpu_ns < 0)
		return NAN;
	if ((double)cost_ns >= TRACE_SLOWDOWN_MAX * (double)(cpu_ns - cost_ns))
		return cost_ns > 0 ? TRACE_SLOWDOWN_MAX : 0;
	return (double)cost_ns / (double)(cpu_ns - cost_ns);
}
