/*
 * Memory whose pages are where the program says, as long as it stands still: until a line comes on
 * stdin.
 *
 *     60-residency MODE        moves, share, share-swap, swap, million
 *
 * At each standstill it prints, for each of the functions that allocate, what its memory must come
 * to: worked out here page by page, from the program's own page map, mincore and smaps.
 *
 *     site FUNCTION RESIDENT SWAPPED SWAPCACHE COLD RETURNED THRASHING MAY_DIFFER     bytes
 *     total RESIDENT SWAPPED                                               by smaps, all sites
 *     still NAME SINCE_NS
 *
 * share-swap and swap need swap, else status 77. million: so many allocations in 1 GiB, to see what
 * a scan takes.
 */
#include "trace.h"

#include <stdarg.h>
#include <stdbool.h>
#include <time.h>

#define PAGE 4096UL
#define BLOCKS 4096

struct block {
	const char *site;
	uintptr_t address;
	size_t size;
};

static struct block blocks[BLOCKS];
static int n_blocks;

/* As dprintf, which allocates. */
static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	CHECK(write(1, line, (size_t)n) == n);
}

/* -- what there is ------------------------------------------------------------------------------
 */

static void *note(const char *site, void *p, size_t size)
{
	CHECK(p && p != MAP_FAILED && n_blocks < BLOCKS);
	memset(p, 1, size);
	blocks[n_blocks++] = (struct block){site, (uintptr_t)p, size};
	return p;
}

static void forget(const void *p)
{
	for (int i = 0; i < n_blocks; i++) {
		if (blocks[i].address == (uintptr_t)p) {
			blocks[i] = blocks[--n_blocks];
			return;
		}
	}
	CHECK(!"a block that is not known");
}

/* A function that allocates whole pages, which are its own. */
#define PAGES_OF(name)                                           \
	static __attribute__((noinline)) char *name(size_t n)    \
	{                                                        \
		void *p = opaque(aligned_alloc(PAGE, n * PAGE)); \
                                                                 \
		return note(#name, p, n * PAGE);                 \
	}
#define SMALL_OF(name)                                           \
	static __attribute__((noinline)) char *name(size_t size) \
	{                                                        \
		void *p = opaque(malloc(size));                  \
                                                                 \
		return note(#name, p, size);                     \
	}

PAGES_OF(pages_one)
PAGES_OF(pages_two)
PAGES_OF(pages_three)
PAGES_OF(pages_again)
SMALL_OF(small_one)
SMALL_OF(small_two)
SMALL_OF(before_move)

static __attribute__((noinline)) char *after_move(char *p, size_t size)
{
	void *q = opaque(realloc(p, size));

	CHECK(q != p);
	forget(p);
	return note("after_move", q, size);
}

static __attribute__((noinline)) char *mapped(size_t n)
{
	void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return note("mapped", p, n * PAGE);
}

/* Three huge pages, where there are such. */
static __attribute__((noinline)) char *pages_huge(void)
{
	size_t size = 3UL << 21;
	void *p = opaque(aligned_alloc(1 << 21, size));

	(void)madvise(p, size, MADV_HUGEPAGE);
	return note("pages_huge", p, size);
}

/* Nearly all kernels give the zero page to who only reads. */
static __attribute__((noinline)) void only_read(size_t n)
{
	volatile char *p = mmap(NULL, n * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i * PAGE];
	blocks[n_blocks++] = (struct block){"only_read", (uintptr_t)p, n * PAGE};
}

static __attribute__((noinline)) char *shared(size_t n)
{
	void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return note("shared", p, n * PAGE);
}

static __attribute__((noinline)) char *shared_out(size_t n)
{
	void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return note("shared_out", p, n * PAGE);
}

/* -- where it is --------------------------------------------------------------------------------
 */

enum { IS_PRESENT = 1, IS_SWAPPED = 2, IS_IN_CACHE = 4 };

static bool is_zero_page(uint64_t number)
{
	static int fd = -1;
	uint64_t flags = 0;

	if (fd < 0)
		fd = open("/proc/kpageflags", O_RDONLY);
	CHECK(pread(fd, &flags, 8, (off_t)(number * 8)) == 8);
	return flags >> 24 & 1; /* KPF_ZERO_PAGE */
}

static int where(uintptr_t page)
{
	static int fd = -1;
	uint64_t entry = 0;
	unsigned char in_core = 0;

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY);
	CHECK(pread(fd, &entry, 8, (off_t)(page / PAGE * 8)) == 8);
	if (entry >> 63)
		return is_zero_page(entry & ((1UL << 55) - 1)) ? 0 : IS_PRESENT;
	if (!(entry >> 62 & 1))
		return 0;
	CHECK(mincore((void *)page, PAGE, &in_core) == 0);
	return in_core & 1 ? IS_SWAPPED | IS_IN_CACHE : IS_SWAPPED;
}

static size_t bytes_on(const struct block *b, uintptr_t page)
{
	uintptr_t from = b->address > page ? b->address : page;
	uintptr_t to = b->address + b->size < page + PAGE ? b->address + b->size : page + PAGE;

	return to > from ? to - from : 0;
}

/* The block's part of the page. */
static double share(const struct block *b, uintptr_t page)
{
	size_t all = 0;

	for (int i = 0; i < n_blocks; i++)
		all += bytes_on(&blocks[i], page);
	return (double)(PAGE * bytes_on(b, page)) / (double)all;
}

static void tell_site(const char *site, long cold, long returned, long thrashing)
{
	double resident = 0, swapped = 0, cached = 0;
	int parts = 0;

	for (int i = 0; i < n_blocks; i++) {
		const struct block *b = &blocks[i];

		if (strcmp(b->site, site) != 0)
			continue;
		for (uintptr_t p = b->address & -PAGE; p < b->address + b->size; p += PAGE) {
			double part = share(b, p);
			int w = where(p);

			resident += w & IS_PRESENT ? part : 0;
			swapped += w & IS_SWAPPED ? part : 0;
			cached += w & IS_IN_CACHE ? part : 0;
			parts += bytes_on(b, p) < PAGE; /* a whole page is nobody else's */
		}
	}
	tell("site %s %.0f %.0f %.0f %ld %ld %ld %d\n", site, resident, swapped, cached,
	     cold * (long)PAGE, returned * (long)PAGE, thrashing * (long)PAGE, parts);
}

static const char *line_value(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	CHECK(at);
	return at + strlen(name);
}

/* What smaps has of memory that can be a site's; the buffer is not the heap's. */
static void tell_total(void)
{
	static char text[1 << 20];
	int fd = open("/proc/self/smaps", O_RDONLY), n = 0, r;
	long resident = 0, swapped = 0;

	memset(text, 0, sizeof(text));
	while ((r = (int)read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += r;
	close(fd);
	CHECK(n < (int)sizeof(text) - 1);
	for (char *at = text, *end; at && *at; at = end ? end + 1 : NULL) {
		unsigned long inode, rss, swap;
		char rights[5], path[64] = "";

		end = strstr(at, "\nVmFlags");
		if (end)
			end = strchr(end + 1, '\n');
		CHECK(sscanf(at, "%*x-%*x %4s %*x %*s %lu%63[^\n]", rights, &inode, path) >= 2);
		CHECK(sscanf(line_value(at, "\nRss:"), "%lu", &rss) == 1);
		CHECK(sscanf(line_value(at, "\nSwap:"), "%lu", &swap) == 1);
		if (inode != 0 ? !strstr(path, "/dev/zero")
			       : strchr(path, '[') && !strstr(path, "[heap]"))
			continue;
		resident += (long)rss * 1024;
		swapped += (long)swap * 1024;
	}
	tell("total %ld %ld\n", resident, swapped);
}

static void stand_still(const char *name)
{
	struct timespec ts;
	char byte;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	tell("still %s %lld\n", name, ts.tv_sec * 1000000000LL + ts.tv_nsec);
	CHECK(read(0, &byte, 1) == 1);
}

static void page_out(char *p, size_t n)
{
	/* A page may still be on its way to the lists that reclaim knows. */
	for (int i = 0; i < 500; i++) {
		size_t out = 0;

		CHECK(madvise(p, n * PAGE, MADV_PAGEOUT) == 0);
		for (size_t k = 0; k < n; k++)
			out += (where((uintptr_t)p + k * PAGE) & IS_PRESENT) == 0;
		if (out == n)
			return;
		if (i > 50 && out == 0)
			_exit(77);
		usleep(10000);
	}
	CHECK(!"pages stay in memory");
}

/* -- modes --------------------------------------------------------------------------------------
 */

static void moves(void)
{
	char *p, *q;

	for (int i = 0; i < 1009; i++)
		(void)(i % 3 ? small_one(64) : small_two(160));
	p = before_move(53 * PAGE + 100);
	(void)small_one(64);
	p = after_move(p, 103 * PAGE + 50);
	q = pages_one(73);
	free(q);
	forget(q);
	CHECK(pages_again(73) == q);
	p = mapped(83);
	CHECK(munmap(p + 11 * PAGE, 17 * PAGE) == 0);
	forget(p);
	blocks[n_blocks++] = (struct block){"mapped", (uintptr_t)p, 11 * PAGE};
	blocks[n_blocks++] = (struct block){"mapped", (uintptr_t)p + 28 * PAGE, 55 * PAGE};
	(void)shared(19);
	only_read(23);
	(void)pages_huge();
	for (int i = 0; i < 2; i++) {
		const char *const sites[] = {
			"small_one",   "small_two", "before_move", "after_move", "pages_one",
			"pages_again", "mapped",    "shared",      "only_read",  "pages_huge"};

		for (size_t k = 0; k < sizeof(sites) / sizeof(sites[0]); k++)
			tell_site(sites[k], 0, 0, 0);
		tell_total();
		stand_still(i ? "holes" : "moved");
		CHECK(madvise(p, 7 * PAGE, MADV_DONTNEED) == 0); /* live, and without memory */
	}
}

/* Of 149 pages the child writes 31: those are two each. Shared ones count once. */
static void share_pages(int with_swap)
{
	char *p = pages_one(149), *out = NULL;
	int fds[2];
	char byte;
	pid_t pid;

	(void)shared(127);
	if (with_swap) {
		out = shared_out(61);
		page_out(out, 61);
	}
	CHECK(pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		memset(p, 2, 31 * PAGE);
		memset((void *)blocks[1].address, 2, 127 * PAGE);
		(void)!write(fds[1], "", 1);
		pause();
	}
	CHECK(read(fds[0], &byte, 1) == 1);
	tell("site pages_one %lu 0 0 0 0 0 0\n", (149 + 31) * PAGE);
	tell("site shared %lu 0 0 0 0 0 0\n", 127 * PAGE);
	if (with_swap)
		tell("site shared_out 0 %lu 0 %lu 0 0 0\n", 61 * PAGE, 61 * PAGE);
	stand_still("shared");
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void tell_swap(long cold, long returned, long thrashing)
{
	tell_site("pages_one", cold, returned, thrashing);
	tell_site("pages_two", 499, 0, 0);
	tell_site("pages_three", 0, 0, 0);
	tell_site("small_one", 0, 0, 0);
	tell_site("small_two", 0, 0, 0);
	tell_total();
}

static void swap_pages(void)
{
	char *one = pages_one(997), *two = pages_two(499);

	(void)pages_three(211);
	for (int i = 0; i < 1009; i++)
		(void)(i % 2 ? small_one(64) : small_two(64));
	tell_swap(0, 0, 0); /* so that nothing new is touched later */
	page_out(one, 307);
	page_out(two, 499);
	tell_swap(307, 0, 0);
	stand_still("out");
	memset(one, 3, 101 * PAGE);
	tell_swap(206, 101, 0);
	stand_still("back");
	page_out(one, 101);
	tell_swap(206, 101, 0);
	stand_still("out-again");
	memset(one, 4, 53 * PAGE);
	tell_swap(206, 48, 53);
	stand_still("back-again");
}

static void million(void)
{
	for (int i = 0; i < 1000000; i++)
		memset(alloc(1050), 1, 1050);
	stand_still("million");
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	stay_on_this_cpu();
	CHECK(mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 && mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1);
	if (strcmp(argv[1], "moves") == 0)
		moves();
	else if (strcmp(argv[1], "swap") == 0)
		swap_pages();
	else if (strcmp(argv[1], "million") == 0)
		million();
	else
		share_pages(strcmp(argv[1], "share-swap") == 0);
	return 0;
}
