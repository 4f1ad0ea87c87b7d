/* Events of several rings in one order: none goes out while an earlier one may still come. */
#include "tracer/order.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int setup(void **state)
{
	struct order *o;

	if (order_new(&o, 3) < 0)
		return -1;
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	order_free(*state);
	return 0;
}

static void push(struct order *o, int ring, int64_t t_ns, enum event_kind kind, uint64_t address)
{
	const struct event ev = {.t_ns = t_ns, .kind = (uint8_t)kind, .address = address};

	assert_int_equal(order_push(o, ring, &ev), 0);
}

static void mark_all(struct order *o, int64_t t_ns)
{
	for (int i = 0; i < 3; i++)
		order_mark(o, i, t_ns);
}

static void pops(struct order *o, int64_t t_ns, uint64_t address)
{
	struct event ev;

	assert_true(order_pop(o, &ev));
	assert_int_equal(ev.t_ns, t_ns);
	assert_int_equal(ev.address, address);
}

static void is_dry(struct order *o)
{
	struct event ev;

	assert_false(order_pop(o, &ev));
}

static void merges_by_time(void **state)
{
	struct order *o = *state;

	push(o, 0, 10, EVENT_ALLOC, 1);
	push(o, 0, 40, EVENT_ALLOC, 4);
	push(o, 1, 30, EVENT_ALLOC, 3);
	push(o, 2, 20, EVENT_ALLOC, 2);
	assert_int_equal(order_backlog(o), 4);
	mark_all(o, 100);
	for (uint64_t i = 1; i <= 4; i++)
		pops(o, (int64_t)i * 10, i);
	is_dry(o);
	assert_int_equal(order_backlog(o), 0);
}

/* One ring that lags, or was never looked at, holds all the others. */
static void waits_for_the_slowest_ring(void **state)
{
	struct order *o = *state;

	push(o, 0, 10, EVENT_ALLOC, 1);
	order_mark(o, 0, 50);
	order_mark(o, 1, 50);
	is_dry(o);
	order_mark(o, 2, 9);
	assert_int_equal(order_marked(o), 9);
	is_dry(o);
	push(o, 2, 9, EVENT_ALLOC, 2); /* and here it comes */
	order_mark(o, 2, 11);
	assert_int_equal(order_marked(o), 11);
	pops(o, 9, 2);
	pops(o, 10, 1);
}

/* A ring's mark is read before its position: what comes after may have the very same time. */
static void what_is_as_old_as_the_mark_waits(void **state)
{
	struct order *o = *state;

	push(o, 0, 10, EVENT_ALLOC, 7);
	mark_all(o, 10);
	is_dry(o);
	push(o, 1, 10, EVENT_FREE, 7);
	mark_all(o, 11);
	pops(o, 10, 7);
	assert_int_equal(order_backlog(o), 1);
	pops(o, 10, 7);
}

static void releases_first_at_one_instant(void **state)
{
	static const enum event_kind releases[] = {EVENT_FREE, EVENT_MUNMAP};
	struct order *o = *state;
	struct event ev;

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		push(o, 0, 10, EVENT_ALLOC, 1);
		push(o, 1, 10, releases[i], 1);
		push(o, 2, 10, EVENT_MMAP, 1);
		mark_all(o, INT64_MAX);
		assert_true(order_pop(o, &ev));
		assert_int_equal(ev.kind, releases[i]);
		assert_true(order_pop(o, &ev));
		assert_true(order_pop(o, &ev));
		is_dry(o);
	}
}

/* Two programs of one CPU may reserve in one order and be stamped in the other. */
static void a_ring_need_not_be_in_order(void **state)
{
	struct order *o = *state;

	push(o, 0, 30, EVENT_ALLOC, 3);
	push(o, 0, 10, EVENT_ALLOC, 1);
	push(o, 0, 20, EVENT_ALLOC, 2);
	push(o, 0, 20, EVENT_ALLOC, 4); /* equal ones stay as they came */
	mark_all(o, 100);
	pops(o, 10, 1);
	pops(o, 20, 2);
	pops(o, 20, 4);
	pops(o, 30, 3);
}

/* What is put in while there is a backlog, over every growth and wrap of the queues. */
static void a_long_backlog(void **state)
{
	struct order *o = *state;
	int64_t in = 0, out = 0;

	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 1000; i++, in++)
			push(o, (int)(in % 3), in, EVENT_ALLOC, (uint64_t)in);
		mark_all(o, in - 700);
		for (; out < in - 700; out++)
			pops(o, out, (uint64_t)out);
		is_dry(o);
		assert_int_equal(order_backlog(o), in - out);
	}
	mark_all(o, INT64_MAX);
	for (; out < in; out++)
		pops(o, out, (uint64_t)out);
	is_dry(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(merges_by_time, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_for_the_slowest_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_as_old_as_the_mark_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(releases_first_at_one_instant, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_need_not_be_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_backlog, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
