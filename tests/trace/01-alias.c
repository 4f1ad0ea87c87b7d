/*
 * One function under several names is probed once: one event per call.
 * EXPECT alloc malloc 1009 x 11
 * EXPECT free free 1009 x 11
 * EXPECT alloc memalign 1088 x 5
 * EXPECT alloc memalign 1097 x 3
 * EXPECT free free 1088 x 5
 * EXPECT free free 1097 x 3
 * NOORACLE
 */
#include "trace.h"

#include <dlfcn.h>

typedef void free_fn(void *);

int main(void)
{
	free_fn *cfree_fn = (free_fn *)dlvsym(RTLD_DEFAULT, "cfree", "GLIBC_2.2.5");
	free_fn *libc_free = (free_fn *)dlsym(RTLD_DEFAULT, "__libc_free");

	CHECK(cfree_fn && libc_free);
	for (int i = 0; i < 5; i++)
		free(alloc(1009));
	for (int i = 0; i < 3; i++)
		cfree_fn(alloc(1009));
	for (int i = 0; i < 3; i++)
		libc_free(alloc(1009));
	for (int i = 0; i < 5; i++)
		free(opaque(aligned_alloc(64, 1088)));
	for (int i = 0; i < 3; i++)
		free(opaque(memalign(64, 1097)));
	return 0;
}
