/*
 * A fork's child starts with a copy of what is live: its frees are those of its own copy.
 * EXPECT fork - - x 1
 * EXPECT alloc malloc 1123 x 7
 * EXPECT alloc malloc 1129 x 3
 * EXPECT free free 1123 x 12
 * EXPECT free free 1129 x 2
 * LIVE 1123 x 2
 * LIVE 1129 x 1
 * NOORACLE
 */
#include "trace.h"

int main(void)
{
	void *p[7], *q[3];
	pid_t pid;

	for (int i = 0; i < 7; i++)
		p[i] = alloc(1123);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 5; i++)
			free(p[i]);
		for (int i = 0; i < 3; i++)
			q[i] = alloc(1129);
		for (int i = 0; i < 2; i++)
			free(q[i]);
		_exit(0);
	}
	wait_for(pid, 0);
	for (int i = 0; i < 7; i++)
		free(p[i]);
	return 0;
}
