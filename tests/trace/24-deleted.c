/*
 * The executable is gone while it runs: 24-deleted READY makes the file READY and waits until its
 * own file is no more. Built dynamic and static.
 * EXPECT alloc malloc 1321 x 7
 * EXPECT free free 1321 x 7
 * ALLOW[static] alloc malloc *
 * ALLOW[static] alloc calloc *
 * ALLOW[static] free free *
 * NOORACLE
 */
#include "trace.h"

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	pairs(1321, 2);
	CHECK(close(open(argv[1], O_CREAT | O_WRONLY, 0600)) == 0);
	for (int i = 0; i < 2000 && access(argv[0], F_OK) == 0; i++)
		usleep(10000);
	CHECK(access(argv[0], F_OK) != 0);
	pairs(1321, 5);
	return 0;
}
