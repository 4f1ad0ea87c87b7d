/*
 * The example workload: memory of which half is hot, a quarter warm and a quarter cold.
 *
 * It fills SIZE bytes with text, then touches a part of them in passes: 50 % (the hot half) and
 * 75 % (the hot half and the warm quarter) in turn, for HOT_TIMER seconds each. Nothing looks at
 * the cold quarter again. So the right memory limit is known beforehand, which makes this
 * program a yardstick for tools that look for it.
 *
 *	cc -O2 -o workload workload.c pages.c
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pages.h"

#define USAGE "workload SIZE HOT_TIMER LOOPS [--seconds S] [--hot PCT] [--malloc]"
#define BLOCK_BYTES ((size_t)1 << 20) /* of one malloc() */
#define CHECK_PAGES 64                /* touched between two looks at the clock */

struct options {
	size_t pages; /* a multiple of four: a quarter is whole pages, and one at least */
	double hot_timer;
	uint64_t loops; /* 0 = no limit */
	double seconds; /* infinite = no limit */
	double hot_pct; /* 0 = 50 % and 75 % in turn */
	bool use_malloc;
};

struct region {
	const char *name;
	char **blocks;
	size_t block_pages; /* in each block but the last, which may be shorter */
	size_t pages;       /* filled so far */
	size_t first_page;  /* number of the first page, counted over all regions */
	uint64_t touches;   /* of each page that the passes reach */
};

struct run {
	const struct options *opt;
	double started;
	uint64_t passes; /* completed ones */
	uint64_t touches;
};

enum { HOT, WARM, COLD, REGIONS };

/* In the order in which passes touch them. */
static struct region regions[REGIONS] = {
	{.name = "hot half"},
	{.name = "warm quarter"},
	{.name = "cold quarter"},
};
static size_t page_bytes;
static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock */
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *page_at(const struct region *region, size_t i)
{
	return region->blocks[i / region->block_pages] + i % region->block_pages * page_bytes;
}

/*
 * What the first word of a page must hold. Counting the touches alone would not notice two pages
 * that were swapped in for each other, nor a page of zeros before its first touch.
 */
static uint64_t stamp(const struct region *region, size_t i)
{
	return ((uint64_t)(region->first_page + i + 1) << 32) + region->touches;
}

static char *block_allocate(size_t bytes, bool use_malloc)
{
	void *block;

	if (use_malloc)
		return malloc(bytes);
	block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return block == MAP_FAILED ? NULL : block;
}

static void block_fill(struct region *region, size_t pages)
{
	size_t end = region->pages + pages;
	void *page;

	for (; region->pages < end && !stopped; region->pages++) {
		page = page_at(region, region->pages);
		page_fill(page, page_bytes, region->first_page + region->pages);
		*(uint64_t *)page = stamp(region, region->pages);
	}
}

/*
 * Allocates and fills; ends early, but well, when stopped. The memory is never freed: free()
 * would first swap in the header of every block, and the kernel is faster at exit.
 */
static int region_create(struct region *region, size_t first_page, size_t pages,
			 const struct options *opt)
{
	size_t block_pages = opt->use_malloc ? BLOCK_BYTES / page_bytes : pages;
	size_t blocks = (pages + block_pages - 1) / block_pages, n = pages;

	region->first_page = first_page;
	region->block_pages = block_pages;
	region->blocks = calloc(blocks, sizeof(*region->blocks));
	for (size_t b = 0; region->blocks && b < blocks && !stopped; b++) {
		n = b + 1 < blocks ? block_pages : pages - b * block_pages;
		region->blocks[b] = block_allocate(n * page_bytes, opt->use_malloc);
		if (!region->blocks[b])
			break;
		block_fill(region, n);
	}
	if (region->pages == pages || stopped)
		return 0;
	fprintf(stderr, "workload: cannot allocate %zu bytes for the %s: %s; give a smaller SIZE\n",
		n * page_bytes, region->name, strerror(errno));
	return -ENOMEM;
}

/*
 * Profilers attribute memory to the functions on the call stack. These three must therefore
 * remain functions of their own, and remain on the stack while they allocate: the empty statement
 * behind the call keeps compilers from turning the call into a jump.
 */
#define ON_THE_STACK __attribute__((noinline, used))
#define NO_TAIL_CALL() __asm__ volatile("")

ON_THE_STACK static int allocate_hot_half(const struct options *opt)
{
	int r = region_create(&regions[HOT], 0, opt->pages / 2, opt);

	NO_TAIL_CALL();
	return r;
}

ON_THE_STACK static int allocate_warm_quarter(const struct options *opt)
{
	int r = region_create(&regions[WARM], opt->pages / 2, opt->pages / 4, opt);

	NO_TAIL_CALL();
	return r;
}

ON_THE_STACK static int allocate_cold_quarter(const struct options *opt)
{
	int r = region_create(&regions[COLD], opt->pages / 4 * 3, opt->pages / 4, opt);

	NO_TAIL_CALL();
	return r;
}

static int fill(const struct options *opt)
{
	double started = now();
	size_t pages = 0;

	if (allocate_hot_half(opt) < 0 || allocate_warm_quarter(opt) < 0 ||
	    allocate_cold_quarter(opt) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < REGIONS; i++)
		pages += regions[i].pages;
	printf("filled %zu bytes in %.2f s\n", pages * page_bytes, now() - started);
	return 0;
}

static bool time_to_stop(const struct run *run)
{
	return stopped || now() - run->started >= run->opt->seconds;
}

/* Touches the first pages of a region; returns 1 when it was time to stop before the last. */
static int region_touch(struct region *region, size_t pages, struct run *run)
{
	uint64_t *word, expected;

	for (size_t i = 0; i < pages; i++, run->touches++) {
		/* Not once per pass: under memory pressure a pass can take minutes. */
		if (i % CHECK_PAGES == 0 && time_to_stop(run))
			return 1;
		word = page_at(region, i);
		expected = stamp(region, i);
		if (*word != expected) {
			fprintf(stderr,
				"workload: memory is corrupted: page %zu of the %s starts with "
				"%#llx instead of %#llx; test this machine's memory and swap\n",
				i, region->name, (unsigned long long)*word,
				(unsigned long long)expected);
			return -EIO;
		}
		*word = expected + 1;
	}
	region->touches++;
	return 0;
}

/* One pass over the first pages of all memory. */
static int pass(struct run *run, size_t pages)
{
	size_t n;
	int r;

	for (size_t i = 0; pages > 0; i++, pages -= n) {
		n = pages < regions[i].pages ? pages : regions[i].pages;
		r = region_touch(&regions[i], n, run);
		if (r != 0)
			return r;
	}
	run->passes++;
	return 0;
}

/* Phases change between passes only, so that each pass has one size and can be counted. */
static int touch(struct run *run)
{
	const struct options *opt = run->opt;
	double elapsed, pct = opt->hot_pct, next_phase = 0;
	size_t pages = 0;
	int r = 0;

	while (r == 0 && !time_to_stop(run) && (opt->loops == 0 || run->passes < opt->loops)) {
		elapsed = now() - run->started;
		if (elapsed >= next_phase) {
			if (opt->hot_pct == 0)
				pct = pct == 50 ? 75 : 50;
			next_phase = opt->hot_pct == 0 ? elapsed + opt->hot_timer : INFINITY;
			pages = (size_t)((double)opt->pages * pct / 100);
			if (pages == 0)
				pages = 1;
			printf("phase %g %%: pass %llu at %.2f s\n", pct,
			       (unsigned long long)run->passes + 1, elapsed);
		}
		r = pass(run, pages);
	}
	return r < 0 ? r : 0;
}

static void summarize(const struct run *run)
{
	double elapsed = now() - run->started;

	printf("passes %llu in %.2f s (%.3f passes/s), %llu page touches\n",
	       (unsigned long long)run->passes, elapsed,
	       elapsed > 0 ? (double)run->passes / elapsed : 0, (unsigned long long)run->touches);
}

static _Noreturn void usage_error(const char *name, const char *value, const char *remedy)
{
	if (value)
		fprintf(stderr, "workload: %s '%s' is not valid; %s\n", name, value, remedy);
	else
		fprintf(stderr, "workload: %s is missing; usage: %s\n", name, USAGE);
	exit(2);
}

/*
 * Digits with at most one point; returns what follows them, NULL if there are none. Written out
 * because strtod() takes signs, blanks, exponents, hexadecimal, "nan" and the locale's comma.
 */
static const char *scan_decimal(const char *s, double *ret)
{
	double value = 0, scale = 1;
	bool digits = false, point = false;

	for (; s && ((*s >= '0' && *s <= '9') || (*s == '.' && !point)); s++) {
		if (*s == '.') {
			point = true;
		} else {
			digits = true;
			value = value * 10 + (*s - '0');
			scale = point ? scale * 10 : 1;
		}
	}
	*ret = value / scale;
	return digits ? s : NULL;
}

static double parse_number(const char *name, const char *value, double min, double max,
			   const char *remedy)
{
	double number;
	const char *rest = scan_decimal(value, &number);

	/* Negated: too many digits give infinity or NaN, and NaN compares false. */
	if (!rest || *rest || !(number >= min && number <= max))
		usage_error(name, value, remedy);
	return number;
}

static size_t parse_size(const char *value)
{
	static const char units[] = "KMGT";
	double bytes, quad = 4 * (double)page_bytes;
	const char *rest = scan_decimal(value, &bytes), *unit = NULL;

	if (rest && (!*rest || !rest[1]))
		unit = strchr(units, *rest ? *rest : 'G');
	for (const char *u = units; unit && u <= unit; u++)
		bytes *= 1024;
	if (!unit || !(bytes >= 1 && bytes < (double)(SIZE_MAX / 4)))
		usage_error("SIZE", value, "give GiB as in 0.5, or K, M, G or T behind as in 256M");
	return (size_t)((bytes + quad - 1) / quad) * 4;
}

static void parse_args(int argc, char **argv, struct options *opt)
{
	static const char remedy[] = "give a whole number of passes, 0 for no limit";
	const char *positional[3] = {NULL};
	double loops;
	size_t n = 0;

	*opt = (struct options){.seconds = INFINITY};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--malloc") == 0) {
			opt->use_malloc = true;
		} else if (strcmp(argv[i], "--seconds") == 0) {
			opt->seconds = parse_number("--seconds", argv[++i], 0.001, 1e9,
						    "give seconds, 0.001 to 1000000000");
		} else if (strcmp(argv[i], "--hot") == 0) {
			opt->hot_pct = parse_number("--hot", argv[++i], 1, 100,
						    "give a percentage, 1 to 100, without %");
		} else if (strncmp(argv[i], "--", 2) == 0) {
			usage_error("option", argv[i], "usage: " USAGE);
		} else if (n == 3) {
			usage_error("extra argument", argv[i], "usage: " USAGE);
		} else {
			positional[n++] = argv[i];
		}
	}
	opt->pages = parse_size(positional[0]);
	opt->hot_timer = parse_number("HOT_TIMER", positional[1], 0.001, 1e9,
				      "give the seconds per phase, 0.001 to 1000000000");
	loops = parse_number("LOOPS", positional[2], 0, 1e15, remedy);
	opt->loops = (uint64_t)loops;
	if ((double)opt->loops != loops)
		usage_error("LOOPS", positional[2], remedy);
}

int main(int argc, char **argv)
{
	struct sigaction stop = {.sa_handler = on_signal};
	struct options opt;
	struct run run = {.opt = &opt};
	int r;

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	parse_args(argc, argv, &opt);
	(void)sigaction(SIGTERM, &stop, NULL); /* cannot fail with these signals */
	(void)sigaction(SIGINT, &stop, NULL);
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, also into a pipe */

	r = fill(&opt);
	if (r < 0)
		return EXIT_FAILURE;
	run.started = now();
	r = touch(&run);
	if (r < 0)
		return EXIT_FAILURE;
	summarize(&run);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "workload: cannot write to standard output\n");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
