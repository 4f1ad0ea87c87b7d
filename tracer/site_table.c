#include "tracer/site_table.h"

#include <errno.h>

#define FIRST_SITES 64 /* half as many as slots, and so for ever */

void site_table_done(struct site_table *t)
{
	free(t->sites);
	free(t->epochs);
	free(t->slots);
	*t = (struct site_table){0};
}

/* The slot of the site, or the empty one where it belongs. */
static uint32_t *slot_of(const struct site_table *t, uint32_t stack, enum site_kind kind)
{
	uint64_t hash = ((uint64_t)stack << 2 | (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (hash >> 32) & (t->n_slots - 1);

	while (t->slots[i] != 0) {
		const struct site *s = &t->sites[t->slots[i] - 1];

		if (s->stack == stack && s->kind == kind)
			break;
		i = (i + 1) & (t->n_slots - 1);
	}
	return &t->slots[i];
}

static int grow(struct site_table *t)
{
	size_t cap = t->cap ? t->cap * 2 : FIRST_SITES;
	uint32_t *slots = calloc(cap * 2, sizeof(*slots));
	struct site *sites = realloc(t->sites, cap * sizeof(*sites));
	uint64_t *epochs = realloc(t->epochs, cap * sizeof(*epochs));

	if (sites)
		t->sites = sites;
	if (epochs)
		t->epochs = epochs;
	if (!slots || !sites || !epochs) {
		free(slots);
		return -ENOMEM;
	}
	free(t->slots);
	t->slots = slots;
	t->n_slots = cap * 2;
	t->cap = cap;
	for (size_t i = 0; i < t->n; i++)
		*slot_of(t, sites[i].stack, sites[i].kind) = (uint32_t)i + 1;
	return 0;
}

uint32_t site_table_get(struct site_table *t, uint32_t stack, enum site_kind kind)
{
	uint32_t *slot = t->n_slots ? slot_of(t, stack, kind) : NULL;

	if (slot && *slot != 0)
		return *slot;
	if (t->n == t->cap) {
		if (t->n >= UINT32_MAX / 2 || grow(t) < 0)
			return 0;
		slot = slot_of(t, stack, kind);
	}
	t->sites[t->n] = (struct site){.id = (uint32_t)t->n + 1,
				       .stack = stack,
				       .kind = kind,
				       .major_faults = t->counts_faults ? 0 : -1,
				       .fault_ns = -1,
				       .max_swapped_bytes = -1};
	t->epochs[t->n] = t->epoch;
	t->n++;
	*slot = (uint32_t)t->n;
	return *slot;
}

static unsigned log2_of(uint64_t v)
{
	return v < 2 ? 0 : 63 - (unsigned)__builtin_clzll(v);
}

/* A site that did not change since the last peak had then what it has now. */
static void settle(struct site_table *t, size_t i)
{
	if (t->epochs[i] != t->epoch) {
		t->epochs[i] = t->epoch;
		t->sites[i].at_peak_bytes = t->sites[i].live_bytes;
	}
}

void site_table_remove(struct site_table *t, uint32_t id, uint64_t bytes, int n)
{
	struct site *s = &t->sites[id - 1];

	settle(t, id - 1);
	s->live_bytes -= (int64_t)bytes;
	s->live_count -= n;
	t->live_bytes -= (int64_t)bytes;
	t->live_count -= n;
}

void site_table_put_back(struct site_table *t, uint32_t id, uint64_t bytes, int n, int64_t t_ns)
{
	struct site *s = &t->sites[id - 1];

	settle(t, id - 1);
	s->live_bytes += (int64_t)bytes;
	s->live_count += n;
	s->peak_live_bytes = MAX(s->peak_live_bytes, s->live_bytes);
	t->live_bytes += (int64_t)bytes;
	t->live_count += n;
	if (t->live_bytes > t->peak_bytes) {
		t->peak_bytes = t->live_bytes;
		t->peak_t_ns = t_ns;
		t->epoch++;
	}
}

void site_table_alloc(struct site_table *t, uint32_t id, uint64_t size, int64_t t_ns)
{
	struct site *s = &t->sites[id - 1];

	s->alloc_count++;
	/* Reservations of address space without end can sum up to more than there are numbers. */
	if (__builtin_add_overflow(s->alloc_bytes, (int64_t)size, &s->alloc_bytes))
		s->alloc_bytes = INT64_MAX;
	s->size_log2[log2_of(size)]++;
	site_table_put_back(t, id, size, 1, t_ns);
}

void site_table_failed(struct site_table *t, uint32_t id)
{
	t->sites[id - 1].failed_count++;
}

void site_table_temporary(struct site_table *t, uint32_t id, int n)
{
	t->sites[id - 1].temporary_count += n;
}

void site_table_freed(struct site_table *t, uint32_t id, int64_t age_ns, int n)
{
	struct site *s = &t->sites[id - 1];

	s->free_count += n;
	s->lifetime_log2[log2_of((uint64_t)MAX(age_ns, 0))] += (uint32_t)n;
}

void site_table_leaked(struct site_table *t, uint32_t id, uint64_t bytes, int n)
{
	struct site *s = &t->sites[id - 1];

	s->leaked_bytes += (int64_t)bytes;
	s->leaked_count += n;
}

void site_table_swapped(struct site_table *t, uint32_t id, int64_t bytes)
{
	struct site *s = &t->sites[id - 1];

	s->max_swapped_bytes = MAX(s->max_swapped_bytes, bytes);
}

void site_table_finish(struct site_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct site *s = &t->sites[i];

		settle(t, i);
		s->leaked_bytes += s->live_bytes;
		s->leaked_count += s->live_count;
	}
}

void site_table_fault(struct site_table *t, uint32_t id, int64_t duration_ns)
{
	struct site *s = &t->sites[id - 1];

	s->major_faults++;
	if (duration_ns >= 0)
		s->fault_ns = MAX(s->fault_ns, INT64_C(0)) + duration_ns;
}
