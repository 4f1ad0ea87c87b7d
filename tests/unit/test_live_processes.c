/* The live table over fork, exec and exit; figures by hand. */
#include "tests/unit/live_fixture.h"

static void exit_leaks(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 10, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x10000, 0x3000, 2, 0);
	ok(MAIN, EVENT_MUNMAP, 0x11000, 0x1000, 0, 0); /* two parts of one mapping */
	ok(MAIN, EVENT_EXIT, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 2, 0, 0, 0);
	expect_leaked(site(1, SITE_MALLOC), 2, 110);
	expect(site(2, SITE_MMAP), 1, 0, 0, 0);
	expect_leaked(site(2, SITE_MMAP), 1, 0x2000);
	assert_int_equal(live_totals(l).live_bytes, 0);
	assert_int_equal(live_totals(l).live_count, 0);
	expect_free(P, 0x1000);
	/* The pid is used again. */
	ok(50, 50, EVENT_FORK, P, 0, 0, 0);
	assert_int_equal(event(MAIN, EVENT_FREE, 0x1000, 0, 0, 0), LIVE_UNKNOWN);
	live_finish(l);
	expect_leaked(site(1, SITE_MALLOC), 2, 110);
}

static void exec_discards(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x10000, 0x3000, 2, 0);
	ok(MAIN, EVENT_EXEC, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 1, 0, 0, 0);
	expect_leaked(site(1, SITE_MALLOC), 0, 0);
	expect(site(2, SITE_MMAP), 1, 0, 0, 0);
	expect_leaked(site(2, SITE_MMAP), 0, 0);
	expect_free(P, 0x1000);
	expect_free(P, 0x10000);
	ok(MAIN, EVENT_ALLOC, 0x1000, 5, 1, 0);
	assert_int_equal(live_totals(l).replaced, 0);
}

static void fork_inherits(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 10, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x10000, 0x3000, 2, 0);
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 2, 0, 2, 110);
	expect(site(2, SITE_MMAP), 1, 0, 1, 0x3000);
	expect_found(C, 0x1001, 0x1000, 100, 1);
	expect_found(C, 0x12fff, 0x10000, 0x3000, 2);
	/* What the child does with its copies counts nowhere. */
	ok(C, C, EVENT_FREE, 0x1000, 0, 0, 0);
	expect_free(C, 0x1000);
	expect_found(P, 0x1000, 0x1000, 100, 1);
	ok(C, C, EVENT_MUNMAP, 0x11000, 0x1000, 0, 0);
	expect_free(C, 0x11000);
	expect_found(P, 0x11000, 0x10000, 0x3000, 2);
	ok(C, C, EVENT_FREE, 0x2000, 0, 0, EVENT_REALLOC);
	ok(C, C, EVENT_RESTORE, 0, 0, 0, 0);
	expect_found(C, 0x2000, 0x2000, 10, 1);
	expect(site(1, SITE_MALLOC), 2, 0, 2, 110);
	expect(site(2, SITE_MMAP), 1, 0, 1, 0x3000);
	/* What it requests itself does. */
	ok(C, C, EVENT_ALLOC, 0x1000, 7, 1, 0);
	ok(C, C, EVENT_MMAP, 0x10000, 0x1000, 2, 0);
	expect(site(1, SITE_MALLOC), 3, 0, 3, 117);
	expect(site(2, SITE_MMAP), 2, 0, 2, 0x4000);
	ok(C, C, EVENT_EXIT, 0, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 3, 0, 2, 110);
	expect_leaked(site(1, SITE_MALLOC), 1, 7);
	expect_leaked(site(2, SITE_MMAP), 1, 0x1000);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	ok(MAIN, EVENT_MUNMAP, 0x10000, 0x3000, 0, 0);
	expect(site(1, SITE_MALLOC), 3, 1, 1, 10);
	expect(site(2, SITE_MMAP), 2, 1, 0, 0);
}

/* A copy outlives the process that it was copied from, and mremap in the child puts back. */
static void child_outlives(void **state)
{
	(void)state;
	ok(MAIN, EVENT_MMAP, 0x10000, 0x3000, 2, 0);
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	ok(MAIN, EVENT_EXIT, 0, 0, 0, 0);
	ok(C, C, EVENT_MUNMAP, 0x10000, 0x2000, 0, EVENT_REALLOC);
	expect_free(C, 0x10000);
	ok(C, C, EVENT_RESTORE, 0, 0, 0, 0);
	expect_found(C, 0x10000, 0x10000, 0x2000, 2);
	ok(C, C, EVENT_FORK, 300, 0, 0, 0);
	ok(C, C, EVENT_EXIT, 0, 0, 0, 0);
	expect_found(300, 0x10000, 0x10000, 0x2000, 2);
	expect(site(2, SITE_MMAP), 1, 0, 0, 0);
	expect_leaked(site(2, SITE_MMAP), 1, 0x3000);
}

static void shared_memory(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FORK, C, 0, 0, EVENT_SHARED_MM);
	ok(C, C, EVENT_ALLOC, 0x2000, 10, 2, 0);
	expect_found(P, 0x2000, 0x2000, 10, 2);
	ok(C, C, EVENT_FREE, 0x1000, 0, 0, 0);
	expect(site(1, SITE_MALLOC), 1, 1, 0, 0);
	expect_free(P, 0x1000);
	/* Its exec leaves the parent alone. */
	ok(C, C, EVENT_EXEC, 0, 0, 0, 0);
	expect_free(C, 0x2000);
	expect_found(P, 0x2000, 0x2000, 10, 2);
	expect(site(2, SITE_MALLOC), 1, 0, 1, 10);
	ok(C, C, EVENT_ALLOC, 0x2000, 20, 2, 0);
	assert_int_equal(live_totals(l).replaced, 0);
	ok(C, C, EVENT_EXIT, 0, 0, 0, 0);
	expect_leaked(site(2, SITE_MALLOC), 1, 20);
	/* The parent exits first: the memory goes with its last user. */
	ok(MAIN, EVENT_FORK, C, 0, 0, EVENT_SHARED_MM);
	ok(MAIN, EVENT_EXIT, 0, 0, 0, 0);
	expect_leaked(site(2, SITE_MALLOC), 1, 20);
	expect_found(C, 0x2000, 0x2000, 10, 2);
	ok(C, C, EVENT_EXIT, 0, 0, 0, 0);
	expect_leaked(site(2, SITE_MALLOC), 2, 30);
}

/* The child's EXIT was not seen, and its pid is forked again. */
static void pid_reused_unseen(void **state)
{
	(void)state;
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	ok(C, C, EVENT_ALLOC, 0x1000, 9, 1, 0);
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	expect_free(C, 0x1000);
	expect(site(1, SITE_MALLOC), 1, 0, 0, 0);
	expect_leaked(site(1, SITE_MALLOC), 1, 9);
}

/* 5000 children at once, each with its own copy. */
static void many_processes(void **state)
{
	(void)state;
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	for (uint32_t i = 1000; i < 6000; i++)
		ok(MAIN, EVENT_FORK, i, 0, 0, 0);
	for (uint32_t i = 1000; i < 6000; i += 2)
		ok(i, i, EVENT_EXIT, 0, 0, 0, 0);
	for (uint32_t i = 1000; i < 6000; i++)
		assert_int_equal(live_find(l, i, 0x1000, NULL), i % 2);
	expect(site(1, SITE_MALLOC), 1, 0, 1, 100);
}

/* A shell that forks more often than threads are remembered. */
static void many_forks(void **state)
{
	(void)state;
	for (uint32_t i = 1000; i < 41000; i++) {
		ok(MAIN, EVENT_FORK, i, 0, 0, 0);
		ok(i, i, EVENT_EXIT, 0, 0, 0, 0);
	}
	ok(MAIN, EVENT_ALLOC, 0x1000, 1, 1, 0);
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	assert_int_equal(site(1, SITE_MALLOC)->temporary_count, 1);
}

static bool holds(const struct live_block *list, size_t n, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].address == address && list[i].size == size)
			return true;
	}
	return false;
}

/* For the scan: all blocks, then the parts of mappings in order. */
static void copies(void **state)
{
	struct live_block list[8];
	size_t pieces;

	(void)state;
	assert_int_equal(live_copy(l, P, list, 8, &pieces), 0);
	assert_int_equal(pieces, 0);
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_MMAP, 0x20000, 0x3000, 3, 0);
	ok(MAIN, EVENT_ALLOC, 0x2000, 200, 2, 0);
	ok(MAIN, EVENT_MUNMAP, 0x21000, 0x1000, 0, 0);
	assert_int_equal(live_copy(l, P, list, 3, &pieces), 2); /* no room */
	assert_int_equal(pieces, 2);
	assert_int_equal(live_copy(l, P, list, 4, &pieces), 2);
	assert_true(holds(list, 2, 0x1000, 100) && holds(list, 2, 0x2000, 200));
	assert_int_equal(list[2].address, 0x20000);
	assert_int_equal(list[2].size, 0x1000);
	assert_int_equal(list[3].address, 0x22000);
	assert_int_equal(list[3].site, site(3, SITE_MMAP)->id);
	assert_int_equal(list[3].t_ns, 2000);
}

static void spaces(void **state)
{
	struct live_block list[1];
	size_t pieces;

	(void)state;
	assert_true(live_space(l, P) == 0);
	ok(MAIN, EVENT_ALLOC, 0x1000, 100, 1, 0);
	ok(MAIN, EVENT_FORK, C, 0, 0, 0);
	ok(MAIN, EVENT_FORK, C + 1, 0, 0, EVENT_SHARED_MM);
	assert_true(live_space(l, P) != 0 && live_space(l, C) != 0);
	assert_true(live_space(l, C) != live_space(l, P));
	assert_true(live_space(l, C + 1) == live_space(l, P));
	ok(MAIN, EVENT_FREE, 0x1000, 0, 0, 0);
	assert_int_equal(live_copy(l, C, list, 1, &pieces), 1); /* what it inherited */
	assert_int_equal(live_copy(l, C + 1, list, 1, &pieces), 0);
}

static void most_swapped(void **state)
{
	const struct site *s;
	uint32_t id = live_allocator(l);

	(void)state;
	assert_int_equal(live_allocator(l), id);
	s = site(0, SITE_OTHER);
	assert_int_equal(s->id, id);
	assert_int_equal(s->max_swapped_bytes, -1);
	live_swapped(l, id, 0);
	assert_int_equal(s->max_swapped_bytes, 0);
	live_swapped(l, id, 8192);
	live_swapped(l, id, 4096);
	assert_int_equal(s->max_swapped_bytes, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(exit_leaks),     test(exec_discards), test(fork_inherits),
		test(child_outlives), test(shared_memory), test(pid_reused_unseen),
		test(many_processes), test(many_forks),    test(copies),
		test(spaces),         test(most_swapped),
	};

	return cmocka_run_group_tests_name("live, processes", tests, NULL, NULL);
}
