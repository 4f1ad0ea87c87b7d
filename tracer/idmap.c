#include "tracer/idmap.h"

#include <errno.h>

void idmap_done(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){0};
}

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t idmap_hash(uint64_t key)
{
	key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
	return key ^ key >> 31;
}

static struct idmap_slot *slot(const struct idmap *m, uint64_t key)
{
	size_t i = idmap_hash(key) & (m->cap - 1);

	while (m->slots[i].key != 0 && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

uint64_t *idmap_find(const struct idmap *m, uint64_t key)
{
	struct idmap_slot *s = m->cap ? slot(m, key) : NULL;

	return s && s->key == key ? &s->value : NULL;
}

static int grow(struct idmap *m)
{
	struct idmap old = *m;

	m->cap = old.cap ? 2 * old.cap : 64;
	m->slots = calloc(m->cap, sizeof(*m->slots));
	if (!m->slots) {
		*m = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.cap; i++) {
		if (old.slots[i].key != 0)
			*slot(m, old.slots[i].key) = old.slots[i];
	}
	free(old.slots);
	return 0;
}

int idmap_put(struct idmap *m, uint64_t key, uint64_t value)
{
	struct idmap_slot *s;

	if (2 * (m->n + 1) > m->cap && grow(m) < 0)
		return -ENOMEM;
	s = slot(m, key);
	m->n += s->key != key;
	*s = (struct idmap_slot){.key = key, .value = value};
	return 0;
}
