/*
 * 26-signal [below|above]: a signal handler allocates while it interrupts allocator calls, on the
 * same stack or on an alternate one below or above it. Each side keeps to its own size, so that
 * the thread's cache is never in the same state for both.
 * EXPECT alloc malloc 1009 x 20011
 * EXPECT free free 1009 x 20011
 * EXPECT alloc malloc 509 x 211
 * EXPECT free free 509 x 211
 */
#include "trace.h"

#include <sys/time.h>

#define SIGNALS 211
#define PAIRS 20011

static volatile sig_atomic_t signals;
static char below[65536];

static void handler(int signal)
{
	(void)signal;
	if (signals == SIGNALS)
		return;
	signals++;
	pairs(509, 1);
}

static void run(void)
{
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};

	free(alloc(1009));
	CHECK(raise(SIGALRM) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	pairs(1009, PAIRS - 1);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	while (signals < SIGNALS)
		CHECK(raise(SIGALRM) == 0);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
	stack_t alt = {.ss_size = sizeof(below)};
	char above[65536];

	if (argc > 1) {
		alt.ss_sp = strcmp(argv[1], "above") == 0 ? above : below;
		CHECK(sigaltstack(&alt, NULL) == 0);
	}
	CHECK(sigaction(SIGALRM, &act, NULL) == 0);
	run();
	return 0;
}
