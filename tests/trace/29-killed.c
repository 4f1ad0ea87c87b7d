/*
 * Killed in the middle: what it did until then is recorded, and its end is passed on.
 * EXPECT alloc malloc 1381 x 10007
 * LIVE 1381 x 10007
 */
#include "trace.h"

int main(void)
{
	for (int i = 0; i < 10007; i++)
		alloc(1381);
	raise(SIGKILL);
	return 0;
}
