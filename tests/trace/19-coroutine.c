/*
 * Two stacks in one thread, switched between all calls: the depth of nesting is not mistaken.
 * EXPECT alloc malloc 1237 x 101
 * EXPECT free free 1237 x 101
 * EXPECT alloc malloc 1249 x 101
 * EXPECT free free 1249 x 101
 */
#include "trace.h"

#include <ucontext.h>

#define ROUNDS 101

static ucontext_t main_context, other_context;
static char stack[131072] __attribute__((aligned(16)));

static void other(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *p = alloc(1249);

		CHECK(swapcontext(&other_context, &main_context) == 0);
		free(p);
	}
}

int main(void)
{
	CHECK(getcontext(&other_context) == 0);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = &main_context;
	makecontext(&other_context, other, 0);
	for (int i = 0; i < ROUNDS; i++) {
		void *p = alloc(1237);

		CHECK(swapcontext(&main_context, &other_context) == 0);
		free(p);
	}
	CHECK(swapcontext(&main_context, &other_context) == 0);
	return 0;
}
