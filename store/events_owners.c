#include "store/events_owners.h"

struct process_blocks *owners_find(struct owners *l, uint32_t pid)
{
	if (!l->last || l->last->pid != pid)
		l->last = map_pointer(map_get(&l->processes, pid));
	return l->last;
}

struct process_blocks *owners_get(struct owners *l, uint32_t pid)
{
	struct process_blocks *p = owners_find(l, pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || map_put(&l->processes, pid, (uintptr_t)p, NULL) < 0) {
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
	process_free(map_pointer(map_take(&l->processes, pid)));
}

void owners_done(struct owners *l)
{
	for (size_t i = 0; i < l->processes.cap; i++)
		process_free(map_pointer(l->processes.slots[i].value));
	map_done(&l->processes);
	l->last = NULL;
}
