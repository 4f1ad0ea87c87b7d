/*
 * For the test programs of the tracer. Each does a known number of known things; the comment at
 * its top says which, in the words of expect.py. Sizes are primes that occur nowhere else.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the program with a status that no test expects. */
#define CHECK(condition)                                                           \
	do {                                                                       \
		if (!(condition)) {                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(99);                                                 \
		}                                                                  \
	} while (0)

/* The compiler must not see through a pointer: neither drop the call nor know what it returned. */
static inline void *opaque(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

/* For who pages out: what another CPU has only just been given to put in order stays. */
static inline void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static inline void *alloc(size_t size)
{
	void *p = opaque(malloc(size));

	CHECK(p);
	return p;
}

static inline void pairs(size_t size, int n)
{
	for (int i = 0; i < n; i++)
		free(alloc(size));
}

static inline void wait_for(pid_t pid, int status)
{
	int got = -1;

	CHECK(waitpid(pid, &got, 0) == pid);
	CHECK(got == status);
}
