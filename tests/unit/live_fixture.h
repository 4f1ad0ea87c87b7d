/* What the tests of the live table share: one table, a clock, events and expectations. */
#pragma once

#include "tracer/live.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define P 100 /* a process; its first thread has the same id */
#define C 200 /* its child */
#define MAIN P, P

static struct live *l; /* made anew for each test */
static int64_t now;

static inline int setup(void **state)
{
	(void)state;
	now = 0;
	return live_new(&l);
}

static inline int teardown(void **state)
{
	(void)state;
	live_free(l);
	return 0;
}

/* Every event is 1000 ns later than the one before. */
static inline enum live_effect event(uint32_t pid, uint32_t tid, enum event_kind kind,
				     uint64_t address, uint64_t size, uint32_t stack, int flags)
{
	struct event ev = {.t_ns = now += 1000,
			   .pid = pid,
			   .tid = tid,
			   .kind = (uint8_t)kind,
			   .flags = (uint8_t)flags,
			   .address = address,
			   .size = size,
			   .stack = stack};

	return live_event(l, &ev);
}

#define ok(...) assert_int_equal(event(__VA_ARGS__), LIVE_OK)
#define nothing(...) assert_int_equal(event(__VA_ARGS__), LIVE_NOTHING)

static inline const struct site *site(uint32_t stack, enum site_kind kind)
{
	const struct site *s;
	size_t n = live_sites(l, &s);

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(s[i].id, i + 1);
		if (s[i].stack == stack && s[i].kind == kind)
			return &s[i];
	}
	fail_msg("no site of stack %u and kind %d", stack, kind);
	return NULL;
}

static inline void expect(const struct site *s, int64_t allocs, int64_t frees, int64_t live_count,
			  int64_t live_bytes)
{
	assert_int_equal(s->alloc_count, allocs);
	assert_int_equal(s->free_count, frees);
	assert_int_equal(s->live_count, live_count);
	assert_int_equal(s->live_bytes, live_bytes);
}

static inline void expect_leaked(const struct site *s, int64_t count, int64_t bytes)
{
	assert_int_equal(s->leaked_count, count);
	assert_int_equal(s->leaked_bytes, bytes);
}

static inline void expect_found(uint32_t pid, uint64_t at, uint64_t address, uint64_t size,
				uint32_t stack)
{
	struct live_block b;
	const struct site *s;
	uint32_t id = live_find(l, pid, at, &b);

	assert_true(id > 0 && id <= live_sites(l, &s));
	assert_int_equal(s[id - 1].stack, stack);
	assert_int_equal(b.site, id);
	assert_int_equal(b.address, address);
	assert_int_equal(b.size, size);
}

static inline void expect_free(uint32_t pid, uint64_t at)
{
	assert_int_equal(live_find(l, pid, at, NULL), 0);
}

static inline uint64_t sum(const uint32_t histogram[static SITE_LOG2_MAX])
{
	uint64_t n = 0;

	for (int i = 0; i < SITE_LOG2_MAX; i++)
		n += histogram[i];
	return n;
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
