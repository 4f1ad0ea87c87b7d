/*
 * Only the outermost allocator counts; strdup is none, so its malloc does.
 * EXPECT alloc malloc 1031 x 7
 * EXPECT alloc calloc 1033 x 5
 * EXPECT alloc malloc 1039 x 3 in libc.so
 * EXPECT free free 1031 x 7
 * EXPECT free free 1033 x 5
 * EXPECT free free 1039 x 3
 */
#include "trace.h"

int main(void)
{
	char text[1039];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	pairs(1031, 7);
	for (int i = 0; i < 5; i++)
		free(opaque(calloc(1, 1033)));
	for (int i = 0; i < 3; i++)
		free(opaque(strdup(text)));
	return 0;
}
