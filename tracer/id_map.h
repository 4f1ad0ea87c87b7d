/*
 * Pointers by pid or tid: a small hash table.
 *
 * Life: zeroed → id_map_put … → id_map_done. Values are not owned, and never NULL.
 */
#pragma once

#include "base/base.h"

struct id_slot {
	uint32_t id;
	void *value; /* NULL = empty */
};

struct id_map {
	struct id_slot *slots; /* cap of them, a power of two */
	size_t n, cap;
};

void id_map_done(struct id_map *m);
void *id_map_get(const struct id_map *m, uint32_t id);      /* NULL = not there */
int id_map_put(struct id_map *m, uint32_t id, void *value); /* id is not there; or -ENOMEM */
void *id_map_remove(struct id_map *m, uint32_t id);         /* its value; NULL = not there */
