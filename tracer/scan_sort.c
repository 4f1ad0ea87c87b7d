#include "tracer/scan.h"

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define TOP_SHIFT 56 /* addresses have 57 bits */
#define FEW 32       /* that are sorted faster by insertion */

static size_t digit_of(const struct live_block *b, int shift)
{
	return b->address >> shift & (DIGITS - 1);
}

static void insert_sort(struct live_block *b, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct live_block v = b[i];
		size_t at = i;

		for (; at > 0 && b[at - 1].address > v.address; at--)
			b[at] = b[at - 1];
		b[at] = v;
	}
}

/* Puts each into its digit's part, in place; end[d] is where that part ends. */
static void distribute(struct live_block *b, size_t n, int shift, size_t end[static DIGITS])
{
	size_t next[DIGITS], count[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		count[digit_of(&b[i], shift)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		next[d] = sum;
		end[d] = sum += count[d];
	}
	if (count[digit_of(b, shift)] == n)
		return; /* as the upper digits of one heap's addresses are */
	for (size_t d = 0; d < DIGITS; d++) {
		while (next[d] < end[d]) {
			struct live_block v = b[next[d]];
			size_t to;

			while ((to = digit_of(&v, shift)) != d) {
				struct live_block other = b[next[to]];

				b[next[to]++] = v;
				v = other;
			}
			b[next[d]++] = v;
		}
	}
}

static void sort_by(struct live_block *b, size_t n, int shift)
{
	size_t end[DIGITS], start = 0;

	if (shift < 0)
		return; /* all the same */
	if (n < FEW) {
		insert_sort(b, n);
		return;
	}
	distribute(b, n, shift, end);
	for (size_t d = 0; d < DIGITS; d++) {
		sort_by(&b[start], end[d] - start, shift - DIGIT_BITS);
		start = end[d];
	}
}

void scan_sort(struct live_block *blocks, size_t n)
{
	sort_by(blocks, n, TOP_SHIFT);
}
