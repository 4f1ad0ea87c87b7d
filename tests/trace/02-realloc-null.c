/*
 * realloc(NULL, n) is one allocation; the malloc inside is not reported.
 * EXPECT alloc realloc 1013 x 7
 * EXPECT free free 1013 x 7
 */
#include "trace.h"

int main(void)
{
	for (int i = 0; i < 7; i++) {
		void *p = opaque(realloc(opaque(NULL), 1013));

		CHECK(p);
		free(p);
	}
	return 0;
}
