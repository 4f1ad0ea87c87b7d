/*
 * A small allocator under other allocators' names: own_NAME(malloc) is je_malloc or mi_malloc.
 * It takes its memory from a static array and gives blocks back in any order, from any thread.
 */
#include <pthread.h>
#include <stddef.h>

#define JOIN_(prefix, name) prefix##name
#define JOIN(prefix, name) JOIN_(prefix, name)
#define own_name(name) JOIN(PREFIX, name)

#define BLOCK 4096
#define BLOCKS 64

void *own_name(malloc)(size_t size);
void own_name(free)(void *p);

static char blocks[BLOCKS][BLOCK] __attribute__((aligned(16)));
static char is_used[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void *own_name(malloc)(size_t size)
{
	void *p = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < BLOCKS && !p && size <= BLOCK; i++)
		if (!is_used[i]) {
			is_used[i] = 1;
			p = blocks[i];
		}
	pthread_mutex_unlock(&lock);
	return p;
}

__attribute__((noinline)) void own_name(free)(void *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&lock);
	is_used[((char *)p - blocks[0]) / BLOCK] = 0;
	pthread_mutex_unlock(&lock);
}
