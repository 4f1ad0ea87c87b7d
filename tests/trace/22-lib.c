/* Built twice, as 22-one.so and 22-two.so: FUNCTION allocates SIZE bytes n times. */
#include "trace.h"

void FUNCTION(int n);

void FUNCTION(int n)
{
	pairs(SIZE, n);
}
