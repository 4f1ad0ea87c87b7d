#include "base/map.h"

#include <errno.h>
#include <string.h>

#define FIRST_BITS 4

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t map_mix(uint64_t key)
{
	key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
	return key ^ key >> 31;
}

/* Multiplying spreads keys that differ in a few bits only, as addresses and numbers do. */
static size_t home(const struct map *m, uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> m->shift;
}

/* The slot of the key, or the empty one where it belongs. cap is not 0. */
static struct map_slot *probe(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

uint64_t map_get(const struct map *m, uint64_t key)
{
	return m->cap ? probe(m, key)->value : 0;
}

static int grow(struct map *m)
{
	unsigned int shift = m->cap ? m->shift - 1 : 64 - FIRST_BITS;
	struct map bigger = {.n = m->n, .cap = (size_t)1 << (64 - shift), .shift = shift};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].value)
			*probe(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value, uint64_t *ret_old)
{
	struct map_slot *at;

	/* At most two thirds full: beyond that the way to a slot gets long. */
	if (m->n >= m->cap * 2 / 3 && grow(m) < 0)
		return -ENOMEM;
	at = probe(m, key);
	if (ret_old)
		*ret_old = at->value;
	m->n += !at->value;
	*at = (struct map_slot){key, value};
	return 0;
}

uint64_t map_take(struct map *m, uint64_t key)
{
	struct map_slot *at = m->cap ? probe(m, key) : NULL;
	uint64_t value = at ? at->value : 0;
	size_t hole, mask = m->cap - 1;

	if (!value)
		return 0;
	hole = (size_t)(at - m->slots);
	for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
		/* It may move back unless its home lies behind the hole. */
		if (((i - home(m, m->slots[i].key)) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].value = 0;
	m->n--;
	return value;
}

void map_clear(struct map *m)
{
	if (m->n)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}
