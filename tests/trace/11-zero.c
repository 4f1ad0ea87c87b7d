/*
 * malloc(0) is a block of size 0; free(NULL) is nothing.
 * EXPECT alloc malloc 0 x 5
 * EXPECT free free 0 x 5
 */
#include "trace.h"

int main(void)
{
	void *p[5];

	for (int i = 0; i < 5; i++)
		p[i] = alloc(0);
	for (int i = 0; i < 7; i++)
		free(opaque(NULL));
	for (int i = 0; i < 5; i++)
		free(p[i]);
	return 0;
}
