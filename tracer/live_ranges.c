#include "tracer/live_ranges.h"

#include <errno.h>

/* Pieces that start before key, and the others. */
static void split(struct piece *t, uint64_t key, struct piece **before, struct piece **others)
{
	while (t) {
		if (t->start < key) {
			*before = t;
			before = &t->right;
			t = t->right;
		} else {
			*others = t;
			others = &t->left;
			t = t->left;
		}
	}
	*before = *others = NULL;
}

/* All of a lie before all of b. */
static struct piece *merge(struct piece *a, struct piece *b)
{
	struct piece *root, **at = &root;

	while (a && b) {
		if (a->priority > b->priority) {
			*at = a;
			at = &a->right;
			a = a->right;
		} else {
			*at = b;
			at = &b->left;
			b = b->left;
		}
	}
	*at = a ? a : b;
	return root;
}

/* The tree as a list: left children are rotated up until there are none. */
static struct piece *to_list(struct piece *t)
{
	struct piece *list, **at = &list;

	while (t) {
		struct piece *left = t->left;

		if (left) {
			t->left = left->right;
			left->right = t;
			t = left;
		} else {
			*at = t;
			at = &t->right;
			t = t->right;
		}
	}
	*at = NULL;
	return list;
}

void pieces_free(struct piece *list)
{
	while (list) {
		struct piece *next = list->right;

		if (--list->mapping->refs == 0)
			free(list->mapping);
		free(list);
		list = next;
	}
}

void ranges_done(struct ranges *r)
{
	pieces_free(to_list(r->root));
	while (r->n_spare > 0)
		free(r->spare[--r->n_spare]);
	*r = (struct ranges){0};
}

int ranges_reserve(struct ranges *r)
{
	while (r->n_spare < RANGES_SPARE) {
		struct piece *p = malloc(sizeof(*p));

		if (!p)
			return -ENOMEM;
		r->spare[r->n_spare++] = p;
	}
	return 0;
}

static uint32_t next_random(struct ranges *r)
{
	r->random = r->random * 1664525 + 1013904223;
	return r->random ^ r->random >> 16;
}

void ranges_put(struct ranges *r, struct piece *p)
{
	struct piece *before, *others;

	split(r->root, p->start, &before, &others);
	p->left = p->right = NULL;
	r->root = merge(merge(before, p), others);
}

static void add(struct ranges *r, uint64_t start, uint64_t end, struct mapping *m,
		bool is_inherited)
{
	struct piece *p = r->spare[--r->n_spare];

	*p = (struct piece){.start = start,
			    .end = end,
			    .mapping = m,
			    .priority = next_random(r),
			    .is_inherited = is_inherited};
	m->refs++;
	ranges_put(r, p);
}

void ranges_add(struct ranges *r, uint64_t start, uint64_t end, struct mapping *m)
{
	add(r, start, end, m, false);
}

static struct piece *find(const struct ranges *r, uint64_t address)
{
	struct piece *t = r->root;

	while (t && (address < t->start || address >= t->end))
		t = address < t->start ? t->left : t->right;
	return t;
}

/* Makes address a border between pieces, where it lies within one. */
static void cut(struct ranges *r, uint64_t address)
{
	struct piece *p = find(r, address);
	uint64_t end;

	if (!p || p->start == address)
		return;
	end = p->end;
	p->end = address;
	add(r, address, end, p->mapping, p->is_inherited);
}

struct piece *ranges_take(struct ranges *r, uint64_t start, uint64_t end)
{
	struct piece *before, *taken, *behind;

	cut(r, start);
	cut(r, end);
	split(r->root, start, &before, &taken);
	split(taken, end, &taken, &behind);
	r->root = merge(before, behind);
	return to_list(taken);
}

const struct piece *ranges_find(const struct ranges *r, uint64_t address)
{
	return find(r, address);
}

const struct piece *ranges_next(const struct ranges *r, uint64_t address)
{
	const struct piece *best = NULL;

	for (const struct piece *t = r->root; t;) {
		if (t->start >= address) {
			best = t;
			t = t->left;
		} else {
			t = t->right;
		}
	}
	return best;
}

int ranges_inherit(struct ranges *ret, const struct ranges *from)
{
	*ret = (struct ranges){0};
	for (const struct piece *p = ranges_next(from, 0); p; p = ranges_next(from, p->end)) {
		if (ranges_reserve(ret) < 0) {
			ranges_done(ret);
			return -ENOMEM;
		}
		add(ret, p->start, p->end, p->mapping, true);
	}
	return 0;
}
