/* From chains and captures to stacks; the kernel side is played by three functions here. */
#include "tracer/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/own_stack.h"

#define CAPTURE_ID (UINT64_C(1) << 63)
#define NOBODY 0x40000001u /* a pid that no process has */

struct fixture {
	struct modules *modules;
	struct stacks *stacks;
};

/* -- the kernel side: what it was told ----------------------------------------------------------
 */

static int n_taught, n_tables;
static uint32_t table_pid;
static struct table last_table;

int kernel_teach(struct kernel *k, uint64_t key, const struct row *row)
{
	(void)k, (void)key;
	assert_true(row->kind >= ROW_CFI && row->kind <= ROW_STOP);
	n_taught++;
	return 0;
}

int kernel_set_table(struct kernel *k, uint32_t pid, const struct table *table)
{
	(void)k;
	n_tables++;
	table_pid = pid;
	last_table = *table;
	return 0;
}

uint32_t kernel_generation(struct kernel *k, uint32_t pid)
{
	(void)k, (void)pid;
	return 5;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;

	n_taught = n_tables = 0;
	if (!f || modules_new(&f->modules, &err) < 0 ||
	    stacks_new(&f->stacks, NULL, f->modules, &err) < 0)
		return -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	stacks_free(f->stacks);
	modules_free(f->modules);
	free(f);
	return 0;
}

/* -- chains --------------------------------------------------------------------------------------
 */

static void chain(struct fixture *f, uint64_t id, enum stack_quality quality, uint64_t first,
		  uint16_t depth)
{
	static struct record_chain c;

	c = (struct record_chain){.type = RECORD_CHAIN, .quality = (uint8_t)quality, .id = id};
	c.depth = depth;
	for (uint16_t i = 0; i < depth; i++)
		c.pcs[i] = ROW_KEY(3, first + i);
	stacks_chain(f->stacks, &c);
}

static uint32_t stack_of(struct fixture *f, uint64_t id)
{
	return stacks_resolve(f->stacks, stacks_refer(f->stacks, id));
}

static void chains_are_taken_as_they_are(void **state)
{
	struct fixture *f = *state;
	const struct frame_ref *frames;
	enum stack_quality quality;
	uint32_t depth;

	chain(f, 100, STACK_CUT, 0x1000, 3);
	assert_int_equal(stack_of(f, 100), 1);
	frames = stacks_frames(f->stacks, 1, &depth, &quality);
	assert_int_equal(depth, 3);
	assert_int_equal(quality, STACK_CUT);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(frames[i].module, 3);
		assert_int_equal(frames[i].offset, 0x1000 + i);
	}
	assert_int_equal(stack_of(f, 0), 0);
}

static void equal_stacks_have_one_id(void **state)
{
	struct fixture *f = *state;

	chain(f, 100, STACK_FULL, 0x1000, 3);
	chain(f, 200, STACK_FULL, 0x1000, 3);
	chain(f, 300, STACK_FULL, 0x1001, 3); /* another */
	chain(f, 400, STACK_FULL, 0x1000, 2); /* the beginning of one */
	chain(f, 500, STACK_CUT, 0x1000, 3);  /* not known to be whole */
	assert_int_equal(stack_of(f, 200), stack_of(f, 100));
	assert_int_equal(stacks_count(f->stacks), 4);
}

/* Another CPU has sent it: its ring is read after the event's. */
static void a_chain_that_comes_after_its_event(void **state)
{
	struct fixture *f = *state;
	uint32_t early = stacks_refer(f->stacks, 100), never = stacks_refer(f->stacks, 200);

	assert_int_equal(stacks_resolve(f->stacks, early), 0);
	chain(f, 100, STACK_FULL, 0x1000, 3);
	assert_int_equal(stacks_resolve(f->stacks, early), 1);
	assert_int_equal(stacks_resolve(f->stacks, never), 0);
	assert_int_equal(stacks_refer(f->stacks, 100), early);
}

static void many_chains(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 1; i <= 20000; i++)
		chain(f, i, STACK_FULL, i * 16, (uint16_t)(i % 7));
	/* All those without a frame are one. */
	assert_int_equal(stacks_count(f->stacks), 20000 - 20000 / 7 + 1);
	for (uint64_t i = 1; i <= 20000; i++) {
		enum stack_quality quality;
		uint32_t depth;
		const struct frame_ref *frames =
			stacks_frames(f->stacks, stack_of(f, i), &depth, &quality);

		assert_int_equal(depth, i % 7);
		if (depth > 0)
			assert_int_equal(frames[depth - 1].offset, i * 16 + depth - 1);
	}
}

/* -- captures ------------------------------------------------------------------------------------
 */

/* The stack in own_shot as a process's capture, in chunks as they are sent. */
static void capture_as(struct fixture *f, uint32_t pid, uint64_t id, enum stack_quality quality)
{
	static struct record_chain c;
	static struct record_bytes b;
	static struct table now;
	const struct capture *shot = &own_shot.capture;

	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &now), 0);
	c = (struct record_chain){
		.exec_pages = now.exec_pages,
		.generation = 5, /* as kernel_generation above has it */
		.type = RECORD_CAPTURE,
		.quality = (uint8_t)quality,
		.pid = pid,
		.id = id,
		.ip = shot->ip,
		.sp = shot->rsp,
		.bp = shot->rbp,
		.rbx = shot->rbx,
		.r12 = shot->r12,
		.r13 = shot->r13,
		.r14 = shot->r14,
		.r15 = shot->r15,
		.n_bytes = (uint32_t)shot->len,
	};
	stacks_capture(f->stacks, &c);
	for (size_t at = shot->rsp - shot->base; at < shot->len; at += b.len) {
		b = (struct record_bytes){
			.type = RECORD_BYTES, .id = id, .address = shot->base + at};
		b.len = (uint32_t)MIN(shot->len - at, 1000);
		memcpy(b.bytes, shot->bytes + at, b.len);
		stacks_bytes(f->stacks, &b);
	}
}

/* The kernel side had no valid table. */
static void capture(struct fixture *f, uint32_t pid, uint64_t id)
{
	capture_as(f, pid, id, STACK_NONE);
}

/* Level 0, in own_snap(), is at another call in backtrace(). */
static void expect_truth(struct fixture *f, uint32_t id)
{
	static struct table table;
	enum stack_quality quality;
	uint32_t depth;
	const struct frame_ref *frames;

	assert_int_not_equal(id, 0);
	frames = stacks_frames(f->stacks, id, &depth, &quality);
	assert_int_equal(quality, STACK_FULL);
	assert_int_equal(depth, own_shot.n_truth);
	assert_int_equal(modules_read_maps(f->modules, (uint32_t)getpid(), &table), 0);
	for (uint32_t i = 1; i < depth; i++) {
		uint64_t pc = (uintptr_t)own_shot.truth[i];
		uint32_t r = 0;

		while (r < table.n &&
		       pc - table.range[r].start >= table.range[r].end - table.range[r].start)
			r++;
		assert_true(r < table.n);
		assert_int_equal(frames[i].module, table.range[r].module);
		assert_int_equal(frames[i].offset, pc - table.range[r].bias);
	}
}

static void a_capture_is_unwound_and_taught(void **state)
{
	struct fixture *f = *state;
	uint32_t pid = (uint32_t)getpid(), id;
	int once;

	assert_true(own_snap());
	capture(f, pid, CAPTURE_ID | 1);
	id = stack_of(f, CAPTURE_ID | 1);
	expect_truth(f, id);
	once = n_taught;
	assert_true(once > 1);
	assert_int_equal(table_pid, pid);
	assert_int_equal(last_table.generation, 5);
	capture(f, pid, CAPTURE_ID | 2);
	assert_int_equal(stack_of(f, CAPTURE_ID | 2), id);
	assert_int_equal(n_taught, once); /* no row twice */
	assert_int_equal(stacks_totals(f->stacks).captures, 2);
}

/* Code has changed between the capture and the look: nothing is guessed from what is there now. */
static void a_capture_of_other_code(void **state)
{
	static struct record_chain c;
	struct fixture *f = *state;

	c = (struct record_chain){.type = RECORD_CAPTURE,
				  .pid = (uint32_t)getpid(),
				  .id = CAPTURE_ID | 1,
				  .exec_pages = 1,
				  .generation = 5};
	stacks_capture(f->stacks, &c);
	assert_int_equal(stack_of(f, CAPTURE_ID | 1), 0);
	assert_int_equal(stacks_totals(f->stacks).unresolved, 1);
}

/* Its record of fork is read when it is gone: its code is its parent's. */
static void a_child_that_is_gone(void **state)
{
	struct fixture *f = *state;

	assert_true(own_snap());
	stacks_process(f->stacks, NOBODY, (uint32_t)getpid());
	assert_int_equal(table_pid, getpid()); /* what it forks next is walked at once */
	capture_as(f, NOBODY, CAPTURE_ID | 1, STACK_FULL);
	expect_truth(f, stack_of(f, CAPTURE_ID | 1));
	assert_int_equal(stacks_totals(f->stacks).unresolved, 0);
	stacks_exit(f->stacks, NOBODY);
	capture_as(f, NOBODY, CAPTURE_ID | 2, STACK_FULL); /* another one of that pid */
	assert_int_equal(stack_of(f, CAPTURE_ID | 2), 0);
}

static void nothing_known_of_the_process(void **state)
{
	struct fixture *f = *state;

	assert_true(own_snap());
	capture(f, NOBODY, CAPTURE_ID | 1);
	assert_int_equal(stack_of(f, CAPTURE_ID | 1), 0);
	assert_int_equal(stacks_totals(f->stacks).unresolved, 1);
	stacks_exit(f->stacks, NOBODY);
	stacks_exit(f->stacks, NOBODY);
}

/* Bytes that do not join, of others, too many: the stack ends where they are missing. */
static void damaged_captures(void **state)
{
	static struct record_bytes b;
	struct fixture *f = *state;
	enum stack_quality quality;
	uint32_t depth, id;

	b = (struct record_bytes){.type = RECORD_BYTES, .id = CAPTURE_ID | 9, .len = 4096};
	stacks_bytes(f->stacks, &b); /* of no capture */
	assert_true(own_snap());
	own_shot.capture.len =
		MIN(own_shot.capture.len, own_shot.capture.rsp - own_shot.capture.base + 8);
	capture(f, (uint32_t)getpid(), CAPTURE_ID | 1);
	b.id = CAPTURE_ID | 1;
	b.address = own_shot.capture.rsp + 64;
	stacks_bytes(f->stacks, &b); /* after a hole */
	b.address = own_shot.capture.rsp + 8;
	b.len = UINT32_MAX;
	stacks_bytes(f->stacks, &b);
	id = stack_of(f, CAPTURE_ID | 1);
	assert_int_not_equal(id, 0);
	(void)stacks_frames(f->stacks, id, &depth, &quality);
	assert_int_equal(quality, STACK_CUT);
	assert_true(depth >= 1 && (int)depth < own_shot.n_truth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chains_are_taken_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(equal_stacks_have_one_id, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chain_that_comes_after_its_event, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_chains, setup, teardown),
		cmocka_unit_test_setup_teardown(a_capture_is_unwound_and_taught, setup, teardown),
		cmocka_unit_test_setup_teardown(a_capture_of_other_code, setup, teardown),
		cmocka_unit_test_setup_teardown(a_child_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_known_of_the_process, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_captures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, own_stack_setup, own_stack_teardown);
}
