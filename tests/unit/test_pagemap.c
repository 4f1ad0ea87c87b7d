/* Page tables of a child process that has touched known pages, and its mappings. */
#include "tracer/areas.h"
#include "tracer/pagemap.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PAGES 61
#define SPARSE_BYTES (UINT64_C(64) << 30)

static struct pagemaps all;
static struct pagemap of_child;
static pid_t child;
static char *some, *shared, *sparse; /* of the child: mapped here, touched there */

static void *map(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_NORESERVE | flags,
		       -1, 0);

	assert_true(p != MAP_FAILED);
	(void)madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

/* Written, read only, left alone. */
static void touch(int ready)
{
	volatile char *p = some, sum = 0;

	for (size_t i = 1; i < PAGES; i++) {
		if (i % 3 == 0)
			p[i * PAGE_BYTES] = 1;
		else if (i % 3 == 1)
			sum += p[i * PAGE_BYTES];
	}
	shared[0] = sparse[SPARSE_BYTES / 4] = sparse[SPARSE_BYTES / 2] = 1;
	(void)!write(ready, "", 1);
	pause();
}

/* Page 0 has been written before the fork: both have it. */
static int setup(void **state)
{
	struct err err;
	int fds[2];
	char byte;

	(void)state;
	some = map(PAGES * PAGE_BYTES, MAP_PRIVATE);
	shared = map(PAGE_BYTES, MAP_SHARED);
	sparse = map(SPARSE_BYTES, MAP_PRIVATE);
	some[0] = 1;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0)
		touch(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(pagemaps_open(&all, &err), 0);
	return pagemap_open(&of_child, &all, child);
}

static int teardown(void **state)
{
	(void)state;
	pagemap_close(&of_child);
	pagemaps_close(&all);
	(void)kill(child, SIGKILL);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void expect_states(void)
{
	uint64_t start = (uintptr_t)some, end = start + PAGES * PAGE_BYTES, at = start;
	uint64_t entries[PAGES];
	/* Like others where its number is not shown, or the kernel has none to give. */
	enum page_state zero = all.zero_pfn ? PAGE_NONE : PAGE_PRESENT;

	assert_int_equal(pagemap_read(&of_child, &at, end, entries, PAGES), PAGES);
	assert_int_equal(at, start);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(pagemap_state(&all, entries[i]), i % 3 == 0   ? PAGE_PRESENT
								  : i % 3 == 1 ? zero
									       : PAGE_NONE);
	at = end - PAGE_BYTES;
	assert_int_equal(pagemap_read(&of_child, &at, end, entries, PAGES), 1);
	at = end;
	assert_int_equal(pagemap_read(&of_child, &at, end, entries, PAGES), 0);
}

static void states(void **state)
{
	bool has_scan = all.has_scan;

	(void)state;
	expect_states();
	all.has_scan = false;
	expect_states();
	all.has_scan = has_scan;
}

/* Page 0 is in two processes, as is the shared one; page 3 in one. */
static void identity(void **state)
{
	uint64_t at = (uintptr_t)some, ours, theirs[4];
	struct pagemap m;

	(void)state;
	assert_int_equal(pagemap_open(&m, &all, getpid()), 0);
	assert_int_equal(pagemap_read(&m, &at, at + PAGE_BYTES, &ours, 1), 1);
	if (!(ours << 9)) {
		pagemap_close(&m);
		skip(); /* numbers of pages are not shown */
	}
	assert_int_equal(pagemap_read(&of_child, &at, at + 4 * PAGE_BYTES, theirs, 4), 4);
	assert_true(pagemap_identity(ours) != 0);
	assert_true(pagemap_identity(ours) == pagemap_identity(theirs[0]));
	assert_true(pagemap_identity(theirs[3]) == 0);
	pagemap_close(&m);
}

/* 16 million empty pages cost two calls for each that is not. */
static void sparse_is_cheap(void **state)
{
	static const uint64_t touched[] = {SPARSE_BYTES / 4, SPARSE_BYTES / 2};
	uint64_t start = (uintptr_t)sparse, end = start + SPARSE_BYTES, at = start, entries[512];
	ssize_t n;
	size_t i = 0;

	(void)state;
	if (!all.has_scan)
		skip();
	for (; (n = pagemap_read(&of_child, &at, end, entries, 512)) > 0; i++) {
		assert_true(i < ARRAY_SIZE(touched));
		assert_int_equal(at, start + touched[i]);
		assert_int_equal(pagemap_state(&all, entries[0]), PAGE_PRESENT);
		for (ssize_t k = 1; k < n; k++)
			assert_int_equal(pagemap_state(&all, entries[k]), PAGE_NONE);
		at += (uint64_t)n * PAGE_BYTES;
	}
	assert_int_equal(n, 0);
	assert_int_equal(i, ARRAY_SIZE(touched));
	assert_int_equal(at, end);
}

/* As Documentation/admin-guide/mm/pagemap.rst has them: area 3, offset 0x1234. */
static void swap_entries(void **state)
{
	uint64_t swapped = UINT64_C(1) << 62 | 0x1234 << 5 | 3, other = swapped + (1 << 5);

	(void)state;
	assert_int_equal(pagemap_state(&all, swapped), PAGE_SWAPPED);
	assert_int_equal(pagemap_swap_entry(swapped), 0x1234 << 5 | 3);
	assert_int_equal(pagemap_state(&all, 0), PAGE_NONE);
	assert_true(pagemap_identity(swapped) != 0);
	assert_true(pagemap_identity(swapped) != pagemap_identity(other));
	/* A page that is being moved, a marker: type 31. */
	assert_int_equal(pagemap_state(&all, swapped | 31), PAGE_NONE);
	/* The page and the swap entry of one number are not the same. */
	assert_true(pagemap_identity(swapped) !=
		    pagemap_identity(UINT64_C(1) << 63 | (0x1234 << 5 | 3)));
}

static void nobody(void **state)
{
	struct pagemap m;

	(void)state;
	assert_int_equal(pagemap_open(&m, &all, 0x7ffffff0), -ENOENT);
}

static const struct area *area_of(const struct areas *a, const void *p)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->list[i].start <= (uintptr_t)p && (uintptr_t)p < a->list[i].end)
			return &a->list[i];
	}
	fail_msg("%p is in no area", p);
	return NULL;
}

static void kinds_of_areas(void **state)
{
	struct areas a = {0};
	static const char constant[] = "in a file";
	const struct area *s;
	void *heap = malloc(16);

	(void)state;
	assert_int_equal(areas_read(&a, child), 0);
	assert_true(area_of(&a, some)->is_anon);
	assert_true(area_of(&a, heap)->is_anon);
	s = area_of(&a, shared);
	assert_true(s->is_shmem && !s->is_anon && s->inode != 0);
	assert_int_equal(s->end - s->start, PAGE_BYTES);
	assert_false(area_of(&a, constant)->is_anon || area_of(&a, constant)->is_shmem);
	assert_false(area_of(&a, &s)->is_anon); /* the stack */
	assert_int_equal(areas_read_swapped(&a, child), 0);
	assert_int_equal(area_of(&a, shared)->swapped_bytes, 0);
	assert_int_equal(areas_read(&a, 0x7ffffff0), -ENOENT);
	areas_done(&a);
	free(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states),          cmocka_unit_test(identity),
		cmocka_unit_test(sparse_is_cheap), cmocka_unit_test(swap_entries),
		cmocka_unit_test(nobody),          cmocka_unit_test(kinds_of_areas),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
