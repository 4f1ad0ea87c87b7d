/*
 * exec drops what was live, in the middle of other threads' calls too; the new image is traced
 * from its first instruction on.
 * EXPECT alloc malloc 1171 x 5
 * EXPECT alloc malloc 1181 x 3
 * EXPECT free free 1181 x 3
 * EXPECT alloc malloc 1187 x 7
 * ALLOW alloc malloc 1193
 * ALLOW free free 1193
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE mmap libc.so.6
 * NOORACLE
 */
#include "trace.h"

static void *busy(void *arg)
{
	for (;;)
		pairs(1193, 1);
	return arg;
}

/* Before main, before any constructor. */
static void first(int argc, char **argv, char **envp)
{
	(void)argv;
	(void)envp;
	if (argc > 1)
		pairs(1181, 3);
}
__attribute__((section(".preinit_array"), used)) static void (*first_fn)(int, char **,
									 char **) = first;

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1) {
		for (int i = 0; i < 7; i++)
			alloc(1187);
		return 0;
	}
	for (int i = 0; i < 5; i++)
		alloc(1171);
	CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
	usleep(20000);
	execl("/proc/self/exe", argv[0], "second", NULL);
	return 1;
}
