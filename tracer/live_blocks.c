#include "tracer/live_blocks.h"

#include <errno.h>
#include <string.h>

#define FIRST_CAP 64

void blocks_done(struct blocks *b)
{
	free(b->slots);
	free(b->order);
	*b = (struct blocks){0};
}

static size_t home(uint64_t address, size_t cap)
{
	uint64_t h = address * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (size_t)((unsigned __int128)h * cap >> 64);
}

/* The slot of the address, or the empty one where it belongs. */
static struct block *probe(struct block *slots, size_t cap, uint64_t address)
{
	size_t i = home(address, cap);

	while (slots[i].address != address && slots[i].address != 0)
		i = i + 1 < cap ? i + 1 : 0;
	return &slots[i];
}

struct block *blocks_find(const struct blocks *b, uint64_t address)
{
	struct block *at = b->n > 0 ? probe(b->slots, b->cap, address) : NULL;

	return at && at->address != 0 ? at : NULL;
}

static int resize(struct blocks *b, size_t cap)
{
	struct block *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < b->cap; i++)
		if (b->slots[i].address != 0)
			*probe(slots, cap, b->slots[i].address) = b->slots[i];
	free(b->slots);
	b->slots = slots;
	b->cap = cap;
	return 0;
}

struct block *blocks_at(struct blocks *b, uint64_t address)
{
	struct block *at = b->cap > 0 ? probe(b->slots, b->cap, address) : NULL;

	if (at && at->address != 0)
		return at;
	if ((b->n + 1) * 4 > b->cap * 3) {
		if (resize(b, MAX(b->cap + b->cap / 4, (size_t)FIRST_CAP)) < 0)
			return NULL;
		at = probe(b->slots, b->cap, address);
	}
	at->address = address;
	at->site = 0;
	b->n++;
	b->is_ordered = false;
	return at;
}

void blocks_remove(struct blocks *b, struct block *at)
{
	size_t hole = (size_t)(at - b->slots), i = hole;

	for (;;) {
		size_t h;

		i = i + 1 < b->cap ? i + 1 : 0;
		if (b->slots[i].address == 0)
			break;
		/* It may move back unless its home lies behind the hole. */
		h = home(b->slots[i].address, b->cap);
		if (hole <= i ? hole < h && h <= i : hole < h || h <= i)
			continue;
		b->slots[hole] = b->slots[i];
		hole = i;
	}
	b->slots[hole].address = 0;
	b->n--;
	b->is_ordered = false;
	if (b->cap > FIRST_CAP && b->n * 10 < b->cap * 3)
		(void)resize(b, MAX(b->n * 5 / 3, (size_t)FIRST_CAP)); /* else it stays large */
}

int blocks_inherit(struct blocks *ret, const struct blocks *from)
{
	*ret = (struct blocks){0};
	if (from->n == 0)
		return 0;
	ret->slots = malloc(from->cap * sizeof(*ret->slots));
	if (!ret->slots)
		return -ENOMEM;
	memcpy(ret->slots, from->slots, from->cap * sizeof(*ret->slots));
	for (size_t i = 0; i < from->cap; i++)
		ret->slots[i].is_inherited = true;
	ret->n = from->n;
	ret->cap = from->cap;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int blocks_order(struct blocks *b, const uint64_t **ret)
{
	if (!b->is_ordered && b->n > 0) {
		uint64_t *order = realloc(b->order, b->n * sizeof(*order));
		size_t n = 0;

		if (!order)
			return -ENOMEM;
		for (size_t i = 0; i < b->cap; i++)
			if (b->slots[i].address != 0)
				order[n++] = b->slots[i].address;
		qsort(order, n, sizeof(*order), compare);
		b->order = order;
		b->is_ordered = true;
	}
	*ret = b->order;
	return 0;
}

/* The highest address of a block that is not above that one, or 0. */
static uint64_t nearest(struct blocks *b, uint64_t address)
{
	const uint64_t *order;
	size_t low = 0, high = b->n;
	uint64_t best = 0;

	if (blocks_order(b, &order) < 0) {
		for (size_t i = 0; i < b->cap; i++)
			if (b->slots[i].address <= address)
				best = MAX(best, b->slots[i].address);
		return best;
	}
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (order[mid] <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? order[low - 1] : 0;
}

const struct block *blocks_find_inside(struct blocks *b, uint64_t address)
{
	const struct block *at = blocks_find(b, address);

	if (!at && b->n > 0)
		at = blocks_find(b, nearest(b, address));
	return at && (at->address == address || address - at->address < at->size) ? at : NULL;
}
