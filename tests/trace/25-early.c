/*
 * Before main: thread-local storage and libraries that ld.so sets up with its own allocator, an
 * allocation in preinit, one in a constructor, one in a destructor.
 * EXPECT alloc malloc 1327 x 3
 * EXPECT free free 1327 x 3
 * EXPECT alloc malloc 1361 x 5
 * EXPECT free free 1361 x 5
 * EXPECT alloc malloc 1367 x 7
 * EXPECT free free 1367 x 7
 * IGNORE alloc ld-linux
 * NOORACLE
 */
#include "trace.h"

static __thread char storage[100003];

static void early(void)
{
	pairs(1327, 3);
}
__attribute__((section(".preinit_array"), used)) static void (*early_fn)(void) = early;

__attribute__((constructor)) static void begin(void)
{
	pairs(1361, 5);
}

__attribute__((destructor)) static void end(void)
{
	pairs(1367, 7);
}

int main(void)
{
	storage[99991] = 1;
	return *(char *)opaque(storage) == 0 ? 0 : 1;
}
