#include "store/events_live.h"

#include <errno.h>
#include <string.h>

#define MAP_BITS_MIN 4

/* Multiplying spreads keys that differ in a few bits only, as addresses and numbers do. */
static size_t home(const struct map *m, uint64_t key)
{
	return key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - m->bits);
}

/* The key's slot, or the empty one where it would go. There always is an empty one. */
static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t mask = ((size_t)1 << m->bits) - 1, i = home(m, key);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & mask;
	return &m->slots[i];
}

uint64_t map_get(const struct map *m, uint64_t key)
{
	return m->slots ? find(m, key)->value : 0;
}

static int grow(struct map *m)
{
	struct map bigger = {.bits = m->slots ? m->bits + 1 : MAP_BITS_MIN, .n = m->n};

	bigger.slots = calloc((size_t)1 << bigger.bits, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; m->slots && i < (size_t)1 << m->bits; i++) {
		if (m->slots[i].value)
			*find(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value, uint64_t *ret_old)
{
	struct map_slot *slot;

	/* At most two thirds full: beyond that the way to a slot gets long. */
	if ((!m->slots || m->n >= ((size_t)2 << m->bits) / 3) && grow(m) < 0)
		return -ENOMEM;
	slot = find(m, key);
	*ret_old = slot->value;
	if (!slot->value)
		m->n++;
	*slot = (struct map_slot){key, value};
	return 0;
}

/* The slots behind are moved up as long as that brings them nearer to their home, so that no gap
 * cuts them off and no tombstones pile up. */
uint64_t map_take(struct map *m, uint64_t key)
{
	size_t mask = ((size_t)1 << m->bits) - 1, gap, i;
	uint64_t value;

	if (!m->slots)
		return 0;
	gap = (size_t)(find(m, key) - m->slots);
	value = m->slots[gap].value;
	if (!value)
		return 0;
	for (i = (gap + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
		size_t from_home = (i - home(m, m->slots[i].key)) & mask;

		if (from_home >= ((i - gap) & mask)) {
			m->slots[gap] = m->slots[i];
			gap = i;
		}
	}
	m->slots[gap].value = 0;
	m->n--;
	return value;
}

void map_clear(struct map *m)
{
	if (m->n)
		memset(m->slots, 0, sizeof(*m->slots) << m->bits);
	m->n = 0;
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

struct process_blocks *owners_find(struct owners *l, uint32_t pid)
{
	if (!l->last || l->last->pid != pid)
		l->last = (struct process_blocks *)(uintptr_t)map_get(&l->processes, pid);
	return l->last;
}

struct process_blocks *owners_get(struct owners *l, uint32_t pid)
{
	struct process_blocks *p = owners_find(l, pid);
	uint64_t old;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || map_put(&l->processes, pid, (uintptr_t)p, &old) < 0) {
		free(p);
		return NULL;
	}
	p->pid = pid;
	l->last = p;
	return p;
}

static void process_free(struct process_blocks *p)
{
	if (!p)
		return;
	map_done(&p->blocks);
	free(p);
}

void owners_drop(struct owners *l, uint32_t pid)
{
	l->last = NULL;
	process_free((struct process_blocks *)(uintptr_t)map_take(&l->processes, pid));
}

void owners_done(struct owners *l)
{
	struct map *m = &l->processes;

	for (size_t i = 0; m->slots && i < (size_t)1 << m->bits; i++)
		process_free((struct process_blocks *)(uintptr_t)m->slots[i].value);
	map_done(m);
	l->last = NULL;
}
