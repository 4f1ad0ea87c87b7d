/* Processes by pid and start: what is known of each, in whatever order its records come. */
#include "tracer/processes.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define T0 1000

static int setup(void **state)
{
	struct processes *p;

	if (processes_new(&p) < 0)
		return -1;
	processes_start(p, T0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	processes_free(*state);
	return 0;
}

/* Pids beyond what the kernel gives: /proc must not know them. */
static struct record_process record(enum event_kind kind, uint32_t pid, uint64_t start_ns,
				    uint64_t t_ns)
{
	return (struct record_process){.type = RECORD_PROCESS,
				       .kind = (uint8_t)kind,
				       .pid = 0x40000000 + pid,
				       .start_ns = start_ns,
				       .t_ns = T0 + t_ns};
}

static void fork_(struct processes *p, uint32_t pid, uint64_t start_ns, uint64_t t_ns)
{
	struct record_process r = record(EVENT_FORK, pid, start_ns, t_ns);

	r.ppid = 77;
	memcpy(r.comm, "parent", 7);
	processes_note(p, &r);
}

static void exec_(struct processes *p, uint32_t pid, uint64_t start_ns, uint64_t t_ns)
{
	struct record_process r = record(EVENT_EXEC, pid, start_ns, t_ns);

	memcpy(r.comm, "program", 8);
	processes_note(p, &r);
}

static void exit_(struct processes *p, uint32_t pid, uint64_t start_ns, uint64_t t_ns, int status)
{
	struct record_process r = record(EVENT_EXIT, pid, start_ns, t_ns);

	r.status = (uint32_t)status;
	memcpy(r.comm, "program", 8);
	processes_note(p, &r);
}

static void check(struct processes *p, size_t i, int64_t start, int64_t end, int code)
{
	const struct process_info *list;

	assert_true(processes_list(p, &list) > i);
	assert_int_equal(list[i].ppid, 77);
	assert_int_equal(list[i].start_t_ns, start);
	assert_int_equal(list[i].end_t_ns, end);
	assert_int_equal(list[i].exit_code, code);
	assert_string_equal(list[i].comm, "program");
}

static size_t count(struct processes *p)
{
	const struct process_info *list;

	return processes_list(p, &list);
}

static void one_life(void **state)
{
	struct processes *p = *state;

	fork_(p, 1, 500, 10);
	exec_(p, 1, 500, 20);
	check(p, 0, 10, -1, -1);
	exit_(p, 1, 500, 30, 7 << 8);
	check(p, 0, 10, 30, 7);
	assert_int_equal(count(p), 1);
}

/* The fork is in the ring of the parent's CPU, the rest in others. */
static void every_order_is_the_same(void **state)
{
	static const char *const orders[] = {"fxe", "fex", "xfe", "xef", "efx", "exf"};
	struct processes *p = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(orders); i++) {
		for (const char *c = orders[i]; *c; c++) {
			if (*c == 'f')
				fork_(p, i, 500, 10);
			else if (*c == 'x')
				exec_(p, i, 500, 20);
			else
				exit_(p, i, 500, 30, 3 << 8);
		}
		check(p, i, 10, 30, 3);
	}
	assert_int_equal(count(p), ARRAY_SIZE(orders));
}

/* The last two threads of a process may both find themselves the last. */
static void an_end_told_twice(void **state)
{
	struct processes *p = *state;

	fork_(p, 1, 500, 10);
	exit_(p, 1, 500, 30, 0);
	exit_(p, 1, 500, 30, 0);
	assert_int_equal(count(p), 1);
	check(p, 0, 10, 30, 0);
}

static void a_pid_used_again(void **state)
{
	struct processes *p = *state;

	fork_(p, 1, 500, 10);
	fork_(p, 1, 900, 40); /* before the end of the first is read */
	exit_(p, 1, 500, 30, 1 << 8);
	exit_(p, 1, 900, 50, 2 << 8);
	assert_int_equal(count(p), 2);
	check(p, 0, 10, 30, 1);
	check(p, 1, 40, 50, 2);
}

static void killed(void **state)
{
	struct processes *p = *state;

	fork_(p, 1, 500, 10);
	exit_(p, 1, 500, 30, SIGKILL);
	check(p, 0, 10, 30, -1);
}

static void many(void **state)
{
	struct processes *p = *state;

	for (uint32_t i = 0; i < 5000; i++)
		fork_(p, i, 500 + i, i);
	for (uint32_t i = 5000; i-- > 0;)
		exit_(p, i, 500 + i, 10000 + i, 0);
	assert_int_equal(count(p), 5000);
	for (uint32_t i = 0; i < 5000; i++)
		check(p, i, i, 10000 + i, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_life, setup, teardown),
		cmocka_unit_test_setup_teardown(every_order_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(an_end_told_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pid_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(killed, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
