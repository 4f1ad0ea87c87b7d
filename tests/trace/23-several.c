/*
 * Three allocators in one static file, all of them traced. Stripped, only libc's absence from the
 * symbol table can be told; the program runs as ever. What static start-up allocates is not
 * counted.
 *
 * EXPECT alloc malloc 1303 x 7
 * EXPECT free free 1303 x 7
 * EXPECT alloc je_malloc 1307 x 5
 * EXPECT free je_free 1307 x 5
 * EXPECT alloc mi_malloc 1319 x 3
 * EXPECT free mi_free 1319 x 3
 * ALLOW alloc malloc *
 * ALLOW alloc calloc *
 * ALLOW free free *
 * NOORACLE
 */
#include "trace.h"

void *je_malloc(size_t size);
void je_free(void *p);
void *mi_malloc(size_t size);
void mi_free(void *p);

int main(void)
{
	pairs(1303, 7);
	for (int i = 0; i < 5; i++)
		je_free(opaque(je_malloc(1307)));
	for (int i = 0; i < 3; i++)
		mi_free(opaque(mi_malloc(1319)));
	return 0;
}
