/* The live table, rule by rule: blocks and mappings; figures by hand. */
#include "tests/unit/live_fixture.h"

/* -- blocks ---------------------------------------------------------------------------------- */

static void alloc_and_free(void **state)
{
	const struct site *s;

	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 7, 0); /* at 1000 ns */
	ok(MAIN, EVENT_ALLOC, 0x2000, 50, 7, 0);
	ok(MAIN, EVENT_ALLOC, 0x3000, 0, 8, 0);
	expect_found(P, 0x1000, 0x1000, 100, 7);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0); /* at 4000 ns: lived 3000 ns, 2^11 … 2^12-1 */
	expect_free(P, 0x1000);
	s = site(7, SITE_MALLOC);
	expect(s, 2, 1, 1, 50);
	assert_int_equal(s->alloc_bytes, 150);
	assert_int_equal(s->peak_live_bytes, 150);
	assert_int_equal(s->size_log2[6], 1); /* 100: 64 … 127 */
	assert_int_equal(s->size_log2[5], 1); /* 50: 32 … 63 */
	assert_int_equal(sum(s->size_log2), 2);
	assert_int_equal(s->lifetime_log2[11], 1);
	assert_int_equal(sum(s->lifetime_log2), 1);
	s = site(8, SITE_MALLOC);
	expect(s, 1, 0, 1, 0);
	assert_int_equal(s->size_log2[0], 1);
	assert_int_equal(live_totals(l).live_bytes, 50);
	assert_int_equal(live_totals(l).live_count, 2);
	assert_int_equal(live_totals(l).peak_bytes, 150);
	assert_int_equal(live_totals(l).peak_t_ns, 2000);
	assert_int_equal(live_totals(l).events, 4);
}

static void sites_by_stack_and_kind(void **state)
{
	const struct site *s;

	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x1000, 0, 0);
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 0, 0);
	ok(MAIN, EVENT_BRK, 0x20000, 0x1000, 0, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 1, 5, 0);
	ok(MAIN, EVENT_ALLOC, 0x3000, 1, 0, 0);
	assert_int_equal(live_sites(l, &s), 4);
	assert_int_equal(s[0].kind, SITE_MMAP);
	assert_int_equal(s[1].kind, SITE_MALLOC);
	assert_int_equal(s[1].alloc_count, 2);
	assert_int_equal(s[2].kind, SITE_BRK);
	assert_int_equal(s[3].stack, 5);
}

static void many_sites(void **state)
{
	const struct site *s;

	(void)state;
	for (uint32_t i = 0; i < 3000; i++)
		ok(MAIN, EVENT_ALLOC, 0x1000 + 16 * i, 1, i * 4096 + 1, 0);
	for (uint32_t i = 0; i < 3000; i++)
		ok(MAIN, EVENT_ALLOC, 0x100000 + 16 * i, 2, i * 4096 + 1, 0);
	assert_int_equal(live_sites(l, &s), 3000);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(s[i].stack, i * 4096 + 1);
		expect(&s[i], 2, 0, 2, 3);
	}
}

static void frees_of_nothing(void **state)
{
	(void)state;
	nothing(MAIN, EVENT_FREE, 0, 0, 0, 0);
	assert_int_equal(event(MAIN, EVENT_FREE, 0x1000, 0, 0, 0), LIVE_UNKNOWN);
	ok(MAIN, EVENT_MMAP, 0x5000, 0x1000, 1, 0);
	assert_int_equal(event(MAIN, EVENT_FREE, 0x5000, 0, 0, 0), LIVE_UNKNOWN);
	expect_found(P, 0x5000, 0x5000, 0x1000, 1);
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	assert_int_equal(event(MAIN, EVENT_FREE, 0x1001, 0, 0, 0), LIVE_UNKNOWN);
	assert_int_equal(event(C, C, EVENT_FREE, 0x1000, 0, 0, 0), LIVE_UNKNOWN);
	assert_int_equal(live_totals(l).unknown_frees, 4);
	assert_int_equal(live_totals(l).events, 6);
}

static void impossible(void **state)
{
	const struct site *s;

	(void)state;
	nothing(MAIN, EVENT_ALLOC, 0, 8, 1, 0);
	nothing(MAIN, EVENT_ALLOC, 0x1000, UINT64_MAX, 1, 0);
	nothing(MAIN, EVENT_MMAP, UINT64_MAX - 0xfff, 0x1000, 1, 0);
	nothing(MAIN, EVENT_MMAP, 0x1000, 0, 1, 0);
	nothing(MAIN, EVENT_MUNMAP, 0x1000, UINT64_MAX, 0, 0);
	nothing(MAIN, EVENT_BRK, 0x1000, (uint64_t)-0x2000, 1, 0);
	nothing(MAIN, EVENT_BRK, 0x1000, UINT64_C(1) << 63, 1, 0);
	nothing(MAIN, EVENT_BRK, 0x1000, 0, 1, 0);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 0, EVENT_REALLOC);
	nothing(MAIN, EVENT_FORK, 0, 0, 0, 0);
	nothing(MAIN, EVENT_FORK, P, 0, 0, 0);
	assert_int_equal(live_sites(l, &s), 0);
	assert_int_equal(live_totals(l).events, 0);
}

static void failed(void **state)
{
	(void)state;
	ok(MAIN, EVENT_FAILED, 0, UINT64_MAX, 3, 0);
	ok(MAIN, EVENT_FAILED, 0, 8, 3, 0);
	assert_int_equal(site(3, SITE_MALLOC)->failed_count, 2);
	expect(site(3, SITE_MALLOC), 0, 0, 0, 0);
	assert_int_equal(live_totals(l).failed_allocs, 2);
}

static void replaced(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x1000, 30, 2, 0); /* 1000 ns later: 2^9 … 2^10-1 */
	expect(site(1, SITE_MALLOC), 1, 1, 0, 0);
	assert_int_equal(site(1, SITE_MALLOC)->lifetime_log2[9], 1);
	expect(site(2, SITE_MALLOC), 1, 0, 1, 30);
	expect_found(P, 0x1000, 0x1000, 30, 2);
	assert_int_equal(live_totals(l).replaced, 1);
	assert_int_equal(live_totals(l).peak_bytes, 100); /* never both */
}

static void temporary(void **state)
{
	const struct site *s;

	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	ok(P, 101, EVENT_ALLOC, 0x2000, 1, 1, 0); /* another thread does not matter */
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	s = site(1, SITE_MALLOC);
	assert_int_equal(s->temporary_count, 1);
	ok(MAIN, EVENT_FREE, 0x2000, 0, 0, 0); /* freed by another thread */
	assert_int_equal(s->temporary_count, 1);
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	ok(MAIN, EVENT_FAILED, 0, 1, 1, 0); /* something in between */
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	assert_int_equal(s->temporary_count, 1);
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	nothing(MAIN, EVENT_FREE, 0, 0, 0, 0); /* which free(NULL) is not */
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	assert_int_equal(s->temporary_count, 2);
	/* The address is the same, the block is another thread's. */
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	ok(P, 101, EVENT_FREE, 0x1000, 0, 0, 0);
	ok(P, 101, EVENT_ALLOC, 0x1000, 1, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	assert_int_equal(s->temporary_count, 2);
}

/* a: 10 live at the peak, then more; b: 25 at the peak of 35; c comes later. */
static void at_peak(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 10, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 25, 2, 0); /* 35 live at 2000 ns */
	ok(MAIN, EVENT_FREE, 0x2000, 0, 0, 0);
	ok(MAIN, EVENT_ALLOC, 0x3000, 20, 1, 0); /* 30 */
	ok(MAIN, EVENT_ALLOC, 0x4000, 5, 3, 0);  /* 35 again: not higher */
	live_finish(l);
	assert_int_equal(site(1, SITE_MALLOC)->at_peak_bytes, 10);
	assert_int_equal(site(2, SITE_MALLOC)->at_peak_bytes, 25);
	assert_int_equal(site(3, SITE_MALLOC)->at_peak_bytes, 0);
	assert_int_equal(site(1, SITE_MALLOC)->peak_live_bytes, 30);
	assert_int_equal(live_totals(l).peak_bytes, 35);
	assert_int_equal(live_totals(l).peak_t_ns, 2000);
	expect_leaked(site(1, SITE_MALLOC), 2, 30);
	expect(site(1, SITE_MALLOC), 2, 0, 2, 30);
	expect_leaked(site(2, SITE_MALLOC), 0, 0);
}

static void at_peak_of_what_stays(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 10, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 25, 2, 0);
	live_finish(l);
	assert_int_equal(site(1, SITE_MALLOC)->at_peak_bytes, 10);
	assert_int_equal(site(2, SITE_MALLOC)->at_peak_bytes, 25);
}

static void inside_a_block(void **state)
{
	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x10000, 9, 0);
	for (uint64_t i = 0; i < 1000; i++)
		ok(MAIN, EVENT_ALLOC, 0x10000 + 64 * (i * 7 % 1000), 48, 1, 0);
	expect_found(P, 0x10000 + 64 * 500 + 47, 0x10000 + 64 * 500, 48, 1);
	expect_found(P, 0x10000 + 64 * 500 + 48, 0x10000, 0x10000, 9); /* between blocks */
	expect_free(P, 0xffff);
	ok(MAIN, EVENT_FREE, 0x10000 + 64 * 500, 0, 0, 0);
	expect_found(P, 0x10000 + 64 * 500 + 47, 0x10000, 0x10000, 9);
	ok(MAIN, EVENT_ALLOC, 0x10000 + 64 * 500, 8, 2, 0);
	expect_found(P, 0x10000 + 64 * 500 + 7, 0x10000 + 64 * 500, 8, 2);
	ok(MAIN, EVENT_ALLOC, 0x8000, 0, 3, 0);
	expect_found(P, 0x8000, 0x8000, 0, 3); /* no bytes, found where it is */
	expect_free(P, 0x8001);
	expect_free(C, 0x8000);
}

/* Grows to 100,000, shrinks to 10, in an order that has nothing to do with addresses. */
static void many_blocks(void **state)
{
	const uint64_t n = 100003, step = 31337; /* n is a prime */

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		ok(MAIN, EVENT_ALLOC, 0x1000 + i * step % n * 16, i % 17, 1, 0);
	for (uint64_t i = 0; i < n - 10; i++)
		ok(MAIN, EVENT_FREE, 0x1000 + i * 7919 % n * 16, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 100003, 99993, 10, site(1, SITE_MALLOC)->live_bytes);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(live_find(l, P, 0x1000 + i * 7919 % n * 16, NULL),
				 i >= n - 10 ? 1 : 0);
	assert_int_equal(live_totals(l).replaced, 0);
}

/* -- realloc --------------------------------------------------------------------------------- */

static void realloc_moves(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, EVENT_REALLOC);
	expect_free(P, 0x1000);
	expect(site(1, SITE_MALLOC), 1, 1, 0, 0);
	ok(P, 101, EVENT_ALLOC, 0x1000, 8, 3, 0); /* another thread gets it meanwhile */
	ok(MAIN, EVENT_ALLOC, 0x2000, 200, 2, EVENT_REALLOC);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 0, 0); /* too late */
	expect(site(1, SITE_MALLOC), 1, 1, 0, 0);
	assert_int_equal(site(1, SITE_MALLOC)->temporary_count, 1);
	expect(site(2, SITE_MALLOC), 1, 0, 1, 200);
	expect(site(3, SITE_MALLOC), 1, 0, 1, 8);
	assert_int_equal(live_totals(l).peak_bytes, 208);
	assert_int_equal(live_totals(l).replaced, 0);
}

static void realloc_fails(void **state)
{
	const struct site *s;
	struct live_block b;

	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, EVENT_REALLOC);
	expect_free(P, 0x1000);
	ok(P, 101, EVENT_ALLOC, 0x2000, 1, 2, 0); /* another thread's event changes nothing */
	ok(MAIN, EVENT_RESTORE, 0, 0, 9, 0);
	s = site(1, SITE_MALLOC);
	expect(s, 1, 0, 1, 100);
	assert_int_equal(s->alloc_bytes, 100);
	assert_int_equal(s->temporary_count, 0);
	assert_int_equal(sum(s->lifetime_log2), 0);
	assert_int_equal(live_find(l, P, 0x1000, &b), 1);
	assert_int_equal(b.t_ns, 1000);
	assert_int_equal(live_totals(l).live_bytes, 101);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 9, 0); /* once */
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);    /* at 6000 ns: lived 5000, 2^12 … 2^13-1 */
	assert_int_equal(s->lifetime_log2[12], 1);
	assert_int_equal(s->temporary_count, 0);
}

/* The thread's next event is neither ALLOC nor RESTORE: the block is gone. */
static void realloc_unfinished(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, EVENT_REALLOC);
	nothing(MAIN, EVENT_FREE, 0, 0, 0, 0);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 1, 1, 0, 0);
	/* The process exits in between: freed, not leaked; and a new one knows nothing of it. */
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, EVENT_REALLOC);
	ok(MAIN, EVENT_EXIT, 0, 0, 0, 0);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 2, 2, 0, 0);
	expect_leaked(site(1, SITE_MALLOC), 0, 0);
}

static void restore_over_another(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, EVENT_REALLOC);
	ok(P, 101, EVENT_ALLOC, 0x1000, 7, 2, 0);
	ok(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 1, 0, 1, 100);
	expect(site(2, SITE_MALLOC), 1, 1, 0, 0);
	assert_int_equal(live_totals(l).replaced, 1);
}

/* 40,000 threads that each begin a realloc: the last one's is remembered, the first one's not. */
static void threads_are_bounded(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 40000; i++) {
		ok(P, 1000 + i, EVENT_ALLOC, 0x1000 + 16 * i, 8, 1, 0);
		ok(P, 1000 + i, EVENT_FREE, 0x1000 + 16 * i, 0, 0, EVENT_REALLOC);
	}
	ok(P, 1000 + 39999, EVENT_RESTORE, 0, 0, 0, 0);
	ok(P, 1000 + 39999 - 16383, EVENT_RESTORE, 0, 0, 0, 0);
	nothing(P, 1000, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 40000, 39998, 2, 16);
}

/* -- mappings -------------------------------------------------------------------------------- */

static void munmap_in_parts(void **state)
{
	const uint64_t gib = UINT64_C(1) << 30, at = UINT64_C(1) << 56;
	const struct site *s;

	(void)state;
	ok(MAIN, EVENT_MMAP, at, 8 * gib, 1, 0); /* at 1000 ns */
	s = site(1, SITE_MMAP);
	assert_int_equal(s->size_log2[33], 1);
	ok(MAIN, EVENT_MUNMAP, at + 2 * gib, gib, 0, 0);
	expect(s, 1, 0, 1, (int64_t)(7 * gib));
	expect_found(P, at + 2 * gib - 1, at, 2 * gib, 1);
	expect_free(P, at + 2 * gib);
	expect_free(P, at + 3 * gib - 1);
	expect_found(P, at + 3 * gib, at + 3 * gib, 5 * gib, 1);
	ok(MAIN, EVENT_MUNMAP, at + 7 * gib, 9 * gib, 0, 0); /* its end, and what is nobody's */
	expect(s, 1, 0, 1, (int64_t)(6 * gib));
	nothing(MAIN, EVENT_MUNMAP, at + 7 * gib, gib, 0, 0);
	ok(MAIN, EVENT_MUNMAP, at - gib, 2 * gib, 0, 0); /* its beginning */
	expect(s, 1, 0, 1, (int64_t)(5 * gib));
	expect_found(P, at + gib, at + gib, gib, 1);
	ok(MAIN, EVENT_MUNMAP, at, 8 * gib, 0, 0); /* the rest: at 6000 ns, lived 5000 */
	expect(s, 1, 1, 0, 0);
	assert_int_equal(s->alloc_bytes, 8 * gib);
	assert_int_equal(s->lifetime_log2[12], 1);
	assert_int_equal(sum(s->lifetime_log2), 1);
}

static void mmap_over_others(void **state)
{
	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x4000, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x14000, 0x4000, 2, 0);
	ok(MAIN, EVENT_MMAP, 0x18000, 0x4000, 3, 0);
	ok(MAIN, EVENT_MMAP, 0x13000, 0x6000, 4, 0);
	expect(site(1, SITE_MMAP), 1, 0, 1, 0x3000);
	expect(site(2, SITE_MMAP), 1, 1, 0, 0);
	expect(site(3, SITE_MMAP), 1, 0, 1, 0x3000);
	expect(site(4, SITE_MMAP), 1, 0, 1, 0x6000);
	expect_found(P, 0x12fff, 0x10000, 0x3000, 1);
	expect_found(P, 0x13000, 0x13000, 0x6000, 4);
	expect_found(P, 0x19000, 0x19000, 0x3000, 3);
	assert_int_equal(live_totals(l).peak_bytes, 0xc000);
	assert_int_equal(live_totals(l).replaced, 0);
}

static void mremap_moves(void **state)
{
	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x4000, 1, 0);
	ok(MAIN, EVENT_MUNMAP, 0x10000, 0x4000, 0, EVENT_REALLOC);
	ok(MAIN, EVENT_MMAP, 0x40000, 0x8000, 2, EVENT_REALLOC);
	nothing(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MMAP), 1, 1, 0, 0);
	expect(site(2, SITE_MMAP), 1, 0, 1, 0x8000);
	expect_free(P, 0x10000);
}

/* Part of one mapping and all of another are taken away and put back. */
static void mremap_fails(void **state)
{
	struct live_block b;

	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x4000, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x14000, 0x1000, 2, 0);
	ok(MAIN, EVENT_MUNMAP, 0x12000, 0x3000, 0, EVENT_REALLOC);
	expect(site(1, SITE_MMAP), 1, 0, 1, 0x2000);
	expect(site(2, SITE_MMAP), 1, 1, 0, 0);
	expect_free(P, 0x12000);
	ok(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MMAP), 1, 0, 1, 0x4000);
	expect(site(2, SITE_MMAP), 1, 0, 1, 0x1000);
	assert_int_equal(sum(site(2, SITE_MMAP)->lifetime_log2), 0);
	assert_int_equal(live_find(l, P, 0x12000, &b), 1);
	assert_int_equal(b.t_ns, 1000);
	assert_int_equal(live_find(l, P, 0x14fff, &b), 2);
	assert_int_equal(b.t_ns, 2000);
	/* Freed between: the other part goes, then all of it, then a part comes back. */
	ok(MAIN, EVENT_MUNMAP, 0x12000, 0x2000, 0, EVENT_REALLOC);
	ok(P, 101, EVENT_MUNMAP, 0x10000, 0x2000, 0, 0);
	expect(site(1, SITE_MMAP), 1, 1, 0, 0);
	ok(MAIN, EVENT_RESTORE, 0, 0, 0, 0);
	expect(site(1, SITE_MMAP), 1, 0, 1, 0x2000);
	ok(MAIN, EVENT_MUNMAP, 0x12000, 0x2000, 0, 0);
	expect(site(1, SITE_MMAP), 1, 1, 0, 0);
	assert_int_equal(sum(site(1, SITE_MMAP)->lifetime_log2), 1);
}

static void the_break(void **state)
{
	(void)state;
	ok(MAIN, EVENT_BRK, 0x10000, 0x3000, 1, 0);
	ok(MAIN, EVENT_BRK, 0x13000, 0x3000, 2, 0);
	ok(MAIN, EVENT_BRK, 0x16000, (uint64_t)-0x4000, 3, 0);
	expect(site(1, SITE_BRK), 1, 0, 1, 0x2000);
	expect(site(2, SITE_BRK), 1, 1, 0, 0);
	expect_found(P, 0x11fff, 0x10000, 0x2000, 1);
	expect_free(P, 0x12000);
	nothing(MAIN, EVENT_BRK, 0x9000, (uint64_t)-0x1000, 3, 0);
}

/* 65,530 mappings, every second one cut in two: order and bounds hold. */
static void many_mappings(void **state)
{
	const uint64_t n = 65530;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		ok(MAIN, EVENT_MMAP, 0x100000 + i * 27361 % n * 0x4000, 0x3000, 1, 0);
	for (uint64_t i = 0; i < n; i += 2)
		ok(MAIN, EVENT_MUNMAP, 0x101000 + i * 0x4000, 0x1000, 0, 0);
	expect(site(1, SITE_MMAP), 65530, 0, 65530, 65530 * 0x3000L - 32765 * 0x1000L);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = 0x100000 + i * 0x4000;

		if (i % 2) {
			expect_found(P, at + 0x1000, at, 0x3000, 1);
		} else {
			expect_found(P, at + 0xfff, at, 0x1000, 1);
			expect_free(P, at + 0x1000);
			expect_found(P, at + 0x2000, at + 0x2000, 0x1000, 1);
		}
		expect_free(P, at + 0x3000);
	}
	ok(MAIN, EVENT_MUNMAP, 0, UINT64_C(1) << 40, 0, 0);
	expect(site(1, SITE_MMAP), 65530, 65530, 0, 0);
}
/* -- copies --------------------------------------------------------------------------------------
 */

static int by_address(const void *a, const void *b)
{
	const struct live_block *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void copied(void **state)
{
	static const uint64_t address[] = {0x8000, 0x10000, 0x10040, 0x20000, 0x10000, 0x30000};
	static const uint64_t size[] = {1, 16, 24, 8, 0x1000, 0x2000};
	struct live_block b[6];
	size_t n_pieces;

	(void)state;
	assert_int_equal(live_copy(l, P, b, 6, &n_pieces), 0);
	ok(MAIN, EVENT_MMAP, 0x30000, 0x2000, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x20000, 8, 2, 0);
	ok(MAIN, EVENT_ALLOC, 0x10040, 24, 2, 0);
	ok(MAIN, EVENT_ALLOC, 0x10000, 16, 2, 0);
	ok(MAIN, EVENT_MMAP, 0x10000, 0x1000, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x8000, 1, 2, 0);
	b[0].address = 77;
	assert_int_equal(live_copy(l, P, b, 5, &n_pieces), 4); /* no room: only how many */
	assert_int_equal(b[0].address, 77);
	assert_int_equal(live_copy(l, P, b, 6, &n_pieces), 4);
	assert_int_equal(n_pieces, 2);
	qsort(b, 4, sizeof(b[0]), by_address);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(b[i].address, address[i]);
		assert_int_equal(b[i].size, size[i]);
		assert_int_equal(b[i].site, i < 4 ? 2 : 1);
	}
	assert_int_equal(b[5].t_ns, 1000);
}

/* -- major faults --------------------------------------------------------------------------------
 */

static uint32_t fault(uint32_t pid, uint32_t tid, uint64_t address, enum fault_mapping mapping,
		      int64_t duration_ns)
{
	const struct fault f = {.pid = pid,
				.tid = tid,
				.address = address,
				.mapping = mapping,
				.duration_ns = duration_ns};

	return live_fault(l, &f);
}

static void expect_faults(const struct site *s, int64_t n, int64_t ns)
{
	assert_int_equal(s->major_faults, n);
	assert_int_equal(s->fault_ns, ns);
}

static void faults_of_owners(void **state)
{
	const struct fault own = {
		.pid = P, .tid = P, .address = 0x20000, .duration_ns = 5, .is_own = true};

	(void)state;
	live_count_faults(l);
	ok(MAIN, EVENT_MMAP, 0x100000, 0x10000, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x10ff0, 0x3000, 2, 0); /* on four pages */
	ok(MAIN, EVENT_ALLOC, 0x20000, 48, 3, 0);
	assert_int_equal(fault(P, P, 0x100123, FAULT_ANON, 100), 1);
	assert_int_equal(fault(P, 101, 0x10fff, FAULT_BRK, 10), 2);
	assert_int_equal(fault(P, 101, 0x13fef, FAULT_BRK, 10), 2);
	assert_int_equal(fault(P, P, 0x2002f, FAULT_BRK, -1), 3);
	assert_int_equal(live_fault(l, &own), 3);
	expect_faults(site(1, SITE_MMAP), 1, 100);
	expect_faults(site(2, SITE_MALLOC), 2, 20);
	expect_faults(site(3, SITE_MALLOC), 1, -1); /* not our own; no time was measured */
	/* Nobody's: a file's, a stack's. */
	assert_int_equal(fault(P, P, 0x500000, FAULT_FILE, 1), 0);
	assert_int_equal(fault(P, P, 0x500000, FAULT_STACK, 1), 0);
	assert_int_equal(fault(P, P, 0x500000, FAULT_UNKNOWN, 1), 0);
	/* The allocator's: behind a block, and where nothing ever was. */
	assert_int_equal(fault(P, P, 0x13ff0, FAULT_BRK, 7), 4);
	assert_int_equal(fault(300, 300, 0x500000, FAULT_ANON, 7), 4);
	expect_faults(site(0, SITE_OTHER), 2, 14);
}

static void faults_of_what_is_freed_and_reused(void **state)
{
	(void)state;
	live_count_faults(l);
	ok(MAIN, EVENT_ALLOC, 0x10000, 0x4000, 1, 0);
	assert_int_equal(fault(P, P, 0x12000, FAULT_ANON, 1), 1);
	ok(MAIN, EVENT_FREE, 0x10000, 0, 0, 0);
	assert_int_equal(fault(P, P, 0x12000, FAULT_FILE, 1), 0);
	ok(MAIN, EVENT_ALLOC, 0x11000, 0x4000, 2, 0);
	assert_int_equal(fault(P, P, 0x12000, FAULT_ANON, 1), 2);
	assert_int_equal(fault(P, P, 0x10800, FAULT_FILE, 1), 0);
	/* The child's copy is the same site's; what the parent frees stays the child's. */
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	ok(MAIN, EVENT_FREE, 0x11000, 0, 0, 0);
	assert_int_equal(fault(C, C, 0x12000, FAULT_ANON, 1), 2);
	assert_int_equal(fault(P, P, 0x12000, FAULT_FILE, 1), 0);
	expect_faults(site(1, SITE_MALLOC), 1, 1);
	expect_faults(site(2, SITE_MALLOC), 2, 2);
}

/* realloc copies: what it reads is the old block's, though that was freed when the call began. */
static void faults_while_moving(void **state)
{
	(void)state;
	live_count_faults(l);
	ok(MAIN, EVENT_ALLOC, 0x10000, 0x4000, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x100000, 0x4000, 3, 0);
	ok(MAIN, EVENT_FREE, 0x10000, 0, 0, EVENT_REALLOC);
	assert_int_equal(fault(P, P, 0x13fff, FAULT_ANON, 1), 1);
	assert_int_equal(fault(P, 101, 0x13fff, FAULT_FILE, 1), 0); /* another thread's */
	ok(MAIN, EVENT_ALLOC, 0x50000, 0x8000, 2, EVENT_REALLOC);
	assert_int_equal(fault(P, P, 0x13fff, FAULT_FILE, 1), 0);
	ok(MAIN, EVENT_MUNMAP, 0x100000, 0x4000, 0, EVENT_REALLOC);
	assert_int_equal(fault(P, P, 0x101000, FAULT_ANON, 1), 2); /* sites by their first event */
	expect_faults(site(1, SITE_MALLOC), 1, 1);
	expect_faults(site(3, SITE_MMAP), 1, 1);
}

static void faults_not_traced(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x10000, 0x4000, 1, 0);
	expect_faults(site(1, SITE_MALLOC), -1, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(alloc_and_free),
		test(sites_by_stack_and_kind),
		test(many_sites),
		test(frees_of_nothing),
		test(impossible),
		test(failed),
		test(replaced),
		test(temporary),
		test(at_peak),
		test(at_peak_of_what_stays),
		test(inside_a_block),
		test(many_blocks),
		test(realloc_moves),
		test(realloc_fails),
		test(realloc_unfinished),
		test(restore_over_another),
		test(threads_are_bounded),
		test(munmap_in_parts),
		test(mmap_over_others),
		test(mremap_moves),
		test(mremap_fails),
		test(the_break),
		test(many_mappings),
		test(copied),
		test(faults_of_owners),
		test(faults_of_what_is_freed_and_reused),
		test(faults_while_moving),
		test(faults_not_traced),
	};

	return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
