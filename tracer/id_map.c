#include "tracer/id_map.h"

#include <errno.h>

#define FIRST_CAP 16

void id_map_done(struct id_map *m)
{
	free(m->slots);
	*m = (struct id_map){0};
}

static size_t home(const struct id_map *m, uint32_t id)
{
	return (id * UINT32_C(0x9e3779b1) >> 8) & (m->cap - 1);
}

/* The slot of the id, or the empty one where it belongs. */
static struct id_slot *probe(const struct id_map *m, uint32_t id)
{
	size_t i = home(m, id);

	while (m->slots[i].value && m->slots[i].id != id)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void *id_map_get(const struct id_map *m, uint32_t id)
{
	return m->n > 0 ? probe(m, id)->value : NULL;
}

int id_map_put(struct id_map *m, uint32_t id, void *value)
{
	if ((m->n + 1) * 4 > m->cap * 3) {
		struct id_map new = {.cap = m->cap ? m->cap * 2 : FIRST_CAP, .n = m->n};

		new.slots = calloc(new.cap, sizeof(*new.slots));
		if (!new.slots)
			return -ENOMEM;
		for (size_t i = 0; i < m->cap; i++)
			if (m->slots[i].value)
				*probe(&new, m->slots[i].id) = m->slots[i];
		free(m->slots);
		*m = new;
	}
	*probe(m, id) = (struct id_slot){id, value};
	m->n++;
	return 0;
}

void *id_map_remove(struct id_map *m, uint32_t id)
{
	struct id_slot *at = m->n > 0 ? probe(m, id) : NULL;
	void *value = at ? at->value : NULL;
	size_t hole, mask = m->cap - 1;

	if (!value)
		return NULL;
	hole = (size_t)(at - m->slots);
	for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
		/* It may move back unless its home lies behind the hole. */
		if (((i - home(m, m->slots[i].id)) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].value = NULL;
	m->n--;
	return value;
}
