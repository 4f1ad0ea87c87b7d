#include "tracer/live_blocks.h"

#include <errno.h>
#include <string.h>

#define FIRST_CAP 64
#define PAGE_SIZE 4096

void blocks_done(struct blocks *b)
{
	free(b->slots);
	starts_done(&b->starts);
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
	return at;
}

static bool is_span(const struct block *at)
{
	return at->size > 0 && at->address / PAGE_SIZE != (at->address + at->size - 1) / PAGE_SIZE;
}

static void drop_starts(struct blocks *b)
{
	starts_done(&b->starts);
	b->has_starts = false;
}

void blocks_filled(struct blocks *b, const struct block *at)
{
	if (!b->has_starts)
		return;
	starts_remove(&b->starts, at->address); /* of what it has replaced */
	if (is_span(at) && starts_add(&b->starts, at->address) < 0)
		drop_starts(b);
}

void blocks_remove(struct blocks *b, struct block *at)
{
	size_t hole = (size_t)(at - b->slots), i = hole;

	if (b->has_starts && is_span(at))
		starts_remove(&b->starts, at->address);
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

static void find_starts(struct blocks *b)
{
	b->has_starts = true;
	for (size_t i = 0; b->has_starts && i < b->cap; i++) {
		const struct block *at = &b->slots[i];

		if (at->address != 0 && is_span(at) && starts_add(&b->starts, at->address) < 0)
			drop_starts(b);
	}
}

/* The block that begins nearest, at that address or before it; NULL = none. */
static const struct block *nearest(struct blocks *b, uint64_t address)
{
	uint64_t page = address & ~(uint64_t)(PAGE_SIZE - 1);

	for (uint64_t a = address & ~(uint64_t)7; a >= page && a > 0; a -= 8) {
		const struct block *at = blocks_find(b, a);

		if (at)
			return at;
	}
	if (!b->has_starts)
		find_starts(b);
	return blocks_find(b, starts_below(&b->starts, address));
}

const struct block *blocks_find_inside(struct blocks *b, uint64_t address)
{
	const struct block *at = blocks_find(b, address);

	if (!at && b->n > 0)
		at = nearest(b, address);
	return at && (at->address == address || address - at->address < at->size) ? at : NULL;
}
