/* Pages divided among sites; figures by hand. */
#include "tracer/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BASE UINT64_C(0x7f0000000000)
#define SITES 4
#define ALLOCATOR 4

static struct residency r;

static int setup(void **state)
{
	(void)state;
	residency_begin(&r, ALLOCATOR);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	residency_done(&r);
	return 0;
}

static struct live_block at(uint64_t offset, uint64_t size, uint32_t site)
{
	return (struct live_block){.address = BASE + offset, .size = size, .site = site};
}

static void process(const struct live_block *blocks, size_t n, const struct live_block *pieces,
		    size_t n_pieces)
{
	assert_int_equal(residency_process(&r, SITES, blocks, n, pieces, n_pieces), 0);
}

/* The i-th page from BASE on. */
static void page(int i, enum page_state state, uint64_t identity)
{
	const struct page p = {
		.address = BASE + (uint64_t)i * PAGE_BYTES, .state = state, .identity = identity};

	assert_int_equal(residency_page(&r, &p, true), 0);
}

static void expect(uint32_t site, int64_t resident, int64_t swapped)
{
	assert_int_equal(r.sites[site - 1].resident, resident);
	assert_int_equal(r.sites[site - 1].swapped, swapped);
}

/* 64-byte blocks, three of one site to one of the other; the allocator's headers are nobody's. */
static void small_blocks_share(void **state)
{
	struct live_block b[32];

	(void)state;
	for (uint64_t i = 0; i < 32; i++)
		b[i] = at(i * 128 + 16, 64, i % 4 == 3 ? 2 : 1);
	process(b, 32, NULL, 0);
	page(0, PAGE_PRESENT, 0);
	expect(1, 3072, 0);
	expect(2, 1024, 0);
	expect(ALLOCATOR, 0, 0);
}

/* Shares that do not come out even still add up to the page: 4096 / 3 = 1365 and a third. */
static void shares_add_up(void **state)
{
	const struct live_block b[] = {at(0, 100, 1), at(200, 100, 2), at(400, 100, 3)};

	(void)state;
	process(b, 3, NULL, 0);
	page(0, PAGE_PRESENT, 0);
	expect(1, 1365, 0);
	expect(2, 1365, 0);
	expect(3, 1366, 0);
}

/* From the middle of page 0 to the end of page 2; behind it, on page 3, somebody else. */
static void block_over_pages(void **state)
{
	const struct live_block b[] = {at(2048, 10240, 1), at(3 * 4096 + 8, 24, 2)};

	(void)state;
	process(b, 2, NULL, 0);
	page(0, PAGE_PRESENT, 0);
	page(1, PAGE_SWAPPED, 0);
	page(2, PAGE_PRESENT, 0);
	page(3, PAGE_PRESENT, 0);
	page(4, PAGE_SWAPPED, 0);
	expect(1, 8192, 4096);
	expect(2, 4096, 0);
	expect(ALLOCATOR, 0, 4096);
}

/* A byte of both is the block's. The first page has 1024 bytes of blocks, the second none, the
 * third lies half beyond the mapping and has a block there. */
static void mapping_with_blocks(void **state)
{
	const struct live_block b[] = {at(512, 1024, 1), at(2 * 4096 + 3072, 1024, 2)};
	const struct live_block m[] = {at(0, 2 * 4096 + 2048, 3)};

	(void)state;
	process(b, 2, m, 1);
	page(0, PAGE_PRESENT, 0);
	page(1, PAGE_SWAPPED, 0);
	page(2, PAGE_PRESENT, 0);
	expect(1, 1024, 0);
	expect(2, 1366, 0); /* a third of the page: 1024 of 3072 */
	expect(3, 3072 + 2730, 4096);
}

/* The second begins within the first, which then has no bytes behind it. Sizes of 0 have none. */
static void overlap(void **state)
{
	const struct live_block b[] = {at(0, 4096, 1), at(1024, 1024, 2), at(3000, 0, 3)};

	(void)state;
	process(b, 3, NULL, 0);
	page(0, PAGE_PRESENT, 0);
	expect(1, 2048, 0);
	expect(2, 2048, 0);
	expect(3, 0, 0);
}

static void not_anonymous(void **state)
{
	const struct live_block b[] = {at(4096, 1, 1)};
	struct page p = {.address = BASE, .state = PAGE_PRESENT};

	(void)state;
	process(b, 1, NULL, 0);
	assert_int_equal(residency_page(&r, &p, false), 0);
	p.address += 4096;
	assert_int_equal(residency_page(&r, &p, false), 0);
	expect(1, 4096, 0);
	expect(ALLOCATOR, 0, 0);
}

/* Pages 7 (in memory) and 9 (swapped) are in both; the first has freed its block on 7. Page 8 is
 * nobody's in either, and private to each where it has no identity. */
static void two_processes(void **state)
{
	const struct live_block first[] = {at(2 * 4096, 64, 2)};
	const struct live_block second[] = {at(0, 64, 1), at(2 * 4096, 64, 2)};

	(void)state;
	process(first, 1, NULL, 0);
	page(0, PAGE_PRESENT, 7);
	page(1, PAGE_PRESENT, 8);
	page(2, PAGE_SWAPPED, 9);
	page(3, PAGE_PRESENT, 0);
	process(second, 2, NULL, 0);
	page(0, PAGE_PRESENT, 7);
	page(1, PAGE_PRESENT, 8);
	page(2, PAGE_SWAPPED, 9);
	page(3, PAGE_PRESENT, 0);
	assert_int_equal(residency_end(&r), 0);
	expect(1, 4096, 0);
	expect(2, 0, 4096);
	expect(ALLOCATOR, 3 * 4096, 0);
	/* Nothing of it stays for the next scan. */
	residency_begin(&r, ALLOCATOR);
	process(first, 1, NULL, 0);
	page(2, PAGE_SWAPPED, 9);
	assert_int_equal(residency_end(&r), 0);
	expect(2, 0, 4096);
	expect(ALLOCATOR, 0, 0);
}

/* Events of the page at 2000 and 1000: an older block saw both, another the later one only, the
 * youngest none. */
static void classes(void **state)
{
	struct live_block b[] = {at(0, 1024, 1), at(1024, 1024, 2), at(2048, 2048, 3)};
	struct page p = {.address = BASE,
			 .state = PAGE_SWAPPED,
			 .in_swapcache = true,
			 .returned_ns = 2000,
			 .returned_before_ns = 1000};

	(void)state;
	b[0].t_ns = 500;
	b[1].t_ns = 1500;
	b[2].t_ns = 2500;
	process(b, 3, NULL, 0);
	assert_int_equal(residency_page(&r, &p, true), 0);
	assert_int_equal(r.sites[0].thrashing, 1024);
	assert_int_equal(r.sites[0].returned, 0);
	assert_int_equal(r.sites[0].cold, 0);
	assert_int_equal(r.sites[1].returned, 1024);
	assert_int_equal(r.sites[1].thrashing, 0);
	assert_int_equal(r.sites[2].cold, 2048);
	assert_int_equal(r.sites[2].returned, 0);
	assert_int_equal(r.sites[2].swapcache, 2048);
	assert_int_equal(r.sites[2].resident, 0);
}

/* In memory and never away: no class. */
static void hot(void **state)
{
	const struct live_block b[] = {at(0, 64, 1)};

	(void)state;
	process(b, 1, NULL, 0);
	page(0, PAGE_PRESENT, 0);
	expect(1, 4096, 0);
	assert_int_equal(r.sites[0].cold + r.sites[0].returned + r.sites[0].thrashing, 0);
}

/* Two mappings of 3 and 5 pages side by side, of which 4 pages are swapped, somewhere. */
static void swapped_somewhere(void **state)
{
	const struct live_block m[] = {at(0, 3 * 4096, 1), at(3 * 4096, 5 * 4096, 2)};

	(void)state;
	process(NULL, 0, m, 2);
	residency_swapped(&r, BASE, BASE + 8 * 4096, 4 * 4096);
	expect(1, 0, 6144);
	expect(2, 0, 10240);
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(small_blocks_share),  test(shares_add_up), test(block_over_pages),
		test(mapping_with_blocks), test(overlap),       test(not_anonymous),
		test(two_processes),       test(classes),       test(hot),
		test(swapped_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
