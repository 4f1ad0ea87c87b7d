/*
 * The example workload's pages: figures in its README and limits in the VM tests rest on their
 * compressibility, so it is held here, page by page as zswap compresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "tests/example/pages.h"

#define PAGE_BYTES 4096
#define PAGES 1000
#define ZSWAP_LEVEL 3 /* of the kernel's zstd */
#define RATIO_MAX 0.30

static void test_compresses_like_text(void **state)
{
	char page[PAGE_BYTES], out[ZSTD_COMPRESSBOUND(PAGE_BYTES)];
	size_t n, min = SIZE_MAX, max = 0, sum = 0;
	double mean;

	(void)state;
	for (uint64_t seed = 0; seed < PAGES; seed++) {
		page_fill(page, sizeof(page), seed);
		n = ZSTD_compress(out, sizeof(out), page, sizeof(page), ZSWAP_LEVEL);
		assert_false(ZSTD_isError(n));
		min = n < min ? n : min;
		max = n > max ? n : max;
		sum += n;
	}
	mean = (double)sum / PAGES / PAGE_BYTES;
	print_message("zstd -%d of single pages: mean %.3f, min %.3f, max %.3f\n", ZSWAP_LEVEL,
		      mean, (double)min / PAGE_BYTES, (double)max / PAGE_BYTES);
	assert_true(mean <= RATIO_MAX);
	/* Neither should a page be trivial, or zswap would store it as good as free. */
	assert_true((double)min / PAGE_BYTES >= 0.15);
}

static void test_pages_differ(void **state)
{
	static char pages[PAGES][PAGE_BYTES];

	(void)state;
	for (uint64_t seed = 0; seed < PAGES; seed++) {
		page_fill(pages[seed], PAGE_BYTES, seed);
		for (uint64_t other = 0; other < seed; other++)
			assert_memory_not_equal(pages[seed], pages[other], PAGE_BYTES);
	}
}

static void test_same_seed_same_page(void **state)
{
	char a[PAGE_BYTES], b[PAGE_BYTES];

	(void)state;
	page_fill(a, sizeof(a), 4711);
	page_fill(b, sizeof(b), 4711);
	assert_memory_equal(a, b, sizeof(a));
}

/* Phrases are copied with their padding: it must show neither inside nor behind the page. */
static void test_fills_exactly(void **state)
{
	char page[PAGE_BYTES], whole[PAGE_BYTES];

	(void)state;
	page_fill(whole, sizeof(whole), 1);
	assert_null(memchr(whole, '\0', sizeof(whole)));
	for (size_t size = 0; size < sizeof(page); size++) {
		memset(page, '#', sizeof(page));
		page_fill(page, size, 1);
		assert_memory_equal(page, whole, size);
		assert_int_equal(page[size], '#');
		assert_null(memchr(page, '\0', sizeof(page)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compresses_like_text),
		cmocka_unit_test(test_pages_differ),
		cmocka_unit_test(test_same_seed_same_page),
		cmocka_unit_test(test_fills_exactly),
	};

	return cmocka_run_group_tests_name("example", tests, NULL, NULL);
}
