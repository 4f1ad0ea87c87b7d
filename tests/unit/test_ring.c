/* A ring read record by record: busy ones hold, discarded ones are passed over, none wraps. The
 * ring is a file of the kernel's layout: consumer's page, producer's page, data mapped twice. */
#include "tracer/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define SIZE 4096
#define BUSY 0x80000000u
#define DISCARDED 0x40000000u

struct fixture {
	struct ring ring;
	uint8_t *memory; /* producer's page, then the data twice */
	uint64_t consumer, produced;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd = memfd_create("ring", 0);

	if (!f || fd < 0 || ftruncate(fd, SIZE) < 0)
		return -1;
	f->memory = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) {
		if (mmap(f->memory + i * SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			return -1;
	}
	close(fd);
	f->ring = (struct ring){.fd = -1,
				.size = SIZE,
				.consumer = &f->consumer,
				.producer = &f->produced,
				.data = f->memory};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	munmap(f->memory, 2 * SIZE);
	free(f);
	return 0;
}

/* As the kernel reserves: a header of 8 bytes, all rounded to 8. Returns the header. */
static uint32_t *reserve(struct fixture *f, uint32_t len, uint32_t flags, uint8_t fill)
{
	uint32_t *head = (uint32_t *)(void *)(f->memory + f->produced % SIZE);

	*head = len | flags;
	memset(head + 2, fill, len);
	f->produced += (len + 8 + 7) / 8 * 8;
	return head;
}

static void reads(struct fixture *f, uint32_t len, uint8_t fill)
{
	uint32_t got = 0;
	const uint8_t *data = ring_next(&f->ring, &got);

	assert_non_null(data);
	assert_int_equal(got, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(data[i], fill);
}

static void is_dry(struct fixture *f)
{
	uint32_t len;

	assert_null(ring_next(&f->ring, &len));
}

static void one_after_the_other(void **state)
{
	struct fixture *f = *state;

	is_dry(f);
	reserve(f, 1, 0, 'a');
	reserve(f, 8, 0, 'b');
	reserve(f, 9, 0, 'c');
	assert_int_equal(ring_produced(&f->ring), 16 + 16 + 24);
	reads(f, 1, 'a');
	reads(f, 8, 'b');
	reads(f, 9, 'c');
	is_dry(f);
}

/* The place is the kernel's to use again only after the release. */
static void consumed_at_release(void **state)
{
	struct fixture *f = *state;

	reserve(f, 8, 0, 'a');
	reads(f, 8, 'a');
	assert_int_equal(f->consumer, 0);
	ring_release(&f->ring);
	assert_int_equal(f->consumer, 16);
	assert_int_equal(ring_consumed(&f->ring), 16);
}

static void a_busy_record_holds_those_after_it(void **state)
{
	struct fixture *f = *state;
	uint32_t *busy;

	reserve(f, 8, 0, 'a');
	busy = reserve(f, 8, BUSY, 'b');
	reserve(f, 8, 0, 'c');
	reads(f, 8, 'a');
	is_dry(f);
	is_dry(f);
	ring_release(&f->ring);
	assert_int_equal(f->consumer, 16);
	*busy &= ~BUSY;
	reads(f, 8, 'b');
	reads(f, 8, 'c');
}

static void discarded_ones_are_passed_over(void **state)
{
	struct fixture *f = *state;

	reserve(f, 40, DISCARDED, 'x');
	reserve(f, 8, 0, 'a');
	reserve(f, 8, DISCARDED, 'x');
	reads(f, 8, 'a');
	is_dry(f);
	ring_release(&f->ring);
	assert_int_equal(f->consumer, f->produced);
}

static void over_the_end_in_one_piece(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 1000; i++) {
		uint32_t len = 1 + (uint32_t)i * 37 % 300;

		reserve(f, len, 0, (uint8_t)i);
		reads(f, len, (uint8_t)i);
		is_dry(f);
	}
	assert_true(f->produced > 10 * SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_after_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(consumed_at_release, setup, teardown),
		cmocka_unit_test_setup_teardown(a_busy_record_holds_those_after_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(discarded_ones_are_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(over_the_end_in_one_piece, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
