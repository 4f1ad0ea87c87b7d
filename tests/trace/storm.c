/*
 * storm [-p PROCESSES] [-t THREADS] [-n PAIRS] [-d DEPTH]: so many processes with so many threads
 * each doing so many pairs of malloc and free, of 16 to 1039 bytes, from DEPTH frames down at 8
 * places. Says "done" when all of them have, status 0.
 */
#include "trace.h"

static int processes = 1, threads = 1, count = 1000, depth = 5;

static __attribute__((noinline)) void pair(size_t size, int place)
{
	volatile char keep = (char)place;

	free(alloc(size));
	(void)keep;
}

static __attribute__((noinline)) void down(int level, int i)
{
	volatile int keep = level;

	if (level > 0)
		down(level - 1, i);
	else
		pair((size_t)(16 + i % 1024), i % 8);
	(void)keep;
}

static void *work(void *arg)
{
	int *done = arg;

	for (int i = 0; i < count; i++) {
		down(depth + i % 8, i);
		++*done;
	}
	return NULL;
}

static int process(void)
{
	pthread_t ids[64];
	int done[64] = {0};

	for (int i = 1; i < threads; i++)
		CHECK(pthread_create(&ids[i], NULL, work, &done[i]) == 0);
	work(&done[0]);
	for (int i = 1; i < threads; i++)
		CHECK(pthread_join(ids[i], NULL) == 0);
	for (int i = 0; i < threads; i++)
		CHECK(done[i] == count);
	return 0;
}

static int option(const char *text)
{
	int n = 0;

	for (; *text; text++) {
		CHECK(*text >= '0' && *text <= '9' && n < 10000000);
		n = n * 10 + (*text - '0');
	}
	CHECK(n > 0);
	return n;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:t:n:d:")) != -1)
		switch (c) {
		case 'p':
			processes = option(optarg);
			break;
		case 't':
			threads = option(optarg);
			break;
		case 'n':
			count = option(optarg);
			break;
		case 'd':
			depth = option(optarg);
			break;
		default:
			return 2;
		}
	CHECK(threads <= 64);
	for (int i = 1; i < processes; i++)
		if (fork() == 0)
			_exit(process());
	process();
	for (int i = 1; i < processes; i++) {
		int status;

		CHECK(wait(&status) > 0 && status == 0);
	}
	return write(1, "done\n", 5) == 5 ? 0 : 1;
}
