/* The hash map against a plain array of what should be in it. */
#include "base/map.h"

#include "tests/unit/events_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Times this is 1, modulo 2^64, for the factor by which the map multiplies: keys that are small
 * multiples of it all belong in its first slot, those of negative ones in its last. */
#define INVERSE UINT64_C(0xf1de83e19937733d)
#define KEYS 200

struct model {
	uint64_t keys[KEYS], values[KEYS]; /* value 0: not there */
	size_t n;
};

static void assert_same(const struct map *m, const struct model *model)
{
	size_t n = 0;

	assert_int_equal(m->n, model->n);
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(map_get(m, model->keys[i]), model->values[i]);
	for (size_t i = 0; i < m->cap; i++)
		n += m->slots[i].value != 0;
	assert_int_equal(n, model->n);
}

static void put(struct map *m, struct model *model, size_t i, uint64_t value)
{
	uint64_t old = 1;

	assert_int_equal(map_put(m, model->keys[i], value, &old), 0);
	assert_int_equal(old, model->values[i]);
	model->n += model->values[i] == 0;
	model->values[i] = value;
}

static void take(struct map *m, struct model *model, size_t i)
{
	assert_int_equal(map_take(m, model->keys[i]), model->values[i]);
	model->n -= model->values[i] != 0;
	model->values[i] = 0;
}

/* Fills and empties by turns, so that all sizes are seen often. */
static void play(struct model *model, uint64_t seed)
{
	struct map m = {0};

	assert_same(&m, model);
	for (int step = 0; step < 20000; step++) {
		uint64_t r = next_random(&seed);
		size_t i = r / 8 % KEYS;

		if (r % 8 < (step / 1000 % 2 ? 2 : 6))
			put(&m, model, i, r | 1);
		else
			take(&m, model, i);
		if (step % 16 == 0)
			assert_same(&m, model);
		if (step % 7000 == 6999) {
			map_clear(&m);
			memset(model->values, 0, sizeof(model->values));
			model->n = 0;
			assert_same(&m, model);
		}
	}
	map_done(&m);
	assert_int_equal(m.n, 0);
	assert_int_equal(map_get(&m, model->keys[0]), 0);
}

static void test_any_keys(void **state)
{
	struct model model = {.keys = {0, UINT64_MAX}};
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 2; i < KEYS; i++)
		model.keys[i] = next_random(&seed);
	play(&model, 1);
}

/* As pids and numbers of allocations are. */
static void test_numbers(void **state)
{
	struct model model = {0};

	(void)state;
	for (size_t i = 0; i < KEYS; i++)
		model.keys[i] = i;
	play(&model, 2);
}

/* All keys want one of two slots, the first and the last: what does not fit there goes on round
 * the end. */
static void test_collisions(void **state)
{
	struct model model = {0};

	(void)state;
	for (size_t i = 0; i < KEYS; i++)
		model.keys[i] = (i % 2 ? i : -i) * INVERSE;
	play(&model, 3);
}

/* What only passes through takes no more room than what is there at a time. */
static void test_memory_is_bounded(void **state)
{
	struct map m = {0};

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(map_put(&m, 16 * i, i + 1, NULL), 0);
		if (i >= 9)
			assert_int_equal(map_take(&m, 16 * (i - 9)), i - 9 + 1);
	}
	assert_int_equal(m.n, 9);
	assert_in_range(m.cap, 10, 16);
	map_done(&m);
}

/* 1000 keys want 1500 slots, so 2048. */
static void test_memory_per_key(void **state)
{
	struct map m = {0};

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(map_put(&m, i << 48, 1, NULL), 0);
	assert_int_equal(m.n, 1000);
	assert_in_range(m.cap, 1500, 2048);
	map_done(&m);
}

static void test_pointers(void **state)
{
	struct map m = {0};
	int thing;

	(void)state;
	assert_null(map_pointer(map_get(&m, 5)));
	assert_int_equal(map_put(&m, 5, (uintptr_t)&thing, NULL), 0);
	assert_ptr_equal(map_pointer(map_get(&m, 5)), &thing);
	assert_ptr_equal(map_pointer(map_take(&m, 5)), &thing);
	assert_null(map_pointer(map_take(&m, 5)));
	map_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_keys),       cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_collisions),     cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_memory_per_key), cmocka_unit_test(test_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
