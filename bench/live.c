/*
 * What the live table costs: pairs of one ALLOC and one FREE per second, and memory per block.
 *
 *     live [BLOCKS]      BLOCKS: live while it is measured; default: three sizes
 *
 * Each pair allocates a new block and frees one: `last` that block, as most programs do; `oldest`
 * the one that is live longest; `random` any, the worst case for a cache. Memory is the most per
 * live block at any time of the growth to BLOCKS but for the moments when the table moves.
 */
#include "base/clock.h"
#include "base/num.h"
#include "tracer/live.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>

#define PAIRS 4000000
#define STACKS 1000

struct load {
	struct live *live;
	uint64_t *address; /* of the live blocks */
	size_t n;
	uint64_t random, next;
	int64_t t_ns;
};

static uint64_t next_random(struct load *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

static void one_event(struct load *d, enum event_kind kind, uint64_t address, uint64_t r)
{
	struct event ev = {.t_ns = ++d->t_ns,
			   .pid = 10,
			   .tid = 10,
			   .kind = (uint8_t)kind,
			   .address = address,
			   .size = r % 200,
			   .stack = (uint32_t)(r >> 32) % STACKS + 1};

	(void)live_event(d->live, &ev);
}

static size_t memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Addresses ascend in small steps, as those of a heap that grows. */
static uint64_t new_address(struct load *d, uint64_t r)
{
	d->next += 16 + r % 13 * 16;
	return d->next;
}

/* Returns the bytes per block, the most seen. Sites are made first: they do not count. */
static double fill(struct load *d)
{
	double most = 0;
	size_t before;

	for (uint64_t i = 0; i < STACKS; i++)
		one_event(d, EVENT_FAILED, 0, i << 32);
	before = memory();
	for (size_t i = 0; i < d->n; i++) {
		uint64_t r = next_random(d);

		d->address[i] = new_address(d, r);
		one_event(d, EVENT_ALLOC, d->address[i], r);
		if (i % 1000 == 999)
			most = MAX(most, (double)(memory() - before) / (double)(i + 1));
	}
	return most;
}

static double random_pairs(struct load *d)
{
	int64_t cpu = clock_process_cpu_ns();

	for (int i = 0; i < PAIRS; i++) {
		uint64_t r = next_random(d);
		uint64_t *at = &d->address[r % d->n];

		one_event(d, EVENT_FREE, *at, r);
		*at = new_address(d, r);
		one_event(d, EVENT_ALLOC, *at, r);
	}
	return PAIRS * 1e3 / (double)(clock_process_cpu_ns() - cpu);
}

static double oldest_pairs(struct load *d)
{
	int64_t cpu = clock_process_cpu_ns();

	for (size_t i = 0; i < PAIRS; i++) {
		uint64_t r = next_random(d);
		uint64_t *at = &d->address[i % d->n];

		one_event(d, EVENT_FREE, *at, r);
		*at = new_address(d, r);
		one_event(d, EVENT_ALLOC, *at, r);
	}
	return PAIRS * 1e3 / (double)(clock_process_cpu_ns() - cpu);
}

static double last_pairs(struct load *d)
{
	int64_t cpu = clock_process_cpu_ns();

	for (int i = 0; i < PAIRS; i++) {
		uint64_t r = next_random(d), address = d->next + 16 + r % 64 * 16;

		one_event(d, EVENT_ALLOC, address, r);
		one_event(d, EVENT_FREE, address, r);
	}
	return PAIRS * 1e3 / (double)(clock_process_cpu_ns() - cpu);
}

static int measure(size_t n)
{
	struct load d = {.n = n, .random = 88172645463325252, .next = UINT64_C(0x555555560000)};
	_cleanup_free_ uint64_t *address = calloc(n, sizeof(*address));
	double most, oldest, random, last;

	if (!address || live_new(&d.live) < 0) {
		fprintf(stderr, "live: no memory\n");
		return 1;
	}
	d.address = address;
	most = fill(&d);
	oldest = oldest_pairs(&d);
	random = random_pairs(&d);
	last = last_pairs(&d);
	printf("%8zu blocks   last %6.2f   oldest %6.2f   random %6.2f M pairs/s   "
	       "%6.1f bytes per block\n",
	       n, last, oldest, random, most);
	live_free(d.live);
	return 0;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {20000, 200000, 2000000};
	int64_t n = 0;
	int r = 0;

	if (argc > 2 || (argc == 2 && (num_parse_u63(argv[1], &n) < 0 || n == 0))) {
		fprintf(stderr, "usage: live [BLOCKS]\n");
		return 2;
	}
	if (n > 0)
		return measure((size_t)n);
	for (size_t i = 0; i < ARRAY_SIZE(sizes) && r == 0; i++)
		r = measure(sizes[i]);
	return r;
}
