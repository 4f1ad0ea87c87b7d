/*
 * Traced from the middle on: 21-attach READY GO waits between 7 allocations and their frees until
 * the file GO is there, having made READY.
 * EXPECT alloc malloc 1283 x 5
 * EXPECT free free 1283 x 5
 * EXPECT free free ? x 7
 * UNKNOWN x 7
 * NOORACLE
 */
#include "trace.h"

int main(int argc, char **argv)
{
	void *p[7];

	CHECK(argc == 3);
	for (int i = 0; i < 7; i++)
		p[i] = alloc(1279);
	CHECK(close(open(argv[1], O_CREAT | O_WRONLY, 0600)) == 0);
	for (int i = 0; i < 2000 && access(argv[2], F_OK) != 0; i++)
		usleep(10000);
	for (int i = 0; i < 7; i++)
		free(p[i]);
	pairs(1283, 5);
	return 0;
}
