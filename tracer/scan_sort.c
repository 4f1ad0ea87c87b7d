#include "tracer/scan.h"

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
#define ADDRESS_BITS 57

static size_t digit_of(const struct live_block *b, int shift)
{
	return b->address >> shift & (DIGITS - 1);
}

/* From the lowest digit to the highest; those that all have in common, as addresses of one heap
 * have the upper ones, cost one pass of counting. */
struct live_block *scan_sort(struct live_block *blocks, struct live_block *spare, size_t n)
{
	for (int shift = 0; shift < ADDRESS_BITS; shift += DIGIT_BITS) {
		size_t at[DIGITS] = {0}, sum = 0;
		struct live_block *sorted = spare;

		for (size_t i = 0; i < n; i++)
			at[digit_of(&blocks[i], shift)]++;
		if (n == 0 || at[digit_of(&blocks[0], shift)] == n)
			continue;
		for (size_t d = 0; d < DIGITS; d++) {
			size_t count = at[d];

			at[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			sorted[at[digit_of(&blocks[i], shift)]++] = blocks[i];
		spare = blocks;
		blocks = sorted;
	}
	return blocks;
}
