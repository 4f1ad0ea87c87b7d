/* What happened to pages: scans at 1000, 2000, … and faults in between. */
#include "tracer/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define P 100
#define PAGE 0x7000

static struct history *h;
static int64_t now;

static int setup(void **state)
{
	(void)state;
	now = 0;
	return history_new(&h, 4);
}

static int teardown(void **state)
{
	(void)state;
	history_free(h);
	return 0;
}

/* A scan of one page, 10 ns long. */
static struct page scan(uint64_t address, enum page_state state)
{
	struct page p = {.address = address, .state = state};

	history_begin(h, now += 1000);
	if (state != PAGE_NONE)
		history_pages(h, P, &p, 1, now + 10);
	history_end(h);
	return p;
}

static void expect(struct page p, int64_t returned_ns, int64_t returned_before_ns)
{
	assert_int_equal(p.returned_ns, returned_ns);
	assert_int_equal(p.returned_before_ns, returned_before_ns);
}

static void never_away(void **state)
{
	(void)state;
	expect(scan(PAGE, PAGE_PRESENT), 0, 0);
	expect(scan(PAGE, PAGE_SWAPPED), 0, 0);
	expect(scan(PAGE, PAGE_SWAPPED), 0, 0);
}

static void faults(void **state)
{
	(void)state;
	(void)scan(PAGE, PAGE_SWAPPED);
	history_fault(h, P, PAGE + 123, 1500);
	expect(scan(PAGE, PAGE_PRESENT), 1500, 0);
	expect(scan(PAGE, PAGE_SWAPPED), 1500, 0);
	history_fault(h, P, PAGE, 3500);
	expect(scan(PAGE, PAGE_PRESENT), 3500, 1500);
	/* Away and back between two scans. */
	history_fault(h, P, PAGE, 4700);
	expect(scan(PAGE, PAGE_PRESENT), 4700, 3500);
	expect(scan(PAGE, PAGE_SWAPPED), 4700, 3500);
}

/* By readahead: at the earliest when it was last seen swapped. */
static void without_fault(void **state)
{
	(void)state;
	(void)scan(PAGE, PAGE_SWAPPED);
	(void)scan(PAGE, PAGE_SWAPPED);
	expect(scan(PAGE, PAGE_PRESENT), 2000, 0);
	expect(scan(PAGE, PAGE_PRESENT), 2000, 0);
	expect(scan(PAGE, PAGE_SWAPPED), 2000, 0);
	expect(scan(PAGE, PAGE_PRESENT), 5000, 2000);
}

/* The scan sees the page back before the fault is told: it is one return, not two. */
static void told_late(void **state)
{
	(void)state;
	(void)scan(PAGE, PAGE_SWAPPED);
	expect(scan(PAGE, PAGE_PRESENT), 1000, 0);
	history_fault(h, P, PAGE, 2005);
	expect(scan(PAGE, PAGE_PRESENT), 2005, 0);
	history_fault(h, P, PAGE, 3500);
	expect(scan(PAGE, PAGE_PRESENT), 3500, 2005);
}

/* Back without a fault, and then away and back with one before the next scan; told late or not. */
static void fault_after_guess(void **state)
{
	(void)state;
	(void)scan(PAGE, PAGE_SWAPPED);
	expect(scan(PAGE, PAGE_PRESENT), 1000, 0);
	history_fault(h, P, PAGE, 2500);
	expect(scan(PAGE, PAGE_PRESENT), 2500, 1000);
	(void)scan(PAGE, PAGE_SWAPPED);
	expect(scan(PAGE, PAGE_PRESENT), 4000, 2500);
	(void)scan(PAGE, PAGE_PRESENT);
	history_fault(h, P, PAGE, 5500);
	expect(scan(PAGE, PAGE_PRESENT), 5500, 4000);
}

/* Unmapped, and another page put there. */
static void gone(void **state)
{
	(void)state;
	(void)scan(PAGE, PAGE_SWAPPED);
	history_fault(h, P, PAGE, 1500);
	history_fault(h, P, PAGE, 1600);
	(void)scan(PAGE, PAGE_PRESENT);
	(void)scan(PAGE, PAGE_NONE);
	expect(scan(PAGE, PAGE_PRESENT), 0, 0);
	(void)scan(PAGE, PAGE_SWAPPED);
	(void)scan(PAGE, PAGE_NONE);
	expect(scan(PAGE, PAGE_PRESENT), 0, 0);
}

static void other_process(void **state)
{
	struct page p = {.address = PAGE, .state = PAGE_PRESENT};

	(void)state;
	history_begin(h, 1000);
	history_fault(h, P, PAGE, 1500);
	history_pages(h, P + 1, &p, 1, 1600);
	expect(p, 0, 0);
	history_pages(h, P, &p, 1, 1600);
	expect(p, 1500, 0);
}

/* There is room for 4; what is in there goes on, and there is room again when they are gone. */
static void bounded(void **state)
{
	struct page p[6];

	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		p[i] = (struct page){.address = i * PAGE_BYTES, .state = PAGE_SWAPPED};
	history_begin(h, 1000);
	history_pages(h, P, p, 6, 1010);
	history_end(h);
	assert_int_equal(history_forgotten(h), 2);
	history_fault(h, P, 5 * PAGE_BYTES, 1500);
	assert_int_equal(history_forgotten(h), 3);
	history_fault(h, P, 3 * PAGE_BYTES, 1500);
	assert_int_equal(history_forgotten(h), 3);
	history_begin(h, 2000);
	history_pages(h, P, &p[3], 1, 2010);
	history_end(h);
	expect(p[3], 1500, 0);
	history_begin(h, 3000);
	history_pages(h, P, &p[3], 3, 3010);
	assert_int_equal(history_forgotten(h), 3);
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(never_away),        test(faults), test(without_fault), test(told_late),
		test(fault_after_guess), test(gone),   test(other_process), test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
